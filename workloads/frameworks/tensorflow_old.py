"""TensorFlow before 2.5, with the Keras 2 beside it or within it: on a CPU, in float32."""

import os

from workloads import machine
from workloads.fault import Fault
from workloads.frameworks import AT_ONCE, order_version, return_at_once

KERAS = {"keras": "keras_2"}


class Framework(object):
    """TensorFlow 1.12 to 2.4, imported and configured for one cell. See ``workloads.frameworks.torch``.

    TensorFlow 1 computes eagerly, as ``tf.contrib.eager`` had it, but for the Keras that is a package of its
    own, which knows graphs only.
    """

    name = "tensorflow"
    synchronisation = AT_ONCE
    synchronise = staticmethod(return_at_once)
    place = "/CPU:0"
    gpu = index = None
    older = KERAS

    def __init__(self, cell):
        os.environ["KERAS_BACKEND"] = "tensorflow"
        os.environ["KERAS_HOME"] = os.path.join(cell["cache"], "keras")
        import tensorflow as tf

        self.tf = tf
        self.is_first = order_version(tf.__version__) < (2, 0)
        self.warnings = []
        self.precision = cell["precision"]
        self.threads = cell["threads"]
        if cell["device"] != "cpu":
            # Also, before 2.5 there is no call that waits for a GPU.
            raise Fault(
                "device",
                "TensorFlow %s is measured on a CPU only: its GPU build needs a CUDA of the system that is "
                "no longer published" % tf.__version__,
                "skipped",
            )
        if self.precision != "fp32":
            raise Fault("precision", "TensorFlow %s computes in float32 here" % tf.__version__, "skipped")
        self.keras = self._find_keras(cell)
        if self.is_first:
            tf.logging.set_verbosity(tf.logging.ERROR)
            self._begin_first()
        else:
            tf.config.threading.set_intra_op_parallelism_threads(self.threads["intra_op"])
            tf.config.threading.set_inter_op_parallelism_threads(self.threads["inter_op"])
            tf.config.optimizer.set_jit(False)
        self.v1.set_random_seed(0)

    def _find_keras(self, cell):
        """Return the Keras that the cell computes by: where a variant is Keras's own and there is a package
        of it, that one."""
        if cell["module"] in KERAS and self.is_first:
            try:
                import keras

                return keras
            except ImportError:
                pass
        return self.tf.keras

    def _begin_first(self):
        tf = self.tf
        configuration = tf.ConfigProto(
            intra_op_parallelism_threads=self.threads["intra_op"],
            inter_op_parallelism_threads=self.threads["inter_op"],
            device_count={"GPU": 0},
        )
        if self.keras is tf.keras:
            tf.enable_eager_execution(configuration)
        else:
            self.session = tf.Session(config=configuration)
            self.keras.backend.set_session(self.session)

    @property
    def v1(self):
        """What TensorFlow 1 has at its top."""
        return self.tf if self.is_first else self.tf.compat.v1

    def policy(self, dtype):
        """Return the type of layers that compute ``dtype`` tensors, and make it that of whole models, which
        in 2.0 turn what they are given into their own."""
        self.keras.backend.set_floatx(dtype)
        return dtype

    def trace(self, function, jit):
        """Trace a function into a graph.

        Raises:
            Fault: XLA is asked for, which is not in these builds.
        """
        if jit:
            raise Fault("variant", "TensorFlow %s has no XLA in this build" % self.tf.__version__, "skipped")
        return self.tf.contrib.eager.defun(function) if self.is_first else self.tf.function(function)

    def list_variables(self, model):
        """List the tensors that a model trains."""
        return model.trainable_variables

    def device_of(self, tensor):
        """Return ``cpu``: where ``tensor`` was computed."""
        if not isinstance(tensor, self.tf.Tensor) or not hasattr(tensor, "numpy"):
            return "cpu"
        return self.v1.DeviceSpec.from_string(tensor.device).device_type.lower()

    def read(self, tensor):
        """Copy ``tensor`` to the host as a numpy array."""
        return tensor.numpy() if hasattr(tensor, "numpy") else tensor

    def describe_device(self):
        """Describe the cell's device."""
        here = machine.describe()
        return {"model": here["cpu_model"], "memory_bytes": here["memory_bytes"]}

    def peak_device_bytes(self):
        """A CPU has no memory of its own."""

    def settings(self):
        """Read back what decides how fast this process computes."""
        tf = self.tf
        read = {"deterministic": False, "keras": self.keras.__version__}
        if self.is_first:
            from tensorflow.python.eager import context

            held = self.session._config if self.keras is not tf.keras else context.context()._config
            read["threads_intra_op"] = held.intra_op_parallelism_threads
            read["threads_inter_op"] = held.inter_op_parallelism_threads
        else:
            read["threads_intra_op"] = tf.config.threading.get_intra_op_parallelism_threads()
            read["threads_inter_op"] = tf.config.threading.get_inter_op_parallelism_threads()
            # Until 2.1 what was set is read back as an empty word.
            read["tensorflow.autojit"] = str(tf.config.optimizer.get_jit() or False)
        return read
