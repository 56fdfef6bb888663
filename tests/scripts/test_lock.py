"""Locks follow their inputs, keep their pins, and name nobody's host."""

import re
from pathlib import Path

import pytest

from scripts import environments, lock
from scripts.errors import ExitStatus, Refusal
from scripts.lock import Lock
from scripts.stacks import load_stacks

LOCKS = lock.list_locks(load_stacks())
PINNED = (
    "six==1.16.0 \\\n    --hash=sha256:1e61c37477a1626458e36f7b1d82aa5c9b094fa4802892072e49de9c60c4c926\n"
)


@pytest.fixture
def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lock:
    monkeypatch.setattr(lock, "ROOT", tmp_path)
    (tmp_path / "a.in").write_text("six\n")
    (tmp_path / "a.lock").write_text(PINNED)
    return Lock("a", tmp_path / "a.lock", tmp_path / "a.in", ("--universal", "--python-version", "3.11"))


@pytest.mark.parametrize("each", LOCKS, ids=lambda each: each.path.name + " of " + each.name)
def test_committed_lock_says_how_it_is_made_and_hashes_every_line(each: Lock) -> None:
    text = each.path.read_text(encoding="utf-8")
    assert "nox -s lock" in text
    assert "://" not in text
    pins = re.findall(r"^[\w.-]+==.*\\\n +--hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)
    assert pins
    assert len(pins) == len(re.findall(r"^[^#\s].*", text, re.MULTILINE))


def test_committed_locks_agree_with_their_inputs() -> None:
    assert [complaint for each in LOCKS for complaint in lock.check(each)] == []
    assert lock.main(["--check"]) == ExitStatus.MEASURED


def test_every_lock_file_is_made_by_this_program() -> None:
    folders = (environments.ROOT / name for name in ("docker", "scripts", "tests"))
    assert {path for folder in folders for path in folder.rglob("*.lock")} == {each.path for each in LOCKS}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("six==1.17.0\n", r"six 1\.16\.0, where a\.in says 1\.17\.0"),
        ("six\nnumpy[extra]>=2\n", "lacks numpy"),
        ("# only words\nSix\n", None),
    ],
)
def test_check_says_where_input_and_lock_disagree(one: Lock, asked: str, said: str | None) -> None:
    one.input.write_text(asked)
    complaints = list(lock.check(one))
    if said is None:
        assert complaints == []
    else:
        assert len(complaints) == 1
        assert re.search(said, complaints[0])


def test_check_says_that_a_lock_is_missing(one: Lock) -> None:
    one.path.unlink()
    assert list(lock.check(one)) == ["a.lock: missing"]


def test_check_says_where_two_locks_of_one_environment_disagree(one: Lock, tmp_path: Path) -> None:
    (tmp_path / "b.lock").write_text(PINNED.replace("1.16.0", "1.17.0"))
    beside = Lock("a", one.path, one.input, one.options, beside=tmp_path / "b.lock")
    assert list(lock.check(beside)) == ["a.lock: another six than in b.lock"]


def test_refreshing_keeps_pins_until_an_upgrade_is_asked_for(one: Lock) -> None:
    command = environments.find_uv()
    lock.refresh(one, command, upgrade=False)
    assert lock.read_pins(one.path) == {"six": {"1.16.0"}}
    lock.refresh(one, command, upgrade=True)
    assert lock.read_pins(one.path)["six"] != {"1.16.0"}


def test_input_without_a_solution_is_refused_and_the_lock_stays(one: Lock) -> None:
    one.input.write_text("six==0.0.0.1\n")
    with pytest.raises(Refusal, match=r"a\.lock"):
        lock.refresh(one, environments.find_uv(), upgrade=False)
    assert one.path.read_text() == PINNED


def test_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(Refusal, match=r"torch-2\.15"):
        lock.main(["--check", "torch-2.51"])


def test_bases_are_asked_for_only_where_they_are_to_be_refreshed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """C7"""

    def refuse() -> None:
        raise Refusal("no container engine", ExitStatus.HOST_CANNOT)

    def ask(image: str) -> str:
        raise LookupError("manifest unknown: manifest unknown")

    monkeypatch.setattr(lock, "connect", refuse)
    assert lock.main(["--check", "bases"]) == ExitStatus.MEASURED
    assert capsys.readouterr().err == ""
    assert lock.main(["bases"]) == ExitStatus.MEASURED
    assert "left as they are: no container engine" in capsys.readouterr().err
    monkeypatch.setattr(lock, "connect", lambda: None)
    monkeypatch.setattr(lock, "ask_registry", lambda engine: ask)
    assert lock.main(["bases"]) == ExitStatus.PARTLY_MEASURED
    assert "gone from the registry" in capsys.readouterr().out
