"""What runs now, and the time left: a line that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import statistics
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Self

from scripts.budget import CROWDED, estimate_launch
from scripts.contract import Cell, Result
from scripts.order import count_at_once
from scripts.words import describe_duration, describe_seconds, make_visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live


class Forecast:
    """The time left, by the plan's estimate first and by the launches seen as they come."""

    def __init__(self, launches: Iterable[Cell], overheads_s: Mapping[str, float], cpus_usable: int) -> None:
        self._left: dict[tuple[str, str], int] = {}
        self._planned_s: dict[tuple[str, str], float] = {}
        self._seen_s: dict[tuple[str, str], list[float]] = {}
        self._crowd = count_at_once(cpus_usable)
        for cell in launches:
            key = _key(cell)
            self._left[key] = self._left.get(key, 0) + 1
            self._planned_s[key] = estimate_launch(cell, overheads_s[cell.id])

    def see(self, cell: Cell, seconds: float) -> None:
        """Learn how long a launch took."""
        self._left[_key(cell)] -= 1
        self._seen_s.setdefault(_key(cell), []).append(seconds)

    def left_s(self) -> float:
        """Seconds that the launches left are expected to take."""
        total = 0.0
        for key, count in self._left.items():
            each = count * self._expect(key)
            total += each / self._crowd * CROWDED if key[0] == "proof" else each
        return total

    def _expect(self, key: tuple[str, str]) -> float:
        if key in self._seen_s:
            return statistics.fmean(self._seen_s[key])
        alike = [other for other in self._seen_s if other[0] == key[0]]
        planned_s = sum(self._planned_s[other] for other in alike)
        seen_s = sum(statistics.fmean(self._seen_s[other]) for other in alike)
        return self._planned_s[key] * (seen_s / planned_s if planned_s else 1.0)


class Progress:
    """Tells the user of each launch. Draws only when a launch starts or ends: a clock that ticks on the
    screen would take time from what is measured."""

    def __init__(self, console: Console, forecast: Forecast, total: int) -> None:
        self._console = console
        self._forecast = forecast
        self._total = total
        self._done = 0
        self._is_open = False
        """Whether a plain line waits for a launch's end."""
        self._live: Live | None = None
        # Proofs are started by several threads while their ends are told by another.
        self._guard = threading.RLock()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            from rich.live import Live

            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def start(self, cell: Cell) -> None:
        """Say what runs now."""
        with self._guard:
            if self._live:
                from rich.text import Text

                left = describe_duration(self._forecast.left_s())
                line = f"{self._done + 1}/{self._total} {describe_launch(cell)} ... {left} left"
                self._live.update(Text(line), refresh=True)
            elif cell.purpose == "measure":
                # Its end is told on the same line. Proofs, side by side, are told by their ends.
                self._console.print(self._name(cell, self._done + 1), end="", markup=False, highlight=False)
                self._is_open = True

    def finish(self, result: Result, seconds: float) -> None:
        """Say how a launch ended."""
        with self._guard:
            self._done += 1
            self._forecast.see(result.cell, seconds)
            line = f": {outcome(result)}"
            if not self._is_open:
                line = self._name(result.cell, self._done) + line
            if not self._live:
                line += f"  ({describe_duration(self._forecast.left_s())} left)"
            self._is_open = False
            self.say(line)

    def _name(self, cell: Cell, number: int) -> str:
        return f"{number:>{len(str(self._total))}}/{self._total} {describe_launch(cell)}"

    def say(self, line: str) -> None:
        """Print a line above what runs now."""
        if self._live:
            self._live.update("", refresh=True)
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def describe_launch(cell: Cell) -> str:
    """Name a launch in a few words."""
    words = ["proof" if cell.purpose == "proof" else f"block {cell.block + 1}", cell.workload]
    words += ([] if cell.role == "ceiling" else [cell.edition]) + [cell.variant]
    words += [cell.precision] if cell.precision != "fp32" else []
    words += ["(A/A)"] if cell.role == "a_a" else []
    return " ".join(words)


def outcome(result: Result) -> str:
    """Say in a few words what a launch found."""
    if result.cause is not None:
        return f"{result.status}: {make_visible(result.cause.message)}"
    if result.status == "proved":
        return "the same work"
    each = (f"{describe_seconds(statistics.median(one.samples_s))} a {one.name}" for one in result.measures)
    return ", ".join(each)


def _key(cell: Cell) -> tuple[str, str]:
    return cell.purpose, cell.id
