"""What NVML tells of the GPUs of this host, behind a protocol small enough for a fake.

A value that a GPU does not tell is ``None``. The one exception that reaches a caller is ``NvmlUnavailable``.
"""

from typing import Literal, NamedTuple, Protocol

from scripts.contract import GpuReading

Reason = Literal["package", "library", "driver", "permission", "mismatch", "lost", "reset", "unknown"]

REFUSALS: dict[str, tuple[Reason, str]] = {
    "NVMLError_LibraryNotFound": (
        "library",
        "no NVIDIA driver is installed here (libnvidia-ml.so.1 is not found); install it, then see that "
        "nvidia-smi works",
    ),
    "NVMLError_DriverNotLoaded": (
        "driver",
        "the NVIDIA driver is installed but not loaded; run sudo modprobe nvidia, and see dmesg if it fails",
    ),
    "NVMLError_NoPermission": (
        "permission",
        "the NVIDIA driver refuses this user; see who may open /dev/nvidiactl and /dev/nvidia0",
    ),
    "NVMLError_LibRmVersionMismatch": (
        "mismatch",
        "the NVIDIA driver was updated while the old one is still loaded; restart this machine",
    ),
    "NVMLError_GpuIsLost": (
        "lost",
        "the GPU fell off its bus; see dmesg for its Xid message, then restart this machine",
    ),
    "NVMLError_ResetRequired": (
        "reset",
        "the GPU must be reset (sudo nvidia-smi --gpu-reset) or this machine restarted",
    ),
}
"""By the name of NVML's error: its kind, and what to do about it."""


class NvmlUnavailable(Exception):
    """NVML, or a GPU, cannot be asked. The message says what to do."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Description(NamedTuple):
    """What a GPU is. Memory in bytes."""

    uuid: str
    name: str
    capability: str
    memory_total: int | None
    memory_free: int | None
    mig: bool


class User(NamedTuple):
    """A process that uses a GPU, and how much of its memory, in bytes."""

    pid: int
    memory: int | None


class Counters(NamedTuple):
    """What a GPU counts since its driver was loaded."""

    energy_mj: int | None
    throttled_ns: dict[str, int]
    """By reason, those that it counts."""


class Nvml(Protocol):
    """Indices are in the order of the bus, as nvidia-smi's. Every method may raise ``NvmlUnavailable``."""

    def read_driver(self) -> str:
        """Return the driver's version."""

    def count_gpus(self) -> int:
        """Count all GPUs, those too that this user may not ask."""

    def describe(self, index: int) -> Description | None:
        """Describe a GPU; ``None`` if it does not even tell what it is."""

    def list_computing(self, index: int) -> list[User]:
        """List the processes that compute on a GPU, as far as this user may see them."""

    def list_drawing(self, index: int) -> list[User]:
        """List the processes that draw on a GPU."""

    def read_state(self, uuid: str) -> GpuReading:
        """Read clocks, temperature, power and what holds clocks down now."""

    def read_counters(self, uuid: str) -> Counters:
        """Read energy and throttled time."""

    def read_clocks(self, uuid: str, since_us: int) -> list[int]:
        """Return the SM clocks, in MHz, that the driver kept since ``since_us``, which is Unix time in
        microseconds; none where it keeps none."""


def open_nvml() -> Nvml:
    """Return the driver's NVML, which is loaded when it is first asked.

    It then stays loaded, and with it the state of the GPU, which a driver that nobody holds open sets up
    anew for every launch.
    """
    from scripts.nvml_driver import DriverNvml

    return DriverNvml()
