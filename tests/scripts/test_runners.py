import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from scripts import bench, runners
from scripts.environments import EnvironmentRefusal
from scripts.errors import ExitStatus, Refusal
from scripts.runners import enter_host, enter_venvs, find_interpreter
from scripts.runs import ROOT
from scripts.stacks import load_stacks
from scripts.uv import Kind
from tests.scripts.plans import plan

STACKS = load_stacks()
CELLS = plan(workloads=("toy",), runners=("host",)).cells


def make_program(path: Path, content: str = "#!/bin/sh\necho nonsense\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(0o755)
    return path


def test_the_interpreter_at_hand_is_the_first_on_the_path_that_is_none_of_the_projects_own(
    tmp_path: Path,
) -> None:
    first, second = (make_program(tmp_path / name / "python3") for name in ("a", "b"))
    own = (ROOT / ".venvs" / "host" / "bin", ROOT / ".nox" / "bench" / "bin")
    path = os.pathsep.join(map(str, (*own, tmp_path / "empty", first.parent, second.parent)))
    assert find_interpreter({"PATH": path}) == first


def test_a_named_interpreter_goes_before_the_path(tmp_path: Path) -> None:
    named = make_program(tmp_path / "python3.6")
    assert find_interpreter({"PATH": os.defpath, "REMATCH_PYTHON": str(named)}) == named


@pytest.mark.parametrize(
    ("environment", "status", "words"),
    [
        ({"PATH": "/nowhere"}, ExitStatus.HOST_CANNOT, "no python3 on PATH"),
        ({"REMATCH_PYTHON": "/nowhere/python"}, ExitStatus.BAD_OPTIONS, "REMATCH_PYTHON=/nowhere/python"),
    ],
)
def test_without_an_interpreter_the_remedy_is_named(
    environment: dict[str, str], status: ExitStatus, words: str
) -> None:
    with pytest.raises(Refusal, match=words) as refused:
        find_interpreter(environment)
    assert refused.value.status == status


def test_variants_whose_framework_the_interpreter_lacks_are_barred_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REMATCH_PYTHON", sys.executable)
    monkeypatch.setattr(runners, "_probe", lambda python, frameworks: {"torch"})
    entrances = enter_host(CELLS, lambda cell: [cell.framework])
    assert entrances.pythons == {"host": Path(sys.executable)}
    barred = {cell.framework for cell in CELLS if cell.id in entrances.obstacles}
    assert barred == {"tensorflow"}
    (cause,) = set(entrances.obstacles.values())
    assert (cause.kind, "has no tensorflow" in cause.message) == ("import", True)


def test_a_real_interpreter_is_asked_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    assert runners._probe(Path(sys.executable), ["json", "no_such_framework"]) == {"json"}


def test_what_does_not_answer_as_an_interpreter_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMATCH_PYTHON", str(make_program(tmp_path / "python3")))
    with pytest.raises(Refusal, match="no Python interpreter that answers"):
        enter_host(CELLS, lambda cell: [cell.framework])


def test_an_interpreter_that_is_too_old_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = '#!/bin/sh\necho \'{"version": [2, 7], "found": []}\'\n'
    monkeypatch.setenv("REMATCH_PYTHON", str(make_program(tmp_path / "python3", old)))
    with pytest.raises(Refusal, match=r"is Python 2\.7"):
        enter_host(CELLS, lambda cell: [cell.framework])


def refuse(monkeypatch: pytest.MonkeyPatch, kind: Kind, framework: str) -> None:
    def prepare(name: str, python: str, locks: Sequence[Path], sources: Sequence[str]) -> Path:
        if framework in STACKS[name].frameworks:
            raise EnvironmentRefusal(kind, f"{name}: {kind} is not as it should be")
        return Path("/python")

    monkeypatch.setattr(runners, "prepare", prepare)


@pytest.mark.parametrize("kind", ["python", "install"])
def test_a_stack_that_cannot_be_built_bars_its_own_cells_only(
    monkeypatch: pytest.MonkeyPatch, kind: Kind
) -> None:
    refuse(monkeypatch, kind, "tensorflow")
    names = {"torch": "torch-2.15", "tensorflow": "tensorflow-2.21"}
    cells = [cell for cell in plan(workloads=("toy",)).cells if cell.role != "ceiling"]
    cells = [replace(cell, stack=names[cell.framework]) for cell in cells]
    entrances = enter_venvs(cells, STACKS)
    assert set(entrances.pythons) == {names["torch"]}
    assert set(entrances.obstacles) == {cell.id for cell in cells if cell.framework == "tensorflow"}
    assert {cause.kind for cause in entrances.obstacles.values()} == {kind}


@pytest.mark.parametrize(("kind", "status"), [("lock", 2), ("disk", 3)])
def test_a_bad_lock_or_a_full_disk_ends_the_session_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: Kind,
    status: int,
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    refuse(monkeypatch, kind, "torch")
    results = tmp_path / "results"
    assert bench.main(["--workload", "mlp", "--results", str(results)]) == status
    assert f"{kind} is not as it should be" in capsys.readouterr().err
    assert not list(results.iterdir())
