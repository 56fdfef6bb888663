import math
import random

from workloads import interval


def test_the_ranks_are_those_of_published_tables():
    table = {6: (1, 6), 9: (2, 8), 12: (3, 10), 15: (4, 12), 17: (5, 13), 20: (6, 15), 100: (40, 61)}
    assert {count: interval.median_ranks(count) for count in table} == table


def test_the_interval_holds_the_median_in_95_of_100_cases():
    chance = random.Random(3)
    for count in (6, 20, 71, 150):
        lower, upper = interval.median_ranks(count)
        held = 0
        for _ in range(1000):
            values = sorted(chance.expovariate(1) for _ in range(count))
            held += values[lower - 1] <= math.log(2) <= values[upper - 1]
        assert held >= 935  # 950 less two standard errors


def test_five_samples_are_never_narrow_even_if_equal():
    assert not interval.is_narrow([1.0] * 5, 0.5)
    assert interval.is_narrow([1.0] * 6, 0.5)
