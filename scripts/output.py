"""The terminal, or the pipe that stands for it."""

from typing import NoReturn

from rich.console import Console


class PipedConsole(Console):
    """A console whose reader may have read enough: that is told as what it is, and no exit status."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError
