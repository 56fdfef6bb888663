import hashlib
from pathlib import Path

import pytest

from scripts.download import Patience, fetch, unpack
from scripts.errors import ExitStatus, Refusal
from tests.scripts.small_sets import make_files, pack, serve

FILES = make_files()
ARCHIVES = pack(FILES)
PINS = {name: hashlib.sha256(content).hexdigest() for name, content in ARCHIVES.items()}
QUICK = Patience(connect_s=2, read_s=0.5, whole_s=1)
NOWHERE = "http://127.0.0.1:9/"


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("403", "answers 403 Forbidden"),
        ("503", "answers 503"),
        ("with a web page", "answers with a web page"),
        ("with other bytes", "its checksum differs"),
        ("half", "breaks off"),
        ("not at all", "does not"),
        ("by drops", "has not sent it within 1 s"),
    ],
)
def test_a_mirror_that_fails_is_told_and_the_next_one_asked(tmp_path: Path, how: str, words: str) -> None:
    """D1"""
    said: list[str] = []
    with serve(ARCHIVES, how) as bad, serve(ARCHIVES) as good:
        fetch(PINS, [bad, good], tmp_path, said.append, QUICK)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == FILES
    # Labels, a hundred bytes of them, may arrive by drops too.
    assert len(said) == 4 or (how == "by drops" and len(said) >= 2)
    assert all(words in line and "asking the next mirror" in line for line in said)


def test_where_no_mirror_serves_each_ones_reason_and_the_remedy_are_told(tmp_path: Path) -> None:
    """D1"""
    with serve(ARCHIVES, "403") as bad, pytest.raises(Refusal) as refused:
        fetch(PINS, [NOWHERE, bad], tmp_path, lambda line: None, QUICK)
    message = refused.value.message
    assert refused.value.status == ExitStatus.HOST_CANNOT
    for words in ("refuses the connection", "403 Forbidden", "--data digits", "--data FOLDER"):
        assert words in message
    assert "\n" not in message
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_nobody_knows_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"its name is not found|proxy"):
        fetch(PINS, ["http://no-such-host.invalid/"], tmp_path, lambda line: None, QUICK)


def test_an_archive_that_is_none_though_its_checksum_is_right_is_refused(tmp_path: Path) -> None:
    """D2"""
    archive = tmp_path / "images.gz"
    for content in (b"no gzip at all", ARCHIVES["train-images-idx3-ubyte.gz"][:-9]):
        archive.write_bytes(content)
        with pytest.raises(Refusal, match="no gzipped file"):
            unpack(archive)


def test_an_archive_that_unpacks_to_more_than_any_set_has_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scripts.download.LARGEST_BYTES", 1000)
    archive = tmp_path / "images.gz"
    archive.write_bytes(ARCHIVES["train-images-idx3-ubyte.gz"])
    with pytest.raises(Refusal, match="sensible size"):
        unpack(archive)
