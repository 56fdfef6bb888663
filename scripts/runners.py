"""Entering stacks on this host: the interpreters of the ``venv`` and ``host`` runners, and what bars
them."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scripts.contract import Cause, Cell
from scripts.environments import EnvironmentRefusal, prepare
from scripts.errors import ExitStatus, Refusal
from scripts.runs import ROOT
from scripts.stacks import Stack

HOST = "host"
Needs = Callable[[Cell], Iterable[str]]
"""Names the packages that a cell's variant imports."""
VARIABLE = "REMATCH_PYTHON"
OLDEST = (3, 6)
_PROBE = """
import importlib.util, json, sys
print(json.dumps({"version": list(sys.version_info[:2]), "executable": sys.executable,
    "found": [name for name in sys.argv[1:] if importlib.util.find_spec(name)]}))
"""


@dataclass(frozen=True)
class Entrances:
    """Interpreters by stack, and by cell id what bars the launch of a cell."""

    pythons: Mapping[str, Path]
    obstacles: Mapping[str, Cause] = field(default_factory=dict)


def enter_venvs(cells: Sequence[Cell], stacks: Mapping[str, Stack]) -> Entrances:
    """Make the environment of each stack that ``cells`` need.

    Raises:
        EnvironmentRefusal: a lock is not as it should be, or the disk is full. A Python that is missing,
            and an install that failed, bar only the cells of that stack.
    """
    pythons, obstacles = {}, {}
    device = cells[0].device
    for name in dict.fromkeys(cell.stack for cell in cells):
        stack = stacks[name]
        try:
            lock = stack.lock_for("venv", device)
            pythons[name] = prepare(stack.environment_for(device), stack.python, [lock], stack.sources)
        except EnvironmentRefusal as refusal:
            if refusal.kind not in ("python", "install"):
                raise
            cause = Cause(refusal.kind, refusal.message)
            obstacles.update({cell.id: cause for cell in cells if cell.stack == name})
    return Entrances(pythons, obstacles)


def enter_host(cells: Sequence[Cell], needs: Needs) -> Entrances:
    """Find the interpreter at hand and the packages that it has.

    Raises:
        Refusal: there is none, it does not answer, or it is too old.
    """
    python = find_interpreter(os.environ)
    modules = {cell.id: [name.replace("-", "_") for name in sorted(needs(cell))] for cell in cells}
    found = _probe(python, sorted({name for names in modules.values() for name in names}))
    obstacles = {
        cell: Cause(
            "import",
            f"{python} has no {', '.join(lacking)} (the user's own site folder apart); name an interpreter "
            f"that has it by {VARIABLE}, or use --runner venv",
        )
        for cell, names in modules.items()
        if (lacking := [name for name in names if name not in found])
    }
    return Entrances({HOST: python}, obstacles)


def find_interpreter(environment: Mapping[str, str]) -> Path:
    """Return what ``REMATCH_PYTHON`` names, or else the first ``python3`` on PATH that is none of this
    project's own environments.

    Raises:
        Refusal: there is none.
    """
    if named := environment.get(VARIABLE):
        if path := shutil.which(named, path=environment.get("PATH")):
            return Path(path).absolute()
        raise Refusal(f"{VARIABLE}={named}: no such program; name a Python interpreter")
    own = (ROOT / ".venvs", ROOT / ".nox")
    folders = [
        folder
        for folder in environment.get("PATH", os.defpath).split(os.pathsep)
        if folder and not any(Path(folder).absolute().is_relative_to(path) for path in own)
    ]
    path = shutil.which("python3", path=os.pathsep.join(folders))
    if path is None:
        raise Refusal(f"no python3 on PATH; name one by {VARIABLE}=/path/to/python3", ExitStatus.HOST_CANNOT)
    return Path(path).absolute()


def _probe(python: Path, modules: Iterable[str]) -> set[str]:
    try:
        answer = subprocess.run(
            [str(python), "-Es", "-c", _PROBE, *modules],
            cwd=os.sep,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        said = json.loads(answer.stdout)
        version, found = tuple(said["version"]), set(said["found"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        raise Refusal(
            f"{python}: no Python interpreter that answers ({type(error).__name__}); name one by {VARIABLE}",
            ExitStatus.HOST_CANNOT,
        ) from error
    if version < OLDEST:
        raise Refusal(
            f"{python} is Python {version[0]}.{version[1]}; name one of 3.6 or newer by {VARIABLE}",
            ExitStatus.HOST_CANNOT,
        )
    return found
