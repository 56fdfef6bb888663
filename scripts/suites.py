"""Runs the project's tests, each where it belongs: ``python -m scripts.suites [pytest's options]``.

Paths among the options choose the suites that hold them. Options of pytest are passed on.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts import environments, uv
from scripts.engine import connect
from scripts.environments import EnvironmentRefusal
from scripts.errors import ExitStatus, Refusal, run_program
from scripts.images import find_image
from scripts.lock import GROUND_PYTHONS, ground_lock, stack_tests_lock
from scripts.runs import ROOT
from scripts.stacks import Stack, load_stacks

NEEDED = ("3.6", "3.7", "3.11")
"""Pythons under which the ground floor is tested."""
STACK = "REMATCH_STACK"
"""Variable that tells a stack's tests which stack they are run in, and so what it must have."""
DEMAND = "REMATCH_TEST_ALL"
"""Variable that makes it an error where this machine lacks what a suite needs."""
NEWER = ("3.16", "3.15", "3.14", "3.13", "3.12")
"""Of these the newest that is installed."""
STACK_TESTS = Path("tests", "workloads", "stacks")
HISTORICAL = STACK_TESTS / "historical"
"""Tests of all stacks of the oldest Pythons, whose frameworks have older interfaces."""
BASE_TESTS = Path("tests", "docker", "test_local_base.py")


@dataclass(frozen=True)
class Suite:
    """One run of pytest."""

    recipe: environments.Recipe | None
    """Environment to run in; the interpreter at hand without."""
    paths: tuple[Path, ...]
    """Relative to the project's folder."""
    without: Path | None = None
    stack: str | None = None
    """Whose environment it is."""


def list_suites() -> Iterator[Suite]:
    """Yield the suites: the host floor's, the ground floor's under each Python, each stack's."""
    yield Suite(None, (Path("tests", "scripts"),))
    if can_test_containers():
        yield Suite(None, (Path("tests", "docker"),), without=None if can_make_bases() else BASE_TESTS)
    for python in list_pythons():
        recipe = environments.Recipe(f"ground-{python}", python, (ground_lock(python),))
        yield Suite(recipe, (Path("tests", "workloads"),), without=STACK_TESTS)
    stacks = load_stacks().values()
    current = [stack for stack in stacks if stack.current]
    command = environments.find_uv()
    for stack in stacks:
        locks = (stack.lock_for("venv"), stack_tests_lock(stack.name))
        recipe = environments.Recipe(f"{stack.name}-tests", stack.python, locks, stack.sources)
        paths = tuple(list_folders(stack, current if stack.current else ()))
        if stack.python in GROUND_PYTHONS:
            paths = (HISTORICAL,)
        if not stack.current and uv.find_python(command, stack.python) is None:
            miss(f"{stack.name} is NOT tested: Python {stack.python} is not installed here")
        elif paths:
            yield Suite(recipe, paths, stack=stack.name)


def list_folders(stack: Stack, others: Sequence[Stack]) -> Iterator[Path]:
    """Yield the folders of a stack's tests: what a leaner one of ``others`` has is tested there."""
    leaner = [other.frameworks for other in others if other.frameworks.keys() < stack.frameworks.keys()]
    for name in stack.frameworks:
        folder = STACK_TESTS / name.replace("-", "_")
        if not any(name in frameworks for frameworks in leaner) and holds_tests(folder):
            yield folder


def holds_tests(path: Path) -> bool:
    return any((ROOT / path).rglob("test_*.py"))


def can_test_containers() -> bool:
    """Tell whether there are an engine and the current stacks' images; say what is missing if not.

    Raises:
        Refusal: something is where all is demanded, so that a check never passes by testing less.
    """
    try:
        engine = connect()
        current = [stack for stack in load_stacks().values() if stack.current]
        missing = [stack.name for stack in current if find_image(engine, stack, None) is None]
        engine.api.close()
    except Refusal as refusal:
        miss(f"containers are NOT tested: {refusal.message}")
        return False
    if missing:
        miss(f"containers are NOT tested: no image of {', '.join(missing)}; `nox -s images`")
    return not missing


def can_make_bases() -> bool:
    """Tell whether a base can be made from Debian's packages; say so if not.

    Raises:
        Refusal: it cannot where all is demanded.
    """
    if os.geteuid() == 0 and shutil.which("debootstrap"):
        return True
    miss("bases from Debian's packages are NOT tested: that takes root and debootstrap")
    return False


def miss(message: str) -> None:
    if os.environ.get(DEMAND):
        raise Refusal(message, ExitStatus.HOST_CANNOT)
    print(message, file=sys.stderr)


def list_pythons() -> list[str]:
    """Return the Pythons for the ground floor's tests that are here; say which are not.

    Raises:
        Refusal: one is missing where all are demanded.
    """
    command = environments.find_uv()
    missing = [python for python in NEEDED if uv.find_python(command, python) is None]
    if missing:
        miss(f"the ground floor is NOT tested under Python {', '.join(missing)}: not installed here")
    newest = next((python for python in NEWER if uv.find_python(command, python)), None)
    return [python for python in NEEDED if python not in missing] + ([newest] if newest else [])


def select(suite: Suite, arguments: Sequence[str]) -> list[str] | None:
    """Return pytest's arguments for a suite; ``None`` if the paths among them lie elsewhere."""
    given = [argument for argument in arguments if (ROOT / argument.partition("::")[0]).exists()]
    inside = [argument for argument in given if is_inside(Path(argument.partition("::")[0]), suite)]
    if given and not inside:
        return None
    options = [argument for argument in arguments if argument not in given]
    if suite.without:
        options.append(f"--ignore={suite.without}")
    return [*options, *(inside or map(str, suite.paths))]


def is_inside(path: Path, suite: Suite) -> bool:
    absolute = (ROOT / path).resolve()
    if suite.without and absolute.is_relative_to(ROOT / suite.without):
        return False
    return any(absolute.is_relative_to(ROOT / folder) for folder in suite.paths)


def main(arguments: Sequence[str]) -> int:
    failed = []
    suites = 0
    for suite in list_suites():
        options = select(suite, arguments)
        if options is None or not suite.paths:
            continue
        suites += 1
        name = suite.recipe.name if suite.recipe else suite.paths[0].name
        print(f"\n=== {name}: {' '.join(map(str, suite.paths))}", flush=True)
        try:
            python = str(environments.prepare(*suite.recipe)) if suite.recipe else sys.executable
        except EnvironmentRefusal as refusal:
            print(refusal.message, file=sys.stderr)
            failed.append(name)
            continue
        command = [python, "-m", "pytest", "-q", *options]
        variables = {**os.environ, STACK: suite.stack} if suite.stack else None
        if subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode:
            failed.append(name)
    print(f"\n{suites} suites, failed: {', '.join(failed) or 'none'}")
    return ExitStatus.PARTLY_MEASURED if failed or not suites else ExitStatus.MEASURED


if __name__ == "__main__":
    run_program("tests", main)
