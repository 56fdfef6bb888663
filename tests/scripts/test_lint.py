"""The static checks look at all that there is to check."""

import re
import subprocess

import pytest

from scripts import lint
from scripts.errors import ExitStatus
from scripts.runs import ROOT


def test_every_shell_script_and_every_dockerfile_is_checked() -> None:
    answer = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in answer.stdout.splitlines() if (ROOT / name).is_file()]
    scripts = {name for name in names if re.match(rb"#!.*\b(ba)?sh\b", (ROOT / name).read_bytes()[:80])}
    assert scripts == set(lint.SHELL)
    dockerfiles = {str(ROOT / name) for name in names if name.endswith("Dockerfile")}
    assert dockerfiles == set(lint.CHECKS["Dockerfiles"][1:])


def test_a_check_that_fails_is_named_and_the_others_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lint, "CHECKS", {"one": ("false",), "two": ("true",), "three": ("false",)})
    assert lint.main([]) == ExitStatus.PARTLY_MEASURED
    assert capsys.readouterr().out == "failed: one, three\n"
    monkeypatch.setattr(lint, "CHECKS", {"two": ("true",)})
    assert lint.main([]) == ExitStatus.MEASURED
