"""What was run is told by content."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from scripts.identity import file_sha256, git_state


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
