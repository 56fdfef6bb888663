"""How often the verdicts are wrong, and how often they find an effect, on simulated launches.

    python -m benchmarks.statistics_simulation [--rounds N] [--seed N]

For each scenario and number of blocks, in per cent of the rounds: false verdicts where there is no
difference, intervals that hold the true ratio (no difference), A/A pairs that void their group, verdicts
in the right direction on variants 2, 5 and 10 % slower, and groups of five equal variants with any false
verdict. Beside them, on the same samples, what ``pyperf compare_to`` calls significant: it pools the
samples of all launches in a two-sample t-test.

The last two scenarios are beyond the promise, and are shown so that nobody trusts it there: the variant
alone has slow launches, of which few blocks meet few, and their share decides the ratio.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pyperf._compare import is_significant_benchs  # type: ignore[import-untyped]

from benchmarks.launch_scenarios import (
    BEYOND_REACH,
    SCENARIOS,
    Array,
    Scenario,
    draw_samples,
    estimate_rounds,
)
from scripts.statistics import judge

BLOCKS = (5, 10)
EFFECTS = (1.02, 1.05, 1.1)
VARIANTS = 5
SAMPLES = 10


@dataclass(frozen=True)
class Shares:
    """Of the rounds whose pair has a verdict: judged, voided ones included."""

    slower: float
    wrong: float
    """``faster``, or ``slower`` where there is no difference."""
    void: float
    covered: float
    any_wrong: float
    """Of the rounds: some variant has a false verdict, were all ratios 1."""


@dataclass(frozen=True)
class Pooled:
    """A benchmark as pyperf's comparison sees it."""

    values: list[float]

    def get_values(self) -> list[float]:
        return self.values


def share_verdicts(samples: Array, ratio: float) -> Shares:
    """Shares over all variants of all rounds; ``ratio`` is the true one of each variant."""
    judged = slower = faster = void = estimated = covered = any_shown = 0
    for a_a, *variants in estimate_rounds(np.median(samples, axis=-1)):
        shown = 0
        for estimate in variants:
            verdict = judge(estimate, [a_a] if a_a else []).verdict
            judged += verdict is not None
            slower += verdict == "slower"
            faster += verdict == "faster"
            void += verdict == "not comparable"
            shown += verdict in ("faster", "slower")
            if estimate:
                estimated += 1
                covered += estimate.low <= ratio <= estimate.high
        any_shown += shown > 0
    return Shares(
        slower=slower / judged,
        wrong=(faster + (slower if ratio == 1.0 else 0)) / judged,
        void=void / judged,
        covered=covered / estimated,
        any_wrong=any_shown / len(samples),
    )


def share_significant(samples: Array) -> float:
    """Share of the rounds in which pyperf calls the variant significantly slower or faster."""
    return float(
        np.mean([is_significant_benchs(_pool(group[:, 0]), _pool(group[:, 2]))[0] for group in samples])
    )


def _pool(launches: Array) -> Pooled:
    return Pooled(launches[~np.isnan(launches)].tolist())


def tabulate(rounds: int, seed: int) -> Iterator[str]:
    effects = "".join(f"{ratio - 1:7.0%}" for ratio in EFFECTS)
    yield f"{'':30}  {'ours':<48}  pyperf"
    ours = f"{'false':>6}{'covers':>8}{'void':>6}{effects}{'any':>6}"
    yield f"{'scenario':26}{'n':>4}  {ours}  {'false':>6}{effects}"
    for index, scenario in enumerate(SCENARIOS + BEYOND_REACH):
        for blocks in BLOCKS:
            yield _row(scenario, rounds, blocks, np.random.default_rng([seed, index, blocks]))


def _row(scenario: Scenario, rounds: int, blocks: int, rng: np.random.Generator) -> str:
    shape = (rounds, blocks)
    equal = draw_samples(scenario, [1.0], shape, SAMPLES, rng)
    slower = [draw_samples(scenario, [ratio], shape, SAMPLES, rng) for ratio in EFFECTS]
    family = share_verdicts(draw_samples(scenario, [1.0] * VARIANTS, shape, SAMPLES, rng), 1.0)
    null = share_verdicts(equal, 1.0)
    power = [share_verdicts(samples, ratio).slower for samples, ratio in zip(slower, EFFECTS, strict=True)]
    theirs = [share_significant(samples) for samples in (equal, *slower)]
    return (
        f"{scenario.name:26}{blocks:4}  {null.wrong:6.1%}{null.covered:8.1%}{null.void:6.1%}"
        + "".join(f"{share:7.1%}" for share in power)
        + f"{family.any_wrong:6.1%}  {theirs[0]:6.1%}"
        + "".join(f"{share:7.1%}" for share in theirs[1:])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="False verdicts, coverage and power on simulated launches.")
    parser.add_argument("--rounds", type=int, default=1000, help="simulated runs a figure")
    parser.add_argument("--seed", type=int, default=2019)
    options = parser.parse_args()
    print(f"{options.rounds} rounds, seed {options.seed}; per cent of rounds")
    for line in tabulate(options.rounds, options.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
