"""The folder of a run, and files that appear whole or not at all."""

import contextlib
import errno
import os
import shutil
import tempfile
from pathlib import Path

from scripts.errors import ExitStatus, Refusal

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "results" / "runs"


class RunFolder:
    """Names of the files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.record = path / "run.json"
        self.cells = path / "cells"
        self.logs = path / "logs"

    def result(self, cell_id: str, block: int | None) -> Path:
        """Result of one launch; ``block`` is ``None`` for the cell's proof."""
        return self.cells / f"{cell_id}.{'proof' if block is None else block}.json"

    def log(self, cell_id: str, block: int | None) -> Path:
        return self.logs / f"{cell_id}.{'proof' if block is None else block}.log"


def copy_plain(source: Path, target: Path) -> None:
    """Copy a folder that something less trusted wrote: regular files and folders, nothing else.

    Raises:
        Refusal: there is something else in it, or the copy cannot be written.
    """
    for path in source.rglob("*"):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise Refusal(f"{path}: neither a file nor a folder; what was prepared is not kept")
    try:
        shutil.copytree(source, target, copy_function=shutil.copyfile)
    except (OSError, shutil.Error) as error:
        shutil.rmtree(target, ignore_errors=True)
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "no space left on the disk" if full else str(error)[:300]
        raise Refusal(f"{target}: cannot be written ({why})", ExitStatus.HOST_CANNOT) from error


def write_whole(path: Path, content: bytes) -> None:
    """Write ``content`` so that ``path`` holds all of it or what it held before.

    Raises:
        Refusal: the disk is full or the folder cannot be written; the message names it.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Refusal(
                f"{path}: no space left on the disk of {path.parent}; free some, then go on with --resume",
                ExitStatus.HOST_CANNOT,
            ) from error
        raise Refusal(
            f"{path}: cannot be written ({error.strerror}); choose another --results folder"
        ) from error
