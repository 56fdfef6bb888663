import json
import math
import random
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import stdtrit

from scripts import statistics
from scripts.statistics import (
    BLOCKS_FOR_VERDICT,
    MOST_BLOCKS,
    Estimate,
    blocks_to_settle,
    estimate_location,
    estimate_ratio,
    find_outliers,
    geometric_mean,
    judge,
)

durations = st.floats(min_value=5e-324, max_value=1.7e308)
TICK = 1e-9
CALM = Estimate(ratio=1.001, low=0.99, high=1.012, blocks=10, spread=0.015)


def estimate(variant: list[float], baseline: list[float]) -> Estimate:
    found = estimate_ratio(variant, baseline)
    assert found is not None
    return found


def with_spread(ratio: float, spread: float, blocks: int) -> Estimate:
    """Estimate from log ratios that alternate so that their deviation is ``spread``."""
    logs = [spread * (-1) ** index for index in range(blocks)]
    mean = math.fsum(logs) / blocks
    scale = spread / math.sqrt(math.fsum((value - mean) ** 2 for value in logs) / (blocks - 1))
    return estimate([ratio * math.exp((value - mean) * scale) for value in logs], [1.0] * blocks)


def test_quantiles_are_those_of_scipy() -> None:
    for freedom in [*range(1, 40), 99, 100, 999]:
        assert statistics._t_quantile(freedom) == pytest.approx(stdtrit(freedom, 0.975), rel=1e-12)


def test_ratio_and_interval_are_the_paired_t_test_on_logs() -> None:
    variant, baseline = [1.9, 2.2, 2.0, 2.4, 2.1], [1.0, 1.1, 1.05, 1.15, 0.95]
    logs = [math.log(v / b) for v, b in zip(variant, baseline, strict=True)]
    expected = stats.ttest_1samp(logs, 0.0).confidence_interval(0.95)
    found = estimate(variant, baseline)
    assert math.log(found.ratio) == pytest.approx(sum(logs) / 5)
    assert (math.log(found.low), math.log(found.high)) == pytest.approx(tuple(expected))
    assert found.blocks == 5
    assert found.spread == pytest.approx(stats.tstd(logs))


def test_what_is_common_to_a_block_cancels() -> None:
    """T12: drift from block to block is no difference and no noise."""
    baseline = [1.0 * 1.3**block for block in range(6)]
    assert estimate([2 * value for value in baseline], baseline).spread == pytest.approx(0.0, abs=1e-12)


def test_swapping_sides_inverts_the_ratio() -> None:
    variant, baseline = [1.0, 1.2, 1.1], [2.0, 2.1, 1.9]
    there, back = estimate(variant, baseline), estimate(baseline, variant)
    assert (there.ratio, there.low, there.high) == pytest.approx(
        (1 / back.ratio, 1 / back.high, 1 / back.low)
    )


@pytest.mark.parametrize("blocks", [0, 1])
def test_fewer_than_two_blocks_give_no_ratio(blocks: int) -> None:
    assert estimate_ratio([1.0] * blocks, [2.0] * blocks) is None


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_medians_that_are_no_times_are_refused(bad: float) -> None:
    """R3"""
    with pytest.raises(ValueError, match="positive and finite"):
        estimate_ratio([1.0, 1.0], [1.0, bad])
    with pytest.raises(ValueError, match="positive and finite"):
        estimate_location([bad])
    with pytest.raises(ValueError, match="positive and finite"):
        geometric_mean([1.0, bad])


def test_unpaired_medians_are_refused() -> None:
    """S4: unequal counts are never compared."""
    with pytest.raises(ValueError, match="3 against 10"):
        estimate_ratio([1.0] * 3, [1.0] * 10)


@given(st.lists(st.tuples(durations, durations), min_size=2, max_size=12))
def test_estimates_of_any_times_are_finite_and_ordered(pairs: list[tuple[float, float]]) -> None:
    found = estimate([a for a, _ in pairs], [b for _, b in pairs])
    assert 0 < found.low <= found.ratio <= found.high < math.inf
    json.dumps([found.low, found.high], allow_nan=False)


def test_location_is_the_median_with_the_interval_of_log_medians() -> None:
    medians = [1.0, 1.1, 0.9, 1.05, 3.0]
    found = estimate_location(medians)
    low, high = stats.ttest_1samp([math.log(value) for value in medians], 0.0).confidence_interval(0.95)
    assert found.median == 1.05
    assert found.low == pytest.approx(math.exp(low))
    assert found.high == pytest.approx(math.exp(high))


def test_location_of_one_launch_has_no_interval() -> None:
    found = estimate_location([2.0])
    assert (found.median, found.low, found.high) == (2.0, None, None)


@pytest.mark.parametrize(("ratio", "verdict"), [(0.8, "faster"), (1.25, "slower")])
def test_a_clear_effect_above_the_a_a_pair_gets_a_verdict(ratio: float, verdict: str) -> None:
    assert judge(with_spread(ratio, 0.01, 10), [CALM]).verdict == verdict


def test_fewer_than_five_blocks_give_no_verdict() -> None:
    judgement = judge(with_spread(0.5, 0.01, 4), [CALM])
    assert judgement.verdict is None
    assert "4 complete blocks" in judgement.reason
    assert judge(None, [CALM]).verdict is None
    assert judge(with_spread(0.5, 0.01, 5), [CALM]).verdict == "faster"


def test_an_interval_that_holds_one_shows_no_difference() -> None:
    assert judge(with_spread(1.05, 0.2, 10), [CALM]).verdict == "no difference shown"


def test_an_effect_within_the_largest_a_a_effect_shows_no_difference() -> None:
    noisy = Estimate(ratio=0.96, low=0.91, high=1.01, blocks=10, spread=0.02)
    pair = with_spread(1.03, 0.01, 10)
    assert pair.excludes_one
    judgement = judge(pair, [CALM, noisy])
    assert (judgement.verdict, judgement.reason) == (
        "no difference shown",
        "its effect is within that of the A/A pair, 0.96x",
    )
    assert judge(pair, [CALM]).verdict == "slower"


def test_five_blocks_that_agree_by_chance_are_held_to_the_a_a_pairs_spread() -> None:
    wild = with_spread(1.0, 0.1, 5)
    pair = with_spread(1.05, 0.01, 5)
    assert pair.excludes_one
    judgement = judge(pair, [wild])
    assert judgement.verdict == "no difference shown"
    assert "spread" in judgement.reason


def test_an_a_a_pair_that_differs_voids_its_group() -> None:
    """S2"""
    differs = Estimate(ratio=1.03, low=1.01, high=1.05, blocks=10, spread=0.03)
    judgement = judge(with_spread(0.5, 0.01, 10), [CALM, differs])
    assert judgement.verdict == "not comparable"
    assert "1.03x [1.01, 1.05]" in judgement.reason


def test_without_an_a_a_pair_there_is_no_verdict() -> None:
    judgement = judge(with_spread(0.5, 0.01, 10), [])
    assert judgement.verdict is None
    assert "no A/A pair" in judgement.reason


def test_equal_medians_without_spread_show_no_difference() -> None:
    """S4"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        equal = estimate([0.3] * 5, [0.3] * 5)
        rounded = estimate([0.1 + 0.2] * 5, [0.3] * 5)
    assert equal.spread == 0.0
    assert judge(equal, [equal]).verdict == "no difference shown"
    assert judge(rounded, [equal]).verdict == "no difference shown"
    assert judge(equal, [rounded]).verdict == "no difference shown"


def test_a_difference_that_comes_back_alike_from_every_block_is_one() -> None:
    """S4: no spread at all neither divides by zero nor hides a real difference."""
    equal = estimate([1.0] * 5, [1.0] * 5)
    assert judge(estimate([1.5] * 5, [1.0] * 5), [equal]).verdict == "slower"


@given(st.floats(1.005, 1.2), st.floats(0.01, 0.3), st.integers(2, 12))
def test_the_blocks_advised_settle_the_pair_and_one_fewer_does_not(
    ratio: float, spread: float, blocks: int
) -> None:
    pair, twin = with_spread(ratio, spread, blocks), with_spread(1.0, spread * 1.2, blocks)
    more = blocks_to_settle(pair, [twin])

    def settled(count: int) -> bool:
        again = judge(with_spread(ratio, spread, count), [with_spread(1.0, spread * 1.2, count)])
        return again.verdict in ("faster", "slower")

    if more is None:
        assert not settled(MOST_BLOCKS)
        return
    assert settled(blocks + more)
    if more > 0:
        assert not settled(blocks + more - 1)


def test_a_settled_pair_needs_no_more_blocks() -> None:
    assert blocks_to_settle(with_spread(0.5, 0.01, 10), [CALM]) == 0
    assert blocks_to_settle(with_spread(0.5, 0.01, 2), [CALM]) == BLOCKS_FOR_VERDICT - 2


def test_more_blocks_are_not_advised_where_they_are_no_remedy() -> None:
    differs = Estimate(ratio=1.03, low=1.01, high=1.05, blocks=10, spread=0.03)
    assert blocks_to_settle(with_spread(1.0005, 0.05, 10), [CALM]) is None
    assert blocks_to_settle(with_spread(1.002, 0.5, 10), [CALM]) is None
    assert blocks_to_settle(with_spread(1.1, 0.3, 10), [differs]) is None
    assert blocks_to_settle(with_spread(1.1, 0.3, 10), []) is None


@pytest.mark.parametrize(
    "samples",
    [
        [],
        [0.01],
        [0.01] * 20,
        [0.01] * 19 + [0.01 + TICK],
        [0.01] * 10 + [0.01 + TICK] * 10,
        [3 * TICK] * 15 + [4 * TICK, 2 * TICK],
        [0.01] * 19 + [0.01002],
    ],
)
def test_trivial_spread_has_no_outliers(samples: list[float]) -> None:
    """S3: constant samples, one tick of the clock, a fifth of a per cent."""
    assert find_outliers(samples, TICK) == []


def test_real_outliers_are_found_where_they_stand() -> None:
    """S3"""
    rng = random.Random(3)
    samples = [rng.gauss(0.01, 0.0001) for _ in range(50)]
    samples[7], samples[30] = 0.013, 0.008
    assert find_outliers(samples, TICK) == [7, 30]
    assert find_outliers([0.01] * 19 + [0.011], TICK) == [19]


def test_outliers_are_judged_by_the_clock_that_timed_them() -> None:
    coarse = [0.016, 0.016, 0.032, 0.016, 0.016, 0.032]
    assert find_outliers(coarse, 0.016) == []
    assert find_outliers(coarse, TICK) == [2, 5]


def test_geometric_mean_of_a_ratio_and_its_inverse_is_one() -> None:
    assert geometric_mean([4.0, 0.25]) == pytest.approx(1.0)
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    with pytest.raises(ValueError, match="no ratio"):
        geometric_mean([])
