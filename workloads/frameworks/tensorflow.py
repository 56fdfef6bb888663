"""TensorFlow: device, precision, threads, synchronisation, and its settings read back."""

import os
from typing import Dict

from workloads import machine
from workloads.fault import Fault
from workloads.frameworks import BFLOAT16_CAPABILITY, check_kernels, gpu_index, order_version

FIRST = (2, 16)
"""Version of TensorFlow whose Keras is Keras 3. Those in between, with a Keras 2 and calls of TensorFlow's
own that came one by one from 2.1 to 2.15, are in no stack."""
OLDER_END = (2, 1)
"""Version before which ``workloads.frameworks.tensorflow_old`` serves."""


def choose():
    """Return the class for the TensorFlow that is installed.

    Raises:
        Fault: nobody wrote one.
    """
    # Errors and warnings reach the launch's log; what was found and loaded does not.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    import tensorflow as tf

    version = order_version(tf.__version__)
    if version >= FIRST:
        return Framework
    if version >= OLDER_END:
        raise Fault(
            "import",
            "TensorFlow %s: between %d.%d and %d.%d none is known; take another stack"
            % ((tf.__version__,) + OLDER_END + FIRST),
        )
    from workloads.frameworks import tensorflow_old

    return tensorflow_old.Framework


class Framework(object):
    """TensorFlow and Keras, imported and configured for one cell. See ``workloads.frameworks.torch``."""

    name = "tensorflow"
    older: Dict[str, str] = {}
    synchronisation = "tf.test.experimental.sync_devices"

    def __init__(self, cell):
        os.environ["KERAS_BACKEND"] = "tensorflow"
        os.environ["KERAS_HOME"] = os.path.join(cell["cache"], "keras")
        import tensorflow as tf  # isort: skip, so that the one that is missing is the one that is named
        import keras

        if keras.config.backend() != "tensorflow":
            raise Fault("settings", "Keras computes by %s, not by TensorFlow" % keras.config.backend())
        self.tf = tf
        self.warnings = []
        self.keras = keras
        self.precision = cell["precision"]
        self.index = gpu_index(cell)
        tf.config.threading.set_intra_op_parallelism_threads(cell["threads"]["intra_op"])
        tf.config.threading.set_inter_op_parallelism_threads(cell["threads"]["inter_op"])
        tf.random.set_seed(0)
        self.gpu = self._choose_device()
        self._set_precision()
        tf.config.optimizer.set_jit(False)

    def _choose_device(self):
        gpus = self.tf.config.list_physical_devices("GPU")
        if self.index is None:
            self.tf.config.set_visible_devices([], "GPU")
            if self.tf.config.get_visible_devices("GPU"):
                raise Fault("device", "TensorFlow would not let go of the GPU in a launch for the CPU")
            return None
        if self.index >= len(gpus):
            raise Fault(
                "device",
                "TensorFlow sees %d CUDA GPUs, and so no cuda:%d; run on --device cpu, or mend the driver"
                % (len(gpus), self.index),
            )
        gpu = gpus[self.index]
        capability = self.tf.config.experimental.get_device_details(gpu).get("compute_capability")
        if capability is not None:
            built = self.tf.sysconfig.get_build_info().get("cuda_compute_capabilities", [])
            self.warnings = check_kernels("tensorflow", built, capability)
        self.tf.config.set_visible_devices([gpu], "GPU")
        self.tf.config.experimental.set_memory_growth(gpu, True)
        return gpu

    def _set_precision(self):
        if self.precision == "tf32" and self.gpu is None:
            raise Fault("precision", "TF32 is a format of GPUs; a CPU has none", "skipped")
        if self.precision == "bf16" and not self._has_bfloat16():
            raise Fault(
                "precision", "%s does not compute in bfloat16" % self.describe_device()["model"], "skipped"
            )
        self.tf.config.experimental.enable_tensor_float_32_execution(self.precision == "tf32")

    def _has_bfloat16(self):
        if self.gpu is None:
            return machine.has_bfloat16()
        return self._gpu_details().get("compute_capability", (0, 0)) >= BFLOAT16_CAPABILITY

    def _gpu_details(self):
        return self.tf.config.experimental.get_device_details(self.gpu)

    def policy(self, dtype):
        """Return the Keras dtype policy that computes ``dtype`` tensors in the cell's precision."""
        return "mixed_bfloat16" if self.precision == "bf16" and dtype == "float32" else dtype

    @property
    def v1(self):
        """What TensorFlow 1 had at its top."""
        return self.tf.compat.v1

    def trace(self, function, jit):
        """Trace a function into a graph, which XLA compiles if ``jit``."""
        return self.tf.function(function, jit_compile=jit)

    def list_variables(self, model):
        """List the tensors that a model trains."""
        return [variable.value for variable in model.trainable_variables]

    @property
    def place(self):
        """Name of the device for ``tf.device``. The chosen GPU is the only visible one."""
        return "/CPU:0" if self.gpu is None else "/GPU:0"

    @property
    def synchronise(self):
        """The call that waits for the device."""
        return self.tf.test.experimental.sync_devices

    def device_of(self, tensor):
        """Return ``cpu`` or ``cuda:N``: where ``tensor`` was computed."""
        device = self.tf.DeviceSpec.from_string(tensor.device)
        return "cuda:%d" % self.index if device.device_type == "GPU" else device.device_type.lower()

    def read(self, tensor):
        """Copy ``tensor`` to the host as a numpy array."""
        return tensor.numpy()

    def describe_device(self):
        """Describe the cell's device: model, driver, capability, memory."""
        if self.gpu is None:
            here = machine.describe()
            return {"model": here["cpu_model"], "memory_bytes": here["memory_bytes"]}
        details = self._gpu_details()
        capability = details.get("compute_capability")
        return {
            "model": details.get("device_name", "unknown GPU"),
            "driver": machine.nvidia_driver(),
            "capability": "%d.%d" % capability if capability else None,
        }

    def peak_device_bytes(self):
        """Return the most memory that tensors held on the GPU, or ``None`` on a CPU."""
        return None if self.gpu is None else self.tf.config.experimental.get_memory_info("GPU:0")["peak"]

    def settings(self):
        """Read back what decides how fast this process computes."""
        tf = self.tf
        read = {
            "threads_intra_op": tf.config.threading.get_intra_op_parallelism_threads(),
            "threads_inter_op": tf.config.threading.get_inter_op_parallelism_threads(),
            "deterministic": _determinism(tf),
            "keras": self.keras.__version__,
            "tensorflow.autojit": str(tf.config.optimizer.get_jit()),
            "tensorflow.eager_functions": tf.config.functions_run_eagerly(),
        }
        if self.gpu is not None:
            build = tf.sysconfig.get_build_info()
            read["tf32"] = tf.config.experimental.tensor_float_32_execution_enabled()
            read["memory_growth"] = tf.config.experimental.get_memory_growth(self.gpu)
            read["tensorflow.cuda"] = build.get("cuda_version")
            read["tensorflow.cudnn"] = build.get("cudnn_version")
        return read


def _determinism(tf):
    # There is no public call that reads it back.
    from tensorflow.python.framework import config

    return bool(config.is_op_determinism_enabled())
