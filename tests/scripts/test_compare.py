"""Ratios, intervals and verdicts, with what stands beside them."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.collect import collect
from tests.scripts import made_runs
from tests.scripts.made_runs import Compare, both, find_a_a, find_row, make_run, of_variant, put


@pytest.fixture
def run(tmp_path: Path) -> Compare:
    return made_runs.Compare(tmp_path / "run")


def test_a_faster_variant_is_called_faster_with_ratio_interval_and_where_it_comes_from(
    run: Compare,
) -> None:
    """S1, S2"""
    comparison = run()
    row = find_row(comparison, "torch-compile")
    assert row.verdict == "faster"
    assert row.ratio == pytest.approx(0.57, rel=0.002)
    assert row.ratio_interval is not None
    assert row.ratio is not None
    assert row.ratio_interval[0] < row.ratio < row.ratio_interval[1]
    assert (row.blocks, row.samples, row.proof) == (6, 6 * 24, "holds")
    assert [launch.block for launch in row.launches] == list(range(6))
    assert {launch.run for launch in row.launches} == {"run"}
    assert row.best_s is not None
    assert row.median_s is not None
    assert row.best_s < row.median_s
    assert find_a_a(comparison.groups[0]).ratio == pytest.approx(1.0, abs=0.002)


def test_medians_are_those_of_the_samples(run: Compare, tmp_path: Path) -> None:
    """S1"""
    row = find_row(run(), "torch-compile")
    smallest = []
    for launch in row.launches:
        samples = json.loads((tmp_path / launch.file).read_text())["measures"][0]["samples_s"]
        ordered = sorted(samples)
        assert launch.median_s == (ordered[11] + ordered[12]) / 2
        smallest.append(ordered[0])
    assert row.best_s == min(smallest)
    assert row.best_s == min(
        min(json.loads((tmp_path / launch.file).read_text())["measures"][0]["samples_s"])
        for launch in row.launches
    )


def test_fewer_than_five_blocks_give_an_interval_and_no_verdict(run: Compare) -> None:
    row = find_row(run(blocks=range(2)), "torch-compile")
    assert (row.verdict, row.cause) == (None, "2 of the 5 blocks that a verdict needs")
    assert row.ratio == pytest.approx(0.57, rel=0.01)
    assert row.more_blocks is not None
    assert row.more_blocks >= 3


def test_equal_launches_show_no_difference(run: Compare) -> None:
    """S4: equal medians without spread are no verdict."""
    row = find_row(run(put("measures", made_runs.load("mlp")["measures"]), blocks=range(6)), "torch-compile")
    assert row.ratio == 1.0
    assert row.verdict == "no difference shown"


def test_a_failed_launch_is_counted_and_its_log_named(run: Compare) -> None:
    def kill(result: dict[str, Any]) -> None:
        if result["cell"]["block"] == 2:
            made_runs.fail(result)
            result["log"] = "logs/that.log"

    row = find_row(run(of_variant("torch-compile", kill, "measure")), "torch-compile")
    assert row.status == "measured"
    assert row.cause == "1 of 6 launches failed: killed by SIGKILL: out of memory"
    assert row.log == "logs/that.log"
    assert (row.blocks, row.verdict) == (5, "faster")


def test_an_a_a_pair_that_differs_voids_the_verdicts_of_its_group(run: Compare) -> None:
    """S2"""

    def slow(result: dict[str, Any]) -> None:
        if result["cell"]["role"] == "a_a":
            samples = result["measures"][0]["samples_s"]
            result["measures"][0]["samples_s"] = [sample * 1.05 for sample in samples]

    comparison = run(slow)
    row = find_row(comparison, "torch-compile")
    assert row.verdict == "not comparable"
    assert "the A/A pair differs" in str(row.cause)
    assert "the A/A pair differs" in comparison.groups[0].warnings[0]


def test_the_ceiling_of_the_same_run_gives_per_cent(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", {"torch-compile": 0.57})
    alien = make_run(tmp_path / "alien", {"torch-compile": 0.57})
    ceiling = made_runs.load("ceiling")
    ceiling["cell"]["run"] = "run"
    made_runs.write(folder, ceiling)
    best = max(
        measure["work"]["flop"] / sorted(measure["samples_s"])[len(measure["samples_s"]) // 2]
        for measure in ceiling["measures"]
        if "flop" in measure["work"]
    )
    comparison = collect([folder])
    row = find_row(comparison, "torch-compile")
    assert row.percent_of_ceiling == pytest.approx(100 * row.rates["flop"] / best, rel=0.01)
    assert find_row(collect([alien]), "torch-compile").percent_of_ceiling is None
    rows = [row for group in comparison.groups if group.workload == "ceiling" for row in group.rows]
    assert len(rows) == 4
    assert {(row.verdict, row.ratio) for row in rows} == {(None, None)}


def test_loading_is_held_against_the_copy_ceiling(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", {"other": 0.9}, base="mnist")
    ceiling = made_runs.load("ceiling")
    ceiling["cell"]["run"] = "run"
    made_runs.write(folder, ceiling)
    row = find_row(collect([folder]), "other", "load_epoch")
    copy = next(measure for measure in ceiling["measures"] if measure["name"] == "copy")
    rate = copy["work"]["bytes"] / sorted(copy["samples_s"])[8]
    assert row.percent_of_ceiling == pytest.approx(100 * row.rates["bytes"] / rate, rel=0.01)


def test_every_measure_of_a_launch_is_a_group_with_its_figures(tmp_path: Path) -> None:
    comparison = collect([make_run(tmp_path / "run", {"other": 0.9}, base="mnist")])
    assert {group.measure for group in comparison.groups} == {
        "load_epoch", "train_epoch", "validate_epoch", "train_validate_epoch",
    }  # fmt: skip
    row = find_row(comparison, "other", "load_epoch")
    assert row.figures["first_batch_s"] == 0.1873
    assert row.peak_memory_bytes == 1583247360
    assert comparison.groups[0].data == "digits"
    assert {row.verdict for group in comparison.groups for row in group.rows} == {None, "faster"}


def test_a_geometric_mean_is_over_what_both_sides_have(tmp_path: Path) -> None:
    """R7"""

    def move(result: dict[str, Any]) -> None:
        cell = result["cell"]
        cell["stack"] = "tensorflow-2.21"
        if cell["variant"] == "tensorflow-xla" and cell["purpose"] == "measure":
            made_runs.fail(result)

    change = both(of_variant("tensorflow-graph", move), of_variant("tensorflow-xla", move))
    speeds = {"tensorflow-graph": 2.0, "tensorflow-xla": 0.001}
    one = make_run(tmp_path / "one", speeds, change=change)
    assert collect([one]).means == []

    def rename(result: dict[str, Any]) -> None:
        change(result)
        result["cell"].update(workload="mlp2", id=result["cell"]["id"] + "2")
        if result["status"] == "measured" and result["cell"]["variant"] == "tensorflow-graph":
            samples = result["measures"][0]["samples_s"]
            result["measures"][0]["samples_s"] = [sample * 4 for sample in samples]

    two = make_run(tmp_path / "two", speeds, change=rename)
    (mean,) = collect([one, two]).means
    assert mean.ratio == pytest.approx(4.0, rel=0.01)
    assert (mean.matched, mean.of, mean.stack) == (2, 4, "tensorflow-2.21")


def test_outliers_warn_and_constant_samples_do_not(run: Compare) -> None:
    """S3"""

    def flatten(result: dict[str, Any]) -> None:
        result["measures"][0]["samples_s"] = [0.06] * 20 + [0.06 + 1e-8] * 3
        if result["cell"]["variant"] == "torch-compile":
            result["measures"][0]["samples_s"].append(0.3)

    comparison = run(of_variant("torch-eager", flatten, "measure"))
    assert find_row(comparison, "torch-eager").warnings == []

    again = run(
        both(of_variant("torch-eager", flatten, "measure"), of_variant("torch-compile", flatten, "measure"))
    )
    assert find_row(again, "torch-compile").warnings == ["6 of 144 samples are outliers"]


def test_a_launch_that_was_not_steady_is_said_to_be_so(run: Compare) -> None:
    def rush(result: dict[str, Any]) -> None:
        result["measures"][0]["warmup"]["ended_by"] = "bound"

    row = find_row(run(of_variant("torch-compile", rush, "measure")), "torch-compile")
    assert "6 of 6 launches were not steady when their warm-up ended" in row.warnings
