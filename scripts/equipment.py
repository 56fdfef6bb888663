"""What a run is launched with: the engine, the GPU, the entered stacks, and the launcher over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from scripts.contract import Cell, Run
from scripts.errors import ExitStatus, Refusal
from scripts.launch import Launcher, LocalLauncher, RunnerLauncher
from scripts.runners import Entrances, Needs, enter_host, enter_venvs
from scripts.runs import RunFolder
from scripts.stacks import Stack

if TYPE_CHECKING:
    from scripts.engine import Engine
    from scripts.preflight import GpuHost

Say = Callable[[str], None]


@dataclass(frozen=True)
class Equipment:
    """What was found on this host before anything is built or timed."""

    engine: Engine | None = None
    gpu: GpuHost | None = None

    def describe_engine(self) -> dict[str, str]:
        return self.engine.describe() if self.engine else {}

    def describe_gpu(self) -> dict[str, str]:
        if self.gpu is None:
            return {}
        gpu = self.gpu.gpu
        return {"uuid": gpu.uuid, "name": gpu.name, "driver": gpu.driver, "capability": gpu.capability}


def check_equipment(cells: Sequence[Cell], stacks: Mapping[str, Stack]) -> Equipment:
    """Find the engine and the GPU that ``cells`` ask for.

    Containers that a run which died left behind are removed.

    Raises:
        Refusal: this host lacks something; the message names the remedy.
    """
    engine = None
    if any(cell.runner == "docker" for cell in cells):
        from scripts.containers import remove_leftovers
        from scripts.engine import connect

        engine = connect()
        remove_leftovers(engine)
    device = cells[0].device
    if device == "cpu":
        return Equipment(engine)
    from scripts.nvml import open_nvml
    from scripts.preflight import check_gpu_host

    planned = [stacks[name] for name in dict.fromkeys(cell.stack for cell in cells) if name in stacks]
    index = int(device.removeprefix("cuda:"))
    return Equipment(engine, check_gpu_host(engine, index, planned, open_nvml()))


def find_images(
    cells: Sequence[Cell], stacks: Mapping[str, Stack], equipment: Equipment, base: str | None, say: Say
) -> list[Cell]:
    """Give containers' cells their images, built where they are missing or stale.

    Returns:
        ``cells`` with the identities of image and base.

    Raises:
        Refusal: an image cannot be built.
    """
    if equipment.engine is None:
        return list(cells)
    from scripts.images import ensure_images

    wanted = dict.fromkeys(cell.stack for cell in cells if cell.runner == "docker")
    images = ensure_images(equipment.engine, [stacks[name] for name in wanted], base, say)
    return [
        replace(
            cell,
            identity=replace(cell.identity, image=images[cell.stack].id, base=images[cell.stack].base),
        )
        if cell.runner == "docker"
        else cell
        for cell in cells
    ]


def check_resumable(run: Run, equipment: Equipment) -> None:
    """See that the GPU of ``run`` and its images are still those that it began with.

    Raises:
        Refusal: one differs; the message names it.
    """
    now = equipment.describe_gpu()
    for name in ("uuid", "driver"):
        if run.gpu.get(name) != now.get(name):
            raise Refusal(
                f"{run.id} cannot go on: the GPU's {name} was {run.gpu.get(name)} and is {now.get(name)}; "
                "start a new run"
            )
    if equipment.engine is None:
        return
    for stack, image in {(cell.stack, cell.identity.image) for cell in run.cells if cell.runner == "docker"}:
        if image is None or not equipment.engine.has_image(image):
            raise Refusal(
                f"{run.id} cannot go on: its image of {stack} ({(image or 'none')[:19]}) was deleted or "
                "replaced; start a new run",
                ExitStatus.HOST_CANNOT,
            )


def enter(cells: Sequence[Cell], stacks: Mapping[str, Stack], needs: Needs) -> Entrances:
    """Make or find the interpreters on this host that ``cells`` need.

    Raises:
        Refusal: none can be had.
    """
    here = [cell for cell in cells if cell.runner == "host"]
    pinned = [cell for cell in cells if cell.runner == "venv"]
    found = [enter_host(here, needs)] if here else []
    found += [enter_venvs(pinned, stacks)] if pinned else []
    pythons = {name: path for one in found for name, path in one.pythons.items()}
    return Entrances(pythons, {cell: cause for one in found for cell, cause in one.obstacles.items()})


def make_launcher(
    folder: RunFolder,
    cells: Sequence[Cell],
    equipment: Equipment,
    pythons: Mapping[str, Path],
    variables: Sequence[str],
    program: Sequence[str],
) -> RunnerLauncher:
    """Make what launches ``cells``, each by its runner, and watches the GPU if there is one."""
    gpu = equipment.gpu
    launchers: dict[str, Launcher] = {}
    for runner in dict.fromkeys(cell.runner for cell in cells):
        launcher: Launcher
        if runner == "docker":
            from scripts.containers import DockerLauncher

            assert equipment.engine is not None
            images = {
                cell.stack: cell.identity.image
                for cell in cells
                if cell.runner == "docker" and cell.identity.image is not None
            }
            access = gpu.access if gpu else None
            launcher = DockerLauncher(folder, equipment.engine, images, variables, access, program)
        else:
            uuid = gpu.gpu.uuid if gpu else None
            launcher = LocalLauncher(folder, pythons, variables, program, gpu_uuid=uuid)
        if gpu is not None:
            from scripts.nvml import open_nvml
            from scripts.watch import WatchedLauncher

            launcher = WatchedLauncher(launcher, open_nvml(), gpu.gpu.uuid)
        launchers[runner] = launcher
    return RunnerLauncher(folder, launchers)


def find_primed(cells: Sequence[Cell], stacks: Mapping[str, Stack], equipment: Equipment) -> set[str]:
    """Name the stacks whose kernels the driver compiles for this GPU before they run, which takes minutes
    that belong to no measurement."""
    if equipment.gpu is None:
        return set()
    from scripts.preflight import judge_kernels

    capability = equipment.gpu.gpu.capability
    named = {cell.stack for cell in cells if cell.stack in stacks}
    return {name for name in named if judge_kernels(stacks[name], capability) == "jit"}
