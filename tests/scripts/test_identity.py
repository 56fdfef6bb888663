"""What was run is told by content."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.identity import file_sha256, git_state, workload_sha256
from scripts.runs import ROOT


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    for name in (
        "protocol.py",
        "mlp/torch.py",
        "mlp/workload.toml",
        "mnist/torch.py",
        "frameworks/torch.py",
        "data/idx.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    (root / "source.py").write_text("one")
    (root / ".gitignore").write_text("ignored\n")
    git(root, "init", "-q")
    return root


def git(root: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(
        ["git", *who, *arguments], cwd=root, capture_output=True, text=True, check=True
    ).stdout.strip()


def commit(root: Path) -> str:
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return git(root, "rev-parse", "HEAD")


def test_both_floors_compute_the_same() -> None:
    """R6: the launched process recomputes what the host planned."""
    answer = subprocess.run(
        [sys.executable, "-m", "workloads", "--describe"], cwd=ROOT, capture_output=True, check=True
    )
    said = json.loads(answer.stdout)["workloads"]
    assert said
    assert said == {name: workload_sha256(name) for name in said}


@pytest.mark.parametrize(
    "name", ["protocol.py", "mlp/torch.py", "mlp/workload.toml", "frameworks/torch.py", "data/idx.py"]
)
def test_change_of_anything_that_a_workload_uses_changes_it(ground: Path, name: str) -> None:
    before = workload_sha256("mlp", ground)
    (ground / name).write_text("changed")
    assert workload_sha256("mlp", ground) != before


def test_moved_content_changes_it(ground: Path) -> None:
    before = workload_sha256("mlp", ground)
    (ground / "mlp" / "torch.py").rename(ground / "mlp" / "other.py")
    assert workload_sha256("mlp", ground) != before


def test_other_workloads_and_compiled_files_do_not_change_it(ground: Path) -> None:
    before = workload_sha256("mlp", ground)
    (ground / "mnist" / "torch.py").write_text("changed")
    (ground / "mlp" / "__pycache__").mkdir()
    (ground / "mlp" / "__pycache__" / "torch.cpython-311.pyc").write_bytes(b"x")
    assert workload_sha256("mlp", ground) == before


def test_file_is_hashed_by_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    assert file_sha256(tmp_path / "a") == hashlib.sha256(b"content").hexdigest()


def test_commit_is_named_and_clean(repository: Path) -> None:
    expected = commit(repository)
    state = git_state(repository)
    assert state is not None
    assert (state.commit, state.dirty) == (expected, False)


@pytest.mark.parametrize(
    ("name", "dirty"),
    [("source.py", True), ("new.py", True), ("ignored", False), ("results/runs/a.json", False)],
)
def test_only_sources_make_it_dirty(repository: Path, name: str, dirty: bool) -> None:
    commit(repository)
    (repository / name).parent.mkdir(parents=True, exist_ok=True)
    (repository / name).write_text("two")
    state = git_state(repository)
    assert state is not None
    assert state.dirty is dirty


def test_there_is_no_commit_outside_git_or_before_the_first(repository: Path, tmp_path: Path) -> None:
    assert git_state(tmp_path) is None
    assert git_state(repository) is None


def test_commit_of_an_enclosing_repository_is_not_ours(repository: Path) -> None:
    commit(repository)
    (repository / "unpacked").mkdir()
    assert git_state(repository / "unpacked") is None


def test_repository_of_a_hook_is_not_ours(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = commit(repository)
    git(tmp_path, "init", "-q", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    state = git_state(repository)
    assert state is not None
    assert state.commit == expected


def test_host_without_git_has_no_commit(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(repository)
    monkeypatch.setenv("PATH", str(repository))
    assert git_state(repository) is None
