"""The method's promises, on simulated launches (the long form is benchmarks/statistics_simulation.py)."""

import functools

import numpy as np
import pytest

from benchmarks.launch_scenarios import SCENARIOS, Scenario, draw_samples
from benchmarks.statistics_simulation import Shares, share_significant, share_verdicts

ROUNDS = 2000
QUIET = SCENARIOS[0]

each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
each_blocks = pytest.mark.parametrize("blocks", [5, 10])


@functools.cache
def simulate(scenario: Scenario, ratio: float, blocks: int) -> Shares:
    rng = np.random.default_rng([SCENARIOS.index(scenario), blocks, round(1000 * ratio)])
    return share_verdicts(draw_samples(scenario, [ratio], (ROUNDS, blocks), 5, rng), ratio)


@each_scenario
@each_blocks
def test_equal_launches_seldom_get_a_verdict(scenario: Scenario, blocks: int) -> None:
    """S2, T12: at most 5 % of pairs, and groups voided by a differing A/A pair stay few."""
    shares = simulate(scenario, 1.0, blocks)
    assert shares.wrong <= 0.05
    assert shares.void <= 0.075


@each_scenario
@each_blocks
@pytest.mark.parametrize("ratio", [1.0, 1.05])
def test_intervals_hold_the_true_ratio(scenario: Scenario, blocks: int, ratio: float) -> None:
    promised = 0.93 if blocks == 10 and scenario.unimodal else 0.9
    assert simulate(scenario, ratio, blocks).covered >= promised


@each_blocks
def test_a_true_effect_is_found_where_launches_vary_little(
    blocks: int, capsys: pytest.CaptureFixture[str]
) -> None:
    power = {scenario.name: simulate(scenario, 1.05, blocks) for scenario in SCENARIOS}
    with capsys.disabled():
        print(f"\npower for a 5 % effect, {blocks} blocks:")
        for name, shares in power.items():
            print(f"  {name:28}{shares.slower:6.1%}")
    assert power[QUIET.name].slower >= 0.9
    assert power["drift 1 % a launch"].slower >= 0.9
    assert power["launches vary 2 %"].slower >= (0.65 if blocks == 5 else 0.9)
    assert all(shares.slower > 2 * shares.wrong for shares in power.values())


def test_more_blocks_find_more() -> None:
    assert simulate(SCENARIOS[1], 1.02, 10).slower > simulate(SCENARIOS[1], 1.02, 5).slower + 0.1


def test_pooling_samples_as_pyperf_does_calls_equal_launches_different() -> None:
    """S4: where counts are unequal its test fails and reports significance."""
    rng = np.random.default_rng(5)
    equal = draw_samples(SCENARIOS[1], [1.0], (200, 10), 10, rng)
    assert share_significant(equal) > 0.3
    equal[:, 0, 0, :] = np.nan
    assert share_significant(equal) == 1.0
