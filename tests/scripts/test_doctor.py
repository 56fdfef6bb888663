"""The doctor tells what cannot run, and why, and what to do."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from scripts import contract, doctor, environments
from scripts.environments import Recipe
from scripts.errors import Refusal
from scripts.finding import SESSIONS, Finding, Session, note
from scripts.runs import ROOT

MACHINE = contract.Machine(
    host="a",
    cpu_model="b",
    cpus_online=8,
    cpus_usable=4,
    memory_bytes=8 << 30,
    kernel="6",
    governor=None,
    load_1m=0.1,
)


def test_this_host_is_described_in_one_screen() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "scripts.doctor"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.stderr == ""
    assert answer.returncode in (0, 3)
    assert ("bench-cpu can run here." in answer.stdout) is (answer.returncode == 0)
    # A host may have many GPUs.
    assert len([line for line in answer.stdout.splitlines() if "  GPU" not in line]) <= 24
    for subject in ("uv", "Python 3.11", "torch-2.15", "tensorflow-2.21", "disk", "results", "git"):
        assert subject in answer.stdout
    for subject in ("engine", "GPU", *SESSIONS):
        assert subject in answer.stdout


def test_a_host_without_an_engine_is_described_all_the_same(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "scripts.doctor"],
        cwd=ROOT,
        env={**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.stderr == ""
    assert f"no container engine: {tmp_path}/none is not there" in answer.stdout
    assert "bench-docker cannot run here yet: see engine" in answer.stdout
    assert "bench-gpu cannot run here yet: see engine" in answer.stdout


@pytest.mark.parametrize(
    ("stops", "status", "can"),
    [
        ((), 0, ["bench-cpu", "bench-docker", "bench-gpu"]),
        (("bench-gpu",), 0, ["bench-cpu", "bench-docker"]),
        (("bench-docker", "bench-gpu"), 0, ["bench-cpu"]),
        (("bench-cpu",), 3, ["bench-docker", "bench-gpu"]),
        (SESSIONS, 3, []),
    ],
)
def test_each_session_is_told_and_the_exit_status_is_that_of_bench_cpu(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    stops: tuple[Session, ...],
    status: int,
    can: list[str],
) -> None:
    findings = [Finding("a", "fine"), Finding("b", "broken: mend it", stops), note("c", "so so")]
    monkeypatch.setattr(doctor, "examine", lambda: iter(findings))
    assert doctor.main([]) == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "ok    a  fine",
        f"{'NO' if stops else 'ok'}    b  broken: mend it",
        "note  c  so so",
    ]
    assert lines[4:] == [
        f"{name} can run here." if name in can else f"{name} cannot run here yet: see b." for name in SESSIONS
    ]


def test_an_option_is_refused_rather_than_ignored() -> None:
    with pytest.raises(Refusal, match="--json"):
        doctor.main(["--json"])


@pytest.mark.parametrize(
    ("changes", "subject", "verdict"),
    [
        ({}, "load", "ok"),
        ({"load_1m": 3.0}, "load", "note"),
        ({"load_1m": None}, "load", "ok"),
        ({"governor": "powersave"}, "governor", "note"),
        ({"governor": "performance"}, "governor", "ok"),
    ],
)
def test_disturbances_of_timing_are_noted(changes: dict[str, object], subject: str, verdict: str) -> None:
    machine = msgspec.structs.replace(MACHINE, **changes)
    found = {finding.subject: finding for finding in doctor.examine_machine(machine)}
    assert found[subject].verdict == verdict


def test_only_the_locked_platform_can_run() -> None:
    assert doctor.examine_platform("Linux", "x86_64").verdict == "ok"
    assert doctor.examine_platform("Darwin", "arm64").verdict == "NO"
    assert doctor.examine_platform("Linux", "aarch64").verdict == "NO"


def test_bfloat16_is_told() -> None:
    assert doctor.examine_bfloat16(True).verdict == "ok"
    assert doctor.examine_bfloat16(False).verdict == "note"


def test_a_missing_compiler_is_told_with_what_to_install() -> None:
    assert doctor.examine_compiler("/usr/bin/g++").verdict == "ok"
    found = doctor.examine_compiler(None)
    assert (found.verdict, "install g++" in found.says) == ("note", True)


def test_environment_is_built_or_stale_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "VENVS", tmp_path)
    (tmp_path / "a.lock").touch()
    recipe = Recipe("a", "3.11", (tmp_path / "a.lock",))
    assert "not built" in doctor.examine_environment(recipe).says
    (tmp_path / "a").mkdir()
    assert "stale" in doctor.examine_environment(recipe).says
    assert doctor.examine_environment(Recipe("a", "3.11", (tmp_path / "b.lock",))).stops == ("bench-cpu",)
    missing = (tmp_path / "b.lock",)
    monkeypatch.setattr(environments, "HOST", environments.HOST._replace(locks=missing))
    assert doctor.examine_environment(environments.HOST).stops == SESSIONS


def test_disk_must_hold_what_is_not_built_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "VENVS", tmp_path)
    assert doctor.examine_disk({"a": 6 << 30}, 5 << 30).verdict == "NO"
    assert doctor.examine_disk({"a": 6 << 30}, 7 << 30).verdict == "ok"
    (tmp_path / "a").mkdir()
    assert doctor.examine_disk({"a": 6 << 30}, 1 << 30).verdict == "ok"


def test_results_must_be_writable(tmp_path: Path) -> None:
    assert doctor.examine_results(tmp_path / "results" / "runs").verdict == "ok"
    (tmp_path / "file").touch()
    assert doctor.examine_results(tmp_path / "file" / "runs").verdict == "NO"


def test_missing_python_and_uv_come_with_what_to_do() -> None:
    assert "install it" in doctor.examine_python("3.5", environments.find_uv()).says
    assert doctor.examine_python("3.11", None).verdict == "note"


def test_poor_terminal_is_noted() -> None:
    assert doctor.examine_terminal("UTF-8").verdict == "ok"
    assert doctor.examine_terminal("ascii").verdict == "note"
