"""uv, which makes every environment: finding it or bringing it in, and running it undisturbed.

Standard library only and Python 3.9+: nox imports it under its own interpreter.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Literal, Optional

from scripts.errors import ExitStatus, Refusal

MINIMUM = (0, 13, 9)
"""Oldest uv that was seen to make an environment of Python 3.6, and to demand hashes of what a build uses. A
private one is brought in beside an older."""

# What a user may set because it cannot change what is installed: hashes decide that. All other
# variables of uv and pip are dropped (indexes, links, constraints, versions held back).
KEPT = re.compile(
    r"UV_(CACHE_DIR|PYTHON_INSTALL_DIR|PYTHON_DOWNLOADS|LINK_MODE|HTTP_TIMEOUT|HTTP_RETRIES|OFFLINE"
    r"|NATIVE_TLS|SYSTEM_CERTS|CONCURRENT_\w+)|PIP_(CERT|PROXY|DEFAULT_TIMEOUT)"
)
DROPPED = re.compile(r"(UV|PIP)_.*|PYTHONPATH|PYTHONHOME|PYTHONSAFEPATH|VIRTUAL_ENV|CONDA_PREFIX")
INDEX = "REMATCH_INDEX_URL"
"""Variable that names a mirror of the package index."""

Kind = Literal["python", "lock", "install", "disk"]


class EnvironmentRefusal(Refusal):
    """An environment cannot be made; ``kind`` says for which reason."""

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message, ExitStatus.BAD_OPTIONS if kind == "lock" else ExitStatus.HOST_CANNOT)
        self.kind = kind


def variables() -> dict[str, str]:
    """Return the environment variables under which uv and pip run."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if KEPT.fullmatch(name) or not DROPPED.fullmatch(name)
    }
    kept.update(UV_NO_CONFIG="1", UV_NO_PROGRESS="1", PIP_CONFIG_FILE=os.devnull, NO_COLOR="1")
    if os.environ.get(INDEX):
        kept.update(UV_DEFAULT_INDEX=os.environ[INDEX], PIP_INDEX_URL=os.environ[INDEX])
    return kept


def find(private: Path) -> Optional[list[str]]:  # noqa: UP045
    """Return the command that runs a usable uv, or ``None``.

    Looks on PATH, beside the running interpreter, and in ``private``, the folder of the
    environment that ``bring`` makes.
    """
    on_path = shutil.which("uv")
    candidates = [[on_path]] if on_path else []
    candidates += [[sys.executable, "-m", "uv"], [str(private / "bin" / "uv")]]
    return next((command for command in candidates if version(command) >= MINIMUM), None)


def version(command: Sequence[str]) -> tuple[int, ...]:
    """Return the version of the uv that ``command`` runs; ``()`` if it does not run."""
    try:
        answer = subprocess.run(
            [*command, "--version"], env=variables(), capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = re.match(r"uv (\d+)\.(\d+)\.(\d+)", answer.stdout) if answer.returncode == 0 else None
    return tuple(int(part) for part in found.groups()) if found else ()


def bring(private: Path, lock: Path, log: IO[str]) -> list[str]:
    """Install the uv that ``lock`` pins into ``private``, and return the command that runs it.

    Raises:
        EnvironmentRefusal: there is no network, or the running Python can make no environment.
    """
    if private.exists():
        shutil.rmtree(private)
    # Some distributions split off what `venv` needs; nox brings virtualenv with it.
    if not any(_runs([sys.executable, "-m", module, str(private)], log) for module in ("venv", "virtualenv")):
        raise EnvironmentRefusal(
            "install",
            f"uv is not installed and {sys.executable} can make no environment to put it in; install uv",
        )
    # By pip, which is what is there without uv.
    install = [str(private / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
    if not _runs([*install, "--no-deps", "--only-binary=:all:", "--require-hashes", "-r", str(lock)], log):
        raise EnvironmentRefusal(
            "install",
            f"uv is not installed and could not be fetched ({_last_error(Path(log.name))}); install uv, "
            f"or see {log.name}",
        )
    return [str(private / "bin" / "uv")]


def allow_sources(sources: Sequence[str], build_lock: Path) -> list[str]:
    """Return the options that let uv build ``sources``, by what ``build_lock`` pins, and nothing else."""
    allowed = [part for package in sources for part in ("--no-binary", package)]
    built_by = ["--build-constraints", str(build_lock), "--require-build-hashes"] if sources else []
    return ["--only-binary", ":all:", *allowed, *built_by]


def find_python(uv: Sequence[str], wanted: str) -> Optional[Path]:  # noqa: UP045
    """Return an installed CPython ``wanted`` (such as ``3.11``), known to uv or to pyenv, or ``None``."""
    answer = subprocess.run(
        [*uv, "python", "find", "--system", "--no-project", f"cpython@{wanted}"],
        env={**variables(), "UV_PYTHON_DOWNLOADS": "never"},
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode == 0:
        return Path(answer.stdout.strip())
    # uv sees pyenv's shims, which refuse to run a version that is installed and not selected.
    # Not by Path, which raises where a user has no home.
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")  # noqa: PTH111
    versions = Path(root, "versions")
    found = [
        path for path in versions.glob(f"{wanted}.*/bin/python") if re.fullmatch(r"[\d.]+", path.parts[-3])
    ]
    return max(found, key=lambda path: [int(part) for part in path.parts[-3].split(".")], default=None)


def explain(output: str, locks: Sequence[Path]) -> tuple[Kind, str]:
    """Tell from uv's output why an installation failed, in one line."""
    if re.search(r"No space left on device|Disk quota exceeded", output):
        return "disk", "no space left on the disk; free some and try again"
    mismatch = re.search(r"Hash mismatch for `([\w.-]+?)(==|`)", output)
    if mismatch:
        package = mismatch.group(1)
        named = [
            lock for lock in locks if re.search(rf"^{re.escape(package)}==", lock.read_text(), re.MULTILINE)
        ]
        return "lock", (
            f"{_names(named or locks)}: the hash of {package} is not that of the file which the index serves;"
            " refresh the lock with `nox -s lock`, or distrust the index"
        )
    # Offline, uv calls what it has not cached unsatisfiable.
    if not re.search(r"network was disabled", output) and re.search(
        r"--require-hashes|parse requirement|unsatisfiable|no wheels? |not compatible|incompatible", output
    ):
        return "lock", f"{_names(locks)}: {_reason(output)}; refresh the lock with `nox -s lock`"
    if re.search(
        r"network was disabled|Failed to fetch|error sending request|client error|timed out", output
    ):
        return "install", (
            f"packages could not be fetched ({_reason(output)}); check the network and proxy,"
            f" or name a mirror with {INDEX}"
        )
    return "install", _reason(output)


def _reason(output: str) -> str:
    """Return the innermost cause that uv names."""
    if "network was disabled" in output:
        return "the network is disabled by UV_OFFLINE"
    causes = re.findall(r"^ *(?:error|cause|Caused by): (.+)$", output, re.MULTILINE)
    return causes[-1].strip().rstrip(".") if causes else "uv failed without a reason"


def _last_error(log: Path) -> str:
    """Return pip's last word on what went wrong."""
    errors = re.findall(r"^(?:ERROR|WARNING): (.+)$", log.read_text(errors="replace"), re.MULTILINE)
    return errors[-1][:300] if errors else "for no reason that pip gave"


def _names(locks: Sequence[Path]) -> str:
    return ", ".join(os.path.relpath(lock) for lock in locks)


def _runs(command: Sequence[str], log: IO[str]) -> bool:
    return not subprocess.run(
        command, env=variables(), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, check=False
    ).returncode
