"""PyTorch: device, precision, threads, synchronisation, and its settings read back."""

import contextlib
import os

from workloads import machine
from workloads.fault import Fault
from workloads.frameworks import BFLOAT16_CAPABILITY, check_kernels, gpu_index

# Python 3.6 has only the other, which does as much.
NOTHING = getattr(contextlib, "nullcontext", contextlib.ExitStack)()
"""A context that does nothing, and that torch.compile sees through."""


class Framework(object):
    """PyTorch, imported and configured for one cell. Its public members are what every framework's
    ``Framework`` has."""

    name = "torch"

    def __init__(self, cell):
        self.prepare_import(cell)
        import torch

        self.torch = torch
        self.warnings = []
        self.precision = cell["precision"]
        self.index = gpu_index(cell)
        self.place = torch.device("cpu" if self.index is None else "cuda:%d" % self.index)
        torch.set_num_threads(cell["threads"]["intra_op"])
        torch.set_num_interop_threads(cell["threads"]["inter_op"])
        torch.manual_seed(0)
        self._check_device()
        self._set_precision()
        torch.backends.cudnn.benchmark = False

    @staticmethod
    def prepare_import(cell):
        """Set the variables that must stand before PyTorch is imported."""
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(cell["cache"], "inductor")
        os.environ["TRITON_CACHE_DIR"] = os.path.join(cell["cache"], "triton")

    def _check_device(self):
        torch = self.torch
        if self.index is None:
            return
        if not torch.cuda.is_available():
            raise Fault("device", "torch sees no CUDA GPU here; run on --device cpu, or mend the driver")
        if self.index >= torch.cuda.device_count():
            raise Fault(
                "device", "there is no cuda:%d; torch sees %d" % (self.index, torch.cuda.device_count())
            )
        capability = torch.cuda.get_device_capability(self.index)
        self.warnings = check_kernels("torch", torch.cuda.get_arch_list(), capability)

    def _set_precision(self):
        torch = self.torch
        if self.precision == "tf32" and self.index is None:
            raise Fault("precision", "TF32 is a format of GPUs; a CPU has none", "skipped")
        if self.precision == "bf16" and not self._has_bfloat16():
            raise Fault(
                "precision", "%s does not compute in bfloat16" % self.describe_device()["model"], "skipped"
            )
        tf32 = self.precision == "tf32"
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        torch.backends.cudnn.allow_tf32 = tf32

    def _has_bfloat16(self):
        if self.index is None:
            return machine.has_bfloat16()
        # torch's own question counts emulation too.
        return self.torch.cuda.get_device_capability(self.index) >= BFLOAT16_CAPABILITY

    def autocast(self):
        """Return a context in which forward passes compute in the cell's precision."""
        if self.precision == "bf16":
            return self.torch.autocast(self.place.type, dtype=self.torch.bfloat16)
        # A disabled autocast costs microseconds a step that the other framework does not pay.
        return NOTHING

    @property
    def synchronisation(self):
        """Name of the call that waits for the device."""
        return "torch.%s.synchronize" % self.place.type

    @property
    def synchronise(self):
        """The call that waits for the device."""
        if self.index is None:
            return self.torch.cpu.synchronize
        index, wait = self.index, self.torch.cuda.synchronize
        return lambda: wait(index)

    def device_of(self, tensor):
        """Return ``cpu`` or ``cuda:N``: where ``tensor`` was computed."""
        return str(tensor.device)

    def read(self, tensor):
        """Copy ``tensor`` to the host as a numpy array."""
        return tensor.detach().cpu().numpy()

    def describe_device(self):
        """Describe the cell's device: model, driver, capability, memory."""
        if self.index is None:
            here = machine.describe()
            return {"model": here["cpu_model"], "memory_bytes": here["memory_bytes"]}
        properties = self.torch.cuda.get_device_properties(self.index)
        return {
            "model": properties.name,
            "driver": machine.nvidia_driver(),
            "capability": "%d.%d" % (properties.major, properties.minor),
            "memory_bytes": properties.total_memory,
        }

    def peak_device_bytes(self):
        """Return the most memory that tensors held on the GPU, or ``None`` on a CPU."""
        return None if self.index is None else self.torch.cuda.max_memory_allocated(self.index)

    def settings(self):
        """Read back what decides how fast this process computes."""
        torch = self.torch
        read = {
            "threads_intra_op": torch.get_num_threads(),
            "threads_inter_op": torch.get_num_interop_threads(),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "torch.float32_matmul_precision": torch.get_float32_matmul_precision(),
            "torch.mkldnn": torch.backends.mkldnn.enabled,
            "torch.default_dtype": str(torch.get_default_dtype()),
        }
        if self.index is None:
            read["torch.cpu_capability"] = torch.backends.cpu.get_cpu_capability()
        else:
            read["tf32"] = bool(torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32)
            read["autotune"] = torch.backends.cudnn.benchmark
            read["torch.cudnn"] = torch.backends.cudnn.version()
            read["torch.cuda"] = torch.version.cuda
        return read
