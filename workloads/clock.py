"""The clock that times everything on the ground floor, in whole nanoseconds.

Whole nanoseconds, because a float of seconds loses the last digits of a long uptime, and because a
difference of integers is exact.
"""

import time

try:
    from time import perf_counter_ns as _read_ns  # novm
except ImportError:  # before Python 3.7

    def _read_ns() -> int:
        return int(time.perf_counter() * 1e9)


READINGS = 1000
STILL_READINGS = 1000000


class ClockError(Exception):
    """The clock gave what no duration can be: zero, negative, not finite."""


class Clock:
    """The process's monotonic clock. Tests put another in its place."""

    now_ns = staticmethod(_read_ns)

    def resolution_ns(self) -> int:
        """Smallest step seen between readings, as the process can read them.

        Raises:
            ClockError: the clock stands still or runs backwards.
        """
        smallest = 0
        before = self.now_ns()
        steps = 0
        for _ in range(STILL_READINGS):
            after = self.now_ns()
            if after != before:
                step = duration_ns(before, after)
                smallest = min(smallest or step, step)
                before = after
                steps += 1
                if steps == READINGS:
                    break
        if not smallest:
            raise ClockError(f"the clock stood still for {STILL_READINGS} readings")
        return smallest


def duration_ns(start_ns: int, stop_ns: int) -> int:
    """Nanoseconds from start to stop, never clamped: a wrong clock must not become a figure.

    Raises:
        ClockError: the difference is zero, negative or not finite.
    """
    elapsed = stop_ns - start_ns
    if not 0 < elapsed < float("inf"):
        raise ClockError(f"a duration of {elapsed} ns was read (from {start_ns} to {stop_ns})")
    return elapsed
