import gc
import math
import random
import threading

import pytest

from workloads import protocol
from workloads.clock import Clock, ClockError

LIMITS = {
    "budget_s": 10.0,
    "warmup_s": 1.0,
    "sample_s": 0.01,
    "min_samples": 5,
    "max_samples": 40,
    "relative_width": 0.01,
}


class Device(Clock):
    """A clock, and a device whose work is queued at once and done in `synchronise`.

    Only work and readings move the clock; a reading takes a nanosecond.
    """

    def __init__(self):
        self.ns = 0
        self.queued_ns = 0
        self.synchronised = 0

    def now_ns(self):
        self.ns += 1
        return self.ns

    def resolution_ns(self):
        return 1

    def launch(self, cost_ns):
        self.queued_ns += cost_ns

    def synchronise(self):
        self.ns += self.queued_ns
        self.queued_ns = 0
        self.synchronised += 1


def measure(device, unit, keep=1, **changes):
    return protocol.measure(unit, device.synchronise, dict(LIMITS, **changes), device, keep)


def steps(device, cost_ns):
    """A unit that launches ``cost_ns(calls so far)``; it counts its calls."""

    def unit():
        unit.calls += 1
        device.launch(cost_ns(unit.calls - 1))
        return unit.calls - 1

    unit.calls = 0
    return unit


def test_a_sample_holds_the_work_launched_in_it_on_an_asynchronous_device():
    """T1: at the stop."""
    device = Device()
    record, _ = measure(device, steps(device, lambda call: 1360000))
    assert record["samples_s"] == pytest.approx([1.36e-3] * len(record["samples_s"]), rel=1e-6)
    assert record["warmup"]["samples_s"][0] == pytest.approx(1.36e-3, rel=1e-6)
    assert record["first_call_s"] == pytest.approx(1.36e-3, rel=1e-6)


def test_a_sample_holds_no_work_launched_before_it():
    """T1: at the start."""
    device = Device()
    device.launch(10**12)
    assert protocol.time_units(lambda: device.launch(500), device.synchronise, 4, device) == 2001
    device.launch(10**12)
    record, _, _ = protocol.measure_epochs(
        lambda: device.launch(500), device.synchronise, 2, device, budget_s=60
    )
    assert record["first_call_s"] == record["samples_s"][0] == 501e-9


def test_the_device_is_synchronised_twice_a_sample_whatever_the_repeats():
    device = Device()
    for repeats in (1, 7, 1000):
        device.synchronised = 0
        protocol.time_units(lambda: device.launch(10), device.synchronise, repeats, device)
        assert device.synchronised == 2


def test_slow_first_units_are_in_the_warm_up_and_not_in_the_samples():
    """T3: costs 10, 5, 1, 1, ..."""
    device = Device()
    record, _ = measure(device, steps(device, lambda call: [10, 5, 1][min(call, 2)] * 10**6))
    assert record["first_call_s"] == pytest.approx(10e-3, rel=1e-6)
    assert record["warmup"]["samples_s"][:2] == pytest.approx([5e-3, 1e-3], rel=1e-5)
    assert record["warmup"]["ended_by"] == "steady"
    assert record["samples_s"] == pytest.approx([1e-3] * len(record["samples_s"]), rel=1e-6)


def test_twenty_warm_ups_are_made_where_they_are_needed():
    """T3"""
    device = Device()
    record, _ = measure(device, steps(device, lambda call: 3 * 10**6 if call < 20 else 10**6))
    assert record["warmup"]["ended_by"] == "steady"
    assert max(record["samples_s"]) == pytest.approx(1e-3, rel=1e-6)


def test_a_lazy_compiler_shows_in_the_first_call_and_nowhere_else():
    """T4: wrapping costs 2.45 s, the first call compiles for 51 s."""
    device = Device()
    device.ns += 2450000000
    compiled = []

    def unit():
        if not compiled:
            compiled.append(True)
            device.ns += 51 * 10**9
        device.launch(10**6)

    record, _ = measure(device, unit)
    assert record["first_call_s"] == pytest.approx(51.001, rel=1e-6)
    assert max(record["warmup"]["samples_s"] + record["samples_s"]) == pytest.approx(1e-3, rel=1e-5)


def traced_epoch(device, samples, batch, drop_last=False):
    """An epoch of a compiler that traces each new shape for 50 ms; counts traces and samples."""

    def unit():
        seen = 0
        for start in range(0, samples, batch):
            size = min(batch, samples - start)
            if drop_last and size < batch:
                continue
            if size not in unit.traces:
                unit.traces.append(size)
                device.ns += 50 * 10**6
            device.launch(size * 10**6)
            seen += size
        return seen

    unit.traces = []
    return unit


def test_a_ragged_last_batch_is_traced_in_the_first_epoch_which_stands_apart():
    """T6, D6: 10 samples in batches of 4."""
    device = Device()
    ragged, even = traced_epoch(device, 10, 4), traced_epoch(device, 10, 5)
    record, seen, _ = protocol.measure_epochs(ragged, device.synchronise, 4, device, budget_s=60)
    other, also_seen, _ = protocol.measure_epochs(even, device.synchronise, 4, device, budget_s=60)
    assert seen == also_seen == [10] * 4
    assert ragged.traces == [4, 2]
    assert record["first_call_s"] - other["first_call_s"] == pytest.approx(0.05)
    assert record["samples_s"] == other["samples_s"] == pytest.approx([0.01] * 3, rel=1e-6)


def test_epochs_have_neither_warm_up_nor_calibration():
    device = Device()
    record, _, _ = protocol.measure_epochs(
        lambda: device.launch(10), device.synchronise, 3, device, budget_s=60
    )
    assert record["warmup"] == {"samples_s": [], "ended_by": "none", "seconds": 0}
    assert (record["repeats"], record["stopped_by"], len(record["samples_s"])) == (1, "count", 2)


def test_a_single_epoch_is_both_the_first_call_and_the_sample():
    device = Device()
    record, values, seconds = protocol.measure_epochs(
        lambda: device.launch(10), device.synchronise, 1, device, budget_s=60
    )
    assert record["samples_s"] == [record["first_call_s"]] == seconds
    assert len(values) == 1


def test_no_epoch_is_begun_that_would_pass_the_budget_and_one_after_the_first_always_is():
    device = Device()
    second = 10**9
    for budget_s, epochs, stopped_by in ((0.1, 2, "budget"), (3.5, 4, "budget"), (60, 9, "count")):
        record, _, seconds = protocol.measure_epochs(
            lambda: device.launch(second), device.synchronise, 9, device, budget_s
        )
        assert (len(seconds), record["stopped_by"]) == (epochs, stopped_by)


def test_epochs_timed_as_a_whole_are_one_sample_the_first_among_them():
    """The article's stopwatch: from before the first epoch to after the last, whatever the budget."""
    device = Device()
    costs = iter([4 * 10**9, 10**9, 10**9])
    record, values, seconds = protocol.measure_epochs(
        lambda: device.launch(next(costs)), device.synchronise, 3, device, 0.1, whole=True
    )
    assert record["samples_s"] == pytest.approx([2.0], rel=1e-6)
    assert (record["repeats"], record["stopped_by"], len(values)) == (3, "count", 3)
    assert record["first_call_s"] == seconds[0] == pytest.approx(4.0, rel=1e-6)


def test_a_step_that_slows_by_one_per_cent_a_call_is_never_called_steady():
    """T12: the launch says that its warm-up was ended by the bound."""
    device = Device()
    record, _ = measure(device, steps(device, lambda call: int(10**7 * 1.01**call)))
    assert record["warmup"]["ended_by"] == "bound"


def test_identical_steps_on_a_device_that_slows_differ_by_no_more_than_chance_between_blocks():
    """T12: within a block the second launch is always slower, and the order is random."""
    device, heat = Device(), [1.0]

    def unit():
        heat[0] *= 1.01
        device.launch(int(10**7 * heat[0]))

    def launch():
        record, _ = measure(device, unit, warmup_s=0.1, sample_s=1e-3, max_samples=6)
        return sorted(record["samples_s"])[3]

    chance, logs = random.Random(2), []
    for _ in range(20):
        first, second = launch(), launch()
        heat[0] = 1.0
        logs.append(math.log(second / first) * chance.choice((1, -1)))
    mean = sum(logs) / len(logs)
    error = math.sqrt(sum((log - mean) ** 2 for log in logs) / (len(logs) - 1) / len(logs))
    assert min(abs(log) for log in logs) > 0.05
    assert abs(mean) < 2.09 * error  # t, 19 degrees of freedom


@pytest.mark.parametrize("cost_ns", [50, 999, 10**6, 3 * 10**6, 9999999])
def test_repeats_make_a_sample_last_as_long_as_asked(cost_ns):
    device = Device()
    record, _ = measure(device, steps(device, lambda call: cost_ns), warmup_s=0.01)
    assert 0.01 <= record["repeats"] * record["samples_s"][0] < 0.01 * 1.2 + cost_ns / 1e9


def test_every_sample_lasts_long_enough_in_spite_of_noise():
    device, chance = Device(), random.Random(4)
    unit = steps(device, lambda call: chance.randint(90000, 110000))
    record, _ = measure(device, unit, relative_width=1e-9)
    assert len(record["samples_s"]) == LIMITS["max_samples"]
    assert min(record["samples_s"]) * record["repeats"] >= 0.01


def test_one_unit_that_was_too_fast_does_not_set_the_repeats():
    device = Device()
    record, _ = measure(device, steps(device, lambda call: 10**4 if call == 1 else 10**6))
    assert record["repeats"] == 11


def test_a_unit_longer_than_a_sample_is_not_repeated():
    device = Device()
    unit = steps(device, lambda call: 20 * 10**6)
    record, _ = measure(device, unit)
    assert record["repeats"] == 1
    assert unit.calls == 1 + len(record["warmup"]["samples_s"]) + len(record["samples_s"])


def test_calibration_is_not_misled_by_a_synchronisation_that_costs_more_than_the_unit():
    device = Device()

    def synchronise():
        device.synchronise()
        device.ns += 10**5

    unit = steps(device, lambda call: 100)
    record, _ = protocol.measure(unit, synchronise, LIMITS, device)
    assert record["warmup"]["samples_s"][-1] > 1e-4
    assert record["repeats"] * record["samples_s"][0] >= 0.01


def test_a_sample_lasts_a_thousand_ticks_of_a_coarse_clock():
    class Coarse(Device):
        def now_ns(self):
            return Device.now_ns(self) // 10**6 * 10**6

        def resolution_ns(self):
            return 10**6

    device = Coarse()
    record, _ = measure(device, steps(device, lambda call: 2 * 10**6))
    assert record["repeats"] * record["samples_s"][0] >= 1


@pytest.mark.parametrize("seed", range(10))
def test_what_is_recorded_adds_up_to_the_time_that_passed(seed):
    chance, device = random.Random(seed), Device()
    scale = 10 ** chance.randint(4, 8)
    unit = steps(device, lambda call: chance.randint(scale // 2, scale))
    record, _ = measure(device, unit, budget_s=chance.uniform(0.01, 3), warmup_s=chance.uniform(0, 2))
    sampled = sum(record["samples_s"]) * record["repeats"]
    total = record["first_call_s"] + record["warmup"]["seconds"] + sampled
    assert total == pytest.approx(device.ns / 1e9, rel=1e-4)
    assert sum(record["warmup"]["samples_s"]) <= record["warmup"]["seconds"]


@pytest.mark.parametrize(("cost_s", "units"), [(12.0, 1), (0.45, 2), (0.3, 3)])
def test_the_warm_up_makes_one_unit_at_least_and_does_not_begin_one_beyond_its_bound(cost_s, units):
    device = Device()
    record, _ = measure(device, steps(device, lambda call: int(cost_s * 1e9)), budget_s=0.1)
    assert len(record["warmup"]["samples_s"]) == units
    assert record["warmup"]["ended_by"] == "bound"


def test_sampling_ends_once_the_median_is_known_narrowly():
    device, chance = Device(), random.Random(1)
    record, _ = measure(device, steps(device, lambda call: 10**7 + chance.randint(0, 50000)))
    assert record["stopped_by"] == "narrow"
    assert len(record["samples_s"]) == 6


def test_no_fewer_than_the_least_samples_are_taken_however_narrow():
    device = Device()
    record, _ = measure(device, steps(device, lambda call: 10**7), min_samples=20)
    assert (record["stopped_by"], len(record["samples_s"])) == ("narrow", 20)


def test_sampling_ends_at_the_most_samples():
    device, chance = Device(), random.Random(1)
    record, _ = measure(device, steps(device, lambda call: chance.randint(10**7, 10**8)))
    assert record["stopped_by"] == "count"
    assert len(record["samples_s"]) == LIMITS["max_samples"]


def test_sampling_ends_before_the_sample_that_would_pass_the_budget():
    device = Device()
    record, _ = measure(device, steps(device, lambda call: 10**9 + call % 2 * 10**8), budget_s=8.9)
    assert record["stopped_by"] == "budget"
    assert len(record["samples_s"]) == 8


@pytest.mark.parametrize(("unit_s", "samples"), [(1, 5), (2, 5), (3, 3), (12, 1)])
def test_the_least_samples_may_take_the_budget_twice_and_no_more(unit_s, samples):
    device = Device()
    record, _ = measure(device, steps(device, lambda call: unit_s * 10**9), budget_s=5.01)
    assert record["stopped_by"] == "budget"
    assert len(record["samples_s"]) == samples


def test_the_first_values_are_kept_and_no_more():
    device = Device()
    _, values = measure(device, steps(device, lambda call: 10**6), keep=3)
    assert values == [0, 1, 2]
    device = Device()
    _, values = measure(device, steps(device, lambda call: 12 * 10**9), keep=5)
    assert values == [0, 1]


@pytest.mark.parametrize("elapsed", [0, -5, float("nan"), float("inf")])
def test_a_duration_that_cannot_be_is_an_error(elapsed):
    class Broken(Device):
        def now_ns(self):
            self.ns += elapsed
            return self.ns

    device = Broken()
    with pytest.raises(ClockError):
        measure(device, lambda: None)
    with pytest.raises(ClockError):
        protocol.measure_epochs(lambda: None, device.synchronise, 2, device, budget_s=60)
    assert gc.isenabled()


def test_the_garbage_collector_waits_during_a_sample_and_collects_after_it():
    class Node(object):
        alive = 0

        def __init__(self):
            Node.alive += 1
            self.itself = self

        def __del__(self):
            Node.alive -= 1

    device, states, alive = Device(), [], []

    def unit():
        states.append(gc.isenabled())
        alive.append(Node.alive)
        Node()
        device.launch(10**8)

    protocol.time_units(unit, device.synchronise, 3, device)
    assert states == [False] * 3
    assert alive == [0, 1, 2]
    assert Node.alive == 0
    assert gc.isenabled()
    measure(device, unit)
    assert max(alive[3:]) == 0  # none of the first call's is left to the warm-up


def test_a_collector_that_was_off_stays_off():
    device = Device()
    gc.disable()
    try:
        measure(device, steps(device, lambda call: 10**7))
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_exception_of_the_unit_comes_through_and_leaves_the_collector_on():
    device = Device()

    def unit():
        device.launch(10**6)
        if device.ns > 10**7:
            raise MemoryError("on the device")

    with pytest.raises(MemoryError, match="on the device"):
        measure(device, unit)
    assert gc.isenabled()


def test_everything_happens_in_the_calling_thread():
    """T10: frameworks keep thread counts, streams and contexts by thread."""
    device, threads = Device(), set()

    def unit():
        threads.add(threading.get_ident())
        device.launch(10**6)

    def synchronise():
        threads.add(threading.get_ident())
        device.synchronise()

    protocol.measure(unit, synchronise, LIMITS, device)
    assert threads == {threading.get_ident()}


class ManyAtOnce:
    """A unit whose own loop drives it, such as Keras's ``fit``: 10 ms a step, and 3 ms a call."""

    def __init__(self, device):
        self.device, self.calls = device, []

    def __call__(self):
        return self.many(1)

    def many(self, count):
        self.calls.append(count)
        self.device.launch(count * 10000000 + 3000000)


def test_a_unit_that_does_many_at_once_is_asked_for_a_whole_sample():
    """P6: what its loop costs by itself is in a sample once."""
    device = Device()
    unit = ManyAtOnce(device)
    record, _ = measure(device, unit, sample_s=0.1)
    repeats = record["repeats"]
    assert repeats >= 10
    assert unit.calls[0] == 1
    assert unit.calls[-1] == repeats
    assert record["first_call_s"] == pytest.approx(0.013, rel=1e-6)
    assert record["samples_s"][0] == pytest.approx(0.01 + 0.003 / repeats, rel=1e-6)


def test_epochs_are_told_as_they_end_and_the_telling_is_in_no_ones_time():
    device, told = Device(), []

    def tell(value, seconds):
        told.append((value, round(seconds, 6)))
        device.ns += 10**9

    unit = steps(device, lambda call: 10**7)
    record, values, seconds = protocol.measure_epochs(
        unit, device.synchronise, 3, device, budget_s=60, tell=tell
    )
    assert told == [(0, 0.01), (1, 0.01), (2, 0.01)]
    assert values == [0, 1, 2]
    assert seconds == pytest.approx([0.01] * 3, rel=1e-5)
    assert record["stopped_by"] == "count"
