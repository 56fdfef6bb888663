"""Digests of bases, with a stand-in for the registry."""

import shutil
from pathlib import Path

import pytest

from scripts.digests import find_files, list_bases, refresh_digests
from scripts.stacks import STACKS, load_stacks

STACK = load_stacks()["torch-2.15"]
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

    (line,) = refresh_digests([STACK.base], ask, upgrade=False, files=files)
    assert line.endswith("the registry has it")
    assert asked == [f"{STACK.base.image}@{STACK.base.digest}"]


def test_an_upgrade_writes_what_the_tag_names_now_wherever_the_digest_stands(files: list[Path]) -> None:
    (line,) = refresh_digests([STACK.base], lambda image: NEW, upgrade=True, files=files)
    assert NEW[:19] in line
    for path in files:
        assert NEW in path.read_text()
        assert STACK.base.digest not in path.read_text()


def test_a_digest_that_is_gone_is_named_with_its_tag_and_the_remedies(files: list[Path]) -> None:
    """C7"""
    before = [path.read_text() for path in files]

    def ask(image: str) -> str:
        raise LookupError("manifest unknown: manifest unknown")

    (line,) = refresh_digests([STACK.base], ask, upgrade=False, files=files)
    for words in (STACK.base.image, STACK.base.digest, "gone from the registry", "--upgrade", "--base local"):
        assert words in line
    assert [path.read_text() for path in files] == before


def test_without_a_registry_digests_stay_and_it_is_said(files: list[Path]) -> None:
    def ask(image: str) -> str:
        raise LookupError("dial tcp: lookup registry: no such host")

    (line,) = refresh_digests([STACK.base], ask, upgrade=True, files=files)
    assert "left as it is" in line
    assert STACK.base.digest in files[0].read_text()


def test_bases_that_stacks_share_are_asked_for_once() -> None:
    stacks = load_stacks()
    assert len(list_bases(stacks)) == len({stack.base.digest for stack in stacks.values()})
    assert find_files(stacks.values())[0] == STACKS
