"""Like is compared with like: what differs is named, and blocks pair within a run."""

from pathlib import Path
from typing import Any

import pytest

from scripts.collect import collect
from scripts.errors import Refusal
from tests.scripts import made_runs
from tests.scripts.made_runs import Compare, find_a_a, find_row, make_run, of_variant, put


@pytest.fixture
def run(tmp_path: Path) -> Compare:
    return made_runs.Compare(tmp_path / "run")


def test_only_blocks_that_both_have_are_compared(run: Compare) -> None:
    """S4: unequal counts."""

    def lose(result: dict[str, Any]) -> None:
        if result["cell"]["block"] >= 3 and result["status"] == "measured":
            result["cell"]["block"] += 10

    row = find_row(run(of_variant("torch-compile", lose)), "torch-compile")
    assert (row.blocks, row.verdict) == (3, None)
    assert len(row.launches) == 6
    assert row.ratio == pytest.approx(0.57, rel=0.002)


def test_a_row_without_any_measurement_is_a_failed_row_beside_the_baseline(
    run: Compare,
) -> None:
    comparison = run(of_variant("torch-compile", made_runs.fail, "measure"))
    assert len(comparison.groups) == 1
    row = find_row(comparison, "torch-compile")
    assert (row.status, row.verdict, row.ratio) == ("failed", "failed", None)
    assert row.cause == "killed by SIGKILL: out of memory"


def test_a_failed_baseline_leaves_nothing_to_compare_with(run: Compare) -> None:
    """R3"""
    row = find_row(run(of_variant("torch-eager", made_runs.fail, "measure")), "torch-compile")
    assert (row.verdict, row.ratio) == ("not comparable", None)
    assert row.cause == "the baseline torch-eager was not measured"


@pytest.mark.parametrize("samples", [[0.0] * 24, []])
def test_a_baseline_of_zero_or_nothing_is_no_baseline(run: Compare, samples: list[float]) -> None:
    """R3"""

    def empty(result: dict[str, Any]) -> None:
        result["measures"][0]["samples_s"] = samples

    comparison = run(of_variant("torch-eager", empty, "measure"))
    row = find_row(comparison, "torch-compile")
    assert (row.verdict, row.ratio) == ("not comparable", None)
    assert row.cause == "the baseline torch-eager was not measured"
    assert len(comparison.left_out) == 12 + 1


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("device.model", "Other CPU", "device model: Other CPU here, AMD EPYC 7B13 there"),
        ("device.driver", "580.1", "driver: 580.1 here, unknown there"),
        ("environment.machine.host", "hermes", "host: hermes here, atlas there"),
        ("cell.identity.workload_sha256", "0" * 64, "the workload's content hash: 000000000000 here, "),
        ("cell.parameters", {"batch": 256}, "parameter batch: 256 here, 1024 there; in parameter features"),
        ("cell.precision", "tf32", "precision: tf32 here, fp32 there"),
        ("cell.threads", {"intra_op": 1, "inter_op": 2}, "number of threads: (1, 2) here, (2, 2) there"),
    ],
)
def test_what_differs_in_one_field_is_not_compared_and_the_field_is_named(
    run: Compare, path: str, value: object, words: str
) -> None:
    """R5, R6, T8"""
    row = find_row(run(of_variant("torch-compile", put(path, value))), "torch-compile")
    assert (row.verdict, row.ratio) == ("not comparable", None)
    assert f"differs from the baseline torch-eager in {words}" in str(row.cause)


def test_data_of_another_hash_never_meets(tmp_path: Path) -> None:
    folder = make_run(
        tmp_path / "run",
        {"other": 0.9},
        base="mnist",
        change=of_variant("other", put("cell.data.sha256", "0" * 64)),
    )
    row = find_row(collect([folder]), "other", "load_epoch")
    assert row.verdict == "not comparable"
    assert "the data's hash: 000000000000 here" in str(row.cause)


def test_runs_are_merged_block_by_block(tmp_path: Path) -> None:
    folders = [make_run(tmp_path / name, {"torch-compile": 0.57}, range(3)) for name in ("a", "b")]
    comparison = collect([tmp_path])
    row = find_row(comparison, "torch-compile")
    assert (row.blocks, row.verdict) == (6, "faster")
    assert [(launch.run, launch.block) for launch in row.launches][:4] == [
        ("a", 0),
        ("a", 1),
        ("a", 2),
        ("b", 0),
    ]
    assert collect([*folders, folders[0], tmp_path]).groups == comparison.groups


def test_a_baseline_of_another_run_shares_no_block(tmp_path: Path) -> None:
    for name, kept in (("a", "torch-eager"), ("b", "torch-compile")):
        folder = make_run(tmp_path / name, {"torch-compile": 0.57})
        for path in folder.glob("cells/*"):
            if kept not in path.name:
                path.unlink()
    row = find_row(collect([tmp_path]), "torch-compile")
    assert row.verdict == "not comparable"
    assert row.cause == "the baseline torch-eager was measured in another run: no block holds both"


def test_another_baseline_can_be_named_and_the_a_a_pair_stays(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", {"torch-compile": 0.5, "torch-script": 0.8})
    comparison = collect([folder], "torch-compile")
    assert comparison.groups[0].baseline == "torch-compile"
    assert find_row(comparison, "torch-compile").is_baseline
    assert find_row(comparison, "torch-eager").ratio == pytest.approx(2.0, rel=0.003)
    assert find_row(comparison, "torch-eager").verdict == "slower"
    assert find_a_a(comparison.groups[0]).ratio == pytest.approx(1.0, abs=0.002)


def test_an_unknown_baseline_gets_the_nearest_names(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", {"torch-compile": 0.5})
    with pytest.raises(Refusal, match="torch-compile"):
        collect([folder], "torch-compil")
