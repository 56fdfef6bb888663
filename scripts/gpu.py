"""The GPUs of this host, as ``--gpu`` names them."""

from pathlib import Path
from typing import Literal

import msgspec

from scripts.nvml import Nvml, User

PROC = Path("/proc")


class GpuProcess(msgspec.Struct, frozen=True):
    """A process that uses a GPU."""

    pid: int
    kind: Literal["compute", "graphics"]
    """One that does both computes."""
    name: str | None
    """Of its program; none where it cannot be seen from here."""
    memory_bytes: int | None
    """Of the GPU's memory."""


class Gpu(msgspec.Struct, frozen=True):
    """A GPU as it is now."""

    index: int
    """In the order of the bus, as nvidia-smi numbers them."""
    uuid: str
    name: str
    capability: str
    """``9.0``"""
    driver: str
    memory_total_bytes: int | None
    memory_free_bytes: int | None
    mig: bool
    """Whether it is divided into instances, which are separate devices."""
    processes: list[GpuProcess]

    def list_computing(self) -> list[GpuProcess]:
        """List the processes that compute on it, a display's own apart."""
        return [process for process in self.processes if process.kind == "compute"]


def list_gpus(nvml: Nvml, proc: Path = PROC) -> list[Gpu]:
    """List the GPUs that this user may ask. One that is lost, or another user's, is missing, and the others
    keep their indices.

    Args:
        proc: where the system tells of its processes.

    Raises:
        NvmlUnavailable: there is no driver to ask, or it does not answer.
    """
    driver = nvml.read_driver()
    gpus = []
    for index in range(nvml.count_gpus()):
        found = nvml.describe(index)
        if found is None:
            continue
        computing = nvml.list_computing(index)
        drawing = nvml.list_drawing(index)
        users = {user.pid: _describe_user(user, "graphics", proc) for user in drawing}
        users |= {user.pid: _describe_user(user, "compute", proc) for user in computing}
        gpus.append(
            Gpu(
                index,
                found.uuid,
                found.name,
                found.capability,
                driver,
                found.memory_total,
                found.memory_free,
                found.mig,
                [users[pid] for pid in sorted(users)],
            )
        )
    return gpus


def _describe_user(user: User, kind: Literal["compute", "graphics"], proc: Path) -> GpuProcess:
    try:
        name = (proc / str(user.pid) / "comm").read_text(errors="replace").strip() or None
    except OSError:
        name = None
    return GpuProcess(user.pid, kind, name, user.memory)
