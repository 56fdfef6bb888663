"""What merging runs must not hide, and what a ceiling can and cannot be."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.collect import collect
from tests.scripts import made_runs
from tests.scripts.made_runs import Change, Compare, find_a_a, find_row, make_run, put


def slow_twin(factor: float, jitter: float = 0.0) -> Change:
    """Slow the A/A twin, by ``jitter`` more in every second block."""

    def change(result: dict[str, Any]) -> None:
        cell = result["cell"]
        if cell["role"] == "a_a" and cell["purpose"] == "measure":
            each = factor + jitter * (cell["block"] % 2)
            for measure in result["measures"]:
                measure["samples_s"] = [sample * each for sample in measure["samples_s"]]

    return change


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    return Compare(tmp_path / "run")


def test_a_void_run_stays_visible_when_it_is_merged_with_quiet_ones(tmp_path: Path) -> None:
    loud = make_run(tmp_path / "loud", {"torch-compile": 0.57}, change=slow_twin(1.05))
    quiet = make_run(tmp_path / "quiet", {"torch-compile": 0.57}, change=slow_twin(0.93, 0.05))
    (group,) = collect([loud, quiet]).groups
    named = [warning for warning in group.warnings if "run loud differs by itself: 1.05" in warning]
    assert len(named) == 1
    assert not any("by itself" in warning for group in collect([loud]).groups for warning in group.warnings)


def test_runs_that_sampled_for_another_time_are_not_pooled(tmp_path: Path) -> None:
    """R5: measured the same way, or not one figure."""
    long = make_run(tmp_path / "long", {"torch-compile": 0.57})
    short = make_run(tmp_path / "short", {"torch-compile": 0.57}, change=put("cell.protocol.budget_s", 0.1))
    groups = collect([long, short]).groups
    assert len(groups) == 2
    assert {tuple(group.runs) for group in groups} == {("long",), ("short",)}


@pytest.mark.parametrize(("factor", "means"), [(1.05, 0), (1.0, 1)])
def test_a_void_group_is_in_no_mean(tmp_path: Path, factor: float, means: int) -> None:
    """R7"""
    for parameter in (1, 2):

        def change(result: dict[str, Any], parameter: int = parameter) -> None:
            slow_twin(factor)(result)
            cell = result["cell"]
            cell["parameters"]["batch"] = parameter
            cell["id"] = f"{parameter}-{cell['id']}"
            if cell["variant"] == "tensorflow-graph":
                cell["stack"] = "tensorflow-2.21"

        make_run(tmp_path / "run", {"tensorflow-graph": 0.5}, change=change)
    comparison = collect([tmp_path / "run"])
    assert len(comparison.groups) == 2
    assert len(comparison.means) == means


def test_an_a_a_row_is_beside_its_twin_whatever_the_others_are_compared_with(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", {"torch-compile": 0.57})
    (group,) = collect([folder], baseline="torch-compile").groups
    pair = find_a_a(group)
    assert pair.variant == "torch-eager"
    assert pair.ratio == pytest.approx(1.0, rel=0.01)
    assert pair.differs == {}


def test_a_skipped_proof_is_absent_and_not_failed(compare: Compare) -> None:
    def skip(result: dict[str, Any]) -> None:
        if result["cell"]["purpose"] == "proof" and result["cell"]["variant"] == "torch-compile":
            result.pop("proof")
            result.update(status="skipped", cause={"kind": "precision", "message": "no bfloat16"})

    row = find_row(compare(skip), "torch-compile")
    assert (row.proof, row.verdict) == ("absent", "not comparable")
    assert "its proof was skipped: no bfloat16" in str(row.cause)


def test_a_row_above_the_ceiling_says_so(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", {"torch-compile": 0.001})
    ceiling = made_runs.load("ceiling")
    ceiling["cell"]["run"] = "run"
    made_runs.write(folder, ceiling)
    row = find_row(collect([folder]), "torch-compile")
    assert row.percent_of_ceiling is not None
    assert row.percent_of_ceiling > 100
    assert "above the ceiling, which was measured while the machine was slower" in row.warnings


def test_launches_without_a_partner_are_told(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", {"torch-compile": 0.57})
    for block in (0, 1):
        next(folder.glob(f"cells/*torch-eager*_fp32.{block}.json")).unlink()
    row = find_row(collect([folder]), "torch-compile")
    assert row.blocks == 4
    assert "2 of its 6 launches have none to stand beside" in str(row.cause)


def test_launches_under_other_variables_are_no_launches_of_one_row(tmp_path: Path) -> None:
    """R5: a run with OMP_PROC_BIND is not pooled with one without."""
    plain = make_run(tmp_path / "plain", {"torch-compile": 0.57})
    bound = make_run(
        tmp_path / "bound",
        {"torch-compile": 0.57},
        change=put("environment.variables.OMP_PROC_BIND", "spread"),
    )
    row = find_row(collect([plain, bound]), "torch-compile")
    assert row.verdict == "not comparable"
    assert "variable.OMP_PROC_BIND" in str(row.cause)


@pytest.mark.parametrize(
    ("field", "value"),
    [("threads", {"intra_op": 7, "inter_op": 7}), ("baseline", "torch-script"), ("role", "ceiling")],
)
def test_a_result_that_its_run_did_not_plan_is_left_out(tmp_path: Path, field: str, value: object) -> None:
    folder = make_run(tmp_path / "run", {"torch-compile": 0.57})
    record = made_runs.load("run")
    paths = sorted(folder.glob("cells/*.0.json"))
    cells = [json.loads(path.read_text())["cell"] for path in paths]
    record.update(id="run", blocks=6, cells=[cell | {"position": 0} for cell in cells])
    (folder / "run.json").write_text(json.dumps(record))
    assert collect([folder]).left_out == []
    changed = json.loads(paths[0].read_text())
    changed["cell"][field] = value
    paths[0].write_text(json.dumps(changed))
    (left,) = collect([folder]).left_out
    assert left.reason == f"its {field} is not what its run planned"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (put("proof.dtype", "float32"), "proved in float32 where the cell asks for float64"),
        (lambda made: made["proof"]["checks"][0].update(tolerance=1.0), "judged by 1 where the cell allows"),
    ],
)
def test_a_proof_does_not_set_its_own_tolerance(tmp_path: Path, change: Change, reason: str) -> None:
    def loosen(result: dict[str, Any]) -> None:
        if result["cell"]["purpose"] == "proof":
            change(result)

    comparison = collect([make_run(tmp_path / "run", {"torch-compile": 0.57}, change=loosen)])
    assert all(reason in left.reason for left in comparison.left_out if "proof" in left.file)
    assert sum("proof" in left.file for left in comparison.left_out) == 2
    assert find_row(comparison, "torch-compile").ratio is None
