"""The one protocol by which every unit of work is timed, whatever the framework.

First call, warm-up to a steady state, calibration, samples. The device is synchronised before each
start and each stop, so that a sample holds all the work launched within it and none launched before
it. Nothing is read from the device here.
"""

import gc
import itertools
import math
from bisect import insort
from typing import Any, Callable, Dict, List, Mapping, Tuple

from workloads import interval, steady
from workloads.clock import Clock, duration_ns

TICKS = 1000
"""A sample lasts at least so many ticks of the clock: one more or less is then 0.1 %."""
MARGIN = 1.05
"""Repeats above what calibration asks for, since not every sample is as slow as the one that set them."""
OVERRUN = 2
"""`min_samples` may take the budget so many times; then what is there must do (one sample at least)."""

Unit = Callable[[], Any]
"""Does one unit of work. One that has a method ``many`` does so many at once, where it is not this module's
loop that drives the work, such as Keras's ``fit``."""
Record = Dict[str, Any]


def measure(
    unit: Unit, synchronise: Callable[[], Any], limits: Mapping[str, Any], clock: Clock, keep: int = 1
) -> Tuple[Record, List[Any]]:
    """Time a unit of work in the steady state.

    The record's ``warmup.seconds`` go from the first call's end to the first sample's start, so they
    hold calibration, whose trials are not samples.

    Args:
        unit: does one unit, perhaps only launching it.
        synchronise: waits until the device has done all that was launched.
        limits: ``budget_s`` for this measure's samples, ``warmup_s``, ``sample_s``, ``min_samples``,
            ``max_samples``, ``relative_width``, as in the contract's ``Protocol``.
        clock: what tells the time.
        keep: how many of the first units' values are returned.

    Returns:
        the contract's fields ``repeats``, ``samples_s``, ``first_call_s``, ``warmup``, ``stopped_by``;
        and what the first units returned: the first call and, as far as ``keep`` goes, the warm-up.

    Raises:
        ClockError: a duration was zero, negative or not finite.
    """
    kept = []  # type: List[Any]

    def keeping_unit() -> None:
        value = unit()
        if len(kept) < keep:
            kept.append(value)

    first_s, _ = _time_whole(keeping_unit, synchronise, clock)
    # What tracing and compiling left behind would otherwise be collected in the first samples.
    gc.collect()
    start_ns = clock.now_ns()
    warmup_s, ended_by = _warm_up(keeping_unit, synchronise, limits["warmup_s"], clock)
    repeats = _calibrate(unit, synchronise, limits["sample_s"], steady.median(steady.window(warmup_s)), clock)
    warmup_ns = duration_ns(start_ns, clock.now_ns())
    samples_s, stopped_by = _sample(unit, synchronise, repeats, limits, clock)
    warmup = {"samples_s": warmup_s, "ended_by": ended_by, "seconds": warmup_ns / 1e9}
    return _record(repeats, samples_s, first_s, warmup, stopped_by), kept


def measure_epochs(
    unit: Unit,
    synchronise: Callable[[], Any],
    epochs: int,
    clock: Clock,
    budget_s: float,
    whole: bool = False,
    tell: Callable[[Any, float], Any] = lambda value, seconds: None,
) -> Tuple[Record, List[Any], List[float]]:
    """Time epochs one by one, with neither warm-up nor calibration.

    The first is ``first_call_s`` and no sample; where there is only one, it is both.

    Args:
        unit: goes through one epoch.
        synchronise: as in ``measure``.
        epochs: how many there are at most.
        clock: what tells the time.
        budget_s: no further epoch is begun that would bring those after the first beyond it; one after the
            first there is in any case.
        whole: all ``epochs`` are one sample, the first among them, as with a stopwatch: the sample is their
            mean, and the budget is of no account.
        tell: is called after each epoch, outside of its time, with what the unit returned and its seconds.

    Returns:
        the fields as `measure` gives them, what each unit returned, and the seconds that each took.

    Raises:
        ClockError: a duration was zero, negative or not finite.
    """
    seconds, values = [], []  # type: List[float], List[Any]
    stopped_by = "count"
    while len(seconds) < epochs:
        if not whole and len(seconds) > 1 and sum(seconds[1:]) + seconds[-1] > budget_s:
            stopped_by = "budget"
            break
        epoch_s, value = _time_whole(unit, synchronise, clock)
        seconds.append(epoch_s)
        values.append(value)
        tell(value, epoch_s)
    warmup = {"samples_s": [], "ended_by": "none", "seconds": 0.0}
    samples_s = [sum(seconds) / epochs] if whole else seconds[1:] or seconds
    return _record(epochs if whole else 1, samples_s, seconds[0], warmup, stopped_by), values, seconds


def time_units(unit: Unit, synchronise: Callable[[], Any], repeats: int, clock: Clock) -> int:
    """Nanoseconds that ``repeats`` units take, the device synchronised before the start and the stop.

    The cyclic garbage collector waits meanwhile, as in ``timeit``: when it strikes depends on all that
    the process ever allocated, and what it costs on how much a framework's import left, neither of
    which is the unit's. Garbage of these units is the youngest generation and is collected after the
    stop, so that it neither piles up nor falls into a later sample.

    Raises:
        ClockError: the duration was zero, negative or not finite.
    """
    now_ns = clock.now_ns
    many = getattr(unit, "many", None)
    rounds = itertools.repeat(None, repeats if many is None else 0)
    collecting = gc.isenabled()
    gc.disable()
    try:
        synchronise()
        start_ns = now_ns()
        if many is not None:
            many(repeats)
        for _ in rounds:
            unit()
        synchronise()
        stop_ns = now_ns()
    finally:
        if collecting:
            gc.enable()
    if collecting:
        gc.collect(0)
    return duration_ns(start_ns, stop_ns)


def _time_whole(unit: Unit, synchronise: Callable[[], Any], clock: Clock) -> Tuple[float, Any]:
    """Seconds that a first call or an epoch takes, and what it returns.

    The garbage collector runs as the process has it: compilers and whole epochs may need it.
    """
    synchronise()
    start_ns = clock.now_ns()
    value = unit()
    synchronise()
    return duration_ns(start_ns, clock.now_ns()) / 1e9, value


def _warm_up(
    unit: Unit, synchronise: Callable[[], Any], bound_s: float, clock: Clock
) -> Tuple[List[float], str]:
    """Time single units until they are steady or another would pass the bound; at least one."""
    start_ns = clock.now_ns()
    samples_s = []  # type: List[float]
    next_look = 0
    while True:
        samples_s.append(time_units(unit, synchronise, 1, clock) / 1e9)
        seconds = (clock.now_ns() - start_ns) / 1e9
        out_of_time = seconds + samples_s[-1] > bound_s
        if out_of_time or len(samples_s) >= next_look:
            if steady.is_steady(samples_s, seconds, bound_s):
                return samples_s, "steady"
            # Looks grow rarer, so that together they cost no more than in proportion to the samples.
            next_look = len(samples_s) + max(1, len(samples_s) // 10)
        if out_of_time:
            return samples_s, "bound"


def _calibrate(
    unit: Unit, synchronise: Callable[[], Any], sample_s: float, unit_s: float, clock: Clock
) -> int:
    """How many units make a sample long enough.

    Trials follow the first guess, because a unit timed alone pays for its synchronisation and units in
    a row may overlap.
    """
    least_ns = max(sample_s * 1e9, float(TICKS * clock.resolution_ns()))
    repeats = math.ceil(MARGIN * least_ns / (unit_s * 1e9))
    while repeats > 1:
        elapsed_ns = time_units(unit, synchronise, repeats, clock)
        if elapsed_ns >= least_ns:
            break
        repeats = max(repeats + 1, math.ceil(repeats * MARGIN * least_ns / elapsed_ns))
    return repeats


def _sample(
    unit: Unit, synchronise: Callable[[], Any], repeats: int, limits: Mapping[str, Any], clock: Clock
) -> Tuple[List[float], str]:
    """Take samples until they are narrow, enough, or another would pass the budget."""
    samples_s = []  # type: List[float]
    ordered = []  # type: List[float]
    start_ns = clock.now_ns()
    while True:
        sample_s = time_units(unit, synchronise, repeats, clock) / repeats / 1e9
        samples_s.append(sample_s)
        insort(ordered, sample_s)
        count = len(samples_s)
        enough = count >= limits["min_samples"]
        if enough and interval.is_narrow(ordered, limits["relative_width"]):
            return samples_s, "narrow"
        if count >= limits["max_samples"]:
            return samples_s, "count"
        seconds = (clock.now_ns() - start_ns) / 1e9
        if seconds * (count + 1) / count > limits["budget_s"] * (1 if enough else OVERRUN):
            return samples_s, "budget"


def _record(
    repeats: int, samples_s: List[float], first_call_s: float, warmup: Record, stopped_by: str
) -> Record:
    return {
        "repeats": repeats,
        "samples_s": samples_s,
        "first_call_s": first_call_s,
        "warmup": warmup,
        "stopped_by": stopped_by,
    }
