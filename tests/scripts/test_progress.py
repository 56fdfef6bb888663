import io
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console

from scripts.contract import Cause, Cell, Result
from scripts.order import make_proofs
from scripts.progress import Forecast, Progress, describe_launch, outcome
from scripts.words import describe_duration
from tests.scripts.fake_ground import answer
from tests.scripts.plans import plan

PLAN = plan(workloads=("toy",), variants=("torch-eager", "torch-compile"), blocks=2, budget_s=1)
EAGER, TWIN, COMPILED = PLAN.cells[:3]
LAUNCHES = [cell for block in PLAN.order() for cell in block]


def result_of(cell: Cell) -> Result:
    return msgspec.convert(answer(msgspec.to_builtins(cell)), Result)


def forecast(launches: list[Cell]) -> Forecast:
    return Forecast(launches, PLAN.overheads_s, cpus_usable=2)


def test_before_anything_ran_the_time_left_is_the_plans_estimate() -> None:
    proofs = make_proofs(PLAN.cells, PLAN.cpus_usable)
    # The plan counts the longest proof at least, the forecast an even share.
    assert forecast(LAUNCHES).left_s() == pytest.approx(
        plan(workloads=("toy",), variants=("torch-eager", "torch-compile"), blocks=2, budget_s=1).estimate_s()
        - 15
    )
    assert forecast(proofs).left_s() == pytest.approx((2 + 10) / 2 * 1.5)


def test_a_launch_seen_tells_of_the_same_cells_next_one() -> None:
    made = forecast([EAGER, EAGER])
    made.see(EAGER, 100.0)
    assert made.left_s() == 100.0


def test_a_slower_machine_shows_in_what_was_not_seen_yet() -> None:
    made = forecast([EAGER, COMPILED])
    before = made.left_s()
    own = forecast([EAGER]).left_s()
    made.see(EAGER, 2 * own)
    assert made.left_s() == pytest.approx(2 * (before - own))


def test_when_all_ran_no_time_is_left() -> None:
    made = forecast([EAGER])
    made.see(EAGER, 1.0)
    assert made.left_s() == 0


def show(terminal: bool) -> str:
    file = io.StringIO()
    console = Console(file=file, width=100, force_terminal=terminal, no_color=True)
    with Progress(console, forecast([EAGER, COMPILED]), 2) as progress:
        for cell in (EAGER, COMPILED):
            progress.start(cell)
            progress.finish(result_of(cell), 2.0)
    return file.getvalue()


def test_plain_output_has_one_line_for_each_launch_with_the_time_left() -> None:
    lines = show(terminal=False).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("1/2 block 1 toy fair torch-eager: ")
    assert lines[0].endswith(" left)")
    assert "\x1b" not in "".join(lines)


def test_a_terminal_shows_what_runs_now_and_keeps_a_line_for_each_launch() -> None:
    text = show(terminal=True)
    assert "1/2 block 1 toy fair torch-eager ..." in text
    assert "2/2 block 1 toy fair torch-compile: " in text


def test_what_has_ended_is_not_shown_as_running_below_what_is_said_next() -> None:
    file = io.StringIO()
    with Progress(Console(file=file, width=100, force_terminal=True), forecast([EAGER]), 1) as progress:
        progress.start(EAGER)
        progress.finish(result_of(EAGER), 2.0)
        said = file.getvalue()
        progress.say("the table so far")
    assert "left" in said
    assert "left" not in file.getvalue().removeprefix(said)


def test_nothing_is_drawn_while_a_launch_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that draws would take time from what is measured."""
    import threading

    before = threading.active_count()
    with Progress(Console(file=io.StringIO(), force_terminal=True), forecast([EAGER]), 1) as progress:
        progress.start(EAGER)
        assert threading.active_count() == before


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (EAGER, "block 1 toy fair torch-eager"),
        (replace(TWIN, block=3), "block 4 toy fair torch-eager (A/A)"),
        (replace(COMPILED, purpose="proof", precision="bf16"), "proof toy fair torch-compile bf16"),
        (PLAN.cells[-1], "block 1 roof torch-roof"),
    ],
)
def test_launches_are_named_in_a_few_words(cell: Cell, words: str) -> None:
    assert describe_launch(cell) == words


def test_the_outcome_is_a_time_a_proof_or_a_reason() -> None:
    assert outcome(result_of(EAGER)).endswith("ms a step")
    assert outcome(result_of(replace(EAGER, purpose="proof"))) == "the same work"
    failed = replace(result_of(EAGER), status="failed", cause=Cause("signal", "killed [by] SIGSEGV"))
    assert outcome(failed) == "failed: killed [by] SIGSEGV"


def test_words_in_brackets_are_not_taken_for_markup(tmp_path: Path) -> None:
    file = io.StringIO()
    with Progress(Console(file=file), forecast([EAGER]), 1) as progress:
        progress.say("killed [by] SIGSEGV [/tmp]")
    assert file.getvalue() == "killed [by] SIGSEGV [/tmp]\n"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (5e-8, "50.0 ns"),
        (0.0123, "12.3 ms"),
        (1.5, "1.50 s"),
        (59.6, "60 s"),
        (119, "119 s"),
        (150, "2.5 min"),
        (12600, "3.5 h"),
        (384300, "107 h"),
    ],
)
def test_durations_have_a_fitting_unit(seconds: float, words: str) -> None:
    assert describe_duration(seconds) == words
