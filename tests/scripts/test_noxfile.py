"""Sessions end with their program's own status, as the user called it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts.runs import ROOT

ENVIRONMENTS = """
import sys
from typing import NamedTuple
class Recipe(NamedTuple):
    name: str
HOST, TESTS = Recipe("host"), Recipe("tests")
def prepare(name):
    return sys.executable
"""
REFUSING = """
from scripts.errors import ExitStatus, Refusal
def prepare(name):
    raise Refusal("no room for it", ExitStatus.HOST_CANNOT)
"""
PROGRAM = """
import json, os, pathlib, signal, sys, time
called = {"arguments": sys.argv[1:], "path": os.environ.get("PYTHONPATH")}
pathlib.Path("called.json").write_text(json.dumps(called))
what = sys.argv[-1]
if what == "wait":
    try:
        pathlib.Path("waiting").touch()
        time.sleep(60)
    except KeyboardInterrupt:
        time.sleep(1.5)
        pathlib.Path("tidied").touch()
        sys.exit(130)
if what == "die":
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(int(what) if what.isdigit() else 0)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    for name in ("noxfile.py", "scripts/__init__.py", "scripts/errors.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "scripts" / "environments.py").write_text(ENVIRONMENTS)
    for name in ("bench", "collect", "doctor", "images", "lock", "suites", "lint"):
        (tmp_path / "scripts" / f"{name}.py").write_text(PROGRAM)
    return tmp_path


def nox(project: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": "/user/packages"}
    return subprocess.run(
        [sys.executable, "-m", "nox", *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_sessions_are_listed_with_what_they_do(project: Path) -> None:
    said = nox(project, "--list").stdout
    for name in (
        "bench-cpu",
        "bench-docker",
        "bench-gpu",
        "collect",
        "doctor",
        "images",
        "lock",
        "tests",
        "lint",
        "types",
    ):
        assert f" {name} -> " in said


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4, 130])
def test_status_of_the_program_is_that_of_the_session(project: Path, status: int) -> None:
    assert nox(project, "-s", "bench-cpu", "--", str(status)).returncode == status


def test_program_killed_by_a_signal_is_not_a_success(project: Path) -> None:
    assert nox(project, "-s", "bench-cpu", "--", "die").returncode == 128 + signal.SIGKILL


def test_users_options_come_after_the_defaults(project: Path) -> None:
    nox(project, "-s", "bench-cpu", "--", "--profile", "smoke")
    called = json.loads((project / "called.json").read_text())
    assert called["arguments"][:4] == ["--device", "cpu", "--runner", "venv"]
    assert called["arguments"][-2:] == ["--profile", "smoke"]


@pytest.mark.parametrize(
    ("session", "device", "profile"), [("bench-docker", "cpu", "quick"), ("bench-gpu", "cuda:0", "standard")]
)
def test_containers_are_what_their_sessions_measure_in(
    project: Path, session: str, device: str, profile: str
) -> None:
    nox(project, "-s", session)
    called = json.loads((project / "called.json").read_text())["arguments"]
    assert called == ["--device", device, "--runner", "docker", "--profile", profile]


def test_users_packages_stay_outside(project: Path) -> None:
    nox(project, "-s", "collect")
    assert json.loads((project / "called.json").read_text())["path"] is None


def test_environment_that_cannot_be_made_is_one_line_and_its_status(project: Path) -> None:
    (project / "scripts" / "environments.py").write_text(ENVIRONMENTS + REFUSING)
    answer = nox(project, "-s", "bench-cpu")
    assert answer.returncode == 3
    assert "bench-cpu: no room for it" in answer.stderr.splitlines()
    assert "Traceback" not in answer.stderr


def test_failed_check_does_not_keep_the_next_from_running(project: Path) -> None:
    answer = nox(project, "-s", "lint", "tests", "--", "1")
    assert answer.returncode == 1
    assert "tests: failed" in answer.stderr


def test_interrupted_program_has_the_time_to_tidy_up(project: Path) -> None:
    """C6: what a run started is removed before the session ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "nox", "-s", "bench-cpu", "--", "wait"],
        cwd=project,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not (project / "waiting").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert (project / "tidied").exists()
