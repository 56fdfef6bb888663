"""Digests of bases, with a stand-in for the registry."""

import shutil
from pathlib import Path

import pytest

from scripts.digests import find_files, list_bases, refresh_digests
from scripts.stacks import STACKS, load_stacks

STACK = load_stacks()["torch-2.15"]
PINNED = f"{STACK.base.image}@{STACK.base.digest}"
NEW = "sha256:" + "e" * 64


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [
        Path(shutil.copy(path, tmp_path / f"{number}-{path.name}"))
        for number, path in enumerate(find_files([STACK]))
    ]


def test_a_digest_that_the_registry_has_stays(files: list[Path]) -> None:
    asked = []

    def ask(image: str) -> str:
        asked.append(image)
        return STACK.base.digest

    (line,), is_gone = refresh_digests([PINNED], ask, upgrade=False, files=files)
    assert (line, is_gone) == (f"{PINNED}: the registry has it", False)
    assert asked == [PINNED]


def test_an_upgrade_writes_what_the_tag_names_now_wherever_the_digest_stands(files: list[Path]) -> None:
    (line,), is_gone = refresh_digests([PINNED], lambda image: NEW, upgrade=True, files=files)
    assert NEW[:19] in line
    assert not is_gone
    for path in files:
        assert NEW in path.read_text()
        assert STACK.base.digest not in path.read_text()


@pytest.mark.parametrize(("upgrade", "remedy"), [(False, "--upgrade bases"), (True, "name another tag")])
def test_a_digest_or_a_tag_that_is_gone_is_named_with_the_remedies(
    files: list[Path], upgrade: bool, remedy: str
) -> None:
    """C7"""
    before = [path.read_text() for path in files]

    def ask(image: str) -> str:
        raise LookupError("manifest unknown: manifest unknown")

    (line,), is_gone = refresh_digests([PINNED], ask, upgrade, files)
    assert is_gone
    for words in (PINNED, "gone from the registry", remedy, "--base local"):
        assert words in line
    assert [path.read_text() for path in files] == before


def test_without_a_registry_digests_stay_and_it_is_said(files: list[Path]) -> None:
    def ask(image: str) -> str:
        raise LookupError("dial tcp: lookup registry: no such host")

    (line,), is_gone = refresh_digests([PINNED], ask, upgrade=True, files=files)
    assert "left as it is" in line
    assert not is_gone
    assert STACK.base.digest in files[0].read_text()


def test_bases_that_stacks_share_are_asked_for_once_and_vendors_too() -> None:
    stacks = load_stacks()
    bases = list_bases(stacks)
    assert len(set(bases)) == len(bases)
    assert {PINNED, *(stack.base.alternative for stack in stacks.values())} <= {*bases, None}
    assert find_files(stacks.values())[0] == STACKS
