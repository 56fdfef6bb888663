"""PyTorch fed by TensorFlow's data pipelines: TensorFlow in the same process, without the GPU."""

import os

from workloads.fault import Fault
from workloads.frameworks import imports, torch


class Framework(torch.Framework):
    """PyTorch, with TensorFlow beside it that reads data only. See ``workloads.frameworks.torch``."""

    def __init__(self, cell):
        # Errors and warnings reach the launch's log; what was found and loaded does not.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
        self.prepare_import(cell)
        # torchvision too, though no pipeline of tfds's needs it.
        imports.load_in_order()
        super().__init__(cell)
        import tensorflow as tf

        self.tf = tf
        # Until 2.1 the calls for devices are experimental.
        config = tf.config if hasattr(tf.config, "set_visible_devices") else tf.config.experimental
        # Memory of the GPU would be taken by the first pipeline that runs.
        config.set_visible_devices([], "GPU")
        if config.get_visible_devices("GPU"):
            raise Fault("device", "TensorFlow would not let go of the GPU, which PyTorch computes on")
        tf.config.threading.set_intra_op_parallelism_threads(cell["threads"]["intra_op"])
        tf.config.threading.set_inter_op_parallelism_threads(cell["threads"]["inter_op"])
        tf.random.set_seed(cell["seed"])

    def settings(self):
        """As PyTorch's, with how many threads TensorFlow's pipelines have."""
        threading = self.tf.config.threading
        return dict(
            super().settings(),
            **{
                "tf.threads_intra_op": threading.get_intra_op_parallelism_threads(),
                "tf.threads_inter_op": threading.get_inter_op_parallelism_threads(),
                "tf.version": self.tf.__version__,
            },
        )
