"""What becomes of the articles' claims, by runs that would hold, reverse or not decide them."""

import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from scripts.collect import collect
from scripts.comparison import Comparison, Judgement, Trial
from scripts.published import holds_in_article, load_articles
from scripts.renderings import print_comparison, render_markdown
from scripts.statistics import Estimate, place
from tests.scripts import made_runs

OLD, TORCH, TENSORFLOW = "2018-tf1.12-torch1.0", "torch-2.15", "tensorflow-2.21"
SPEEDS = {
    ("torch-eager", OLD): 1.0,
    ("tensorflow-eager", OLD): 1.0,
    ("tensorflow-graph", OLD): 1.05,
    ("tensorflow-eager", TENSORFLOW): 1.5,
    ("tensorflow-graph", TENSORFLOW): 0.8,
}
"""Shares of the baseline's time, torch-eager on ``TORCH``."""
Change = Callable[[dict[str, Any]], None]


def make(
    folder: Path,
    speeds: dict[tuple[str, str], float] = SPEEDS,
    blocks: Iterable[int] = range(6),
    change: Change = lambda result: None,
) -> Comparison:
    """Collect a run of the article's edition."""
    contenders = [("torch-eager", TORCH, 1.0, "baseline"), ("torch-eager", TORCH, 1.0, "a_a")]
    contenders += [(variant, stack, speed, "variant") for (variant, stack), speed in speeds.items()]
    for variant, stack, speed, role in contenders:
        launches = [made_runs.make_launch(variant, block, speed, role) for block in blocks]
        proofs = [] if role == "a_a" else [made_runs.make_proof(launches[0])]
        for result in [*launches, *proofs]:
            cell = result["cell"]
            cell.update(edition="article", measures=["call"], stack=stack, run=folder.name)
            cell["id"] = cell["id"].replace("_fair_", "_article_").replace(TORCH, stack)
            for measure in result.get("measures") or []:
                measure["name"] = "call"
            change(result)
            made_runs.write(folder, result)
    return collect([folder])


def find(comparison: Comparison, claim: str) -> Judgement:
    (found,) = [one for one in comparison.claims if one.id == claim]
    return found


def find_trial(comparison: Comparison, claim: str, era: str) -> Trial:
    (found,) = [trial for trial in find(comparison, claim).trials if trial.era == era]
    return found


def test_a_claim_holds_or_is_reversed_by_rows_of_its_generation(tmp_path: Path) -> None:
    comparison = make(tmp_path / "run")
    then = find_trial(comparison, "mlp-cpu-graph-does-not-help", "historical")
    today = find_trial(comparison, "mlp-cpu-graph-does-not-help", "current")
    assert (then.state, then.reason, then.elsewhere) == ("holds", None, None)
    assert today.state == "reversed"
    (evidence,) = today.evidence
    assert (evidence.stack, evidence.over_stack, evidence.blocks) == (TENSORFLOW, TENSORFLOW, 6)
    assert evidence.ratio == pytest.approx(0.8 / 1.5, rel=0.01)
    assert evidence.published == pytest.approx(1.102)
    # What backs it is in the file: rows that name their launches.
    assert evidence.group is not None
    rows = {(row.variant, row.stack): row for row in comparison.groups[evidence.group].rows if not row.a_a}
    mine, over = rows["tensorflow-graph", TENSORFLOW], rows["tensorflow-eager", TENSORFLOW]
    assert mine.median_s is not None
    assert over.median_s is not None
    assert mine.median_s / over.median_s == pytest.approx(evidence.ratio, rel=0.01)


def test_all_ratios_of_a_claim_must_lie_within_its_bounds(tmp_path: Path) -> None:
    comparison = make(tmp_path / "run")
    assert find_trial(comparison, "mlp-cpu-within-ten-per-cent", "historical").state == "holds"
    today = find_trial(comparison, "mlp-cpu-within-ten-per-cent", "current")
    assert today.state == "reversed"
    assert len(today.evidence) == 3


def test_a_claim_about_a_gpu_is_no_verdict_on_a_cpu(tmp_path: Path) -> None:
    comparison = make(tmp_path / "run")
    trial = find_trial(comparison, "mlp-gpu-graph-helps", "current")
    assert (trial.state, trial.elsewhere) == ("cannot be tested", "holds")
    assert trial.reason == "it is about cuda, and cpu was measured"


@pytest.mark.parametrize(
    ("blocks", "ratio", "state", "reason"),
    [
        (4, 1.05, "not shown", "4 complete blocks; a verdict needs 5 or more"),
        (6, 1.0, "not shown", "noise leaves"),
    ],
)
def test_too_few_blocks_or_a_ratio_at_the_bound_show_nothing(
    tmp_path: Path, blocks: int, ratio: float, state: str, reason: str
) -> None:
    speeds = {**SPEEDS, ("tensorflow-graph", OLD): ratio}
    comparison = make(tmp_path / "run", speeds, range(blocks))
    trial = find_trial(comparison, "mlp-cpu-graph-does-not-help", "historical")
    assert trial.state == state
    assert reason in str(trial.reason)


def test_other_sizes_than_the_articles_show_nothing(tmp_path: Path) -> None:
    comparison = make(tmp_path / "run", change=lambda result: result["cell"]["parameters"].update(batch=256))
    trial = find_trial(comparison, "mlp-cpu-graph-does-not-help", "historical")
    assert trial.state == "not shown"
    assert "batch 256 instead of 1024" in str(trial.reason)
    assert trial.evidence[0].ratio is not None


def test_an_a_a_pair_that_differs_voids_the_evidence(tmp_path: Path) -> None:
    def slow(result: dict[str, Any]) -> None:
        if result["cell"]["role"] == "a_a":
            for measure in result.get("measures") or []:
                measure["samples_s"] = [sample * 1.2 for sample in measure["samples_s"]]

    trial = find_trial(make(tmp_path / "run", change=slow), "mlp-cpu-graph-does-not-help", "historical")
    assert (trial.state, trial.reason) == ("not shown", "void: the A/A pair differs by itself")


def test_a_row_without_proof_is_no_evidence(tmp_path: Path) -> None:
    def spoil(result: dict[str, Any]) -> None:
        cell = result["cell"]
        if (cell["variant"], cell["stack"], cell["purpose"]) == ("tensorflow-graph", OLD, "proof"):
            made_runs.break_proof(result)

    trial = find_trial(make(tmp_path / "run", change=spoil), "mlp-cpu-graph-does-not-help", "historical")
    assert (trial.state, trial.reason) == ("cannot be tested", "tensorflow-graph: proof fails")


def test_a_stack_that_could_not_be_built_is_told_with_its_remedy(tmp_path: Path) -> None:
    message = "Python 3.6 is not installed here; install it"

    def skip(result: dict[str, Any]) -> None:
        if result["cell"]["stack"] == OLD:
            made_runs.fail(result, message)
            result.update(status="skipped", cause={"kind": "environment", "message": message})
            result.pop("proof", None)

    comparison = make(tmp_path / "run", change=skip)
    then = find_trial(comparison, "mlp-cpu-graph-does-not-help", "historical")
    assert then.state == "cannot be tested"
    assert message in str(then.reason)
    assert find_trial(comparison, "mlp-cpu-graph-does-not-help", "current").state == "reversed"
    assert message in render_markdown(comparison)


def test_without_a_row_of_the_articles_own_stack_nothing_is_judged(tmp_path: Path) -> None:
    speeds = {key: speed for key, speed in SPEEDS.items() if key[1] != OLD}
    comparison = make(tmp_path / "run", speeds)
    assert (comparison.claims, comparison.published) == ([], [])


def test_a_claim_that_no_measurement_decides_says_why() -> None:
    articles = load_articles()
    untestable = [claim for one in articles.values() for claim in one.claims if claim.untestable]
    assert untestable
    assert not any(claim.compares for claim in untestable)


def test_every_claim_with_figures_holds_in_its_article() -> None:
    """Its margin is what the article's own figures support."""
    for article in load_articles().values():
        for claim in article.claims:
            assert holds_in_article(claim) is not False, claim.id


def test_figures_stand_beside_what_was_measured(tmp_path: Path) -> None:
    comparison = make(tmp_path / "run")
    (figure,) = [
        one for one in comparison.published if (one.variant, one.device) == ("tensorflow-eager", "cpu")
    ]
    assert figure.seconds == 1.47
    assert [(here.era, here.stack) for here in figure.here] == [("historical", OLD), ("current", TENSORFLOW)]
    assert all(here.median_s for here in figure.here)


def test_figures_of_ten_epochs_are_shown_as_those_of_one() -> None:
    article = load_articles()["mnist-2019"]
    seconds = {figure.variant: figure.seconds for figure in article.figures}
    assert (article.units, seconds["tfds-article"]) == (10, 38.35)


def test_states_and_what_is_no_verdict_are_printed(tmp_path: Path) -> None:
    comparison = make(tmp_path / "run")
    console = Console(width=120, record=True, file=io.StringIO())
    print_comparison(comparison, console)
    shown = console.export_text()
    lines = [line.split() for line in shown.splitlines() if line.startswith("mlp-cpu-graph-does-not-help ")]
    assert ["holds", "reversed"] in [words[-2:] for words in lines]
    assert "Tested on another device" in shown
    assert "no verdict on them" in shown
    written = render_markdown(comparison)
    assert "| mlp-cpu-graph-does-not-help | derived | CPU | holds | holds | reversed |" in written


EQUAL = Estimate(1.0, 0.99, 1.01, 6, 0.0095)


@pytest.mark.parametrize(
    ("ratio", "spread", "bounds", "limits", "expected"),
    [
        (0.9, 0.01, (0.0, 1.0), (0.0, 1.0), "within"),
        (1.1, 0.01, (0.0, 1.0), (0.0, 1.0), "beyond"),
        (0.995, 0.01, (0.0, 1.0), (0.0, 1.0), "not shown"),
        (0.9, 0.2, (0.0, 1.0), (0.0, 1.0), "not shown"),
        (0.6, 0.01, (0.0, 0.5), (0.0, 1.0), "not shown"),
        (0.3, 0.01, (0.0, 0.5), (0.0, 1.0), "within"),
        (1.0, 0.01, (0.9, 1.1), (0.9, 1.1), "within"),
        (0.8, 0.01, (0.9, 1.1), (0.9, 1.1), "beyond"),
    ],
)
def test_a_ratio_is_placed_by_its_interval_and_the_a_a_pair(
    ratio: float, spread: float, bounds: tuple[float, float], limits: tuple[float, float], expected: str
) -> None:
    estimate = Estimate(ratio, ratio, ratio, 6, spread)
    assert place(estimate, [EQUAL], bounds, limits).place == expected
    assert place(estimate, [], bounds, limits).place == "not shown"
    assert place(None, [EQUAL], bounds, limits).place == "not shown"
