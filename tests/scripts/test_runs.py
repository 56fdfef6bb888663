"""Files appear whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from scripts.errors import ExitStatus, Refusal
from scripts.runs import RunFolder, write_whole


def refuse(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "run" / "a.json"
    synced: list[bool] = []
    real = os.fsync

    def watch(descriptor: int) -> None:
        synced.append(place.exists())
        real(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    write_whole(place, b"content")
    assert synced == [False]
    assert place.read_bytes() == b"content"
    assert [path.name for path in place.parent.iterdir()] == ["a.json"]
    assert place.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named_and_what_was_there_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """C10"""
    place = tmp_path / "a.json"
    write_whole(place, b"before")

    def full(descriptor: int) -> None:
        raise refuse(number)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Refusal) as caught:
        write_whole(place, b"after")
    assert caught.value.status == ExitStatus.HOST_CANNOT
    assert f"no space left on the disk of {tmp_path}" in caught.value.message
    assert place.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_folder_that_cannot_be_written_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refusal, match="choose another --results folder") as caught:
        write_whole(tmp_path / "file" / "a.json", b"content")
    assert caught.value.status == ExitStatus.BAD_OPTIONS


def test_a_proof_and_a_block_have_files_of_their_own(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.result("cell", None).name == "cell.proof.json"
    assert folder.result("cell", 3).name == "cell.3.json"
    assert folder.log("cell", 3).name == "cell.3.log"
