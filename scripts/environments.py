"""Environments made from hash locks: built when absent or stale, reused when not.

Standard library only and Python 3.9+: nox imports it under its own interpreter.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

from scripts import uv
from scripts.uv import EnvironmentRefusal

__all__ = ["HOST", "TESTS", "EnvironmentRefusal", "Recipe", "find_uv", "is_current", "prepare"]

ROOT = Path(__file__).resolve().parent.parent
VENVS = ROOT / ".venvs"
UV_LOCK = ROOT / "scripts" / "uv-requirements.lock"
BUILD_LOCK = ROOT / "docker" / "build-requirements.lock"
"""What source packages are built by."""


class Recipe(NamedTuple):
    """What an environment is made from: the arguments of ``prepare``."""

    name: str
    """Folder within ``.venvs``."""
    python: str
    locks: Sequence[Path]
    sources: Sequence[str] = ()


# The Python that the current stacks need anyway.
HOST = Recipe("host", "3.11", (ROOT / "scripts" / "requirements.lock",))
"""What a bench session needs."""
TESTS = Recipe("tests", "3.11", (ROOT / "tests" / "requirements.lock",))
"""With everything that the project's own checks need."""

_held: dict[str, int] = {}


def prepare(name: str, python: str, locks: Sequence[Path], sources: Sequence[str] = ()) -> Path:
    """Return the Python of the environment ``name``, built from ``locks`` if it is absent or stale.

    Until this process ends no other one rebuilds the environment; one that wants to waits.

    Args:
        name: folder within ``.venvs``.
        python: version such as ``3.11``; fetched by uv where it is not installed.
        locks: requirement files, every line with hashes, that agree with each other.
        sources: packages of them that have no wheel and are built; all others come as wheels.

    Raises:
        EnvironmentRefusal: it cannot be built; the message says why and what to do.
    """
    wanted = _fingerprint(python, locks, sources)
    folder = VENVS / name
    try:
        while True:
            held = _flock(name, fcntl.LOCK_SH)
            if _holds(folder, wanted):
                return folder / "bin" / "python"
            held = _flock(name, fcntl.LOCK_EX)
            if not _holds(folder, wanted):
                _build(name, python, locks, sources, held)
                (folder / "stamp").write_text(wanted)
    except OSError as error:
        raise EnvironmentRefusal(
            "disk", f"{name}: {error.filename or VENVS}: {error.strerror}; make room or the folder writable"
        ) from error


def is_current(name: str, python: str, locks: Sequence[Path], sources: Sequence[str] = ()) -> bool:
    """Tell whether the environment is there and as its locks say."""
    return _holds(VENVS / name, _fingerprint(python, locks, sources))


def find_uv() -> list[str]:
    """Return the command that runs uv, brought in from the package index where there is none.

    Raises:
        EnvironmentRefusal: there is none and it cannot be fetched.
    """
    private = VENVS / "uv"
    found = uv.find(private)
    if found:
        return found
    _flock("uv", fcntl.LOCK_EX)
    try:
        with (VENVS / "uv.log").open("w") as log:
            return uv.find(private) or uv.bring(private, UV_LOCK, log)
    finally:
        _flock("uv", fcntl.LOCK_UN)


def _build(name: str, python: str, locks: Sequence[Path], sources: Sequence[str], held: int) -> None:
    folder, started = VENVS / name, time.monotonic()
    command = find_uv()
    print(f"{name}: building the environment", file=sys.stderr, flush=True)
    if folder.exists():
        shutil.rmtree(folder)
    with (VENVS / f"{name}.log").open("w+") as log:

        def run(*arguments: str) -> bool:
            # uv inherits the lock: if this process is killed, nobody else builds while it still writes.
            return not subprocess.run(
                [*command, *arguments],
                env=uv.variables(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[held],
                check=False,
            ).returncode

        interpreter = uv.find_python(command, python)
        if interpreter is None and run("python", "install", python):
            interpreter = uv.find_python(command, python)
        if interpreter is None:
            raise EnvironmentRefusal(
                "python",
                f"{name}: needs Python {python}, which is neither installed here nor could be fetched"
                f" (see {log.name}); install it from your system's packages or by pyenv",
            )
        executable = str(folder / "bin" / "python")
        requirements = [part for lock in locks for part in ("-r", str(lock))]
        install = ("pip", "install", "--python", executable, "--no-deps", "--require-hashes")
        if not (
            run("venv", "--no-project", "--python", str(interpreter), str(folder))
            and run(*install, *uv.allow_sources(sources, BUILD_LOCK), *requirements)
        ):
            kind, reason = uv.explain(_read(log), locks)
            raise EnvironmentRefusal(kind, f"{name}: {reason} (all that uv said: {log.name})")
        if not run("pip", "check", "--python", executable):
            raise EnvironmentRefusal(
                "lock",
                f"{name}: its packages do not fit together (see {log.name}); refresh with `nox -s lock`",
            )
    print(f"{name}: ready after {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


def _fingerprint(python: str, locks: Sequence[Path], sources: Sequence[str]) -> str:
    digest = hashlib.sha256(f"{python}\n".encode())
    for lock in [*locks, BUILD_LOCK] if sources else locks:
        try:
            content = lock.read_bytes()
        except OSError as error:
            raise EnvironmentRefusal(
                "lock", f"{lock}: {error.strerror}; make it with `nox -s lock`"
            ) from error
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


def _holds(folder: Path, wanted: str) -> bool:
    # The executable is a link: its target goes when the user removes that Python.
    if not (folder / "bin" / "python").exists():
        return False
    try:
        return (folder / "stamp").read_text() == wanted
    except OSError:
        return False


def _flock(name: str, mode: int) -> int:
    """Change this process's hold on an environment, waiting for others; return the descriptor.

    One descriptor an environment for the whole process, so that it does not exclude itself, closed
    by the kernel however the process ends.
    """
    path = str(VENVS / f"{name}.lock")
    if path not in _held:
        VENVS.mkdir(exist_ok=True)
        _held[path] = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(_held[path], mode | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"{name}: waiting for another process that builds or uses it", file=sys.stderr, flush=True)
        fcntl.flock(_held[path], mode)
    return _held[path]


def _read(log: IO[str]) -> str:
    log.seek(0)
    return log.read()
