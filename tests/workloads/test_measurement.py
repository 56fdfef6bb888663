import sys
import types

import numpy
import pytest

from tests.workloads.fakes import FakeFramework, install, make_cell
from workloads import measurement
from workloads.epoch import Epoch
from workloads.fault import Fault
from workloads.subject import Subject


def measure(monkeypatch, framework_class=FakeFramework, **changes):
    breaks = {name: changes.pop(name) for name in list(changes) if name.startswith("break_")}
    install(monkeypatch, **breaks)
    cell = make_cell(**changes)
    framework = framework_class(cell)
    return measurement.measure(cell, framework, 1.5, framework.clock), framework


def test_a_launch_that_computes_later_is_charged_all_of_it(monkeypatch):
    """T1, T2: the device's time is in the samples, and the synchronisation is named."""
    answer, _ = measure(monkeypatch)
    [record] = answer["measures"]
    assert min(record["samples_s"]) == pytest.approx(0.01, rel=1e-3)
    assert max(record["samples_s"]) == pytest.approx(0.01, rel=1e-3)
    assert record["repeats"] >= 5
    assert answer["synchronisation"] == "fake.synchronise"


def test_phases_are_told_apart(monkeypatch):
    answer, framework = measure(monkeypatch)
    phases = answer["phases"]
    [record] = answer["measures"]
    assert phases["import_s"] == 1.5
    assert phases["first_call_s"] == record["first_call_s"] == pytest.approx(0.01, rel=1e-3)
    assert phases["warmup_s"] == record["warmup"]["seconds"]
    spent = phases["setup_s"] + phases["first_call_s"] + phases["warmup_s"] + phases["sampling_s"]
    assert spent == pytest.approx(framework.clock.ns / 1e9, rel=1e-3)


def test_nothing_is_read_from_the_device_while_measuring(monkeypatch):
    """T16: the first losses are read once all is measured, the same number on both sides."""

    class Watched(FakeFramework):
        def read(self, tensor):
            self.read_at = getattr(self, "read_at", self.clock.ns)
            return FakeFramework.read(self, tensor)

    answer, framework = measure(monkeypatch, Watched)
    assert framework.read_at == framework.clock.ns
    assert framework.reads == len(answer["losses"]["values"])
    assert answer["measures"][0]["host_reads"] == 0


def test_the_first_losses_are_those_of_the_trajectory(monkeypatch):
    answer, _ = measure(monkeypatch)
    assert answer["status"] == "measured"
    assert answer["losses"]["holds"]
    assert len(answer["losses"]["values"]) == measurement.KEPT


def test_other_losses_are_a_failure_and_keep_the_figures(monkeypatch):
    answer, _ = measure(monkeypatch, break_loss=lambda loss: loss * 1.001)
    assert answer["status"] == "failed"
    assert answer["cause"]["kind"] == "losses"
    assert answer["measures"]


def test_a_call_of_ten_steps_has_ten_losses(monkeypatch):
    answer, _ = measure(monkeypatch, edition="article", measures=["call"])
    assert answer["measures"][0]["work"]["steps"] == 10
    assert answer["measures"][0]["samples_s"][0] == pytest.approx(0.1, rel=1e-3)
    assert answer["losses"]["holds"]
    # Five calls have 50, of which the trajectory knows the first 30.
    assert len(answer["losses"]["values"]) == len(answer["losses"]["expected"]) == 30


def test_epochs_are_told_one_by_one_and_the_first_stands_apart(monkeypatch):
    """D6"""
    answer, _ = measure_epochs(monkeypatch)
    (record,) = answer["measures"]
    assert record["first_call_s"] == pytest.approx(0.03, rel=1e-3)
    assert record["samples_s"] == pytest.approx([0.01, 0.01], rel=1e-3)
    assert (record["repeats"], record["warmup"]["ended_by"]) == (1, "none")
    assert record["series"]["epoch_s"] == pytest.approx([0.03, 0.01, 0.01], rel=1e-3)


def test_what_epochs_leave_behind_is_read_after_their_time_and_told_by_epoch(monkeypatch):
    """T16"""
    answer, _ = measure_epochs(monkeypatch)
    (record,) = answer["measures"]
    assert record["series"]["loss"] == [3.0, 2.0, 1.0]
    assert record["series"]["waiting_share"] == pytest.approx([0.1, 0.3, 0.3], rel=1e-3)
    # Of the epochs after the first, as the samples are.
    assert record["figures"]["first_batch_s"] == 0.002
    assert record["figures"]["waiting_share"] == pytest.approx(0.3, rel=1e-3)
    assert record["figures"]["construct_s"] == 0.5
    assert record["figures"]["cpu_s_per_image"] >= 0
    assert "images" not in record["figures"]


def test_epochs_that_hand_out_other_images_than_counted_say_how_many(monkeypatch):
    answer, _ = measure_epochs(monkeypatch, images=11)
    assert answer["measures"][0]["figures"]["images"] == 33


def test_what_belongs_to_an_epoch_but_not_to_its_time_comes_after_it(monkeypatch):
    """T13: the validation that an article did not count."""
    kept = []

    def spend(framework):
        framework.clock.spend(5.0)
        return {"validation_accuracy": 0.25}

    answer, _ = measure_epochs(monkeypatch, after=spend, keep=kept.append)
    (record,) = answer["measures"]
    assert record["series"]["epoch_s"] == pytest.approx([0.03, 0.01, 0.01], rel=1e-3)
    assert record["series"]["validation_accuracy"] == [0.25, 0.25, 0.25]
    assert record["figures"]["best_validation_accuracy"] == 0.25
    assert [(one["measure"], one["epoch"], one["loss"]) for one in kept] == [
        ("train_epoch", 1, 3.0),
        ("train_epoch", 2, 2.0),
        ("train_epoch", 3, 1.0),
    ]


def test_training_that_diverges_is_told_and_its_figures_are_kept(monkeypatch):
    """R1: not a number is no number of a result."""
    answer, _ = measure_epochs(monkeypatch, losses=(3.0, float("inf"), float("nan")))
    assert answer["status"] == "measured"
    assert answer["measures"][0]["series"]["loss"] == [3.0, None, None]
    assert "training diverged: a loss is not finite" in answer["warnings"]


def test_each_measure_begins_at_the_canonical_start(monkeypatch):
    answer, framework = measure_epochs(monkeypatch)
    assert answer["measures"][0]["host_reads"] == 7
    assert framework.started == ["train_epoch"]


def test_memory_is_read_under_load_and_what_outlives_the_measuring_is_ended(monkeypatch):
    """T14: loader workers, whose memory no counter of the process holds."""
    answer, framework = measure_epochs(monkeypatch)
    assert answer["memory"]["peak_tree_bytes"] > 2**20
    assert framework.closed == 1


def measure_epochs(monkeypatch, images=10, losses=(3.0, 2.0, 1.0), after=None, keep=None):
    """Measure three epochs of ten images, the first slow."""
    costs, losses = iter([0.03, 0.01, 0.01]), iter(losses)

    def run(framework):
        cost = next(costs)
        framework.launch(cost)
        waits = {0.03: 0.003, 0.01: 0.003}
        first_batch_s = 0.2 if cost == 0.03 else 0.002
        return Epoch(
            numpy.zeros(1),
            images,
            {"loss": next(losses)},
            {"first_batch_s": first_batch_s},
            waits[cost],
            after and (lambda: after(framework)),
        )

    def build(cell, framework, dtype):
        def close():
            framework.closed = getattr(framework, "closed", 0) + 1

        framework.started = []
        return Subject(
            units={"train_epoch": lambda: run(framework)},
            host_reads={"train_epoch": 7},
            start=lambda: framework.started.append("train_epoch"),
            losses=lambda value: [],
            figures={"construct_s": 0.5},
            under_load=lambda read: read(),
            close=close,
        )

    module = types.SimpleNamespace(build=build, count_work=lambda parameters, name: {"images": 10.0})
    for name in ("workloads.pictures", "workloads.pictures.fake"):
        monkeypatch.setitem(sys.modules, name, module)
    parameters = dict(make_cell()["parameters"], epochs=3)
    cell = make_cell(workload="pictures", measures=["train_epoch"], parameters=parameters)
    framework = FakeFramework(cell)
    return measurement.measure(cell, framework, 0.5, framework.clock, keep), framework


def test_each_measure_has_the_budget(monkeypatch):
    class Uneven(FakeFramework):
        def launch(self):
            FakeFramework.launch(self, 0.01 + 0.001 * (self.clock.ns % 7))

    protocol = dict(make_cell()["protocol"], budget_s=2.0)
    answer, _ = measure(monkeypatch, Uneven, measures=["step", "call"], protocol=protocol)
    seconds = [sum(record["samples_s"]) * record["repeats"] for record in answer["measures"]]
    assert seconds == [pytest.approx(2.0, rel=0.1), pytest.approx(2.0, rel=0.1)]
    assert [record["stopped_by"] for record in answer["measures"]] == ["budget", "budget"]


def test_work_done_elsewhere_than_asked_is_a_fault(monkeypatch):
    """C2: the device is read from what was computed, not from what was asked."""

    class Strayed(FakeFramework):
        def device_of(self, tensor):
            return "cpu"

    with pytest.raises(Fault, match="cuda:0 was asked for and cpu computed"):
        measure(monkeypatch, Strayed, device="cuda:0")


def test_threads_that_a_framework_did_not_take_are_a_fault(monkeypatch):
    """T11"""

    class Deaf(FakeFramework):
        def settings(self):
            return {"threads_intra_op": 64, "threads_inter_op": 1}

    with pytest.raises(Fault, match="fake uses 64 intra-op threads where 1 were set"):
        measure(monkeypatch, Deaf)


def test_settings_that_change_while_measuring_are_a_fault(monkeypatch):
    """T10: a timer or a library that sets threads for the process is found."""

    class Moody(FakeFramework):
        def device_of(self, tensor):
            self.threads["inter_op"] = 9
            return self.place

    with pytest.raises(Fault, match="inter-op threads"):
        measure(monkeypatch, Moody)


def test_a_budget_too_short_for_the_samples_is_a_warning(monkeypatch):
    limits = dict(make_cell()["protocol"], budget_s=0.06)
    answer, _ = measure(monkeypatch, protocol=limits)
    assert len(answer["measures"][0]["samples_s"]) < limits["min_samples"]
    assert answer["warnings"] == ["the budget was too short for 5 samples"]


def test_more_threads_than_cpus_are_a_warning(monkeypatch):
    answer, _ = measure(monkeypatch, threads={"intra_op": 10**4, "inter_op": 1})
    assert answer["warnings"][0].startswith("10000 threads on")
