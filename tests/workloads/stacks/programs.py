"""What is run in a process of its own, since it ends or hangs some."""

import json
import subprocess
import sys

from workloads import content

LIMIT_S = 120


def run(program, *arguments, **options):
    """Run a program of Python; return its status and what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", program] + list(arguments),
        stdin=options.get("stdin", subprocess.DEVNULL),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT_S,
    )
    return done.returncode, done.stdout.decode(errors="replace")


def launch(cell, folder):
    """Write a cell as the host does; return a launch's arguments and where its result will be."""
    cell = dict(cell, identity={"workload_sha256": content.sha256(cell["workload"])}, cache=str(folder))
    paths = [str(folder / name) for name in ("cell.json", "result.json")]
    with open(paths[0], "w") as file:
        json.dump(cell, file)
    return ["--cell", paths[0], "--result", paths[1]], paths[1]


def measure(cell, folder):
    """Launch a cell as the host does, and return its result."""
    arguments, path = launch(cell, folder)
    subprocess.run(
        [sys.executable, "-m", "workloads"] + arguments, check=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL
    )
    with open(path) as file:
        return json.load(file)
