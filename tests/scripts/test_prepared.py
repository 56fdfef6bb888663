import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from scripts import data, prepared
from scripts.errors import ExitStatus, Refusal
from scripts.runs import ROOT
from tests.scripts.small_sets import define, make_files, pack, serve

ARCHIVES = pack(make_files())


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REMATCH_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def replace(folder: Path, content: str) -> None:
    with prepared.replace_folder(folder) as fresh:
        fresh.mkdir()
        (fresh / "file").write_text(content)


def test_nobody_sees_half_of_a_folder_that_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D3"""
    folder = tmp_path / "set"
    replace(folder, "old")
    seen = []
    remove = shutil.rmtree

    def watch(path: Path, ignore_errors: bool = False) -> None:
        if path.exists():
            seen.append((path == folder, (folder / "file").read_text()))
        remove(path, ignore_errors)

    monkeypatch.setattr("scripts.prepared.shutil.rmtree", watch)
    replace(folder, "new")
    assert seen == [(False, "new")]
    assert list_names(tmp_path) == ["set"]


def test_what_was_there_stays_where_its_successor_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C10"""
    folder = tmp_path / "set"
    replace(folder, "old")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr("scripts.prepared.Path.rename", Mock(side_effect=full))
    with pytest.raises(Refusal, match="free some space") as refused:
        replace(folder, "new")
    assert refused.value.status == ExitStatus.HOST_CANNOT
    assert (folder / "file").read_text() == "old"
    assert list_names(tmp_path) == ["set"]


@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
def test_what_stands_in_a_folders_place_makes_room_and_what_it_points_to_is_left(
    tmp_path: Path, kind: str
) -> None:
    folder, other = tmp_path / "set", tmp_path / "other"
    if kind == "file":
        folder.write_text("")
    else:
        folder.symlink_to(other)
    if kind == "link":
        replace(other, "theirs")
    replace(folder, "new")
    assert not folder.is_symlink()
    assert (folder / "file").read_text() == "new"
    assert kind != "link" or (other / "file").read_text() == "theirs"
    assert list_names(tmp_path) == (["other", "set"] if kind == "link" else ["set"])


def test_a_place_without_locks_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D3: some network file systems have none."""

    def fail(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("scripts.prepared.fcntl.flock", fail)
    with (
        pytest.raises(Refusal, match=r"No locks available.*REMATCH_DATA") as refused,
        prepared.hold(tmp_path / "set"),
    ):
        pass
    assert refused.value.status == ExitStatus.HOST_CANNOT


PREPARE = "import sys; from scripts.data import prepare; print(prepare(sys.argv[1], print).sha256)"


def start(definition: Path, program: str = PREPARE) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, str(definition)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def test_processes_that_prepare_the_same_set_at_once_make_it_once(tmp_path: Path, root: Path) -> None:
    """D3"""
    with serve(ARCHIVES) as good:
        definition = define(tmp_path / "small.toml", ARCHIVES, [good])
        ended = [child.communicate(timeout=60)[0].split() for child in [start(definition) for _ in range(3)]]
    assert len({words[-1] for words in ended}) == 1
    assert sum("downloading" in words for words in ended) == 1


def test_what_a_process_left_that_died_half_way_is_cleared_away(tmp_path: Path, root: Path) -> None:
    """D3: no corruption, and no lock that stays."""
    die = (
        "import os, signal, sys; from scripts import data\n"
        "data.write_manifest = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "data.prepare(sys.argv[1], print)"
    )
    with serve(ARCHIVES) as good:
        definition = define(tmp_path / "small.toml", ARCHIVES, [good])
        child = start(definition, die)
        child.communicate(timeout=60)
        assert child.returncode == -signal.SIGKILL
        assert (root / ".small.new").exists()
        assert not (root / "small").exists()
        data.prepare(str(definition), print)
    assert not (root / ".small.new").exists()
    assert (root / "small").exists()


@pytest.mark.parametrize("asked", ["small.toml", "digits"])
def test_an_interrupted_session_leaves_nothing_half(tmp_path: Path, root: Path, asked: str) -> None:
    with serve(ARCHIVES, "by drops") as slow:
        definition = define(tmp_path / "small.toml", ARCHIVES, [slow])
        child = subprocess.Popen(
            [sys.executable, "-m", "scripts.data", str(definition) if asked == "small.toml" else asked],
            cwd=ROOT,
            stderr=subprocess.PIPE,
        )
        # Made before anything is downloaded or generated.
        while not list(root.glob(".*.new")):
            assert child.poll() is None
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        _, complaint = child.communicate(timeout=60)
    assert child.returncode == ExitStatus.INTERRUPTED
    assert complaint == b""
    assert [path.name for path in root.iterdir() if path.suffix != ".lock"] == []
