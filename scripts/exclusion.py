"""One run at a time on a device."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from scripts.errors import ExitStatus, Refusal
from scripts.words import make_visible

SHARED = Path("/tmp")  # noqa: S108
"""One folder for all users, whatever their TMPDIR."""


@contextlib.contextmanager
def hold_device(device: str, run: str, since: str, folder: Path | None = None) -> Iterator[None]:
    """Hold a device of this machine. The kernel ends the hold with the process, however it ends.

    Args:
        since: when the run started, for those who find the device held.
        folder: where all users' locks are.

    Raises:
        Refusal: another run holds it, or the lock cannot be had; the message says who or why.
    """
    # Here, since it takes as long to load as all the rest of the launch path.
    import filelock

    folder = folder or SHARED
    path = folder / f"rematch-{device.replace(':', '-')}.lock"
    holder = path.with_suffix(".holder")
    # Open to all, so that another user's run can hold it later.
    lock = filelock.FileLock(path, timeout=0, mode=0o666)
    try:
        lock.acquire()
    except filelock.Timeout as error:
        raise Refusal(
            f"{device} is in use by another run ({_read(holder)}), and two would spoil each other's times; "
            "try again when it has ended",
            ExitStatus.HOST_CANNOT,
        ) from error
    except OSError as error:
        raise Refusal(f"{path}: {error.strerror}; remove it", ExitStatus.HOST_CANNOT) from error
    try:
        _write(path, None)
        _write(holder, f"process {os.getpid()}, run {run}, since {since}")
        yield
    finally:
        lock.release()


def _write(path: Path, text: str | None) -> None:
    """Open a file to all users, and replace its content. The folder is everybody's: no link is followed."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        with os.fdopen(descriptor, "w") as file, contextlib.suppress(PermissionError):
            if text is not None:
                file.truncate()
                file.write(text)
            os.fchmod(file.fileno(), 0o666)


def _read(holder: Path) -> str:
    try:
        return make_visible(" ".join(holder.read_text().split())[:200]) or "it does not say which"
    except (OSError, UnicodeDecodeError):
        return "it does not say which"
