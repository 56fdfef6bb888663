"""How a container is given the GPU: by a device request, or by CDI where the engine offers that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import docker

    from scripts.engine import EngineFacts

VENDOR = "nvidia.com/gpu"


@dataclass(frozen=True)
class GpuAccess:
    """One GPU, as the engine is asked for it."""

    kind: Literal["request", "cdi"]
    id: str
    """UUID of a request, or a CDI device's whole name."""

    def device_requests(self) -> list[docker.types.DeviceRequest]:
        """Describe it as the docker command does for ``--gpus device=ID`` and ``--device NAME``."""
        import docker

        if self.kind == "cdi":
            return [docker.types.DeviceRequest(driver="cdi", device_ids=[self.id])]
        return [docker.types.DeviceRequest(device_ids=[self.id], capabilities=[["gpu"]])]


def choose_access(facts: EngineFacts, uuid: str = "all", index: int | None = None) -> GpuAccess:
    """Choose how to ask for a GPU, or for all of them: by CDI if the engine lists the GPU, for then nothing
    else needs to be installed in the engine.

    Args:
        index: as ``nvidia-smi`` numbers it, and CDI specifications, unless they go by UUIDs.
    """
    for name in (uuid, index):
        if f"{VENDOR}={name}" in facts.cdi_devices:
            return GpuAccess("cdi", f"{VENDOR}={name}")
    return GpuAccess("request", uuid)


def list_accesses(facts: EngineFacts, uuid: str = "all", index: int | None = None) -> list[GpuAccess]:
    """List what to try, the best first. Engines before 28.2 read CDI specifications without telling what is
    in them."""
    chosen = choose_access(facts, uuid, index)
    if chosen.kind == "request" and facts.has_cdi and not facts.cdi_devices:
        return [chosen, GpuAccess("cdi", f"{VENDOR}={uuid if index is None else index}")]
    return [chosen]
