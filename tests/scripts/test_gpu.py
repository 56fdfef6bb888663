"""The GPUs of a host, as they are listed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.gpu import GpuProcess, list_gpus
from scripts.nvml import NvmlUnavailable, User
from tests.scripts.fake_nvml import GIB, UUID, FakeNvml, make_description


def make_proc(folder: Path, names: dict[int, bytes]) -> Path:
    for pid, name in names.items():
        (folder / str(pid)).mkdir(parents=True)
        (folder / str(pid) / "comm").write_bytes(name)
    return folder


def test_a_gpu_is_listed_with_what_it_is(tmp_path: Path) -> None:
    (gpu,) = list_gpus(FakeNvml(), tmp_path)
    assert (gpu.index, gpu.uuid, gpu.name) == (0, UUID, "NVIDIA H100 80GB HBM3")
    assert (gpu.capability, gpu.driver, gpu.mig) == ("9.0", "590.44.01", False)
    assert (gpu.memory_total_bytes, gpu.memory_free_bytes) == (80 * GIB, 79 * GIB)
    assert gpu.processes == []


def test_a_gpu_that_cannot_be_asked_is_missing_and_the_others_keep_their_indices(tmp_path: Path) -> None:
    """C9"""
    nvml = FakeNvml(gpus=[make_description("GPU-a"), None, make_description("GPU-c", mig=True)])
    assert [(gpu.index, gpu.uuid, gpu.mig) for gpu in list_gpus(nvml, tmp_path)] == [
        (0, "GPU-a", False), (2, "GPU-c", True),
    ]  # fmt: skip


def test_processes_are_named_and_a_display_is_told_from_who_computes(tmp_path: Path) -> None:
    proc = make_proc(tmp_path, {7: b"Xorg\n", 8: b"python3\n", 9: b"bl\xffnder\n"})
    nvml = FakeNvml(
        computing={0: [User(8, GIB), User(9, None), User(10, 5)]}, drawing={0: [User(7, 3), User(9, 4)]}
    )
    (gpu,) = list_gpus(nvml, proc)
    assert gpu.processes == [
        GpuProcess(7, "graphics", "Xorg", 3),
        GpuProcess(8, "compute", "python3", GIB),
        GpuProcess(9, "compute", "bl�nder", None),
        GpuProcess(10, "compute", None, 5),
    ]
    assert [process.pid for process in gpu.list_computing()] == [8, 9, 10]


def test_a_host_without_a_driver_says_so(tmp_path: Path) -> None:
    """C1"""
    nvml = FakeNvml(fault=NvmlUnavailable("library", "no NVIDIA driver is installed here"))
    with pytest.raises(NvmlUnavailable, match="no NVIDIA driver"):
        list_gpus(nvml, tmp_path)


@given(st.lists(st.integers(1, 20)), st.lists(st.integers(1, 20)))
def test_each_process_is_listed_once_and_who_computes_is_never_taken_for_a_display(
    computing: list[int], drawing: list[int]
) -> None:
    nvml = FakeNvml(
        computing={0: [User(pid, None) for pid in computing]},
        drawing={0: [User(pid, None) for pid in drawing]},
    )
    (gpu,) = list_gpus(nvml, Path("/nonexistent"))
    assert [process.pid for process in gpu.processes] == sorted({*computing, *drawing})
    assert {process.pid for process in gpu.list_computing()} == set(computing)
