import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pytest
from numpy.typing import NDArray

from scripts import cifar, data, digits, idx, prepared
from scripts.contract import Data
from scripts.datasets import DataSet
from scripts.errors import ExitStatus, Refusal
from scripts.identity import file_sha256
from scripts.runs import ROOT
from tests.scripts.small_sets import (
    define,
    make_batches,
    make_files,
    pack,
    serve,
    write_cifar,
    write_folder,
)

ARCHIVES = pack(make_files())


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REMATCH_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def prepare(asked: Path | str) -> tuple[Data, list[str]]:
    said: list[str] = []
    return data.prepare(str(asked), said.append), said


def list_files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_a_set_is_downloaded_once_and_then_verified(tmp_path: Path, root: Path) -> None:
    """D1: one mirror fails."""
    with serve(ARCHIVES, "503") as bad, serve(ARCHIVES) as good:
        definition = define(tmp_path / "small.toml", ARCHIVES, [bad, good])
        first, said = prepare(definition)
    assert "downloading 4 archives" in said[0]
    again, said = prepare(definition)
    assert again == first
    assert said == []
    assert (first.name, first.folder, first.nature) == ("small", str(root / "small"), "a small set")
    wanted = ["small/manifest.json", *(f"small/MNIST/raw/{name}" for name in idx.FILES)]
    assert [name for name in list_files(root) if not name.endswith(".lock")] == sorted(wanted)


def test_a_set_within_the_project_is_named_by_its_place_there() -> None:
    assert prepared.name_place(ROOT / ".data" / "digits") == ".data/digits"
    assert prepared.locate(".data/digits") == ROOT / ".data" / "digits"
    assert prepared.locate(prepared.name_place(Path("/elsewhere/digits"))) == Path("/elsewhere/digits")


def test_a_folder_of_the_users_own_is_taken_by_its_content_and_never_touched(
    tmp_path: Path, root: Path
) -> None:
    own = write_folder(tmp_path / "mine")
    before = {path: path.stat().st_mtime_ns for path in own.rglob("*")}
    found, _ = prepare(own)
    assert found.name.startswith("own-")
    assert "mine: a folder of the user's own" in found.nature
    assert before == {path: path.stat().st_mtime_ns for path in own.rglob("*")}
    other, _ = prepare(write_folder(tmp_path / "same"))
    assert other.sha256 == found.sha256
    assert prepare(found.name)[0].sha256 == found.sha256
    third, _ = prepare(write_folder(tmp_path / "other", make_files(seed=1)))
    assert third.sha256 != found.sha256


def test_a_folder_that_holds_a_known_set_goes_by_its_name(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D4"""
    own = write_folder(tmp_path / "mine")
    sha256 = prepare(own)[0].sha256
    known = DataSet(
        nature="a known set", sha256=sha256, mirrors=["http://127.0.0.1:9/"], archives={"x": "0" * 64}
    )
    monkeypatch.setattr(data, "load_datasets", lambda: {"known": known})
    found, _ = prepare(own)
    assert (found.name, found.sha256, found.nature) == ("known", sha256, "a known set")
    # No network was needed, and none is from now on.
    assert prepare("known") == (found, [])
    altered = write_folder(tmp_path / "other", make_files(seed=1))
    assert prepare(altered)[0].name.startswith("own-")


def test_known_data_that_were_altered_with_their_manifest_are_told(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D2"""
    with serve(ARCHIVES) as good:
        _, definition, _ = data.find(str(define(tmp_path / "small.toml", ARCHIVES, [good])))
        sha256 = prepare(tmp_path / "small.toml")[0].sha256
    folder = root / "small"
    held = prepared.read_manifest(folder)
    assert held is not None
    (folder / idx.RAW / idx.FILES[0]).write_bytes(make_files(seed=1)[idx.FILES[0]])
    (folder / "manifest.json").unlink()
    prepared.write_manifest(folder, held.name, held.nature, held.made_from)
    pinned = msgspec.structs.replace(definition, sha256=sha256)
    assert data.check(folder, pinned) == "it holds other data than are pinned"


def test_archives_that_hold_other_data_than_are_pinned_are_told_as_such(tmp_path: Path, root: Path) -> None:
    """D2"""
    with serve(ARCHIVES) as good:
        definition = define(tmp_path / "small.toml", ARCHIVES, [good])
        text = definition.read_text().replace("[small]", f"[small]\nsha256 = '{'0' * 64}'")
        definition.write_text(text)
        with pytest.raises(Refusal, match="small: its archives hold other bytes"):
            prepare(definition)
    assert not (root / "small").exists()


def test_a_folder_may_be_named_without_a_slash_and_a_known_name_stays_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mine", "mnist"):
        write_folder(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert prepare("mine")[0].name.startswith("own-")
    assert data.is_path("mine")
    assert not data.is_path("mnist")
    assert not data.is_path("")


@pytest.mark.parametrize("damage", ["cut", "altered", "removed", "manifest cut", "manifest altered"])
def test_a_damaged_set_is_made_again_before_anything_is_timed(
    tmp_path: Path, root: Path, damage: str
) -> None:
    """D2"""
    with serve(ARCHIVES) as good:
        definition = define(tmp_path / "small.toml", ARCHIVES, [good])
        first, _ = prepare(definition)
        victim = root / "small" / ("manifest.json" if "manifest" in damage else f"{idx.RAW}/{idx.FILES[0]}")
        content = victim.read_bytes()
        if damage.endswith("cut"):
            victim.write_bytes(content[: len(content) // 2])
        elif damage == "altered":
            victim.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        elif damage == "removed":
            victim.unlink()
        else:
            victim.write_bytes(content.replace(first.sha256.encode(), b"0" * 64))
        again, said = prepare(definition)
    assert again == first
    assert "it is made again" in said[0]
    assert data.check(root / "small", data.find(str(definition))[1]) == prepared.read_manifest(root / "small")


def test_a_damaged_set_that_nobody_can_make_again_is_refused(tmp_path: Path, root: Path) -> None:
    """D2: no network any more."""
    with serve(ARCHIVES) as good:
        definition = define(tmp_path / "small.toml", ARCHIVES, [good])
        prepare(definition)
    (root / "small" / idx.RAW / idx.FILES[0]).write_bytes(b"")
    with pytest.raises(Refusal, match="no mirror serves it") as refused:
        prepare(definition)
    assert refused.value.status == ExitStatus.HOST_CANNOT
    own, _ = prepare(write_folder(tmp_path / "mine"))
    Path(own.folder, idx.RAW, idx.FILES[0]).write_bytes(b"")
    with pytest.raises(Refusal, match="give that by --data"):
        prepare(own.name)


def test_a_definition_whose_archives_changed_is_not_served_from_what_was_there(tmp_path: Path) -> None:
    other = pack(make_files(seed=1))
    with serve(ARCHIVES) as one, serve(other) as two:
        first, _ = prepare(define(tmp_path / "small.toml", ARCHIVES, [one]))
        second, said = prepare(define(tmp_path / "small.toml", other, [two]))
    assert first.sha256 != second.sha256
    assert "made from other archives" in said[0]


def test_the_embedded_set_needs_no_network(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = prepare("digits")
    assert made.nature.startswith("digits: ")
    monkeypatch.setattr(digits, "generate", make_files)
    assert prepare("digits")[0] == made
    # What is pinned is the identity: a machine that makes other bytes is told, and they are not kept.
    (root / "digits" / "manifest.json").unlink()
    with pytest.raises(Refusal, match="40 images, where 60000 are wanted"):
        prepare("digits")


def test_other_bytes_than_are_pinned_are_not_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = make_files(60000, 10000)
    monkeypatch.setattr(digits, "generate", lambda: files)
    with pytest.raises(Refusal, match="made other bytes"):
        prepare("digits")
    assert not (root / "digits").exists()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("mnits", "there is no data set 'mnits'; did you mean mnist"),
        ("./nowhere", "no such file or folder"),
        ("nothing.toml", "no such file or folder"),
    ],
)
def test_what_does_not_exist_is_refused_in_one_line(asked: str, words: str) -> None:
    with pytest.raises(Refusal, match=words) as refused:
        prepare(asked)
    assert refused.value.status == ExitStatus.BAD_OPTIONS


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (
            "train-labels-idx1-ubyte",
            numpy.full(40, 77, numpy.uint8),
            "labels up to 77, where 9 is the largest",
        ),
        ("t10k-images-idx3-ubyte", numpy.zeros((0, 28, 28), numpy.uint8), "0 images and 10 labels"),
    ],
)
def test_a_folder_whose_files_no_net_could_learn_is_refused(
    tmp_path: Path, name: str, content: NDArray[Any], words: str
) -> None:
    with pytest.raises(Refusal, match=words) as refused:
        prepare(write_folder(tmp_path / "mine", make_files() | {name: idx.encode(content)}))
    assert refused.value.status == ExitStatus.BAD_OPTIONS


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="no images"):
        prepare(write_folder(tmp_path / "mine", make_files(0)))


def test_a_pipe_in_place_of_a_file_is_told_and_not_waited_for(tmp_path: Path) -> None:
    own = write_folder(tmp_path / "mine")
    (own / idx.RAW / idx.FILES[0]).unlink()
    os.mkfifo(own / idx.RAW / idx.FILES[0])
    # In a process of its own, which may be ended: this one would wait for ever.
    child = subprocess.run(
        [sys.executable, "-m", "scripts.data", str(own)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert child.returncode == ExitStatus.BAD_OPTIONS
    assert "train-images-idx3-ubyte: no file" in child.stderr


def test_a_folder_without_the_layout_is_refused_and_named(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="MNIST/raw, unpacked or the set's own cifar-10-python"):
        prepare(tmp_path)
    write_folder(tmp_path)
    (tmp_path / idx.RAW / idx.FILES[0]).unlink()
    with pytest.raises(Refusal, match=r"MNIST/raw/train-images-idx3-ubyte: No such file"):
        prepare(tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no data set in it"),
        ("[a", "small.toml: "),
        ("[small]\nnature = 'x'", "needs mirrors, and archives"),
        ("[small]\nnature = 'x'\nmirrors = ['ftp://x/']", "mirrors"),
        ("[mnist]\nnature = 'x'\nsha256 = '" + "0" * 64 + "'", "is a data set of this project's"),
        ("[small]\nnature = 'x'\nsha256 = '" + "0" * 64 + "'", "small names no archives"),
        ("['../x']\nnature = 'x'", "small.toml: "),
        (
            "[a]\nnature='x'\nsha256='" + "0" * 64 + "'\n[b]\nnature='x'\nsha256='" + "0" * 64 + "'",
            "2 data sets",
        ),
    ],
)
def test_a_definition_that_is_none_is_refused_by_file(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "small.toml").write_text(content)
    with pytest.raises(Refusal) as refused:
        prepare(tmp_path / "small.toml")
    assert words in refused.value.message
    assert str(tmp_path / "small.toml") in refused.value.message


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
def test_a_place_that_is_full_or_cannot_be_written_is_named_and_nothing_is_left(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """C10"""
    own = write_folder(tmp_path / "mine")

    def fail(source: Path, target: Path) -> None:
        Path(target).write_bytes(b"half")
        raise OSError(number, os.strerror(number), str(target))

    monkeypatch.setattr("scripts.formats.shutil.copyfile", fail)
    with pytest.raises(Refusal) as refused:
        prepare(own)
    assert refused.value.status == ExitStatus.HOST_CANNOT
    assert os.strerror(number) in refused.value.message
    assert ("free some space" in refused.value.message) == (number in (errno.ENOSPC, errno.EDQUOT))
    assert [name for name in list_files(root) if not name.endswith(".lock")] == []


def test_a_data_folder_that_is_a_file_is_refused(tmp_path: Path, root: Path) -> None:
    root.write_text("")
    with pytest.raises(Refusal, match="name another place by REMATCH_DATA"):
        prepare(write_folder(tmp_path / "mine"))


def test_the_program_prepares_and_checks_and_says_what_is_there(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = write_folder(tmp_path / "mine")
    assert data.main([str(own), "--check"]) == ExitStatus.PARTLY_MEASURED
    assert "not there yet" in capsys.readouterr().out
    assert data.main([str(own)]) == ExitStatus.MEASURED
    assert data.main([str(own), "--check"]) == ExitStatus.MEASURED
    lines = capsys.readouterr().out.splitlines()
    sha256 = json.loads(next(root.glob("own-*/manifest.json")).read_text())["sha256"]
    assert all(sha256[:12] in line for line in lines)
    with pytest.raises(Refusal, match="see --help"):
        data.main(["--chek"])


def test_cifars_archive_is_downloaded_opened_and_kept_as_plain_files(tmp_path: Path, root: Path) -> None:
    """D1, D4: one archive, and what both frameworks read."""
    archives = {cifar.ARCHIVE: (write_cifar(tmp_path / "mine") / cifar.ARCHIVE).read_bytes()}
    with serve(archives, "503") as bad, serve(archives) as good:
        definition = define(tmp_path / "small.toml", archives, [bad, good], form="cifar-10")
        made, said = prepare(definition)
        assert "downloading 1 archive" in said[0]
        assert prepare(definition) == (made, [])
    assert [name for name in list_files(root) if not name.endswith(".lock")] == sorted(
        ["small/manifest.json", *(f"small/{cifar.RAW / name}" for name in cifar.FILES)]
    )
    pixels, labels = make_batches()["data_batch_2"]
    assert (root / "small" / cifar.RAW / "data_batch_2.bin").read_bytes() == cifar.join(pixels, labels)


def test_cifars_archive_with_other_bytes_is_not_even_opened(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D2: the checksum first."""
    archives = {cifar.ARCHIVE: (write_cifar(tmp_path / "mine") / cifar.ARCHIVE).read_bytes()}
    opened: list[object] = []
    monkeypatch.setattr("scripts.cifar.tarfile.open", lambda *args: opened.append(args))
    with serve(archives, "with other bytes") as bad:
        definition = define(tmp_path / "small.toml", archives, [bad], form="cifar-10")
        with pytest.raises(Refusal, match="its checksum differs"):
            prepare(definition)
    assert opened == []
    assert not (root / "small").exists()


def test_a_folder_with_an_archive_is_taken_by_what_the_archive_is(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D4"""
    own = write_cifar(tmp_path / "mine")
    found, _ = prepare(own)
    assert found.name.startswith("own-")
    assert "in CIFAR-10's format" in found.nature
    assert [path.name for path in own.iterdir()] == [cifar.ARCHIVE]
    assert prepare(found.name)[0] == found
    assert prepare(write_cifar(tmp_path / "other", seed=1))[0].sha256 != found.sha256
    archives = {cifar.ARCHIVE: file_sha256(own / cifar.ARCHIVE)}
    known = DataSet(nature="known", mirrors=["http://127.0.0.1:9/"], archives=archives, format="cifar-10")
    monkeypatch.setattr(data, "load_datasets", lambda: {"known": known})
    # No network is asked where a folder has what would be downloaded.
    assert prepare(own)[0].name == "known"
    assert prepare("known")[0].name == "known"


@pytest.mark.parametrize("fault", ["cut", "none"])
def test_a_folder_with_an_archive_that_is_none_is_refused_in_one_line_and_nothing_is_kept(
    tmp_path: Path, root: Path, fault: str
) -> None:
    """D2"""
    own = write_cifar(tmp_path / "mine")
    content = (own / cifar.ARCHIVE).read_bytes()
    (own / cifar.ARCHIVE).write_bytes(content[: len(content) // 2] if fault == "cut" else b"no archive")
    with pytest.raises(Refusal, match=r"cifar-10-python\.tar\.gz: damaged, or no archive") as refused:
        prepare(own)
    assert refused.value.status == ExitStatus.BAD_OPTIONS
    assert refused.value.message.startswith(f"{own}: ")
    assert "\n" not in refused.value.message
    assert [name for name in list_files(root) if not name.endswith(".lock")] == []


def test_a_folder_that_holds_two_sets_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path / "mine")
    (tmp_path / "mine" / cifar.ARCHIVE).write_bytes(b"")
    with pytest.raises(Refusal, match="two formats"):
        prepare(tmp_path / "mine")


def test_the_drawn_set_goes_through_an_archive_and_needs_no_network(root: Path) -> None:
    made, said = prepare("shapes")
    assert said == []
    assert made.nature.startswith("shapes: ")
    assert not list((root / "shapes").rglob("*.tar*"))
