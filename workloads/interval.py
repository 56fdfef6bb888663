"""How well one launch knows its median: an interval that asks nothing of the samples' distribution."""

import math
from typing import Sequence, Tuple

from workloads.steady import median


def median_ranks(count: int) -> Tuple[int, int]:
    """Ranks, from 1, of the order statistics that enclose the median with 95 % confidence.

    Each of ``count`` independent values is below the median with probability 1/2, so the number below
    is binomial (H. A. David, H. N. Nagaraja, Order statistics, 3rd ed. 2003, section 7.1). Exact up to
    70 values and by the normal approximation above, as tabulated in J.-Y. Le Boudec, Performance
    evaluation of computer and communication systems, 2010, appendix A. Below 6 values no ranks do;
    0 is returned as the lower one.
    """
    if count > 70:
        lower = int(0.5 * count - 0.98 * math.sqrt(count))
        return lower, count + 1 - lower
    lower, ways, term = 0, 1, 1
    while 40 * ways <= 2**count:  # P(at most `lower` values below) <= 1/40
        lower += 1
        term = term * (count - lower + 1) // lower
        ways += term
    return lower, count + 1 - lower


def is_narrow(ordered: Sequence[float], relative_width: float) -> bool:
    """Whether the 95 % interval on the median of sorted values is narrower than this share of it.

    To stop by an interval's width is the advice of T. Hoefler, R. Belli, Scientific benchmarking of
    parallel computing systems, SC 2015. Looking after every sample makes the interval's true
    confidence somewhat less, and no verdict rests on it: verdicts are drawn between launches.
    """
    lower, upper = median_ranks(len(ordered))
    if lower < 1:
        return False
    return ordered[upper - 1] - ordered[lower - 1] < relative_width * median(ordered)
