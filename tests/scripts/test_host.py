"""The machine is described by the ground floor."""

import platform
from pathlib import Path

import pytest

from scripts import host
from scripts.errors import ExitStatus, Refusal


def test_machine_is_this_one() -> None:
    machine = host.describe_ground().machine
    assert machine.host == platform.node()
    assert machine.kernel == platform.release()
    assert 1 <= machine.cpus_usable <= machine.cpus_online


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("raise SystemExit('torn apart')", "torn apart"),
        ("raise SystemExit(3)", "exit status 3"),
        ("print('no json')", "JSON"),
        ("print('{}')", "machine"),
    ],
)
def test_ground_floor_that_does_not_answer_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    (tmp_path / "workloads.py").write_text(program)
    monkeypatch.setattr(host, "ROOT", tmp_path)
    with pytest.raises(Refusal) as caught:
        host.describe_ground()
    assert caught.value.status == ExitStatus.HOST_CANNOT
    assert said in caught.value.message
    assert "\n" not in caught.value.message
