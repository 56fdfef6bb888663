from pathlib import Path

import msgspec
import pytest

from scripts import derive as module
from scripts.catalogue import Workload, load_catalogue
from scripts.contract import Cell, Data, Machine, Run
from scripts.data import prepare
from scripts.derive import check_data, choose_data, derive, find_data
from scripts.errors import Refusal
from scripts.prepared import verify
from scripts.runs import RunFolder
from tests.scripts.plans import FakeLauncher, plan
from tests.scripts.small_sets import write_cifar, write_folder

CATALOGUE = load_catalogue()
CELL = plan(workloads=("toy",)).cells[0]


def make_cells(*variants: str) -> list[Cell]:
    return [
        msgspec.structs.replace(CELL, id=variant, workload="mnist", variant=variant, stack="mixed")
        for variant in variants
    ]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("REMATCH_DATA", str(tmp_path / "data"))
    return str(write_folder(tmp_path / "mine"))


def find(own: str, *variants: str) -> list[Cell]:
    return find_data(make_cells(*variants), CATALOGUE, [own], lambda line: None)


def test_cells_get_their_workloads_data_and_only_some_what_their_stack_makes_of_it(own: str) -> None:
    plain, made = find(own, "torchvision-workers-4", "tfds-article")
    assert plain.data is not None
    assert made.data is not None
    assert plain.data.sha256 == made.data.sha256
    assert plain.data.derived is None
    assert (made.data.derived or "").startswith("derived-")
    (toy,) = find_data([msgspec.structs.replace(CELL, workload="mlp")], CATALOGUE, [], lambda line: None)
    assert toy.data is None


def test_what_a_stack_makes_is_named_by_its_lock_and_by_what_makes_it(
    own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cell,) = find(own, "tfds-article")
    other_lock = msgspec.structs.replace(
        make_cells("tfds-article")[0],
        identity=msgspec.structs.replace(CELL.identity, lock_sha256="9" * 64),
    )
    (other,) = find_data([other_lock], CATALOGUE, [own], lambda line: None)
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "tfds_files.py").write_text("another builder")
    monkeypatch.setattr(module, "SOURCES", sources)
    (rebuilt,) = find(own, "tfds-article")
    names = {found.data.derived for found in (cell, other, rebuilt) if found.data}
    assert len(names) == 3


def test_it_is_made_once_for_all_cells_and_again_where_it_was_damaged(own: str, tmp_path: Path) -> None:
    """D2"""
    cells = find(own, "tfds-article", "tfds-autotune", "torchvision-workers-4")
    launcher = FakeLauncher(RunFolder(tmp_path / "run"))
    said: list[str] = []
    assert derive(cells, launcher, set(), said.append) == {}
    assert [cell.purpose for cell in launcher.derived] == ["prepare"]
    assert "makes its own files of it, once" in said[0]
    assert derive(cells, launcher, set(), said.append) == {}
    assert len(launcher.derived) == 1
    assert cells[0].data is not None
    folder = Path(cells[0].data.folder, cells[0].data.derived or "")
    (folder / "made").write_text("something else")
    assert derive(cells, launcher, set(), said.append) == {}
    assert len(launcher.derived) == 2
    assert not isinstance(verify(folder), str)


def test_a_stack_that_cannot_make_it_bars_only_those_that_read_it(own: str, tmp_path: Path) -> None:
    cells = find(own, "tfds-article", "tfds-autotune", "torchvision-workers-4")
    launcher = FakeLauncher(RunFolder(tmp_path / "run"))
    launcher.failing = {"tfds-article"}
    obstacles = derive(cells, launcher, set(), lambda line: None)
    assert obstacles.keys() == {"tfds-article", "tfds-autotune"}
    said = {cause.message for cause in obstacles.values()}
    assert said == {"its data could not be prepared: killed by SIGSEGV"}
    assert cells[0].data is not None
    assert [path.name for path in Path(cells[0].data.folder).glob("*derived*") if path.is_dir()] == []


def test_nothing_is_made_for_cells_that_are_barred_anyway(own: str, tmp_path: Path) -> None:
    cells = find(own, "tfds-article")
    launcher = FakeLauncher(RunFolder(tmp_path / "run"))
    assert derive(cells, launcher, {"tfds-article"}, lambda line: None) == {}
    assert launcher.derived == []


def test_each_workload_has_its_default_and_what_is_asked_for_goes_to_those_that_read_it(
    tmp_path: Path, own: str
) -> None:
    catalogue: dict[str, Workload] = CATALOGUE
    both = {"mnist", "densenet", "mlp"}
    assert choose_data(both, catalogue, []) == {"mnist": "digits", "densenet": "shapes"}
    assert choose_data(both, catalogue, ["mnist"]) == {"mnist": "mnist", "densenet": "shapes"}
    assert choose_data(both, catalogue, ["cifar-10"]) == {"mnist": "digits", "densenet": "cifar-10"}
    # What is given by its place goes to those whose own data have its format.
    assert choose_data(both, catalogue, [own]) == {"mnist": own, "densenet": "shapes"}
    name = prepare(own, lambda line: None).name
    assert choose_data(both, catalogue, [name]) == {"mnist": name, "densenet": "shapes"}
    archive = str(write_cifar(tmp_path / "cifar"))
    assert choose_data(both, catalogue, [own, archive]) == {"mnist": own, "densenet": archive}
    with pytest.raises(Refusal, match="in the format of cifar-10, which nothing that is measured reads"):
        choose_data({"mnist"}, catalogue, [archive])
    with pytest.raises(Refusal, match="no such file or folder"):
        choose_data(both, catalogue, ["./nowhere"])
    with pytest.raises(Refusal, match="there is no data set of what is measured 'mnits'; did you mean mnist"):
        choose_data(both, catalogue, ["mnits"])
    with pytest.raises(Refusal, match="nothing that is measured reads data; leave it out"):
        choose_data({"mlp"}, catalogue, ["mnist"])


def test_a_run_whose_data_changed_does_not_go_on(own: str) -> None:
    cells = find(own, "torchvision-workers-4")
    machine = Machine("host", "cpu", 2, 2, 1, "kernel", None, None)
    run = Run(1, "run", "", [], "smoke", 1, 1, cells, machine)
    check_data(run, lambda line: None)
    assert cells[0].data is not None
    other = Data(name=cells[0].data.name, sha256="0" * 64, folder=cells[0].data.folder, nature="")
    changed = msgspec.structs.replace(run, cells=[msgspec.structs.replace(cells[0], data=other)])
    with pytest.raises(Refusal, match=r"its data own-.* changed; start a new run"):
        check_data(changed, lambda line: None)
