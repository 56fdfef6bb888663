"""What is kept of the GPU around a launch, and what a silent driver or a lost GPU does to a run."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from scripts.contract import Cause, Cell, GpuReading, Result
from scripts.decode import decode_result
from scripts.launch import Launched
from scripts.nvml import Counters, NvmlUnavailable
from scripts.runs import RunFolder, write_whole
from scripts.watch import Moment, WatchedLauncher, make_watch
from tests.scripts import made_runs
from tests.scripts.fake_nvml import UUID, FakeNvml

IDLE = GpuReading(sm_clock_mhz=345, temperature_c=38.0, power_w=70.0)
HOT = GpuReading(sm_clock_mhz=1755, temperature_c=64.0, power_w=640.0, throttle=["power cap"])
LOST = NvmlUnavailable("lost", "the GPU fell off its bus; see dmesg")


class MadeLauncher:
    """Answers every cell with the same result, and notes what the fake driver was asked meanwhile."""

    def __init__(self, folder: Path, result: Result, nvml: FakeNvml) -> None:
        self.folder = RunFolder(folder)
        self.result = result
        self.nvml = nvml
        self.lost_meanwhile: NvmlUnavailable | None = None
        self.asked_before: list[str] = []
        self.primed: list[str] = []
        self.derived: list[Path] = []
        self.is_stopped = False
        self.is_closed = False

    def launch(self, cell: Cell, limit_s: float) -> Launched:
        self.asked_before = list(self.nvml.asked)
        if self.lost_meanwhile is not None:
            self.nvml.fault = self.lost_meanwhile
        block = None if cell.purpose == "proof" else cell.block
        write_whole(self.folder.result(cell.id, block), msgspec.json.encode(self.result))
        return Launched(self.result, 5.0)

    def prime(self, cell: Cell, limit_s: float) -> Launched:
        self.primed.append(cell.id)
        return Launched(self.result, 5.0)

    def derive(self, cell: Cell, limit_s: float, target: Path) -> Launched:
        self.derived.append(target)
        return Launched(self.result, 5.0)

    def stop(self) -> None:
        self.is_stopped = True

    def close(self) -> None:
        self.is_closed = True


def make_result(name: str = "mlp") -> Result:
    return msgspec.convert(made_runs.load(name), Result)


def make_failed() -> Result:
    failed = made_runs.load("mlp")
    made_runs.fail(failed, "CUDA error: unspecified launch failure")
    return msgspec.convert(failed, Result)


def read_back(launcher: MadeLauncher, cell: Cell) -> Result:
    return decode_result(launcher.folder.result(cell.id, None if cell.purpose == "proof" else cell.block))


def test_a_measured_result_holds_what_became_of_the_gpu(tmp_path: Path) -> None:
    result = make_result()
    nvml = FakeNvml(
        states=[IDLE, HOT],
        counters=[
            Counters(1_000_000, {"power cap": 0, "thermal limit": 7}),
            Counters(1_500_000, {"power cap": 2_000_000_000, "thermal limit": 7}),
        ],
        clocks=[[1755, 1740, 1725]],
    )
    inner = MadeLauncher(tmp_path, result, nvml)
    launched = WatchedLauncher(inner, nvml, UUID).launch(result.cell, 60.0)
    watch = launched.result.gpu
    assert watch is not None
    assert (watch.uuid, watch.before, watch.after) == (UUID, IDLE, HOT)
    assert watch.sm_clock_mhz == 1740
    assert watch.throttled_s == {"power cap": 2.0, "thermal limit": 0.0}
    assert watch.mean_power_w is not None
    assert watch.mean_power_w > 0
    assert read_back(inner, result.cell) == launched.result
    assert replace(launched.result, gpu=None) == result
    assert launched.seconds == 5.0


def test_nothing_is_asked_while_a_launch_runs(tmp_path: Path) -> None:
    result = make_result()
    nvml = FakeNvml()
    inner = MadeLauncher(tmp_path, result, nvml)
    WatchedLauncher(inner, nvml, UUID).launch(result.cell, 60.0)
    assert inner.asked_before == ["state", "counters"]
    assert nvml.asked == ["state", "counters", "state", "counters", "clocks"]


def test_clocks_are_taken_from_the_time_in_which_the_launch_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU that waits for an import or a compiler slows down, and that says nothing of the samples."""
    times = iter([1_000.0, 1_060.0])
    monkeypatch.setattr("scripts.watch.time.time_ns", lambda: int(next(times) * 1e9))
    result = make_result()
    assert result.phases is not None
    result = replace(result, phases=replace(result.phases, warmup_s=4.0, sampling_s=6.0))
    nvml = FakeNvml()
    WatchedLauncher(MadeLauncher(tmp_path, result, nvml), nvml, UUID).launch(result.cell, 60.0)
    assert nvml.since_us == [1_050_000_000]


def test_a_silent_driver_is_a_warning_and_no_failure(tmp_path: Path) -> None:
    result = make_result()
    nvml = FakeNvml(fault=NvmlUnavailable("permission", "the NVIDIA driver refuses this user"))
    inner = MadeLauncher(tmp_path, result, nvml)
    launched = WatchedLauncher(inner, nvml, UUID).launch(result.cell, 60.0)
    assert (launched.result.status, launched.result.gpu) == ("measured", None)
    assert launched.result.warnings == [
        *result.warnings, "the GPU's state is not known: the NVIDIA driver refuses this user"
    ]  # fmt: skip
    assert read_back(inner, result.cell) == launched.result


@pytest.mark.parametrize("purpose", ["measure", "proof"])
def test_a_launch_that_failed_because_its_gpu_is_lost_says_so(tmp_path: Path, purpose: str) -> None:
    """C9"""
    failed = make_failed()
    failed = replace(
        failed, cell=msgspec.convert(msgspec.to_builtins(failed.cell) | {"purpose": purpose}, Cell)
    )
    nvml = FakeNvml()
    inner = MadeLauncher(tmp_path, failed, nvml)
    inner.lost_meanwhile = LOST
    launched = WatchedLauncher(inner, nvml, UUID).launch(failed.cell, 60.0)
    assert launched.result.cause == Cause(
        "device",
        "the GPU fell off its bus; see dmesg; the launch said: CUDA error: unspecified launch failure",
    )
    assert launched.result.log == failed.log
    assert read_back(inner, failed.cell) == launched.result


def test_a_launch_that_was_measured_before_its_gpu_was_lost_is_kept_with_a_warning(tmp_path: Path) -> None:
    """C9"""
    result = make_result()
    nvml = FakeNvml()
    inner = MadeLauncher(tmp_path, result, nvml)
    inner.lost_meanwhile = LOST
    launched = WatchedLauncher(inner, nvml, UUID).launch(result.cell, 60.0)
    assert launched.result.status == "measured"
    assert launched.result.warnings[-1] == "the GPU's state is not known: the GPU fell off its bus; see dmesg"


def test_a_launch_that_failed_for_a_reason_of_its_own_keeps_its_cause(tmp_path: Path) -> None:
    failed = make_failed()
    nvml = FakeNvml(states=[IDLE, HOT])
    launched = WatchedLauncher(MadeLauncher(tmp_path, failed, nvml), nvml, UUID).launch(failed.cell, 60.0)
    assert launched.result.cause == failed.cause
    assert launched.result.gpu is not None
    assert launched.result.gpu.after == HOT


def test_a_proof_is_not_watched(tmp_path: Path) -> None:
    proof = make_result("mlp.proof")
    nvml = FakeNvml()
    launched = WatchedLauncher(MadeLauncher(tmp_path, proof, nvml), nvml, UUID).launch(proof.cell, 60.0)
    assert (launched.result, nvml.asked) == (proof, [])


def test_priming_and_stopping_reach_the_launcher_within(tmp_path: Path) -> None:
    result = make_result()
    nvml = FakeNvml()
    inner = MadeLauncher(tmp_path, result, nvml)
    watched = WatchedLauncher(inner, nvml, UUID)
    watched.prime(result.cell, 60.0)
    watched.stop()
    watched.close()
    assert (inner.primed, inner.is_stopped, nvml.asked) == ([result.cell.id], True, [])
    assert inner.is_closed
    assert watched.folder is inner.folder


def make_moment(at_s: float, energy_mj: int | None, throttled_ns: dict[str, int]) -> Moment:
    return Moment(GpuReading(), Counters(energy_mj, throttled_ns), at_s, round(at_s * 1e6))


def test_power_is_energy_over_time() -> None:
    watch = make_watch(UUID, make_moment(10.0, 1_000, {}), make_moment(14.0, 1_201_000, {}), [])
    assert watch.mean_power_w == pytest.approx(300.0)
    assert watch.sm_clock_mhz is None


COUNTS = st.dictionaries(st.sampled_from(["power cap", "thermal limit"]), st.integers(0, 2**63))
ENERGIES = st.none() | st.integers(0, 2**63)


@given(ENERGIES, ENERGIES, COUNTS, COUNTS, st.floats(0, 1e6), st.lists(st.integers(0, 5000)))
def test_a_watch_is_always_one_that_the_contract_allows(
    first: int | None,
    last: int | None,
    before: dict[str, int],
    after: dict[str, int],
    seconds: float,
    clocks: list[int],
) -> None:
    watch = make_watch(UUID, make_moment(0.0, first, before), make_moment(seconds, last, after), clocks)
    assert msgspec.json.decode(msgspec.json.encode(watch), type=type(watch)) == watch
    assert watch.throttled_s.keys() <= before.keys() & after.keys()
