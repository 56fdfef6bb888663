"""What versions of a framework brought, by runs of several stacks."""

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from scripts.collect import collect
from scripts.comparison import Comparison, VersionTiming
from scripts.renderings import print_comparison, render_markdown
from tests.scripts import made_runs

STACKS = {"torch-2.15": ("2.15.0", 1.0), "torch-1.0": ("1.0.0", 2.0), "torch-1.3": ("1.3.0", 3.0)}
"""A stack's version, and its share of the baseline's time."""


def make(
    folder: Path,
    stacks: Mapping[str, tuple[str, float]] = STACKS,
    blocks: Iterable[int] = range(6),
    change: made_runs.Change = lambda result: None,
) -> Comparison:
    """Collect a run of ``torch-eager``, whose baseline is the first stack's."""
    first = next(iter(stacks))
    for stack, (version, speed) in stacks.items():
        for role in ("baseline", "a_a") if stack == first else ("variant",):
            launches = [made_runs.make_launch("torch-eager", block, speed, role) for block in blocks]
            for result in [*launches, *([] if role == "a_a" else [made_runs.make_proof(launches[0])])]:
                cell = result["cell"]
                cell.update(stack=stack, run=folder.name, id=cell["id"].replace("torch-2.15", stack))
                if result.get("environment"):
                    result["environment"]["packages"]["torch"] = version
                change(result)
                made_runs.write(folder, result)
    return collect([folder])


def list_timings(comparison: Comparison) -> list[VersionTiming]:
    (found,) = [one for one in comparison.versions if comparison.groups[one.group].measure == "step"]
    assert found.variant == "torch-eager"
    return found.timings


def test_each_version_stands_beside_the_oldest_block_by_block(tmp_path: Path) -> None:
    timings = list_timings(make(tmp_path / "run"))
    assert [(one.version, one.is_oldest) for one in timings] == [
        ("1.0.0", True),
        ("1.3.0", False),
        ("2.15.0", False),
    ]
    assert [one.ratio and round(one.ratio, 2) for one in timings] == [None, 1.5, 0.5]
    for one in timings[1:]:
        assert one.ratio_interval is not None
        low, high = one.ratio_interval
        assert low < one.ratio < high  # type: ignore[operator]
        # Blocks are 1 % apart, which a pair does not feel.
        assert high / low < 1.01


def test_versions_are_ordered_by_number(tmp_path: Path) -> None:
    stacks = {"torch-2.15": ("2.15.0", 1.0), "torch-2.9": ("2.9.1+cpu", 1.0)}
    assert [one.version for one in list_timings(make(tmp_path / "run", stacks))] == ["2.9.1+cpu", "2.15.0"]


def test_without_a_second_version_there_is_nothing_to_show(tmp_path: Path) -> None:
    stacks = {"torch-2.15": ("2.15.0", 1.0), "mixed": ("2.15.0", 1.1)}
    comparison = make(tmp_path / "run", stacks)
    assert comparison.versions == []
    assert "What versions brought" not in render_markdown(comparison)


@pytest.mark.parametrize("oldest", [True, False])
def test_a_version_whose_proof_fails_has_no_ratio_and_says_why(tmp_path: Path, oldest: bool) -> None:
    broken = "torch-1.0" if oldest else "torch-1.3"

    def spoil(result: dict[str, Any]) -> None:
        if result["cell"]["stack"] == broken and result["cell"]["purpose"] == "proof":
            made_runs.break_proof(result)

    comparison = make(tmp_path / "run", change=spoil)
    timings = {one.stack: one for one in list_timings(comparison)}
    assert (timings[broken].ratio, timings[broken].is_oldest) == (None, False)
    assert timings[broken].cause == "torch-eager: proof fails"
    other = timings["torch-1.3" if oldest else "torch-1.0"]
    assert other.is_oldest
    assert timings["torch-2.15"].ratio == pytest.approx(1 / 3 if oldest else 0.5, rel=0.01)
    assert "torch-eager: proof fails" in render_markdown(comparison)


def test_a_single_block_gives_no_ratio(tmp_path: Path) -> None:
    timings = list_timings(make(tmp_path / "run", blocks=[0]))
    assert [one.ratio for one in timings] == [None, None, None]


def test_the_table_says_what_each_version_took(tmp_path: Path) -> None:
    comparison = make(tmp_path / "run")
    target = io.StringIO()
    print_comparison(comparison, Console(file=target, width=120))
    shown = target.getvalue()
    assert "What versions brought: mlp, fair edition, step" in shown
    lines = shown[shown.index("What versions brought") :].splitlines()
    found = [line.split()[1:3] for line in lines if line.startswith("torch-eager")][:3]
    assert found == [["1.0.0", "oldest"], ["1.3.0", "1.500x"], ["2.15.0", "0.500x"]]
    assert "versions: time over that of the oldest version" in shown
