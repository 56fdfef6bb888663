"""What the harness costs: ``python -m benchmarks.harness_overhead``.

Three loops call the same empty step in turn, again and again, so that the machine's drift hits all:
the protocol's, timeit's, and that of ``pyperf timeit``. Their costs are compared by the
ratio within a round. Then the protocol measures a step that is busy for a millisecond and keeps its
own time: what the harness adds is what is left of its samples, beyond the bare calls written out.
"""

import statistics
import sys
import timeit
from collections.abc import Callable

from pyperf._timeit import Timer as PyperfTimer  # type: ignore[import-untyped]

from workloads import protocol
from workloads.clock import Clock

ROUNDS = 200
STEPS = 20_000
BUSY_NS = 1_000_000
SHARE_SAMPLES = 50
SHARE_REPEATS = 100
LIMITS = {
    "budget_s": 3.0,
    "warmup_s": 0.5,
    "sample_s": 0.1,
    "min_samples": 30,
    "max_samples": 30,
    "relative_width": 0.01,
}
MOST_RATIO = 1.5
MOST_SHARE = 0.001


class BusyStep:
    """A step that spins for a millisecond and sums up how long it really was."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.inside_ns = 0

    def __call__(self) -> None:
        now_ns = self.clock.now_ns
        stop_ns = start_ns = now_ns()
        while stop_ns - start_ns < BUSY_NS:
            stop_ns = now_ns()
        self.inside_ns += stop_ns - start_ns


def empty() -> None:
    """The step that costs nothing but its call."""


def compare_loops(clock: Clock) -> dict[str, list[float]]:
    """Nanoseconds an empty step costs in each loop, round by round."""
    timeit_timer = timeit.Timer(empty)
    pyperf_timer = PyperfTimer(empty)
    loops: dict[str, Callable[[], float]] = {
        "protocol": lambda: protocol.time_units(empty, empty, STEPS, clock),
        "timeit": lambda: timeit_timer.timeit(STEPS) * 1e9,
        "pyperf": lambda: pyperf_timer.time_func(STEPS) * 1e9,
    }
    costs: dict[str, list[float]] = {name: [] for name in loops}
    names = list(loops)
    for turn in range(ROUNDS):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            costs[name].append(loops[name]() / STEPS)
    return costs


def measure_share(clock: Clock) -> float:
    """What the protocol adds to the sample of a busy step, as a share of the step: median over pairs.

    Both sides of a pair are taken beyond the step's own time, which rids them of its jitter, and the
    other side is the same calls written out with no loop, which holds what the step does not know of.
    """
    step = BusyStep(clock)
    written_out = timeit.Timer("step()\n" * SHARE_REPEATS, globals={"step": step})
    shares = []
    for _ in range(SHARE_SAMPLES):
        before_ns = step.inside_ns
        ours_ns = protocol.time_units(step, empty, SHARE_REPEATS, clock)
        between_ns = step.inside_ns
        theirs_ns = written_out.timeit(1) * 1e9
        ours_ns -= between_ns - before_ns
        theirs_ns -= step.inside_ns - between_ns
        shares.append((ours_ns - theirs_ns) / (SHARE_REPEATS * BUSY_NS))
    return statistics.median(shares)


def measure_idle(clock: Clock) -> float:
    """Time that `protocol.measure` spends outside its steps, warm-up and all, as a share of theirs."""
    step = BusyStep(clock)
    start_ns = clock.now_ns()
    protocol.measure(step, empty, LIMITS, clock)
    return (clock.now_ns() - start_ns - step.inside_ns) / step.inside_ns


def main() -> int:
    """Print each figure beside its target; 1 if one is missed."""
    clock = Clock()
    costs = compare_loops(clock)
    for name, values in costs.items():
        print(f"empty step under {name:<9} {statistics.median(values):7.1f} ns")
    ratios = {
        name: statistics.median(
            ours / theirs for ours, theirs in zip(costs["protocol"], costs[name], strict=True)
        )
        for name in ("timeit", "pyperf")
    }
    share = measure_share(clock)
    for name, ratio in ratios.items():
        print(f"protocol / {name:<16} {ratio:8.3f}    (target: at most {MOST_RATIO})")
    print(f"added to a 1 ms step        {share:8.4%}    (target: at most {MOST_SHARE:.1%})")
    print(f"outside the steps, in all   {measure_idle(clock):8.4%}")
    return int(ratios["timeit"] > MOST_RATIO or share > MOST_SHARE)


if __name__ == "__main__":
    sys.exit(main())
