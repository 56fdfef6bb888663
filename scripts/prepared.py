"""Folders that were prepared: whole or not there, verified by a manifest, made by one process at a time."""

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from scripts.errors import ExitStatus, Refusal
from scripts.identity import file_sha256
from scripts.runs import ROOT

VARIABLE = "REMATCH_DATA"
MANIFEST = "manifest.json"


class Manifest(msgspec.Struct, frozen=True):
    """What a prepared folder holds."""

    files: dict[str, str]
    """Sha256 by path within the folder."""
    sha256: str
    """Over ``files``: the folder's identity."""
    name: str = ""
    nature: str = ""
    made_from: str = ""
    """What decides its content."""
    format: str = "mnist"
    """Of a data set."""


def find_root() -> Path:
    """Return where data sets are prepared."""
    named = os.environ.get(VARIABLE)
    return Path(named).absolute() if named else ROOT / ".data"


def name_place(folder: Path) -> str:
    """Name a folder for results, which say no more of this machine than they must: within the project where
    it is there."""
    return str(folder.relative_to(ROOT)) if folder.is_relative_to(ROOT) else str(folder)


def locate(place: str) -> Path:
    """Return the folder that ``name_place`` named."""
    return ROOT / place


@contextlib.contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold a prepared folder for this process alone, waiting for others. The kernel ends the hold with the
    process, however it ends.

    Raises:
        Refusal: the place cannot be written.
    """
    with _telling(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(
            folder.parent / f".{folder.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
        )
    try:
        with _telling(folder):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def replace_folder(folder: Path) -> Iterator[Path]:
    """Give a path beside ``folder`` where its successor is made; it takes ``folder``'s place at the end, and
    is removed if that is not reached or nothing was made. To be held meanwhile.

    Raises:
        Refusal: it cannot be written.
    """
    fresh, former = (folder.parent / f".{folder.name}.{age}" for age in ("new", "old"))
    with _telling(folder):
        # Of a process that died half-way.
        _remove(fresh, former)
        try:
            yield fresh
            if fresh.exists():
                # Whole or not there: removing it in place would show half of it meanwhile.
                if os.path.lexists(folder):
                    folder.rename(former)
                fresh.rename(folder)
        finally:
            _remove(fresh, former)


def _remove(*paths: Path) -> None:
    for path in paths:
        if path.is_symlink() or path.is_file():
            path.unlink()
        else:
            shutil.rmtree(path, ignore_errors=True)


def write_manifest(
    folder: Path,
    name: str = "",
    nature: str = "",
    made_from: str = "",
    format: str = "",  # noqa: A002
) -> Manifest:
    """Describe all files of a folder in its manifest.

    Raises:
        OSError: it cannot be written.
    """
    files = {str(path.relative_to(folder)): file_sha256(path) for path in folder.rglob("*") if path.is_file()}
    manifest = Manifest(files, identify(files), name, nature, made_from, format)
    (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
    return manifest


def identify(files: Mapping[str, str]) -> str:
    """Hash files by name and content."""
    lines = "".join(f"{name}\0{sha256}\n" for name, sha256 in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def read_manifest(folder: Path) -> Manifest | None:
    """Return a folder's manifest, if it has one."""
    try:
        return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError):
        return None


def verify(folder: Path) -> Manifest | str:
    """Return the manifest of a folder whose files are as it says, or what is wrong."""
    if not folder.is_dir():
        return "not there yet"
    manifest = read_manifest(folder)
    if manifest is None:
        return f"{MANIFEST} is missing or damaged"
    for name, sha256 in manifest.files.items():
        path = folder / name
        try:
            if not path.is_file():
                return f"{name} is missing"
            if file_sha256(path) != sha256:
                return f"{name} was damaged or altered"
        except OSError as error:
            return f"{name}: {error.strerror}"
    return manifest if identify(manifest.files) == manifest.sha256 else f"{MANIFEST} was altered"


@contextlib.contextmanager
def _telling(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = (
            "free some space"
            if error.errno in (errno.ENOSPC, errno.EDQUOT)
            else f"make it writable, or name another place by {VARIABLE}"
        )
        raise Refusal(
            f"{error.filename or folder}: {error.strerror or error}; {remedy}", ExitStatus.HOST_CANNOT
        ) from error
