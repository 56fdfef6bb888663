"""Epochs of a launch, recorded as they end: training may take hours, and what is known of it survives."""

import contextlib
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

LOOK_S = 10.0
"""Between two looks. Each is one system call, and too rare to be seen in what is timed."""
LARGEST_BYTES = 2**24
NAME = "epochs.jsonl"
"""What the ground floor adds a line of JSON to after each epoch."""


@contextlib.contextmanager
def keep_epochs(written: Path, kept: Path, look_s: float = LOOK_S) -> Iterator[None]:
    """Copy what a launch writes of its epochs while it runs, and once more at its end.

    Args:
        written: where the launch writes it; its folder is the launch's own, and nothing in it is trusted.
        kept: the copy, which appears with the first epoch.
    """
    # Of an earlier launch of the same cell.
    kept.unlink(missing_ok=True)
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(look_s):
            _copy(written, kept)

    watcher = threading.Thread(target=look, name="epochs", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        _copy(written, kept)


def _copy(written: Path, kept: Path) -> None:
    with contextlib.suppress(OSError):
        # Neither a link, which would be followed with this host's rights, nor a pipe, which would hang.
        descriptor = os.open(written, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                content = file.read(LARGEST_BYTES)
                kept.write_bytes(content[: content.rfind(b"\n") + 1])


def count_epochs(kept: Path) -> int:
    """Count the epochs that were kept."""
    try:
        return kept.read_bytes().count(b"\n")
    except OSError:
        return 0
