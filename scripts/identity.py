"""What was run, by content."""

import hashlib
import os
import subprocess
from pathlib import Path

from scripts import contract
from scripts.runs import ROOT


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
            command,
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = answer.stdout.splitlines()
    commit = next((line.split()[2] for line in lines if line.startswith("# branch.oid ")), "(initial)")
    if answer.returncode or commit == "(initial)":
        return None
    return contract.Git(commit=commit, dirty=any(not line.startswith("#") for line in lines))
