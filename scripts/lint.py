"""Runs every static check and says which failed: ``python -m scripts.lint``."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.errors import ExitStatus
from scripts.runs import ROOT

TOOLS = Path(sys.executable).parent
VERMIN = (str(TOOLS / "vermin"), "--quiet", "--no-tips", "--violations", "--eval-annotations")
SHELL = (".ci/run", "docker/install-stack", "docker/local-base/make-rootfs")

CHECKS = {
    "style": (str(TOOLS / "ruff"), "check", "--output-format=concise", "--quiet"),
    "format": (str(TOOLS / "ruff"), "format", "--check", "--output-format=concise", "--quiet"),
    "Python 3.6 on the ground floor": (*VERMIN, "-t=3.6-", "workloads"),
    "Python 3.9 where nox imports it": (
        *(*VERMIN, "-t=3.9-"),
        *("noxfile.py", "scripts/environments.py", "scripts/errors.py", "scripts/uv.py"),
    ),
    "Dockerfiles": (str(TOOLS / "hadolint"), *map(str, sorted(ROOT.glob("docker/*/Dockerfile")))),
    "shell": (str(TOOLS / "shellcheck"), *SHELL),
    "locks": (sys.executable, "-m", "scripts.lock", "--check"),
    "schemas": (sys.executable, "-m", "scripts.schema", "--check"),
}
"""Commands by what they check."""


def main(arguments: Sequence[str]) -> ExitStatus:
    # None so far, and one that is given must not be ignored.
    argparse.ArgumentParser(prog="nox -s lint", description=__doc__).parse_args(arguments)
    failed = [
        name for name, command in CHECKS.items() if subprocess.run(command, cwd=ROOT, check=False).returncode
    ]
    print(f"failed: {', '.join(failed)}" if failed else f"{len(CHECKS)} checks hold")
    return ExitStatus.PARTLY_MEASURED if failed else ExitStatus.MEASURED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
