"""Each test runs where it belongs."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from scripts import environments, suites, uv
from scripts.errors import ExitStatus, Refusal
from scripts.runs import ROOT
from scripts.stacks import load_stacks
from scripts.suites import STACK_TESTS, Suite, select

GROUND = Suite(environments.HOST, (Path("tests", "workloads"),), without=STACK_TESTS)
HOST = Suite(None, (Path("tests", "scripts"),))


def test_without_paths_a_suite_runs_all_its_own() -> None:
    assert select(HOST, ["-k", "word"]) == ["-k", "word", "tests/scripts"]
    assert select(GROUND, []) == [f"--ignore={STACK_TESTS}", "tests/workloads"]


def test_paths_choose_the_suites_that_hold_them() -> None:
    path = "tests/scripts/test_suites.py::test_paths_choose_the_suites_that_hold_them"
    assert select(HOST, ["-x", path]) == ["-x", path]
    assert select(GROUND, ["-x", path]) is None
    assert select(GROUND, [str(STACK_TESTS)]) is None


@pytest.fixture
def no_old_pythons(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(uv: list[str], wanted: str) -> Path | None:
        return Path("/python") if wanted in ("3.11", "3.13", "3.12") else None

    monkeypatch.setattr(uv, "find_python", find)


@pytest.mark.usefixtures("no_old_pythons")
def test_missing_python_is_said_loudly_and_the_newest_is_taken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("REMATCH_TEST_ALL", raising=False)
    assert suites.list_pythons() == ["3.11", "3.13"]
    assert "NOT tested under Python 3.6, 3.7" in capsys.readouterr().err


@pytest.mark.usefixtures("no_old_pythons")
def test_missing_python_stops_an_automatic_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMATCH_TEST_ALL", "true")
    with pytest.raises(Refusal) as caught:
        suites.list_pythons()
    assert caught.value.status == ExitStatus.HOST_CANNOT


@pytest.fixture
def without_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the stacks' suites."""
    monkeypatch.setattr(suites, "list_pythons", list)
    monkeypatch.setattr(suites, "can_test_containers", lambda: False)


@pytest.mark.usefixtures("without_others")
def test_every_framework_with_tests_has_a_stack_that_runs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uv, "find_python", lambda uv, wanted: Path("/python"))
    covered = {path for suite in suites.list_suites() for path in suite.paths}
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / STACK_TESTS).rglob("test_*.py")}
    assert folders <= covered


@pytest.mark.usefixtures("without_others")
def test_a_stack_of_an_old_python_runs_the_historical_tests_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(uv, "find_python", lambda uv, wanted: Path("/python"))
    stacks = load_stacks()
    found = {suite.stack: suite.paths for suite in suites.list_suites() if suite.stack}
    assert set(found) == set(stacks)
    for name, paths in found.items():
        is_old = stacks[name].python in ("3.6", "3.7")
        assert (paths == (suites.HISTORICAL,)) == is_old
        assert (suites.HISTORICAL in paths) == is_old


@pytest.mark.usefixtures("without_others")
def test_an_older_stack_of_a_new_python_runs_the_tests_of_all_that_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stacks = load_stacks()
    own = replace(stacks["tensorflow-2.21"], name="tensorflow-2.18", current=False)
    monkeypatch.setattr(uv, "find_python", lambda uv, wanted: Path("/python"))
    monkeypatch.setattr(suites, "load_stacks", lambda: {**stacks, own.name: own})
    found = {suite.stack: suite.paths for suite in suites.list_suites() if suite.stack}
    assert found[own.name] == found["tensorflow-2.21"] == (STACK_TESTS / "tensorflow",)


@pytest.mark.usefixtures("no_old_pythons", "without_others")
def test_a_stack_whose_python_is_missing_is_named_and_stops_an_automatic_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("REMATCH_TEST_ALL", raising=False)
    assert all(load_stacks()[suite.stack].current for suite in suites.list_suites() if suite.stack)
    said = capsys.readouterr().err
    assert "2018-tf1.12-torch1.0 is NOT tested: Python 3.6 is not installed here\n" in said
    assert "2019-torch1.3-tf2.0 is NOT tested: Python 3.7 is not installed here\n" in said
    monkeypatch.setenv("REMATCH_TEST_ALL", "true")
    with pytest.raises(Refusal, match=r"is NOT tested: Python 3\.6") as caught:
        list(suites.list_suites())
    assert caught.value.status == ExitStatus.HOST_CANNOT


class Engine:
    """Holds no image, or every one."""

    def __init__(self, has_images: bool) -> None:
        self.has_images = has_images
        self.api = self

    def close(self) -> None:
        """As an engine's connection."""


@pytest.mark.parametrize(
    ("has_images", "said"), [(True, ""), (False, "no image of torch-2.15, tensorflow-2.21")]
)
def test_containers_are_tested_where_their_images_are_and_else_it_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], has_images: bool, said: str
) -> None:
    monkeypatch.delenv("REMATCH_TEST_ALL", raising=False)
    monkeypatch.setattr(suites, "connect", lambda: Engine(has_images))
    monkeypatch.setattr(suites, "find_image", lambda engine, stack, base: engine.has_images or None)
    assert suites.can_test_containers() is has_images
    assert said in capsys.readouterr().err
    if not has_images:
        monkeypatch.setenv("REMATCH_TEST_ALL", "1")
        with pytest.raises(Refusal, match="containers are NOT tested"):
            suites.can_test_containers()


def test_without_an_engine_it_is_said_that_containers_are_not_tested(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise Refusal("no container engine", ExitStatus.HOST_CANNOT)

    monkeypatch.delenv("REMATCH_TEST_ALL", raising=False)
    monkeypatch.setattr(suites, "connect", refuse)
    assert not suites.can_test_containers()
    assert "containers are NOT tested: no container engine" in capsys.readouterr().err


def test_bases_are_made_by_root_only_and_a_check_does_not_pass_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("REMATCH_TEST_ALL", raising=False)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert not suites.can_make_bases()
    monkeypatch.setenv("REMATCH_TEST_ALL", "1")
    with pytest.raises(Refusal, match="takes root and debootstrap"):
        suites.can_make_bases()
