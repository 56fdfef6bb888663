"""Simulations are seeded; the shares they show are asserted, and stated where they surprise."""

import math
import random

import pytest

from workloads import steady


def warm_up(cost, bound_s, most=3000):
    """Add samples ``cost(i)`` until steady or out of time; give them, and whether steady."""
    samples, seconds = [], 0.0
    while seconds < bound_s and len(samples) < most:
        samples.append(cost(len(samples)))
        seconds += samples[-1]
        if len(samples) % 5 == 0 and steady.is_steady(samples, seconds, bound_s):
            return samples, True
    return samples, False


def figure(samples):
    return steady.median(steady.window(samples))


def noisy(cost, spread, seed):
    chance = random.Random(seed)
    return lambda index: cost(index) * math.exp(chance.gauss(0, spread))


def share(cost, spread, bound_s, runs=40):
    """Share of noisy runs that are found steady within the bound."""
    return sum(warm_up(noisy(cost, spread, seed), bound_s)[1] for seed in range(runs)) / runs


def test_a_first_and_a_second_slow_unit_are_not_in_the_steady_figure():
    """T3: costs 10, 5, 1, 1, ..."""
    costs = lambda index: [10.0, 5.0, 1.0][min(index, 2)]  # noqa: E731
    for bound_s in (30, 60, 1000):
        samples, found = warm_up(costs, bound_s)
        assert found
        assert figure(samples) == 1.0
    samples, found = warm_up(costs, 20)
    assert not found
    assert figure(samples) == 1.0


def test_a_model_that_needs_twenty_warm_ups_gets_them():
    """T3: a plateau that nothing but patience tells from a steady state."""
    samples, found = warm_up(lambda index: 0.003 if index < 20 else 0.001, 2.0)
    assert found
    assert figure(samples) == 0.001


def test_a_slow_decay_is_waited_for():
    samples, found = warm_up(noisy(lambda i: 0.001 * (1 + 3 * math.exp(-i / 30)), 0.02, seed=1), 2.0)
    assert found
    assert figure(samples) == pytest.approx(0.001, rel=0.03)


@pytest.mark.parametrize("unit_s", [0.001, 0.02, 0.12])
def test_a_drift_of_one_per_cent_a_unit_is_never_steady(unit_s):
    """T12"""
    assert not warm_up(lambda index: unit_s * 1.01**index, 2.0)[1]
    assert not warm_up(lambda index: unit_s * 0.99**index, 2.0)[1]


def test_noise_does_not_hide_that_drift_where_units_are_many():
    """With ten or fifteen units in the bound, a noise of 3 % hides it in about half of the runs."""
    drift = lambda unit_s: lambda index: unit_s * 1.01**index  # noqa: E731
    assert share(drift(0.001), 0.10, bound_s=2.0) == 0
    assert share(drift(0.02), 0.03, bound_s=2.0) == 0
    assert 0.2 < share(drift(0.12), 0.03, bound_s=2.0) < 0.8


@pytest.mark.parametrize("spread", [0.01, 0.05, 0.2])
def test_pure_noise_is_called_a_trend_in_one_case_of_ten_at_most(spread):
    for count in (10, 25, 200):
        noise = [noisy(lambda index: 1.0, spread, seed) for seed in range(400)]
        trends = sum(steady.has_trend([cost(i) for i in range(count)]) for cost in noise)
        assert trends / 400 <= 0.125  # 0.1 and a sampling error of 0.015, taken 1.7 times


def test_pure_noise_ends_the_warm_up_as_soon_as_it_may():
    ends = sorted(len(warm_up(noisy(lambda index: 0.02, 0.05, seed), 2.0)[0]) for seed in range(100))
    assert ends[0] == ends[50] == steady.PATIENT_COUNT
    assert ends[95] <= 1.3 * steady.PATIENT_COUNT


@pytest.mark.parametrize("period", [3, 7, 13])
def test_spikes_that_come_again_and_again_are_no_trend(period):
    """T7: autotuning, or a collector."""
    spikes = lambda index: 0.005 if index % period == 0 else 0.001  # noqa: E731
    assert share(spikes, 0.02, bound_s=2.0) == 1
    assert figure(warm_up(spikes, 2.0)[0]) == 0.001


def test_constant_samples_and_one_tick_of_the_clock_are_steady():
    """S3"""
    assert not steady.has_trend([1.0] * 50)
    assert not steady.has_trend([1.0] * 25 + [1.0001] * 25)


def test_a_regular_change_is_a_trend_only_from_one_per_cent_on():
    assert not steady.has_trend([1 + 0.0003 * index for index in range(50)])
    assert steady.has_trend([1 + 0.0006 * index for index in range(50)])


def test_too_few_units_are_never_steady():
    assert not steady.is_steady([1.0] * 9, 9.0, 10.0)
    assert steady.is_steady([1.0] * 10, 10.0, 10.0)


def test_slow_units_are_judged_from_half_of_the_bound_on():
    assert not steady.is_steady([1.0] * 20, 20.0, 60.0)
    assert steady.is_steady([1.0] * 30, 30.0, 60.0)


def test_the_statistic_is_that_of_the_textbook():
    """Without ties z is (S - 1) / sqrt(n(n-1)(2n+5)/18); ties reduce the variance by t(t-1)(2t+5)."""
    assert steady.mann_kendall_z(list(range(10))) == pytest.approx(44 / math.sqrt(125))
    assert steady.mann_kendall_z(list(range(10, 0, -1))) == pytest.approx(-44 / math.sqrt(125))
    assert steady.mann_kendall_z([1, 1, 2, 3]) == pytest.approx(4 / math.sqrt((156 - 18) / 18))


def test_a_long_window_is_judged_by_its_batches_at_bounded_cost(monkeypatch):
    judged = []
    monkeypatch.setattr(steady, "mann_kendall_z", lambda points: judged.append(points) or 0.0)
    steady.has_trend([float(index) for index in range(10007)])
    [points] = judged
    assert 40 <= len(points) <= steady.POINTS
    assert points[-1] - points[0] > 9000
