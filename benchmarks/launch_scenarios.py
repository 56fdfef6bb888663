"""Simulated runs with known ratios: randomised complete blocks of launches, as a machine might time them.

Every scenario is a law of one launch's log time, to which a cell's true log ratio is added. Shapes are
(rounds, blocks, cells): a round is one simulated run of a group, its cells the baseline, its A/A twin, then
the variants.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scripts.statistics import Estimate, estimate_ratio

Array = NDArray[np.float64]
SLOW_MODE, SLOW_LAUNCH = math.log(1.1), math.log(1.5)
Shape = tuple[int, int, int]

SAMPLE_DEVIATION = 0.005
"""Of the log time of samples within a launch."""


@dataclass(frozen=True)
class Scenario:
    name: str
    draw: Callable[[np.random.Generator, Shape], Array]
    """Log times of launches, in the order (rounds, blocks, cells)."""
    missing: float = 0.0
    """Share of launches that die and leave their block incomplete."""
    unimodal: bool = True


def _vary(deviation: float) -> Callable[[np.random.Generator, Shape], Array]:
    return lambda rng, shape: rng.normal(0.0, deviation, shape)


def _drift(rng: np.random.Generator, shape: Shape) -> Array:
    """Each launch 1 % slower than the one before, a random walk from block to block besides."""
    rounds, blocks, cells = shape
    order = rng.permuted(np.broadcast_to(np.arange(cells), shape), axis=2)
    launch: Array = np.arange(blocks)[:, None] * cells + order
    walk: Array = rng.normal(0.0, 0.03, (rounds, blocks, 1)).cumsum(axis=1)
    noise: Array = rng.normal(0.0, 0.005, shape)
    return launch * math.log(1.01) + walk + noise


def _two_modes(share: float) -> Callable[[np.random.Generator, Shape], Array]:
    """A share of the launches is 10 % slower, as memory placement makes them."""
    return lambda rng, shape: rng.normal(0.0, 0.005, shape) + (rng.random(shape) < share) * SLOW_MODE


def _slow_seldom(rng: np.random.Generator, shape: Shape) -> Array:
    """One launch in twenty is half as slow again."""
    return rng.normal(0.0, 0.01, shape) + (rng.random(shape) < 0.05) * SLOW_LAUNCH


def _slow_seldom_on_one_side(rng: np.random.Generator, shape: Shape) -> Array:
    """As ``_slow_seldom``, but of variants alone, whose mean log time stays what it was."""
    slow = (rng.random(shape) < 0.05) * SLOW_LAUNCH - 0.05 * SLOW_LAUNCH
    slow[..., :2] = 0.0
    return rng.normal(0.0, 0.01, shape) + slow


def _two_modes_on_one_side(rng: np.random.Generator, shape: Shape) -> Array:
    """As ``_two_modes``, but of variants alone, whose mean log time stays what it was."""
    modes = ((rng.random(shape) < 0.5) - 0.5) * SLOW_MODE
    modes[..., :2] = 0.0
    return rng.normal(0.0, 0.005, shape) + modes


def _everything(rng: np.random.Generator, shape: Shape) -> Array:
    return _drift(rng, shape) + _two_modes(0.3)(rng, shape) + _slow_seldom(rng, shape)


SCENARIOS = (
    Scenario("launches vary 0.5 %", _vary(0.005)),
    Scenario("launches vary 2 %", _vary(0.02)),
    Scenario("launches vary 10 %", _vary(0.1)),
    Scenario("drift 1 % a launch", _drift),
    Scenario("two modes, half each", _two_modes(0.5), unimodal=False),
    Scenario("two modes, one in five", _two_modes(0.2), unimodal=False),
    Scenario("rare slow launches", _slow_seldom, unimodal=False),
    Scenario("one launch in ten missing", _vary(0.02), missing=0.1, unimodal=False),
    Scenario("all of it at once", _everything, missing=0.05, unimodal=False),
)

BEYOND_REACH = (
    Scenario("two modes, variant alone", _two_modes_on_one_side, unimodal=False),
    Scenario("rare slow, variant alone", _slow_seldom_on_one_side, unimodal=False),
)
"""One side alone varies so: the mean of the log ratios hangs on launches of which few blocks meet few."""


def draw_samples(
    scenario: Scenario,
    ratios: Sequence[float],
    shape: tuple[int, int],
    samples: int,
    rng: np.random.Generator,
) -> Array:
    """Samples in seconds, (rounds, blocks, 2 + variants, samples); not a number where a launch died.

    ``ratios`` holds the true ratio of each variant, ``shape`` is (rounds, blocks).
    """
    effects = np.log([1.0, 1.0, *ratios])
    launches = scenario.draw(rng, (*shape, len(effects))) + effects
    launches[rng.random(launches.shape) < scenario.missing] = np.nan
    return np.exp(launches[..., None] + rng.normal(0.0, SAMPLE_DEVIATION, (*launches.shape, samples)))


def estimate_rounds(medians: Array) -> Iterator[list[Estimate | None]]:
    """Estimates of every round's A/A pair and variants, over the blocks that are complete for the pair.

    ``medians`` has the shape (rounds, blocks, 2 + variants).
    """
    for columns in medians.transpose(0, 2, 1):
        present = ~np.isnan(columns)
        complete = present & present[0]
        yield [
            estimate_ratio(column[kept].tolist(), columns[0][kept].tolist())
            for column, kept in zip(columns[1:], complete[1:], strict=True)
        ]
