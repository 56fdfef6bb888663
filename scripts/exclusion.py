"""One run at a time on a device."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scripts.errors import ExitStatus, Refusal


@contextlib.contextmanager
def hold_device(device: str, run: str, since: str, folder: Path | None = None) -> Iterator[None]:
    """Hold a device of this machine. The kernel ends the hold with the process, however it ends.

    Args:
        since: when the run started, for those who find the device held.
        folder: where all users' locks are; the system's folder for temporary files by default.

    Raises:
        Refusal: another run holds it, or the lock cannot be had; the message says who or why.
    """
    # Here, since it takes as long to load as all the rest of the launch path.
    import filelock

    folder = folder or Path(tempfile.gettempdir())
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
        raise Refusal(
            f"{path}: {error.strerror}; remove it, or set TMPDIR", ExitStatus.HOST_CANNOT
        ) from error
    try:
        for file in (path, holder):
            _open_to_all(file)
        with contextlib.suppress(OSError):
            holder.write_text(f"process {os.getpid()}, run {run}, since {since}")
        yield
    finally:
        lock.release()


def _open_to_all(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666))
        path.chmod(0o666)


def _read(holder: Path) -> str:
    try:
        return " ".join(holder.read_text().split()) or "it does not say which"
    except (OSError, UnicodeDecodeError):
        return "it does not say which"
