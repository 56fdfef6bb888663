"""What was run, by content."""

import hashlib
import os
import subprocess
from pathlib import Path

from scripts import contract
from scripts.runs import ROOT

SHARED = ("frameworks", "data")
"""Folders of the ground floor that every workload uses, like the files directly in it."""
ENDINGS = (".py", ".json", ".toml")


def workload_sha256(workload: str, ground: Path = ROOT / "workloads") -> str:
    """Hash a workload's folder together with what all workloads share, by path and content.

    Equal to what the ground floor computes for itself (``workloads/content.py``) before it runs.
    """
    found = [path for path in ground.iterdir() if path.is_file()]
    for folder in (*SHARED, workload):
        found.extend((ground / folder).rglob("*"))
    names = sorted(path.relative_to(ground).as_posix() for path in found if path.name.endswith(ENDINGS))
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{name}\0{file_sha256(ground / name)}\n".encode())
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def git_state(root: Path = ROOT) -> contract.Git | None:
    """Return the commit and whether sources differ from it; ``None`` outside git.

    Ignored files and ``results/`` do not count.
    """
    command = ["git", "status", "--porcelain=v2", "--branch", "--", ".", ":(exclude)results"]
    # A hook of another repository sets GIT_DIR, and a copy unpacked inside another repository has no
    # commit of its own.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment.update(GIT_CEILING_DIRECTORIES=str(root.parent), GIT_OPTIONAL_LOCKS="0")
    try:
        answer = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = answer.stdout.splitlines()
    commit = next((line.split()[2] for line in lines if line.startswith("# branch.oid ")), "(initial)")
    if answer.returncode or commit == "(initial)":
        return None
    return contract.Git(commit=commit, dirty=any(not line.startswith("#") for line in lines))
