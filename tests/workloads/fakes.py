"""A framework that is none: numpy on a device that computes at once or later, by a clock that only it
moves. Lets everything of the ground floor but the real frameworks run without them."""

import sys
import types

import numpy

from workloads import ceiling, mlp
from workloads.frameworks import gpu_index
from workloads.mlp import reference
from workloads.subject import Subject

PARAMETERS = {
    "batch": 256,
    "features": 250,
    "hidden": 250,
    "outputs": 1,
    "learning_rate": 1e-4,
    "steps_per_call": 10,
}


class FakeClock(object):
    """Moves by what is spent, and by 1 ns with each reading, as no clock stands still."""

    def __init__(self):
        self.ns = 0

    def now_ns(self):
        self.ns += 1
        return self.ns

    def spend(self, seconds):
        self.ns += int(seconds * 1e9)

    def resolution_ns(self):
        return 1


class FakeFramework(object):
    """Takes 10 ms a unit; the work waits in a queue until ``synchronise``."""

    name = "fake"
    synchronisation = "fake.synchronise"
    older = {}  # type: dict

    def __init__(self, cell, clock=None):
        self.cell = cell
        self.clock = clock or FakeClock()
        self.queued_s = 0.0
        self.place = cell["device"]
        self.index = gpu_index(cell)
        self.threads = dict(cell["threads"])
        self.reads = 0
        self.warnings = []

    def launch(self, seconds=0.01):
        self.queued_s += seconds

    def synchronise(self):
        self.clock.spend(self.queued_s)
        self.queued_s = 0.0

    def device_of(self, tensor):
        return self.place

    def read(self, tensor):
        self.reads += 1
        return numpy.asarray(tensor)

    def describe_device(self):
        return {"model": "fake", "memory_bytes": 1}

    def peak_device_bytes(self):
        return None

    def settings(self):
        return {
            "threads_intra_op": self.threads["intra_op"],
            "threads_inter_op": self.threads["inter_op"],
        }


def make_cell(**changes):
    cell = {
        "schema": 1,
        "id": "mlp_fair_fake_host_host_cpu_fp32",
        "run": "run",
        "purpose": "measure",
        "role": "baseline",
        "workload": "mlp",
        "edition": "fair",
        "variant": "fake",
        "framework": "fake",
        "module": "fake",
        "stack": "host",
        "runner": "host",
        "device": "cpu",
        "precision": "fp32",
        "parameters": dict(PARAMETERS),
        "measures": ["step"],
        "seed": 0,
        "block": 0,
        "position": 0,
        "threads": {"intra_op": 1, "inter_op": 1},
        "protocol": {
            "budget_s": 1.0,
            "warmup_s": 1.0,
            "sample_s": 0.05,
            "min_samples": 5,
            "max_samples": 100,
            "relative_width": 0.005,
        },
        "tolerances": {"gradients": 1e-8, "update": 1e-8, "losses": 1e-5, "dtype": "float64"},
        "identity": {"workload_sha256": "0" * 64},
        "cache": "/nonexistent",
        "cache_state": "fresh",
        "baseline": "fake",
        "data": None,
    }
    cell.update(changes)
    return cell


def make_ceiling_cell(framework, cache):
    """A cell of the ceiling with units small enough to be checked."""
    return make_cell(
        framework=framework,
        workload="ceiling",
        role="ceiling",
        measures=["matmul_64", "copy"],
        parameters={"copy_bytes": 4096},
        threads={"intra_op": 2, "inter_op": 2},
        cache=cache,
    )


def check_ceiling(subject):
    """See that a ceiling's units do the work that is counted."""
    a, b = ceiling.canonical(64)
    product = numpy.asarray(subject.units["matmul_64"]())
    numpy.testing.assert_allclose(product, a.dot(b), rtol=1e-3, atol=1e-4)
    copied = subject.units["copy"]()
    assert float(subject.losses(copied)[0]) == 1.0
    assert numpy.asarray(copied).sum() == 1024


def install(monkeypatch, break_step=None, break_loss=None):
    """Put a numpy implementation of the MLP where a framework's module is looked for.

    ``break_step`` changes the gradients by name before they are applied, ``break_loss`` the loss.
    """

    def build(cell, framework, dtype):
        parameters = cell["parameters"]
        weights, x, y = mlp.canonical(parameters)

        def differentiate():
            loss, gradients = reference.differentiate(weights, x, y)
            return (break_loss(loss) if break_loss else loss), gradients

        trained = []

        def step():
            framework.launch()
            # Only the first steps are looked at, and numpy's own time is not what is measured.
            if len(trained) >= reference.STEPS:
                return trained[-1]
            loss, gradients = differentiate()
            if break_step:
                gradients = break_step(gradients)
            for name in weights:
                weights[name] = weights[name] - parameters["learning_rate"] * gradients[name]
            trained.append(loss)
            return loss

        return Subject(
            units={"step": step, "call": lambda: [step() for _ in range(parameters["steps_per_call"])]},
            losses=lambda value: value if isinstance(value, list) else [value],
            gradients=differentiate,
            parameters=lambda: {name: value.copy() for name, value in weights.items()},
            settings={"compiler": "none"},
        )

    module = types.ModuleType("workloads.mlp.fake")
    module.build = build
    monkeypatch.setitem(sys.modules, "workloads.mlp.fake", module)
