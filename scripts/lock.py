"""Regenerates every lock file: ``python -m scripts.lock [--check] [--upgrade] [NAME ...]``.

Pins stay where they are unless the input forbids it or ``--upgrade`` is given; with it, base images move to
the digest that the registry has for their tag. ``--check`` changes nothing, needs no network, and says where
inputs and locks disagree.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts import environments, uv
from scripts.catalogue import find_names
from scripts.digests import ask_registry, find_files, list_bases, refresh_digests
from scripts.engine import connect
from scripts.errors import ExitStatus, Refusal, run_program
from scripts.runs import ROOT
from scripts.stacks import Stack, load_stacks

OLDEST = "3.6"
"""Oldest Python that builds a stack's source packages."""
GROUND_PYTHONS = (OLDEST, "3.7")
"""Pythons of the ground floor whose tests have a lock of their own; later ones share one."""
BASES = "bases"
"""What the user calls the digests of base images."""
# Oldest C library that the wheels may ask for. Frameworks of today are built for 2.28 (2018's for
# less); what serves the project's own tools stays installable on older systems.
MODERN, OLD = "x86_64-manylinux_2_28", "x86_64-manylinux_2_17"


@dataclass(frozen=True)
class Lock:
    """One lock file and what it is made from."""

    name: str
    """What the user calls it; several locks may share a name."""
    path: Path
    input: Path
    options: tuple[str, ...]
    sources: tuple[str, ...] = ()
    """Packages that have no wheel."""
    beside: Path | None = None
    """A lock whose packages are installed together with this one's, or that this one extends."""


def ground_lock(python: str) -> Path:
    """Return the lock of what the ground floor's tests need under one Python."""
    return (
        ROOT
        / "tests"
        / "ground"
        / (f"requirements-{python}.lock" if python in GROUND_PYTHONS else "requirements.lock")
    )


def stack_tests_lock(stack: str) -> Path:
    """Return the lock of what is put beside a stack's packages to test it."""
    return ROOT / "tests" / "ground" / f"{stack}.lock"


def list_locks(stacks: Mapping[str, Stack]) -> list[Lock]:
    """Return every lock, each after the ones that it stands beside."""
    # First, since what is built is built by it.
    build = environments.BUILD_LOCK
    first = Lock("build", build, build.with_suffix(".in"), ("--universal", "--python-version", OLDEST))
    return [first, *(lock for stack in stacks.values() for lock in _of_stack(stack)), *_of_project()]


def _of_stack(stack: Stack) -> Iterator[Lock]:
    options = _target(stack.python, MODERN)
    for runner in ("docker", "venv") if stack.venv else ("docker",):
        yield Lock(stack.name, stack.lock_for(runner), stack.input_for(runner), options, tuple(stack.sources))
    tests = ROOT / "tests" / "ground" / "stack.in"
    yield Lock(stack.name, stack_tests_lock(stack.name), tests, options, beside=stack.lock_for("venv"))


def _of_project() -> Iterator[Lock]:
    project, ground = ROOT / "pyproject.toml", ROOT / "tests" / "ground" / "requirements.in"
    host, tests = environments.HOST, environments.TESTS
    yield Lock("host", host.locks[0], project, _target(host.python, MODERN))
    yield Lock(
        "tests",
        tests.locks[0],
        project,
        (*_target(tests.python, MODERN), "--group", "dev"),
        beside=host.locks[0],
    )
    for python in GROUND_PYTHONS:
        yield Lock("ground", ground_lock(python), ground, _target(python, OLD))
    yield Lock("ground", ground_lock(host.python), ground, ("--universal", "--python-version", host.python))
    uv_input = environments.UV_LOCK.with_suffix(".in")
    yield Lock("uv", environments.UV_LOCK, uv_input, ("--universal", "--python-version", "3.9"))


def _target(python: str, platform: str) -> tuple[str, ...]:
    return ("--python-version", python, "--python-platform", platform)


def refresh(lock: Lock, command: Sequence[str], upgrade: bool) -> None:
    """Resolve the input into the lock.

    Raises:
        Refusal: uv finds no solution, or cannot reach the index.
    """
    command = [*command, "pip", "compile", "--quiet", "--generate-hashes", *lock.options]
    # To know what a source package needs, it is built.
    command += uv.allow_sources(lock.sources, environments.BUILD_LOCK)
    command += ["--custom-compile-command", "nox -s lock", "-o", _relative(lock.path)]
    command += ["--constraint", _relative(lock.beside)] if lock.beside else []
    command += ["--upgrade"] if upgrade else []
    answer = subprocess.run(
        [*command, _relative(lock.input)],
        cwd=ROOT,
        env=uv.variables(),
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        raise Refusal(f"{_relative(lock.path)}: {answer.stderr.strip()}", ExitStatus.HOST_CANNOT)


def check(lock: Lock) -> Iterator[str]:
    """Yield what is wrong between a lock, its input, and the lock beside it, one line each."""
    if not lock.path.exists():
        yield f"{_relative(lock.path)}: missing"
        return
    pins = read_pins(lock.path)
    for package, version in _wanted(lock):
        if package not in pins:
            yield f"{_relative(lock.path)}: lacks {package}, which {_relative(lock.input)} asks for"
        elif version and version not in pins[package]:
            found = " and ".join(sorted(pins[package]))
            yield f"{_relative(lock.path)}: {package} {found}, where {_relative(lock.input)} says {version}"
    if lock.beside and lock.beside.exists():
        for package, versions in read_pins(lock.beside).items():
            if pins.get(package, versions) != versions:
                yield f"{_relative(lock.path)}: another {package} than in {_relative(lock.beside)}"


def read_pins(lock: Path) -> dict[str, set[str]]:
    """Return the versions that a lock pins, by normalised package name."""
    pins: dict[str, set[str]] = {}
    for package, version in re.findall(
        r"^([\w.-]+)==([^\s;\\]+)", lock.read_text(encoding="utf-8"), re.MULTILINE
    ):
        pins.setdefault(_normal(package), set()).add(version)
    return pins


def _refresh_bases(stacks: Mapping[str, Stack], upgrade: bool) -> ExitStatus:
    try:
        ask = ask_registry(connect())
    except Refusal as refusal:
        # Locks need no engine, and are refreshed by now.
        print(f"bases: their digests were left as they are: {refusal.message}", file=sys.stderr)
        return ExitStatus.MEASURED
    lines, is_gone = refresh_digests(list_bases(stacks), ask, upgrade, find_files(stacks.values()))
    print("\n".join(lines), flush=True)
    return ExitStatus.PARTLY_MEASURED if is_gone else ExitStatus.MEASURED


def _wanted(lock: Lock) -> Iterator[tuple[str, str | None]]:
    """Yield the packages that the input names, with the version of each that it pins."""
    text = lock.input.read_text(encoding="utf-8")
    if lock.input.suffix == ".toml":
        project = tomllib.loads(text)
        lines = list(project["project"]["dependencies"])
        lines += project["dependency-groups"]["dev"] if "dev" in lock.options else []
    else:
        lines = text.splitlines()
    for line in lines:
        found = re.match(r"([\w.-]+)(?:\[[^]]*\])?\s*(?:==\s*([^\s;,]+))?", line.strip())
        if found:
            yield _normal(found.group(1)), found.group(2)


def _normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def _relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def main(arguments: Sequence[str]) -> ExitStatus:
    parser = argparse.ArgumentParser(prog="nox -s lock --", description="Refresh the lock files.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a stack, host, tests, ground, uv or bases; all without"
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing; say where inputs and locks disagree"
    )
    parser.add_argument(
        "--upgrade",
        action="store_true",
        help="take the newest versions that the inputs allow, and what the bases' tags name now",
    )
    said = parser.parse_args(arguments)
    stacks = load_stacks()
    locks = list_locks(stacks)
    known = {BASES, *(lock.name for lock in locks)}
    names = find_names("lock", said.names, known) if said.names else None
    chosen = [lock for lock in locks if names is None or lock.name in names]
    if said.check:
        complaints = [complaint for lock in chosen for complaint in check(lock)]
        for complaint in complaints:
            print(f"{complaint}; run `nox -s lock`", file=sys.stderr)
        return ExitStatus.PARTLY_MEASURED if complaints else ExitStatus.MEASURED
    command = environments.find_uv()
    for lock in chosen:
        refresh(lock, command, said.upgrade)
        print(_relative(lock.path), flush=True)
    if names is None or BASES in names:
        return _refresh_bases(stacks, said.upgrade)
    return ExitStatus.MEASURED


if __name__ == "__main__":
    run_program("lock", main)
