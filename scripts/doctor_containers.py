"""What the doctor looks at for containers and GPUs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.access import GpuAccess
from scripts.advice import advise
from scripts.engine import Engine, connect, translated_errors
from scripts.errors import Refusal
from scripts.finding import CONTAINERS, Finding, gather, note
from scripts.gpu import Gpu, list_gpus
from scripts.images import GIB, ROOM, describe_size, find_image
from scripts.nvml import Nvml, NvmlUnavailable, open_nvml
from scripts.preflight import check_gpu, find_access, note_gpu
from scripts.stacks import Stack


def examine_containers(stacks: Sequence[Stack]) -> Iterator[Finding]:
    """Look at all that ``bench-docker`` and ``bench-gpu`` need, for ``stacks``."""
    gpus, findings = examine_gpus(stacks, open_nvml())
    try:
        engine = connect()
    except Refusal as refusal:
        yield Finding("engine", refusal.message, CONTAINERS)
        yield from findings
        return
    try:
        yield examine_engine(engine)
        yield examine_toolkit(engine, gpus, stacks)
        yield from findings
        examined = {stack.name: examine_image(engine, stack) for stack in stacks}
        yield from gather("images", examined.values())
        missing = [stack for stack in stacks if not examined[stack.name].is_fine]
        yield examine_image_disk(engine, missing)
        yield examine_local_base(shutil.which("debootstrap"), os.geteuid() == 0)
    except Refusal as refusal:
        # It went away meanwhile.
        yield Finding("engine", refusal.message, CONTAINERS)
    finally:
        engine.api.close()


def examine_engine(engine: Engine) -> Finding:
    facts = engine.facts
    kind = "rootless, " if facts.is_rootless else ""
    says = f"Docker {facts.version}, {kind}{facts.operating_system}"
    if facts.unlimited:
        advice = advise("cannot set memory limit")
        assert advice is not None
        return note("engine", f"{says}; {' and '.join(facts.unlimited)}: {advice.message}")
    return Finding("engine", says)


def examine_toolkit(engine: Engine, gpus: Sequence[Gpu], stacks: Sequence[Stack]) -> Finding:
    """Ask the engine for the GPU, as a launch does."""
    found = find_access(engine, gpus[0] if gpus else None, stacks)
    if not isinstance(found, GpuAccess):
        return Finding("toolkit", found.message, ("bench-gpu",))
    way = "by CDI" if found.kind == "cdi" else "by the NVIDIA Container Toolkit"
    return Finding("toolkit", f"the engine hands over GPUs {way}")


def examine_gpus(stacks: Sequence[Stack], nvml: Nvml) -> tuple[list[Gpu], list[Finding]]:
    """Return the GPUs that can be measured, and what there is to say of all.

    One that cannot be measured stops nothing where another can.
    """
    try:
        gpus = list_gpus(nvml)
    except NvmlUnavailable as error:
        return [], [Finding("GPU", error.message, ("bench-gpu",))]
    if not gpus:
        says = "the NVIDIA driver finds none: see `nvidia-smi -L` and `sudo dmesg`"
        return [], [Finding("GPU", says, ("bench-gpu",))]
    refusals = {gpu.index: _refuse(gpu, stacks) for gpu in gpus}
    fit = [gpu for gpu in gpus if refusals[gpu.index] is None]
    return fit, [_describe(gpu, refusals[gpu.index], fit, stacks) for gpu in gpus]


def examine_image(engine: Engine, stack: Stack) -> Finding:
    image = find_image(engine, stack, None)
    if image is not None:
        base = image.base if len(image.base) < 40 else image.base.partition("@")[0]
        return Finding(stack.name, f"built on the base {base}, {describe_size(image.size_bytes)}")
    with translated_errors():
        others = engine.api.images(filters={"label": f"rematch.stack={stack.name}"})
    state = "stale" if others else "not built"
    return note(stack.name, f"{state}; `nox -s images` builds it, or the next session that needs it")


def examine_image_disk(engine: Engine, missing: Sequence[Stack]) -> Finding:
    needed = sum(stack.image.disk_gib for stack in missing) * ROOM
    root = Path(engine.facts.root)
    try:
        free = shutil.disk_usage(root).free / GIB
    except OSError:
        return note("image disk", f"cannot be seen from here; {needed:.0f} GiB to come")
    says = f"{free:.0f} GiB free, {needed:.0f} GiB to come"
    if free < needed:
        return Finding(
            "image disk", f"{says}: make room on the disk of {root} (`docker system df`)", CONTAINERS
        )
    return Finding("image disk", says)


def examine_local_base(debootstrap: str | None, is_root: bool) -> Finding:
    """Tell whether images can be built where no registry is reached."""
    if debootstrap is None:
        says = "`--base local` needs debootstrap: `apt-get install debootstrap debian-archive-keyring`"
    elif not is_root:
        says = "`--base local` is made as root: `sudo nox -s images -- --base local`"
    else:
        return Finding("local base", "`--base local` can be made here, where no registry is reached")
    return note("local base", f"{says}, where no registry is reached")


def _refuse(gpu: Gpu, stacks: Sequence[Stack]) -> str | None:
    try:
        check_gpu(gpu, stacks)
    except Refusal as refusal:
        return refusal.message
    return None


def _describe(gpu: Gpu, refusal: str | None, fit: Sequence[Gpu], stacks: Sequence[Stack]) -> Finding:
    subject = f"GPU {gpu.index}"
    says = f"{gpu.name}, driver {gpu.driver}, compute capability {gpu.capability}"
    if refusal is not None:
        return Finding(subject, f"{says}: {refusal}", () if fit else ("bench-gpu",), is_fine=False)
    if fit[0] is gpu and gpu.index != 0:
        says = f"{says}; choose it by --gpu {gpu.index}"
    notes = list(note_gpu(gpu, stacks))
    return note(subject, "; ".join([says, *notes])) if notes else Finding(subject, says)
