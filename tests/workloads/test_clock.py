import time

import pytest

from workloads import clock
from workloads.clock import Clock, ClockError


class Scripted(Clock):
    """Gives one reading after another, then the last one for ever."""

    def __init__(self, *readings):
        self.readings = list(readings)

    def now_ns(self):
        return self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]


def test_readings_are_whole_nanoseconds_of_the_performance_counter():
    before = time.perf_counter()
    reading = Clock().now_ns()
    after = time.perf_counter()
    assert isinstance(reading, int)
    assert before - 1e-6 <= reading / 1e9 <= after + 1e-6


def test_resolution_is_the_smallest_step_seen_between_readings():
    assert Scripted(0, 0, 70, 70, 70, 110, 200, 200).resolution_ns() == 40


def test_the_real_clock_has_a_resolution_between_a_nanosecond_and_a_millisecond():
    assert 1 <= Clock().resolution_ns() <= 10**6


def test_a_clock_that_stands_still_is_an_error(monkeypatch):
    monkeypatch.setattr(clock, "STILL_READINGS", 100)
    with pytest.raises(ClockError, match="stood still for 100 readings"):
        Scripted(5).resolution_ns()


def test_a_clock_that_runs_backwards_is_an_error():
    with pytest.raises(ClockError, match="duration of -3 ns"):
        Scripted(10, 7).resolution_ns()


def test_a_duration_is_an_exact_difference_even_after_a_long_uptime():
    year_ns = 365 * 86400 * 10**9
    assert clock.duration_ns(year_ns, year_ns + 1) == 1


@pytest.mark.parametrize("stop_ns", [10, 9, float("nan"), float("inf"), float("-inf")])
def test_zero_negative_and_non_finite_durations_are_errors_and_never_clamped(stop_ns):
    with pytest.raises(ClockError, match="duration of"):
        clock.duration_ns(10, stop_ns)
