"""Executing plans with a launcher that has no processes."""

import io
from pathlib import Path
from typing import Any, Literal

import pytest
from rich.console import Console

from scripts.closing import describe_end, judge
from scripts.contract import Cause, Cell
from scripts.errors import ExitStatus, Refusal
from scripts.execute import Account, Schedule, execute, make_schedule, settle_known
from scripts.plan import Plan
from scripts.progress import Forecast, Progress
from scripts.runs import RunFolder
from tests.scripts.plans import FakeLauncher, folder_in, names, plan

TOY: dict[str, Any] = {"workloads": ("toy",), "blocks": 3, "variants": ("torch-compile", "tensorflow-graph")}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return folder_in(tmp_path)


class Execution:
    """One invocation."""

    def __init__(self, made: Plan, launcher: FakeLauncher, obstacles: dict[str, Cause] | None = None) -> None:
        self.launcher = launcher
        self.tables = 0
        self.account, self.missing = settle_known(make_schedule(made), launcher.folder, obstacles or {})
        self.forecast = Forecast(self.missing, made.overheads_s, 2)

    def go(self) -> Account:
        console = Console(file=io.StringIO(), width=200)
        with Progress(console, self.forecast, len(list(self.missing))) as progress:
            execute(self.missing, self.launcher, progress, self.account, self.count_table)
        return self.account

    def count_table(self) -> None:
        self.tables += 1


def test_proofs_come_first_then_block_by_block_in_the_order_of_the_plan(folder: RunFolder) -> None:
    made = plan(**TOY, seed=3)
    launcher = FakeLauncher(folder)
    account = Execution(made, launcher).go()
    proofs, measured = launcher.cells[:3], launcher.cells[3:]
    assert {cell.purpose for cell in proofs} == {"proof"}
    assert sorted(names(proofs)) == ["fair tensorflow-graph", "fair torch-compile", "fair torch-eager"]
    assert measured == [cell for block in made.order() for cell in block]
    assert [cell.block for cell in measured] == [0] * 6 + [1] * 6 + [2] * 4
    assert judge(account.results) == ExitStatus.MEASURED


def test_the_longest_proofs_start_first() -> None:
    schedule = make_schedule(plan(workloads=("toy",), profile="smoke"))
    assert [cell.variant for cell in schedule.proofs][:2] == ["torch-compile", "torch-compile"]
    assert {cell.variant for cell in schedule.proofs[-2:]} == {"torch-eager"}


def test_no_two_measured_launches_overlap_and_proofs_may(folder: RunFolder) -> None:
    files: list[tuple[str, int]] = []
    launcher = FakeLauncher(
        folder, lambda cell: files.append((cell.purpose, len(list(folder.cells.glob("*.json")))))
    )
    folder.cells.mkdir()
    Execution(plan(**TOY), launcher).go()
    measured = [count for purpose, count in files if purpose == "measure"]
    assert measured == list(range(3, 3 + len(measured))), "each starts when the one before has its result"


def test_the_table_is_made_between_blocks_only(folder: RunFolder) -> None:
    execution = Execution(plan(**TOY), FakeLauncher(folder))
    execution.go()
    assert execution.tables == 2


def test_every_launch_has_a_limit_that_grows_with_what_it_is_expected_to_take(folder: RunFolder) -> None:
    launcher = FakeLauncher(folder)
    Execution(plan(**TOY), launcher).go()
    limits = {cell.variant: limit for cell, limit in zip(launcher.cells, launcher.limits_s, strict=True)}
    assert 60 < limits["torch-eager"] < limits["torch-compile"] < 600


def test_a_launch_that_fails_stops_nothing(folder: RunFolder) -> None:
    launcher = FakeLauncher(folder)
    launcher.failing = {"toy_fair_torch-compile_torch-2_venv_cpu_fp32"}
    account = Execution(plan(**TOY), launcher).go()
    assert len(account.results) == 3 + 16
    assert sum(result.status == "failed" for result in account.results) == 4
    assert judge(account.results) == ExitStatus.PARTLY_MEASURED


def test_each_failure_is_named_once_with_its_log(folder: RunFolder) -> None:
    launcher = FakeLauncher(folder)
    launcher.failing = {"toy_fair_torch-compile_torch-2_venv_cpu_fp32"}
    account = Execution(plan(**TOY), launcher).go()
    lines: list[str] = []
    describe_end(account, lines.append)
    assert [line for line in lines if line.startswith("failed")] == [
        "failed: proof toy fair torch-compile: killed by SIGSEGV (log: logs/x.log)",
        "failed: block 1 toy fair torch-compile, and 2 more: killed by SIGSEGV (log: logs/x.log)",
    ]


def test_what_this_host_lacks_is_skipped_in_every_block_with_the_remedy(folder: RunFolder) -> None:
    made = plan(**TOY)
    obstacle = Cause("python", "needs Python 3.14; install it")
    obstacles = {cell.id: obstacle for cell in made.cells if cell.framework == "tensorflow"}
    launcher = FakeLauncher(folder)
    account = Execution(made, launcher, obstacles).go()
    assert {cell.framework for cell in launcher.cells} == {"torch"}
    skipped = [result for result in account.results if result.status == "skipped"]
    assert [(one.cell.variant, one.cell.block) for one in skipped if one.cell.role != "ceiling"] == [
        ("tensorflow-graph", block) for block in range(3)
    ]
    assert {one.cause for one in skipped} == {obstacle}
    assert judge(account.results) == ExitStatus.MEASURED


def test_a_failed_install_is_a_failure(folder: RunFolder) -> None:
    made = plan(**TOY)
    account = Execution(made, FakeLauncher(folder), {made.cells[0].id: Cause("install", "no network")}).go()
    assert sum(result.status == "failed" for result in account.results) == 3


def test_nothing_measured_is_no_success(folder: RunFolder) -> None:
    """R8"""
    made = plan(**TOY)
    launcher = FakeLauncher(folder)
    launcher.failing = {cell.id for cell in made.cells}
    assert judge(Execution(made, launcher).go().results) == ExitStatus.NOTHING_MEASURED
    assert judge([]) == ExitStatus.NOTHING_MEASURED


def test_going_on_measures_only_what_is_missing_in_the_same_order(folder: RunFolder) -> None:
    made = plan(**TOY)
    Execution(made, FakeLauncher(folder)).go()
    whole = sorted(path.name for path in folder.cells.iterdir())
    blocks = made.order()
    lost = [blocks[1][2], blocks[2][0], blocks[2][3]]
    for cell in lost:
        folder.result(cell.id, cell.block).unlink()
    folder.result(lost[0].id, None).unlink(missing_ok=True)
    launcher = FakeLauncher(folder)
    account = Execution(made, launcher).go()
    assert [cell for cell in launcher.cells if cell.purpose == "measure"] == lost
    assert sorted(path.name for path in folder.cells.iterdir()) == whole
    assert len(account.results) == 3 + 16


def test_going_on_does_again_what_is_not_whole_or_of_another_plan(folder: RunFolder) -> None:
    made = plan(**TOY)
    Execution(made, FakeLauncher(folder)).go()
    half, other = made.order()[0][0], made.order()[1][1]
    path = folder.result(half.id, 0)
    path.write_bytes(path.read_bytes()[:100])
    path = folder.result(other.id, 1)
    path.write_bytes(path.read_bytes().replace(b'"seed":1,', b'"seed":2,'))
    launcher = FakeLauncher(folder)
    Execution(made, launcher).go()
    assert launcher.cells == [half, other]


def test_going_on_with_a_whole_run_launches_nothing(folder: RunFolder) -> None:
    made = plan(**TOY)
    Execution(made, FakeLauncher(folder)).go()
    launcher = FakeLauncher(folder)
    account = Execution(made, launcher).go()
    assert not launcher.cells
    assert judge(account.results) == ExitStatus.MEASURED


@pytest.mark.parametrize("purpose", ["proof", "measure"])
@pytest.mark.parametrize("fault", [KeyboardInterrupt, Refusal("no space left")])
def test_an_interruption_stops_the_launches_in_flight_and_goes_further_up(
    folder: RunFolder, purpose: str, fault: BaseException | type[BaseException]
) -> None:
    """C10"""

    def interrupt(cell: Cell) -> None:
        if cell.purpose == purpose:
            raise fault

    launcher = FakeLauncher(folder, interrupt)
    with pytest.raises(fault if isinstance(fault, type) else type(fault)):
        Execution(plan(**TOY), launcher).go()
    assert launcher.is_stopped


def test_the_time_without_a_launch_is_what_the_lives_of_launches_leave_of_the_blocks(
    folder: RunFolder,
) -> None:
    account = Execution(plan(**TOY), FakeLauncher(folder)).go()
    account.blocks_s = 20.0
    assert account.idle_share() == pytest.approx(1 - 16 / 20)
    lines: list[str] = []
    describe_end(account, lines.append)
    assert lines[-1] == "blocks: 20 s, of which no launch ran in 20.0%"
    assert lines[-2].startswith("launches: 16 s, of which import ")


def test_a_schedule_tells_all_launches_in_order() -> None:
    schedule: Schedule = make_schedule(plan(**TOY))
    assert list(schedule) == [*schedule.proofs, *(cell for block in schedule.blocks for cell in block)]


@pytest.mark.parametrize(("status", "kind"), [("failed", "proof"), ("skipped", "precision")])
def test_what_is_not_the_same_work_is_not_measured(
    folder: RunFolder, status: Literal["failed", "skipped"], kind: str
) -> None:
    made = plan(**TOY)
    baseline = next(cell for cell in made.cells if cell.role == "baseline")
    launcher = FakeLauncher(folder)
    launcher.failing = {baseline.id}
    launcher.failure = status, Cause(kind, "loss[3] is 1 where 2 was expected")
    account = Execution(made, launcher).go()
    launched = {cell.id for cell in launcher.cells if cell.purpose == "measure"}
    assert baseline.id not in launched
    assert f"{baseline.id}_aa" not in launched, "the twin does the same work"
    barred = [result for result in account.results if result.cell.id.startswith(baseline.id)][1:]
    assert len(barred) == 2 * made.blocks
    assert {result.status for result in barred} == {status}
    assert all("its proof" in str(result.cause) for result in barred)


def test_a_proof_that_died_does_not_keep_a_cell_from_being_measured(folder: RunFolder) -> None:
    made = plan(**TOY)
    baseline = next(cell for cell in made.cells if cell.role == "baseline")
    launcher = FakeLauncher(folder)
    launcher.failing = {baseline.id}
    Execution(made, launcher).go()
    assert baseline.id in {cell.id for cell in launcher.cells if cell.purpose == "measure"}


@pytest.mark.parametrize(
    ("kind", "again"), [("signal", True), ("time-limit", True), ("exception", False), ("losses", False)]
)
def test_going_on_launches_again_what_was_killed_and_not_what_failed_by_itself(
    folder: RunFolder, kind: str, again: bool
) -> None:
    made = plan(**TOY)
    launcher = FakeLauncher(folder)
    launcher.failing = {"toy_fair_torch-compile_torch-2_venv_cpu_fp32"}
    launcher.failure = "failed", Cause(kind, "of some kind")
    Execution(made, launcher).go()
    _, left = settle_known(make_schedule(made), folder, {})
    ids = {cell.id for cell in left}
    assert ids == (launcher.failing if again else set())


def test_what_the_driver_compiles_is_compiled_before_anything_is_proved_or_timed(folder: RunFolder) -> None:
    """C3: each kind of launch of that stack once, as short as can be; the A/A twin runs the same code."""
    made = plan(**TOY)
    launcher = FakeLauncher(folder)
    execution = Execution(made, launcher)
    primed_before: list[int] = []
    launcher.before = lambda cell: primed_before.append(len(launcher.primed))
    with Progress(Console(file=io.StringIO()), execution.forecast, 99) as progress:
        execute(execution.missing, launcher, progress, execution.account, execution.count_table, {"torch-2"})
    primed = launcher.primed
    assert set(primed_before) == {len(primed)}
    assert {cell.stack for cell in primed} == {"torch-2"}
    assert sorted((cell.purpose, cell.variant) for cell in primed) == [
        ("measure", "torch-compile"),
        ("measure", "torch-eager"),
        ("measure", "torch-roof"),
        ("proof", "torch-compile"),
        ("proof", "torch-eager"),
    ]
    assert all(cell.protocol.max_samples == 1 for cell in primed if cell.purpose == "measure")
