"""When a warm-up may end: the later half of its samples shows no trend.

A trend is one that the test of Mann and Kendall finds and that is worth finding. The test looks at
ranks, so spikes at random or regular places (autotuning, a collector, a neighbour) are no trend,
while a drift, a decay or a step is one. Two guards stand around it: a change under `NEGLIGIBLE` is
none, however regular, and a plateau (a compiler that waits for its twentieth call) is waited for
while that is cheap.

What simulations show is in ``tests/workloads/test_steady.py``.

Sources: H. B. Mann, Nonparametric tests against trend, Econometrica 13 (1945); M. G. Kendall, Rank
correlation methods, 4th ed. (1975), for the variance with ties; A. Georges, D. Buytaert,
L. Eeckhout, Statistically rigorous Java performance evaluation, OOPSLA 2007, for a window that
must be steady rather than a fixed count; E. Barrett et al., Virtual machine warmup blows hot and
cold, OOPSLA 2017, for processes that never become so.
"""

import math
from typing import List, Sequence

SMALLEST_WINDOW = 10
"""Samples; below, the test's normal approximation does not hold."""
POINTS = 50
"""A longer window is reduced to so many batch means, since the test's cost is quadratic."""
CRITICAL_Z = 1.6449
"""Two-sided level of 10 %: to warm up a little longer is cheaper than to measure a drift."""
NEGLIGIBLE = 0.01
"""Change between the window's halves, as a share of its median, that no verdict would see."""
PATIENT_COUNT = 50
PATIENT_SHARE = 0.1
"""Judge no earlier than this many samples and this share of the bound..."""
HURRIED_SHARE = 0.5
"""...except where samples are slow: then from this share of the bound."""


def is_steady(samples_s: Sequence[float], seconds: float, bound_s: float) -> bool:
    """Whether the warm-up so far ends in a steady state.

    Args:
        samples_s: seconds a unit, in time order.
        seconds: how long the warm-up has lasted.
        bound_s: how long it may last.
    """
    patient = len(samples_s) >= PATIENT_COUNT and seconds >= PATIENT_SHARE * bound_s
    hurried = len(samples_s) >= SMALLEST_WINDOW and seconds >= HURRIED_SHARE * bound_s
    return (patient or hurried) and not has_trend(window(samples_s))


def window(samples_s: Sequence[float]) -> Sequence[float]:
    """The later half, or the last `SMALLEST_WINDOW` where that is more."""
    return samples_s[-max(SMALLEST_WINDOW, len(samples_s) // 2) :]


def median(values: Sequence[float]) -> float:
    """Middle value, or the mean of the two middle ones."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def has_trend(values: Sequence[float]) -> bool:
    """Whether values in time order rise or fall, by more than is negligible."""
    points = _batch_means(values)
    half = len(points) // 2
    change = _mean(points[-half:]) - _mean(points[:half])
    return abs(change) > NEGLIGIBLE * median(points) and abs(mann_kendall_z(points)) > CRITICAL_Z


def mann_kendall_z(values: Sequence[float]) -> float:
    """Mann and Kendall's statistic with the correction for continuity and ties; positive if rising.

    Standard normal without a trend, from about ten values on.
    """
    score = 0
    for index, later in enumerate(values):
        for earlier in values[:index]:
            score += (later > earlier) - (later < earlier)
    count = len(values)
    variance = count * (count - 1) * (2 * count + 5)
    for value in set(values):
        tied = values.count(value)
        variance -= tied * (tied - 1) * (2 * tied + 5)
    if score == 0 or variance == 0:
        return 0.0
    return math.copysign(abs(score) - 1, score) / math.sqrt(variance / 18)


def _batch_means(values: Sequence[float]) -> List[float]:
    size = -(-len(values) // POINTS)
    return [_mean(values[start : start + size]) for start in range(len(values) % size, len(values), size)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
