"""Does what docs/adding-a-stack.md says, for real: another version, locked, built, proved and measured."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.runs import ROOT

PAGE = ROOT / "docs" / "adding-a-stack.md"
NAME = "tensorflow-2.18"


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """A copy of the project's files as they are, with no environment."""
    folder = tmp_path / "clone"
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    yield folder
    # Pytest keeps what is made here, and environments are large.
    shutil.rmtree(folder)


def test_the_page_does_it(clone: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 4
    own = tmp_path / "tmp"
    own.mkdir()
    # Of a device there is one run at a time, which a temporary folder of its own keeps apart from others.
    variables = {name: value for name, value in os.environ.items() if name != "CI"} | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": str(own),
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(blocks)],
        cwd=clone,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "What versions brought: mlp, fair edition, step" in done.stdout
    # One folder, one entry, one lock, and nothing else that anybody wrote.
    made = {path.name for path in (clone / "docker" / NAME).iterdir()}
    inputs = {"requirements.in", "requirements-cpu.in"}
    assert made == {"Dockerfile", *inputs, *(name.replace(".in", ".lock") for name in inputs)}
    (path,) = (clone / "results" / "runs").glob("*/comparison.json")
    comparison = json.loads(path.read_text())
    (versions,) = comparison["versions"]
    older, newer = versions["timings"]
    assert (older["version"], older["stack"], older["is_oldest"]) == ("2.18.1", NAME, True)
    assert (newer["version"], newer["stack"]) == ("2.21.0", "tensorflow-2.21")
    low, high = newer["ratio_interval"]
    assert low <= newer["ratio"] <= high
    rows = comparison["groups"][versions["group"]]["rows"]
    assert {row["proof"] for row in rows} == {"holds"}
