"""Stacks are data that is read strictly."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from scripts.errors import ExitStatus, Refusal
from scripts.lock import read_pins
from scripts.stacks import STACKS, load_stacks, tell_best_effort
from tests.scripts.plans import plan

GOOD = STACKS.read_text(encoding="utf-8")


def test_current_stacks_are_there_with_their_frameworks() -> None:
    current = {name for name, stack in load_stacks().items() if stack.current}
    assert {"torch-2.15", "tensorflow-2.21"} <= current
    assert load_stacks()["torch-2.15"].frameworks["torch"] == "2.15.0"


def test_every_file_that_a_stack_names_exists() -> None:
    for stack in load_stacks().values():
        for path in (
            stack.input_for("docker"),
            stack.lock_for("docker"),
            stack.input_for("venv"),
            stack.lock_for("venv"),
        ):
            assert path.is_file(), path


def test_runner_venv_takes_its_own_lock_where_there_is_one() -> None:
    tensorflow, torch = load_stacks()["tensorflow-2.21"], load_stacks()["torch-2.15"]
    assert tensorflow.lock_for("venv").name == "requirements-cpu.lock"
    assert tensorflow.lock_for("docker").name == "requirements.lock"
    assert torch.lock_for("venv") == torch.lock_for("docker")


def test_locks_pin_the_versions_that_a_stack_claims() -> None:
    for stack in load_stacks().values():
        for lock in {stack.lock_for("docker"), stack.lock_for("venv")}:
            pins = read_pins(lock)
            # The Keras of TensorFlow 2.0 is within it; the stack's own tests see which it is.
            within = {"keras"} if "keras" not in pins and "tensorflow" in pins else set()
            for framework in stack.frameworks.keys() - within:
                version = stack.frameworks[framework]
                assert pins.get(framework, pins.get(f"{framework}-cpu")) == {version}, (lock, framework)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('python = "3.11"', 'python = "latest"', "python"),
        ('python = "3.11"', "", "python"),
        ("current = true", 'current = "yes"', "current"),
        ('digest = "sha256:a36c24f9', 'digest = "sha256:', "digest"),
        ("cuda = ", "cudda = ", "cudda"),
        ("[stacks.", "[stack.", "stack"),
        ("[stacks.", "[stacks", "no TOML"),
    ],
)
def test_bad_content_is_one_line_with_file_and_place(
    tmp_path: Path, before: str, after: str, said: str
) -> None:
    path = tmp_path / "stacks.toml"
    assert before in GOOD
    path.write_text(GOOD.replace(before, after))
    with pytest.raises(Refusal) as caught:
        load_stacks(path)
    assert caught.value.status == ExitStatus.BAD_OPTIONS
    assert str(path) in caught.value.message
    assert said in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("content", ["", "[stacks]\n", "stacks = 3\n", "[stacks]\na = 3\n"])
def test_file_without_stacks_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "stacks.toml"
    path.write_text(content)
    with pytest.raises(Refusal, match=r"stacks\.toml"):
        load_stacks(path)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="absent"):
        load_stacks(tmp_path / "absent.toml")


def test_a_gpu_that_is_asked_of_an_old_stack_is_told_what_that_lacks() -> None:
    stacks = load_stacks()
    cells = [replace(cell, stack=name) for cell in plan().cells[:1] for name in stacks]
    assert list(tell_best_effort(cells, stacks)) == []
    on_gpu = [replace(cell, device="cuda:0") for cell in [*cells, *cells]]
    told = list(tell_best_effort(on_gpu, stacks))
    assert [one.partition(":")[0] for one in told] == [
        name for name, stack in stacks.items() if not stack.current
    ]
    assert all("no longer published" in one for one in told)
