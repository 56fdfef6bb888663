"""What keeps a GPU from being measured is told in one line, before anything else happens."""

import subprocess
import tarfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from scripts.access import GpuAccess
from scripts.engine import Engine
from scripts.errors import ExitStatus, Refusal
from scripts.nvml import REFUSALS, NvmlUnavailable, User
from scripts.preflight import GpuHost, check_gpu_host, find_required_cuda, judge_kernels
from scripts.probe import make_program, pack_root
from scripts.stacks import Stack, load_stacks
from tests.scripts.fake_engine import make_engine
from tests.scripts.fake_nvml import GIB, UUID, FakeNvml, make_description

STACKS = load_stacks()
TORCH, TENSORFLOW = STACKS["torch-2.15"], STACKS["tensorflow-2.21"]
NO_TOOLKIT = 'could not select device driver "" with capabilities: [[gpu]]'
NO_CDI = 'could not select device driver "cdi" with capabilities: []'
OLD_DRIVER = (
    "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0, please update your driver"
)
NO_DRIVER = NvmlUnavailable(*REFUSALS["NVMLError_LibraryNotFound"])


def check(
    nvml: FakeNvml, engine: Engine | None = None, gpu: int = 0, stacks: Sequence[Stack] = (TORCH, TENSORFLOW)
) -> GpuHost:
    return check_gpu_host(engine or make_engine({UUID: 0})[0], gpu, stacks, nvml)


def refuse(
    nvml: FakeNvml, engine: Engine | None = None, gpu: int = 0, stacks: Sequence[Stack] = (TORCH, TENSORFLOW)
) -> str:
    with pytest.raises(Refusal) as caught:
        check(nvml, engine, gpu, stacks)
    assert caught.value.status == ExitStatus.HOST_CANNOT
    assert "\n" not in caught.value.message
    return caught.value.message


def test_a_host_that_has_all_gives_the_gpu_and_how_to_ask_for_it() -> None:
    found = check(FakeNvml(), stacks=[TORCH])
    assert (found.gpu.index, found.gpu.uuid, found.notes) == (0, UUID, [])
    assert found.access == GpuAccess("request", UUID)


def test_no_container_is_asked_for_without_an_engine() -> None:
    found = check_gpu_host(None, 0, [TORCH], FakeNvml())
    assert (found.gpu.uuid, found.access) == (UUID, None)
    with pytest.raises(Refusal, match="no NVIDIA driver is installed"):
        check_gpu_host(None, 0, [TORCH], FakeNvml(fault=NO_DRIVER))


def test_a_host_without_stacks_of_ours_is_checked_all_the_same() -> None:
    """Where the interpreter at hand is measured."""
    assert check_gpu_host(None, 0, [], FakeNvml()).gpu.uuid == UUID


def test_the_probe_leaves_nothing_behind_and_asks_as_a_launch_does() -> None:
    """C1"""
    for answer in (0, 1, NO_TOOLKIT):
        engine, api = make_engine({UUID: answer})
        if answer == 0:
            check(FakeNvml(), engine)
        else:
            refuse(FakeNvml(), engine)
        assert api.there == set()
        (created,) = api.created
        assert created["environment"]["NVIDIA_REQUIRE_CUDA"] == "cuda>=13.0"
        assert created["host_config"]["NetworkMode"] == "none"
        assert created["host_config"]["CapDrop"] == ["ALL"]
        assert list(created["labels"]) == ["rematch.owner"]


def test_a_missing_toolkit_comes_before_all_else_and_a_missing_driver_in_the_same_line() -> None:
    """C1"""
    engine, api = make_engine({"all": NO_TOOLKIT})
    message = refuse(FakeNvml(fault=NO_DRIVER), engine, gpu=7)
    assert "NVIDIA Container Toolkit" in message
    assert "no NVIDIA driver is installed" in message
    assert api.asked == ["all"]
    engine, _ = make_engine({UUID: NO_TOOLKIT})
    message = refuse(FakeNvml(driver="450.1"), engine)
    assert "NVIDIA Container Toolkit" in message
    assert "driver is installed" not in message


def test_a_missing_cdi_specification_is_another_piece_of_advice() -> None:
    """C1"""
    engine, _ = make_engine({"nvidia.com/gpu=0": NO_CDI}, cdi_devices=["nvidia.com/gpu=0"])
    assert "nvidia-ctk cdi generate" in refuse(FakeNvml(), engine)


def test_cdi_is_tried_where_the_engine_has_no_toolkit_and_reads_specifications() -> None:
    engine, api = make_engine({UUID: NO_TOOLKIT, "nvidia.com/gpu=0": 0}, has_cdi=True)
    assert check(FakeNvml(), engine).access == GpuAccess("cdi", "nvidia.com/gpu=0")
    assert api.there == set()
    engine, _ = make_engine({UUID: NO_TOOLKIT, "nvidia.com/gpu=0": NO_CDI}, has_cdi=True)
    assert "Container Toolkit" in refuse(FakeNvml(), engine)


@pytest.mark.parametrize("error", sorted(REFUSALS))
def test_a_driver_that_does_not_answer_is_told_with_its_own_remedy(error: str) -> None:
    """C1"""
    reason, message = REFUSALS[error]
    engine, _ = make_engine({"all": 0})
    assert refuse(FakeNvml(fault=NvmlUnavailable(reason, message)), engine) == f"GPU 0: {message}"
    engine, _ = make_engine(
        {"all": "nvidia-container-cli: initialization error: nvml error: driver not loaded"}
    )
    assert refuse(FakeNvml(fault=NvmlUnavailable(reason, message)), engine) == f"GPU 0: {message}"


def test_a_driver_that_only_the_engine_misses_is_told() -> None:
    """As of an engine in a virtual machine."""
    engine, _ = make_engine(
        {UUID: "nvidia-container-cli: initialization error: nvml error: driver not loaded"}
    )
    assert "no NVIDIA driver is loaded" in refuse(FakeNvml(), engine)


@pytest.mark.parametrize("answer", [0, OLD_DRIVER])
def test_a_driver_too_old_for_the_newest_stack_is_told_in_figures(answer: str | int) -> None:
    """C1"""
    engine, _ = make_engine({UUID: answer})
    message = refuse(FakeNvml(driver="550.163.01"), engine)
    assert "550.163.01" in message
    assert "torch-2.15" in message
    assert "install driver 580" in message


@pytest.mark.parametrize(("driver", "fits"), [("580", True), ("580.65.06", True), ("579.99", False)])
def test_the_floor_of_drivers_is_inclusive(driver: str, fits: bool) -> None:
    nvml = FakeNvml(driver=driver)
    if fits:
        assert check(nvml, stacks=[TORCH]).gpu.driver == driver
    else:
        assert "too old" in refuse(nvml, stacks=[TORCH])
        assert check(nvml, stacks=[TENSORFLOW]).gpu.driver == driver


def test_what_the_toolkit_finds_too_old_is_refused_though_its_number_is_unknown() -> None:
    """C1"""
    engine, _ = make_engine({UUID: OLD_DRIVER})
    assert "driver is too old" in refuse(FakeNvml(driver="special"), engine)


def test_an_unknown_refusal_of_the_engine_is_passed_on() -> None:
    engine, _ = make_engine({UUID: "something\nnew"})
    assert "something new" in refuse(FakeNvml(), engine)
    engine, _ = make_engine({UUID: 3})
    assert "ended with status 3" in refuse(FakeNvml(), engine)


def test_a_gpu_that_is_not_there_names_those_that_are() -> None:
    engine, _ = make_engine({"all": 0})
    nvml = FakeNvml(gpus=[make_description(), None, make_description("GPU-c", name="NVIDIA L4")])
    for gpu in (7, 1):
        message = refuse(nvml, engine, gpu)
        assert f"no GPU {gpu} " in message
        assert "0 (NVIDIA H100 80GB HBM3), 2 (NVIDIA L4)" in message
        assert "--gpu" in message


def test_a_driver_without_a_gpu_is_told() -> None:
    engine, _ = make_engine({"all": 0})
    assert "finds no GPU" in refuse(FakeNvml(gpus=[]), engine)


def test_the_gpu_that_was_asked_for_is_the_one_that_is_given() -> None:
    nvml = FakeNvml(gpus=[make_description("GPU-a"), make_description("GPU-b")])
    engine, api = make_engine({"GPU-b": 0})
    assert check(nvml, engine, gpu=1).access == GpuAccess("request", "GPU-b")
    assert api.asked == ["GPU-b"]


def test_a_gpu_in_instances_is_refused() -> None:
    message = refuse(FakeNvml(gpus=[make_description(mig=True)]))
    assert "MIG" in message
    assert "nvidia-smi -i 0 -mig 0" in message


def test_a_gpu_without_code_is_refused_by_the_stacks_name() -> None:
    """C3"""
    message = refuse(FakeNvml(gpus=[make_description(capability="6.1", name="NVIDIA TITAN Xp")]))
    assert "torch-2.15 has no code for GPU 0, NVIDIA TITAN Xp (compute capability 6.1)" in message
    assert "--stack" in message


def test_code_that_the_driver_compiles_is_noted_before_timing() -> None:
    """C3"""
    found = check(FakeNvml())
    assert len(found.notes) == 1
    assert found.notes[0].startswith("tensorflow-2.21 has no code for compute capability 9.0")
    assert "untimed" in found.notes[0]


@pytest.mark.parametrize(
    ("stack", "capability", "expected"),
    [
        (TORCH, "7.5", "native"),
        (TORCH, "7.0", "none"),
        (TORCH, "8.9", "native"),
        (TORCH, "9.0", "native"),
        (TORCH, "10.3", "native"),
        (TORCH, "11.0", "none"),
        (TORCH, "12.1", "native"),
        (TORCH, "13.0", "none"),
        (TENSORFLOW, "5.2", "none"),
        (TENSORFLOW, "6.1", "native"),
        (TENSORFLOW, "7.5", "native"),
        (TENSORFLOW, "8.9", "native"),
        (TENSORFLOW, "9.0", "jit"),
        (TENSORFLOW, "12.0", "jit"),
    ],
)
def test_code_runs_on_its_major_capability_and_intermediate_code_on_newer_ones(
    stack: Stack, capability: str, expected: str
) -> None:
    """C3"""
    assert judge_kernels(stack, capability) == expected


@given(st.integers(1, 20), st.integers(0, 9))
def test_a_stack_with_intermediate_code_runs_on_everything_newer(major: int, minor: int) -> None:
    """C3"""
    stack = replace(TORCH, capabilities=["3.0"], ptx="5.0")
    judged = judge_kernels(stack, f"{major}.{minor}")
    assert judged == ("native" if major == 3 else "jit" if major >= 5 else "none")


def test_the_newest_cuda_of_all_stacks_is_demanded_by_its_major_version() -> None:
    assert find_required_cuda([TENSORFLOW]) == "12.0"
    assert find_required_cuda([TENSORFLOW, TORCH]) == "13.0"
    assert find_required_cuda([replace(TORCH, cuda="9.2"), replace(TORCH, cuda="10.1")]) == "10.1"


def test_what_is_demanded_is_what_the_images_demand() -> None:
    for stack in STACKS.values():
        dockerfile = Path(stack.folder, "Dockerfile").read_text()
        assert f'NVIDIA_REQUIRE_CUDA="cuda>={find_required_cuda([stack])}"' in dockerfile


@pytest.mark.parametrize(("free", "fits"), [(2 * GIB, True), (2 * GIB - 1, False), (None, True), (0, False)])
def test_a_gpu_whose_memory_is_taken_is_refused(free: int | None, fits: bool) -> None:
    nvml = FakeNvml(gpus=[make_description(memory_free=free)])
    if fits:
        assert check(nvml).gpu.memory_free_bytes == free
    else:
        message = refuse(nvml)
        assert "GiB of its memory free" in message
        assert "another --gpu" in message


def test_others_who_compute_on_the_gpu_are_named_and_refused() -> None:
    nvml = FakeNvml(computing={0: [User(2**22 + 5, GIB), User(2**22 + 6, None)]})
    message = refuse(nvml)
    assert f"used by a process (pid {2**22 + 5}), a process (pid {2**22 + 6})" in message
    assert "end that, or choose another --gpu" in message


def test_who_draws_on_the_gpu_is_noted() -> None:
    found = check(FakeNvml(drawing={0: [User(2**22 + 5, GIB)]}), stacks=[TORCH])
    assert found.notes == [f"a process (pid {2**22 + 5}) draws on GPU 0, which may disturb the times"]


def test_the_program_of_the_probe_is_a_whole_elf_of_120_bytes_that_ends_well(tmp_path: Path) -> None:
    assert len(make_program()) == 120
    with tarfile.open(fileobj=BytesIO(pack_root())) as archive:
        archive.extractall(tmp_path, filter="data")
    assert (tmp_path / "exit").read_bytes() == make_program()
    assert subprocess.run([tmp_path / "exit"], check=False).returncode == 0
    assert (tmp_path / "etc" / "ld.so.conf").read_bytes() == b""
