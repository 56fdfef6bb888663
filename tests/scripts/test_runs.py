import errno
import os
import shutil
from pathlib import Path

import pytest

from scripts.errors import ExitStatus, Refusal
from scripts.runs import copy_plain


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    (source / "a").mkdir(parents=True)
    (source / "a" / "file").write_text("content")
    return source


def test_files_and_folders_are_copied_and_are_the_callers(source: Path, tmp_path: Path) -> None:
    copy_plain(source, tmp_path / "target")
    copied = tmp_path / "target" / "a" / "file"
    assert copied.read_text() == "content"
    assert copied.stat().st_uid == os.getuid()


@pytest.mark.parametrize("strange", ["link", "pipe"])
def test_what_is_neither_is_refused_since_it_would_be_read_with_the_hosts_rights(
    source: Path, tmp_path: Path, strange: str
) -> None:
    if strange == "link":
        (source / "a" / "strange").symlink_to("/etc/passwd")
    else:
        os.mkfifo(source / "a" / "strange")
    with pytest.raises(Refusal, match="neither a file nor a folder"):
        copy_plain(source, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_a_full_disk_is_told_and_nothing_half_is_left(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C10"""

    def fail(*_: object, **__: object) -> None:
        (tmp_path / "target").mkdir()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copytree", fail)
    with pytest.raises(Refusal, match="no space left") as refused:
        copy_plain(source, tmp_path / "target")
    assert refused.value.status == ExitStatus.HOST_CANNOT
    assert not (tmp_path / "target").exists()
