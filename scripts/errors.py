"""Exit statuses, and the one exception that carries a status and a remedy to the user."""

import enum
import os
import sys
from collections.abc import Callable
from typing import NoReturn


class ExitStatus(enum.IntEnum):
    """What a program of the host floor says by its exit status. A session passes it on."""

    MEASURED = 0
    PARTLY_MEASURED = 1
    BAD_OPTIONS = 2
    HOST_CANNOT = 3
    NOTHING_MEASURED = 4
    INTERRUPTED = 130


class Refusal(Exception):
    """Something foreseeable is wrong: one line that says what, where, and the remedy."""

    def __init__(self, message: str, status: ExitStatus = ExitStatus.BAD_OPTIONS) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


def run_program(name: str, main: Callable[[list[str]], int]) -> NoReturn:
    """End the process with what ``main`` makes of its arguments; a refusal is one line and its status."""
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except Refusal as refusal:
        print(f"{name}: {refusal.message}", file=sys.stderr)
        status = refusal.status
    except KeyboardInterrupt:
        status = ExitStatus.INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has read enough. What is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = ExitStatus.INTERRUPTED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"{name}: {where}{error.strerror}", file=sys.stderr)
        status = ExitStatus.BAD_OPTIONS
    sys.exit(status)
