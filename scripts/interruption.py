"""Requests to end, by the user, by a signal, or by the end of the front door."""

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator

PR_SET_PDEATHSIG = 1  # from linux/prctl.h


def end_with_front_door() -> None:
    """Be asked to end when nox ends, however it ends."""
    if os.environ.get("REMATCH_ENDS_WITH") == str(os.getppid()):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Turn the first request to end into ``KeyboardInterrupt``; while its work is done, ignore others."""
    numbers = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        # Ignored on purpose by whoever started this, such as nohup.
        if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN
    ]

    def interrupt(_number: int, _frame: object) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
