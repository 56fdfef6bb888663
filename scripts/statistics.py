"""What launches say about a ratio: intervals between launches, verdicts, outliers.

One estimand: in each complete block the log ratio of the two launches' medians; the ratio is the
exponential of their mean. Launches, not samples, are what is repeated (T. Kalibera, R. Jones, Rigorous
benchmarking in reasonable time, ISMM 2013: repetition is most needed where most uncertainty arises), and
launches of one block are paired, because drift, heat and load are common to them (G. E. P. Box,
J. S. Hunter, W. G. Hunter, Statistics for experimenters, 2nd ed. 2005, chapters 3 and 4).

``benchmarks/statistics_simulation.py`` shows how often each of this is wrong on simulated launches.

Plain Python: groups hold some ten values, for which arrays bring nothing, and importing scipy for one
quantile would take a third of the time in which ten thousand results are to be collected.
"""

import functools
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

CONFIDENCE = 0.95
BLOCKS_FOR_VERDICT = 5
"""Fewer blocks give an interval, never a verdict."""
MOST_BLOCKS = 1000  # more is no advice to anyone
ROUNDING = 1e-9
"""Smallest half-width of an interval on a log ratio. A clock of nanoseconds resolves no more of a sample
of one second, so where blocks agree entirely their last digits are not a difference."""
OUTLIER_SCORE = 3.5
"""Modified z-score above which a sample is an outlier (B. Iglewicz, D. C. Hoaglin, How to detect and
handle outliers, ASQC 1993; NIST/SEMATECH e-handbook of statistical methods, section 1.3.5.17)."""
MAD_TO_DEVIATION = 0.6745
"""Third quartile of the standard normal distribution: MAD over standard deviation."""
TRIVIAL_SPREAD = 1e-3
"""Floor under the MAD, as a share of the median: an outlier is at least half a per cent away."""
LARGEST_EXPONENT = 700.0
"""Keeps results finite: e**709 is about the largest float."""

Verdict = Literal["faster", "slower", "no difference shown", "not comparable"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Ratio of times, variant over baseline, with its 95 % interval between launches."""

    ratio: float
    low: float
    high: float
    blocks: int
    spread: float
    """Standard deviation of the log ratio between blocks."""

    @property
    def effect(self) -> float:
        """Distance from no difference: the log ratio's absolute value."""
        return abs(math.log(self.ratio))

    @property
    def excludes_one(self) -> bool:
        return self.low > 1.0 or self.high < 1.0


@dataclass(frozen=True, slots=True)
class Location:
    """Median over launches. The interval is that of the launches' geometric mean, in the same unit, which
    may leave out the median where launches are lopsided; none with fewer than two launches."""

    median: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict | None
    """None where nothing can be said."""
    reason: str
    """One line; empty for ``faster`` and ``slower``."""


@dataclass(frozen=True, slots=True)
class Placing:
    """Where a ratio lies."""

    place: Literal["within", "beyond", "not shown"]
    reason: str
    """One line; empty where it is shown."""


def estimate_ratio(variant: Sequence[float], baseline: Sequence[float]) -> Estimate | None:
    """Ratio of ``variant`` over ``baseline``, launch medians in block order, complete blocks only.

    The interval is Student's on the log ratios. None with fewer than two blocks.

    Raises:
        ValueError: unequal lengths, or a median that is not positive and finite.
    """
    if len(variant) != len(baseline):
        raise ValueError(f"medians must be paired by block: {len(variant)} against {len(baseline)}")
    if len(variant) < 2:
        return None
    logs = [a - b for a, b in zip(_take_logs(variant), _take_logs(baseline), strict=True)]
    mean, spread = _describe(logs)
    half = _half_width(spread, len(logs))
    return Estimate(_exp(mean), _exp(mean - half), _exp(mean + half), len(logs), spread)


def estimate_location(medians: Sequence[float]) -> Location:
    """Median over launches, and Student's interval on the log medians.

    Raises:
        ValueError: no medians, or one that is not positive and finite.
    """
    if not medians:
        raise ValueError("no launch, no median")
    logs = _take_logs(medians)
    if len(logs) == 1:
        return Location(medians[0], None, None)
    mean, spread = _describe(logs)
    half = _half_width(spread, len(logs))
    return Location(median(medians), _exp(mean - half), _exp(mean + half))


def judge(estimate: Estimate | None, a_a: Sequence[Estimate]) -> Judgement:
    """Verdict on one pair, given the A/A pairs of its group.

    Each pair is judged on its own, at the 5 % of its printed interval: a row answers "is this variant faster
    than the baseline", and must not answer otherwise for other variants that ran beside it, as with a
    correction for the family (S. Holm, A simple sequentially rejective multiple test procedure, 1979). The
    A/A pair guards the family too: of groups of five variants, all equal, one in ten has a false verdict.

    An interval that excludes 1 is not enough, because a handful of blocks may agree by chance: with five
    blocks of drifting launches, it was so for 6.4 % of equal pairs, and for 5.0 % above their A/A effect.
    Where the A/A pair spreads more, the effect must also exceed the half-width under the root mean square of
    both spreads (Box, Hunter and Hunter, chapter 3, pooled variance, without the degrees of freedom that
    pooling would add), since one machine made both. That leaves 2.3 %, and costs power: launches that vary
    2 % show a 5 % effect in five blocks in 74 % of runs instead of 78 %, and in ten blocks as before.

    Blocks that agree entirely (no spread at all) do not block a verdict: equal medians show no difference,
    and a difference beyond ``ROUNDING`` that came back alike from five or more fresh processes in random
    order is one.
    """
    if (lack := _find_lack(estimate, a_a)) is not None:
        return Judgement(None, lack)
    assert estimate is not None
    for pair in a_a:
        if pair.excludes_one:
            interval = f"{pair.ratio:.3g}x [{pair.low:.3g}, {pair.high:.3g}]"
            return Judgement("not comparable", f"void: the A/A pair differs, {interval}")
    if not estimate.excludes_one:
        return Judgement("no difference shown", "the interval holds 1")
    noise = max(a_a, key=lambda pair: pair.effect)
    if estimate.effect <= noise.effect:
        reason = f"its effect is within that of the A/A pair, {noise.ratio:.3g}x"
        return Judgement("no difference shown", reason)
    resolvable = _half_width(_pool_spread(estimate, a_a), estimate.blocks)
    if estimate.effect <= resolvable:
        reason = f"the A/A pair's spread leaves anything up to {_exp(resolvable):.3g}x open"
        return Judgement("no difference shown", reason)
    return Judgement("faster" if estimate.ratio < 1.0 else "slower", "")


def place(
    estimate: Estimate | None,
    a_a: Sequence[Estimate],
    bounds: tuple[float, float],
    limits: tuple[float, float],
) -> Placing:
    """Tell whether a ratio is shown to lie within ``bounds``, or beyond ``limits``, given the A/A pairs.

    What ``judge`` asks of a difference from 1 is asked of the distance from each bound: that the interval, of
    the pair's and the A/A pair's pooled spread, lies wholly on one side of it, and that the ratio is further
    from it than any A/A pair was from 1. To hold a ratio within two bounds so is to reject both that it is
    below the one and that it is above the other (D. J. Schuirmann, A comparison of the two one-sided tests
    procedure, 1987).

    Args:
        bounds: Where it is said to lie, 0 and infinity where it is not bounded.
        limits: Beyond which the contrary is so.
    """
    if (lack := _find_lack(estimate, a_a)) is not None:
        return Placing("not shown", lack)
    assert estimate is not None
    if any(pair.excludes_one for pair in a_a):
        return Placing("not shown", "void: the A/A pair differs by itself")
    noise = max(pair.effect for pair in a_a)
    clear = max(noise, _half_width(_pool_spread(estimate, a_a), estimate.blocks))
    below, above = estimate.ratio * _exp(-clear), estimate.ratio * _exp(clear)
    if bounds[0] < below and above < bounds[1]:
        return Placing("within", "")
    if above < limits[0] or limits[1] < below:
        return Placing("beyond", "")
    return Placing("not shown", f"noise leaves {below:.3g}x to {above:.3g}x open")


def blocks_to_settle(estimate: Estimate, a_a: Sequence[Estimate]) -> int | None:
    """How many more blocks would give ``faster`` or ``slower``, if ratios and spreads stay as they are.

    0 for a pair that is settled. None where more blocks are no remedy: no A/A pair, or one that differs,
    an effect within the A/A pair's, or one so near 1 that it would take more than ``MOST_BLOCKS``.
    """
    if not a_a or any(pair.excludes_one or estimate.effect <= pair.effect for pair in a_a):
        return None
    spread = _pool_spread(estimate, a_a)
    first = max(BLOCKS_FOR_VERDICT, estimate.blocks)
    candidates = range(first, max(first, MOST_BLOCKS) + 1)

    def resolves(blocks: int) -> bool:
        return estimate.effect > _half_width(spread, blocks)

    place = bisect_left(candidates, True, key=resolves)
    return candidates[place] - estimate.blocks if place < len(candidates) else None


def find_outliers(samples: Sequence[float], resolution_s: float) -> list[int]:
    """Indexes of samples, in seconds, that lie apart from their launch's others.

    By modified z-score: distance from the median over the median absolute deviation (MAD). The MAD counts
    as one tick of the clock at least, and as ``TRIVIAL_SPREAD``, since constant samples have none.

    Args:
        samples: Seconds a unit.
        resolution_s: One tick of the clock, in seconds a unit: divided by a sample's repeats.
    """
    if not samples:
        return []
    centre = median(samples)
    bound = max(resolution_s, TRIVIAL_SPREAD * centre) * OUTLIER_SCORE / MAD_TO_DEVIATION
    if max(samples) - centre <= bound and centre - min(samples) <= bound:
        return []
    distances = [abs(sample - centre) for sample in samples]
    bound = max(bound, median(distances) * OUTLIER_SCORE / MAD_TO_DEVIATION)
    return [index for index, distance in enumerate(distances) if distance > bound]


def geometric_mean(ratios: Sequence[float]) -> float:
    """The mean fit for ratios (P. J. Fleming, J. J. Wallace, How not to lie with statistics, 1986).

    Raises:
        ValueError: no ratios, or one that is not positive and finite.
    """
    if not ratios:
        raise ValueError("no ratio, no mean")
    return _exp(math.fsum(_take_logs(ratios)) / len(ratios))


def _find_lack(estimate: Estimate | None, a_a: Sequence[Estimate]) -> str | None:
    """Say what is missing before anything can be said of a pair."""
    if estimate is None:
        return "fewer than two complete blocks"
    if estimate.blocks < BLOCKS_FOR_VERDICT:
        return f"{estimate.blocks} complete blocks; a verdict needs {BLOCKS_FOR_VERDICT} or more"
    return None if a_a else "no A/A pair to show this machine's noise"


def _take_logs(values: Sequence[float]) -> list[float]:
    for value in values:
        if not 0.0 < value < math.inf:
            raise ValueError(f"a time or ratio must be positive and finite, not {value!r}")
    return [math.log(value) for value in values]


def _describe(logs: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation of two or more values."""
    mean = math.fsum(logs) / len(logs)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in logs) / (len(logs) - 1))


def _pool_spread(estimate: Estimate, a_a: Sequence[Estimate]) -> float:
    widest = max(pair.spread for pair in a_a)
    return max(estimate.spread, math.hypot(estimate.spread, widest) / math.sqrt(2))


def _half_width(spread: float, blocks: int) -> float:
    return max(_t_quantile(blocks - 1) * spread / math.sqrt(blocks), ROUNDING)


@functools.cache
def _t_quantile(freedom: int) -> float:
    """Two-sided 95 % quantile of Student's t, for whole degrees of freedom.

    Bisects the finite series of M. Abramowitz, I. A. Stegun, Handbook of mathematical functions, 1964,
    26.7.3 (odd) and 26.7.4 (even), in the angle whose tangent is t over the root of ``freedom``.
    """
    odd = freedom % 2
    low, high = 0.0, math.pi / 2
    while low < (angle := (low + high) / 2) < high:
        cosine = math.cos(angle)
        term = cosine if odd else 1.0
        total = term if freedom > 1 else 0.0
        for power in range(2 + odd, freedom - 1, 2):
            term *= cosine * cosine * (power - 1) / power
            total += term
        inside = math.sin(angle) * total
        if odd:
            inside = (angle + inside) * 2 / math.pi
        low, high = (angle, high) if inside < CONFIDENCE else (low, angle)
    return math.tan(low) * math.sqrt(freedom)


def _exp(exponent: float) -> float:
    return math.exp(max(-LARGEST_EXPONENT, min(LARGEST_EXPONENT, exponent)))
