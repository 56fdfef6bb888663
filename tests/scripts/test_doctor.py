"""The doctor tells what cannot run, and why, and what to do."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from scripts import contract, doctor, environments
from scripts.environments import Recipe
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
    assert ("NO " in answer.stdout) is (answer.returncode == 3)
    assert len(answer.stdout.splitlines()) <= 24
    for subject in ("uv", "Python 3.11", "torch-2.15", "tensorflow-2.21", "disk", "results", "git"):
        assert subject in answer.stdout


def test_any_no_is_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    findings = [doctor.Finding("a", "ok", "fine"), doctor.Finding("b", "NO", "broken: mend it")]
    monkeypatch.setattr(doctor, "examine", lambda: iter(findings))
    assert doctor.main([]) == 3
    assert "broken: mend it" in capsys.readouterr().out
    monkeypatch.setattr(doctor, "examine", lambda: iter(findings[:1]))
    assert doctor.main([]) == 0


def test_an_option_is_refused_rather_than_ignored(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        doctor.main(["--json"])
    assert caught.value.code == 2
    assert "--json" in capsys.readouterr().err


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


def test_driver_is_reported_and_its_absence_too() -> None:
    """C1"""
    assert "580.95.05" in doctor.examine_gpu("580.95.05").says
    assert doctor.examine_gpu(None).verdict == "note"


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
    assert doctor.examine_environment(Recipe("a", "3.11", (tmp_path / "b.lock",))).verdict == "NO"


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
