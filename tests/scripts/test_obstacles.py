"""Without proof, or with settings that make it another work, a measured row gets no ratio."""

from pathlib import Path
from typing import Any

import pytest

from scripts.collect import collect
from tests.scripts import made_runs
from tests.scripts.made_runs import Compare, both, find_row, make_run, of_variant, put


@pytest.fixture
def run(tmp_path: Path) -> Compare:
    return made_runs.Compare(tmp_path / "run")


@pytest.mark.parametrize("variant", ["torch-eager", "torch-compile"])
def test_a_proof_that_fails_takes_the_ratio(run: Compare, variant: str) -> None:
    comparison = run(of_variant(variant, made_runs.break_proof, "proof"))
    row = find_row(comparison, "torch-compile")
    assert (row.verdict, row.ratio, row.status) == ("not comparable", None, "measured")
    assert "no proof that holds: loss[0] is off by 1e-3" in str(row.cause)
    assert find_row(comparison, variant).proof == "fails"


def test_without_a_proof_there_is_no_ratio(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", {"torch-compile": 0.57})
    for path in folder.glob("cells/*torch-compile*.proof.json"):
        path.unlink()
    row = find_row(collect([folder]), "torch-compile")
    assert (row.proof, row.verdict, row.ratio) == ("absent", "not comparable", None)


@pytest.mark.parametrize(
    "path", ["cell.identity.workload_sha256", "cell.identity.lock_sha256", "cell.parameters"]
)
def test_a_proof_of_something_else_is_no_proof(run: Compare, path: str) -> None:
    """R6"""
    value = {"batch": 1} if path.endswith("parameters") else "0" * 64
    row = find_row(run(of_variant("torch-compile", put(path, value), "proof")), "torch-compile")
    assert (row.proof, row.ratio) == ("absent", None)


def test_losses_off_the_trajectory_take_the_ratio(run: Compare) -> None:
    def stray(result: dict[str, Any]) -> None:
        if result["cell"]["block"] == 4:
            losses = result["losses"]
            losses["values"][1] *= 1.01
            losses.update(holds=False, error=0.01)

    row = find_row(run(of_variant("torch-compile", stray, "measure")), "torch-compile")
    assert (row.proof, row.verdict, row.ratio) == ("fails", "not comparable", None)


def test_a_cell_whose_proof_failed_and_that_was_never_launched_is_a_row(tmp_path: Path) -> None:
    folder = make_run(
        tmp_path / "run",
        {"torch-compile": 0.57},
        change=of_variant("torch-compile", made_runs.break_proof, "proof"),
    )
    for block in range(6):
        next(folder.glob(f"cells/*torch-compile*.{block}.json")).unlink()
    comparison = collect([folder])
    assert len(comparison.groups) == 1
    row = find_row(comparison, "torch-compile")
    assert (row.status, row.proof) == ("failed", "fails")
    assert row.cause == "the proof failed: loss[0] is off by 1e-3"


def test_tf32_on_one_side_only_is_refused(run: Compare) -> None:
    """T8"""
    on = of_variant("torch-compile", put("settings.tf32", True), "measure")
    off = of_variant("torch-eager", put("settings.tf32", False), "measure")
    row = find_row(run(both(on, off)), "torch-compile")
    assert (row.verdict, row.ratio) == ("not comparable", None)
    assert row.cause == "differs from the baseline in precision: tf32 is True here, False there"


def test_keras_2_and_3_are_not_mixed(tmp_path: Path) -> None:
    """N5"""
    two = of_variant("keras-two", put("settings.keras", "2.1.6"), "measure")
    three = of_variant("keras-three", put("settings.keras", "3.15.1"), "measure")
    comparison = collect(
        [
            make_run(
                tmp_path / "run",
                {"keras-two": 0.9, "keras-three": 1.1, "torch-compile": 0.8},
                change=both(two, three),
            )
        ]
    )
    for variant in ("keras-two", "keras-three"):
        row = find_row(comparison, variant)
        assert (row.verdict, row.ratio) == ("not comparable", None)
        assert row.cause == "Keras 2.1.6 and 3.15.1 are mixed in one comparison"
    assert find_row(comparison, "torch-compile").verdict == "faster"


def test_keras_of_two_majors_may_stand_beside_each_other_as_pinned_stacks(tmp_path: Path) -> None:
    """N5: what they are is in the rows."""
    two = of_variant("keras-two", put("settings.keras", "2.1.6"), "measure")
    three = of_variant("keras-three", put("settings.keras", "3.15.1"), "measure")
    apart = of_variant("keras-two", put("cell.stack", "2018"))
    folder = make_run(
        tmp_path / "run", {"keras-two": 0.9, "keras-three": 1.1}, change=both(two, both(three, apart))
    )
    comparison = collect([folder])
    assert find_row(comparison, "keras-two").verdict == "faster"
    assert find_row(comparison, "keras-three").verdict == "slower"


def test_keras_of_another_major_than_the_baseline_is_refused(run: Compare) -> None:
    """N5"""
    two = of_variant("torch-eager", put("settings.keras", "2.1.6"), "measure")
    three = of_variant("torch-compile", put("settings.keras", "3.15.1"), "measure")
    row = find_row(run(both(two, three)), "torch-compile")
    assert (row.verdict, row.cause) == ("not comparable", "Keras 3.15.1 here and 2.1.6 in the baseline")


def test_launches_of_a_row_that_differ_in_a_setting_are_not_one_row(run: Compare) -> None:
    def tune(result: dict[str, Any]) -> None:
        result["settings"]["autotune"] = result["cell"]["block"] > 2

    row = find_row(run(of_variant("torch-compile", tune, "measure")), "torch-compile")
    assert (row.verdict, row.cause) == (
        "not comparable",
        "its own launches differ in autotune: False and True",
    )


def test_other_differences_stand_beside_the_ratio(run: Compare) -> None:
    def differ(result: dict[str, Any]) -> None:
        result["settings"] |= {
            "compiler": "inductor",
            "torch.mkldnn": False,
            "torch.new": 1,
            "layout": "NHWC",
        }
        result["measures"][0].update(loop="fit", host_reads=2)

    row = find_row(run(of_variant("torch-compile", differ, "measure")), "torch-compile")
    assert row.verdict == "faster"
    assert row.differs == {
        "compiler": ("none", "inductor"),
        "torch.mkldnn": (True, False),
        "layout": (None, "NHWC"),
        "loop": ("hand-written", "fit"),
        "host_reads": (0, 2),
    }
