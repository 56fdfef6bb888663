"""What must hold before a GPU is measured: checked before anything is built, each with its remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from scripts.errors import ExitStatus, Refusal
from scripts.gpu import Gpu, GpuProcess, list_gpus
from scripts.nvml import Nvml, NvmlUnavailable
from scripts.stacks import Stack

if TYPE_CHECKING:
    from scripts.access import GpuAccess
    from scripts.advice import Advice
    from scripts.engine import Engine

GIB = 1 << 30
FREE_BYTES = 2 * GIB
"""Memory of the GPU that every launch takes at least."""

MINOR_VERSIONS_RUN = 11
"""First CUDA whose drivers run all its minor versions."""

Kernels = Literal["native", "jit", "none"]


@dataclass(frozen=True)
class GpuHost:
    """A GPU that can be measured."""

    gpu: Gpu
    access: GpuAccess | None
    """How a container is given it; none where no container is asked for."""
    notes: list[str]
    """What the user should know."""


def check_gpu_host(engine: Engine | None, gpu: int, stacks: Sequence[Stack], nvml: Nvml) -> GpuHost:
    """Find GPU ``gpu``, and see that every one of ``stacks`` can be measured on it.

    Args:
        engine: that of the containers, if any.

    Raises:
        Refusal: something is missing or in the way.
    """
    try:
        gpus, silence = list_gpus(nvml), None
    except NvmlUnavailable as error:
        gpus, silence = [], error
    found = next((one for one in gpus if one.index == gpu), None)
    access = _demand_access(engine, found, stacks, silence) if engine else None
    if silence is not None:
        raise Refusal(f"GPU {gpu}: {silence.message}", ExitStatus.HOST_CANNOT)
    if found is None:
        raise Refusal(_describe_missing(gpu, gpus), ExitStatus.HOST_CANNOT)
    check_gpu(found, stacks)
    return GpuHost(found, access, list(note_gpu(found, stacks)))


def find_access(engine: Engine, gpu: Gpu | None, stacks: Sequence[Stack]) -> GpuAccess | Advice:
    """Find how the engine hands over ``gpu``, or any where none is known; else what is in the way.

    Raises:
        Refusal: the engine refuses containers altogether, or is gone.
    """
    from scripts.access import list_accesses
    from scripts.probe import try_access

    named = (gpu.uuid, gpu.index) if gpu else ()
    denials = []
    for access in list_accesses(engine.facts, *named):
        denial = try_access(engine, access, find_required_cuda(stacks))
        if denial is None:
            return access
        denials.append(denial)
    return denials[0]


def check_gpu(gpu: Gpu, stacks: Sequence[Stack]) -> None:
    """See that every one of ``stacks`` can be measured on ``gpu`` now.

    Raises:
        Refusal: it is divided, its driver is too old, a stack has no code for it, or it is in use.
    """
    if gpu.mig:
        raise Refusal(
            f"GPU {gpu.index} is divided into MIG instances, which are not measured: "
            f"`sudo nvidia-smi -i {gpu.index} -mig 0`, or choose another --gpu",
            ExitStatus.HOST_CANNOT,
        )
    _check_driver(gpu, stacks)
    _check_kernels(gpu, stacks)
    _check_free(gpu)


def judge_kernels(stack: Stack, capability: str) -> Kernels:
    """Tell whether the stack's packages have code for a GPU, or the driver must compile it, or neither.

    Code runs on GPUs of its own major capability and of the same or a newer minor one; PTX on any newer.
    """
    major, minor = _order(capability)[:2]
    built = [_order(one) for one in stack.capabilities]
    if any(major == one[0] and minor >= one[1] for one in built):
        return "native"
    return "jit" if stack.ptx is not None and (major, minor) >= _order(stack.ptx) else "none"


def find_required_cuda(stacks: Sequence[Stack]) -> str:
    """Return what the driver must run at least.

    From CUDA 11 on a driver runs every minor version of the CUDA it was made for
    (https://docs.nvidia.com/deploy/cuda-compatibility/).
    """
    newest = max((stack.cuda for stack in stacks), key=_order)
    major = _order(newest)[0]
    return f"{major}.0" if major >= MINOR_VERSIONS_RUN else newest


def note_gpu(gpu: Gpu, stacks: Sequence[Stack]) -> Iterator[str]:
    """Yield what holds back nothing and is worth knowing."""
    for stack in stacks:
        if judge_kernels(stack, gpu.capability) == "jit":
            yield (
                f"{stack.name} has no code for compute capability {gpu.capability}: the driver compiles it "
                "for many minutes when it is first run, untimed, and keeps it for later runs"
            )
    drawing = [process for process in gpu.processes if process.kind == "graphics"]
    if drawing:
        yield f"{_list_processes(drawing)} draws on GPU {gpu.index}, which may disturb the times"


def _demand_access(
    engine: Engine, gpu: Gpu | None, stacks: Sequence[Stack], silence: NvmlUnavailable | None
) -> GpuAccess | None:
    """Return ``None`` where all that is in the way is the driver, which does not answer here either."""
    from scripts.advice import Advice

    found = find_access(engine, gpu, stacks)
    if not isinstance(found, Advice):
        return found
    if found.kind == "driver" and gpu is not None:
        # In figures, where these are known.
        _check_driver(gpu, stacks)
    if silence is None:
        raise Refusal(found.message, ExitStatus.HOST_CANNOT)
    if found.kind.startswith("driver"):
        return None
    raise Refusal(f"{found.message}; besides, {silence.message}", ExitStatus.HOST_CANNOT)


def _describe_missing(gpu: int, gpus: Sequence[Gpu]) -> str:
    if not gpus:
        return "the NVIDIA driver finds no GPU on this host: see `nvidia-smi -L` and `sudo dmesg`"
    there = ", ".join(f"{one.index} ({one.name})" for one in gpus)
    return f"there is no GPU {gpu} that answers: choose --gpu from {there}"


def _check_driver(gpu: Gpu, stacks: Sequence[Stack]) -> None:
    digits = re.match(r"\d+(\.\d+)*", gpu.driver)
    if digits is None:
        return
    for stack in sorted(stacks, key=lambda one: _order(one.driver), reverse=True):
        if _order(digits.group()) < _order(stack.driver):
            raise Refusal(
                f"the NVIDIA driver {gpu.driver} is too old for the CUDA {stack.cuda} of {stack.name}: "
                f"install driver {stack.driver} or newer, or choose other stacks by --stack",
                ExitStatus.HOST_CANNOT,
            )


def _check_kernels(gpu: Gpu, stacks: Sequence[Stack]) -> None:
    for stack in stacks:
        if judge_kernels(stack, gpu.capability) == "none":
            raise Refusal(
                f"{stack.name} has no code for GPU {gpu.index}, {gpu.name} (compute capability "
                f"{gpu.capability}), but for {', '.join(stack.capabilities)}: choose other stacks by "
                "--stack, or another --gpu",
                ExitStatus.HOST_CANNOT,
            )


def _check_free(gpu: Gpu) -> None:
    computing = gpu.list_computing()
    if computing:
        raise Refusal(
            f"GPU {gpu.index} is used by {_list_processes(computing)}, which would spoil the times: end "
            "that, or choose another --gpu",
            ExitStatus.HOST_CANNOT,
        )
    if gpu.memory_free_bytes is not None and gpu.memory_free_bytes < FREE_BYTES:
        raise Refusal(
            f"GPU {gpu.index} has {gpu.memory_free_bytes / GIB:.1f} GiB of its memory free, and a launch "
            f"takes {FREE_BYTES / GIB:.0f} GiB at least: end what uses it (see `nvidia-smi`), or choose "
            "another --gpu",
            ExitStatus.HOST_CANNOT,
        )


def _list_processes(processes: Sequence[GpuProcess]) -> str:
    return ", ".join(f"{one.name or 'a process'} (pid {one.pid})" for one in processes)


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
