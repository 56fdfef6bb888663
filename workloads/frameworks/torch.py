"""PyTorch: device, precision, threads, synchronisation, and its settings read back."""

import contextlib
import functools
import importlib
import inspect
import os
from typing import Dict

from workloads import machine
from workloads.fault import Fault
from workloads.frameworks import (
    AT_ONCE,
    BFLOAT16_CAPABILITY,
    check_cuda,
    check_kernels,
    gpu_index,
    order_version,
    return_at_once,
)

# Python 3.6 has only the other, which does as much.
NOTHING = getattr(contextlib, "nullcontext", contextlib.ExitStack)()
"""A context that does nothing, and that torch.compile sees through."""


class Framework(object):
    """PyTorch, imported and configured for one cell. Its public members are what every framework's
    ``Framework`` has."""

    name = "torch"
    older: Dict[str, str] = {}
    """Modules for an older interface of this version, by those whose place they take."""

    def __init__(self, cell):
        self.prepare_import(cell)
        import torch

        self.torch = torch
        self.warnings = []
        self.precision = cell["precision"]
        self.index = gpu_index(cell)
        self.place = torch.device("cpu" if self.index is None else "cuda:%d" % self.index)
        torch.set_num_threads(cell["threads"]["intra_op"])
        if self.has_interop:
            torch.set_num_interop_threads(cell["threads"]["inter_op"])
        torch.manual_seed(0)
        self._check_device()
        self._set_precision()
        torch.backends.cudnn.benchmark = False

    @property
    def has_interop(self):
        """Whether operators may run beside each other. Before 1.2 they never do."""
        return hasattr(self.torch, "set_num_interop_threads")

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
        if hasattr(torch.cuda, "get_arch_list"):
            self.warnings = check_kernels("torch", torch.cuda.get_arch_list(), capability)
        else:
            # Before 1.7 a build does not tell what it was built for.
            check_cuda("torch", torch.version.cuda, capability)

    def _set_precision(self):
        torch = self.torch
        if self.precision == "tf32" and self.index is None:
            raise Fault("precision", "TF32 is a format of GPUs; a CPU has none", "skipped")
        if self.precision == "bf16" and not self._has_bfloat16():
            raise Fault(
                "precision", "%s does not compute in bfloat16" % self.describe_device()["model"], "skipped"
            )
        tf32 = self.precision == "tf32"
        if hasattr(torch, "set_float32_matmul_precision"):
            torch.set_float32_matmul_precision("high" if tf32 else "highest")
            torch.backends.cudnn.allow_tf32 = tf32
        elif self.precision != "fp32":
            raise Fault("precision", "PyTorch %s computes in float32 only" % torch.__version__, "skipped")

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

    def clear_by(self, optimiser):
        """Return what clears an optimiser's gradients: it forgets them, and before 1.7 sets them to zero."""
        clear = optimiser.zero_grad
        if "set_to_none" in inspect.signature(clear).parameters:
            return functools.partial(clear, set_to_none=True)
        return clear

    @property
    def synchronisation(self):
        """Name of the call that waits for the device."""
        return "torch.%s.synchronize" % self.place.type if self.waits else AT_ONCE

    @property
    def waits(self):
        """Whether there is a call to wait for the device: old versions have none for a CPU."""
        return self.index is not None or hasattr(self.torch, "cpu")

    @property
    def synchronise(self):
        """The call that waits for the device."""
        if self.index is None:
            return self.torch.cpu.synchronize if self.waits else return_at_once
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

    def count_threads(self):
        """Count the threads of an operation."""
        if order_version(self.torch.__version__) < (1, 1):
            return importlib.import_module("workloads.frameworks.torch_1").count_threads(self.torch)
        return self.torch.get_num_threads()

    def settings(self):
        """Read back what decides how fast this process computes."""
        torch = self.torch
        read = {
            "threads_intra_op": self.count_threads(),
            "threads_inter_op": torch.get_num_interop_threads() if self.has_interop else None,
            "torch.default_dtype": str(torch.get_default_dtype()),
        }
        if hasattr(torch, "are_deterministic_algorithms_enabled"):
            read["deterministic"] = torch.are_deterministic_algorithms_enabled()
        else:
            read["deterministic"] = torch.backends.cudnn.deterministic
        if hasattr(torch, "get_float32_matmul_precision"):
            read["torch.float32_matmul_precision"] = torch.get_float32_matmul_precision()
        if hasattr(torch.backends, "mkldnn"):
            mkldnn = torch.backends.mkldnn
            read["torch.mkldnn"] = mkldnn.enabled if hasattr(mkldnn, "enabled") else mkldnn.is_available()
        if self.index is None:
            if hasattr(torch.backends, "cpu"):
                read["torch.cpu_capability"] = torch.backends.cpu.get_cpu_capability()
        else:
            if hasattr(torch.backends.cuda, "matmul"):
                read["tf32"] = bool(torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32)
            read["autotune"] = torch.backends.cudnn.benchmark
            read["torch.cudnn"] = torch.backends.cudnn.version()
            read["torch.cuda"] = torch.version.cuda
        return read
