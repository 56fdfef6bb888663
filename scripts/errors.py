"""Exit statuses, and the one exception that carries a status and a remedy to the user."""

import enum
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
    try:
        sys.exit(main(sys.argv[1:]))
    except Refusal as refusal:
        print(f"{name}: {refusal.message}", file=sys.stderr)
        sys.exit(refusal.status)
    except KeyboardInterrupt:
        sys.exit(ExitStatus.INTERRUPTED)
