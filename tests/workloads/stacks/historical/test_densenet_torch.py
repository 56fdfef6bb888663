"""The DenseNet match in PyTorch 1, whole and with each thing broken that matters."""

import numpy
import pytest
import torch

from tests.workloads import densenet_cells
from tests.workloads.proofs import list_failing
from tests.workloads.stacks.broken.densenet_torch import BREAKS
from workloads import densenet, measurement, proof
from workloads.densenet import augment, torch_data, torch_net
from workloads.densenet import torch as module

IS_FIRST = torch.__version__.startswith("1.0")


def list_breaks():
    """List what can be broken here: there is an Adam without coupled L2 from 1.2 on, and where Adam is helped
    to put its epsilon elsewhere, the value that it is made with is of no account."""
    absent = set() if hasattr(torch.optim, "AdamW") else {"P3 decoupled"}
    if torch_net.EPSILON_AT == "uncorrected":
        absent |= {name for name in BREAKS if name.startswith("P9")}
    return sorted(set(BREAKS) - absent)


@pytest.fixture
def make(make_densenet):
    return lambda variant="torch-autotune-off", **changes: make_densenet(variant, "torch", "torch", **changes)


@pytest.fixture
def prove(make, torch_framework):
    return lambda **changes: proof.prove(make(purpose="proof", **changes), torch_framework)


@pytest.mark.parametrize("variant", ["torch-autotune-off", "torch-no-metrics"])
@pytest.mark.parametrize("edition", ["fair", "article"])
def test_every_variant_does_the_same_work(prove, variant, edition):
    proved = prove(variant=variant, edition=edition)
    assert list_failing(proved) == set()
    kinds = {check["name"].partition("[")[0] for check in proved["checks"]}
    assert kinds == {"loss", "gradient", "statistics", "change", "parameter_count", "count"}


@pytest.mark.parametrize("broken", list_breaks())
def test_a_broken_side_fails_its_proof(prove, monkeypatch, broken):
    monkeypatch.setattr(*BREAKS[broken])
    assert list_failing(prove())


@pytest.mark.skipif(not IS_FIRST, reason="Adam of 1.3 has its epsilon where today's has it")
def test_adam_of_1_0_has_its_epsilon_elsewhere_in_the_article_and_is_helped_in_fair(
    prove, make, torch_framework, monkeypatch
):
    """P9"""

    def place(edition):
        settings = module.build(make(edition=edition), torch_framework, "float32").settings
        return settings["adam_epsilon_at"]

    assert (place("article"), place("fair")) == ("uncorrected", "corrected")
    monkeypatch.setattr(torch_net.Trainer, "step_corrected", lambda self: self.optimiser.step())
    assert list_failing(prove())


def test_the_articles_pipeline_hands_out_every_image_and_crops_and_turns_some():
    images = numpy.arange(40 * 3072).astype("uint8").reshape(40, 32, 32, 3)
    labels = numpy.arange(40, dtype="int64") % 10

    class Data(object):
        train, validate, seed = (images, labels), (images[:12], labels[:12]), 0

    batches = torch_data.ArticleBatches(densenet_cells.PARAMETERS, Data)
    first, second = (module.join(batches.train()) for _ in range(2))
    assert (first[0].shape, first[0].dtype) == ((40, 32, 32, 3), "float32")
    assert sorted(first[1]) == sorted(second[1]) == sorted(labels)
    assert not numpy.array_equal(first[0], second[0])
    found = module.join(batches.validate())[0]
    assert numpy.abs(found - augment.normalise(images[:12])).max() < 1e-6


@pytest.mark.parametrize(
    ("edition", "measures"),
    [("fair", ["step", "train_validate_epoch"]), ("article", ["article_epoch"])],
)
def test_a_measured_launch_has_its_epochs_with_their_series(make, torch_framework, edition, measures):
    limits = dict(make()["protocol"], budget_s=1e5, warmup_s=0.1, min_samples=2, max_samples=2)
    cell = make(edition=edition, measures=measures, protocol=limits, parameters={"epochs": 2})
    answer = measurement.measure(cell, torch_framework, 0.0)
    assert answer["status"] == "measured"
    # Of an epoch no loss is the trajectory's.
    assert answer["losses"] is None if edition == "article" else answer["losses"]["error"] < 1e-3
    record = answer["measures"][-1]
    assert len(record["series"]["validation_accuracy"]) == 2
    assert record["series"]["learning_rate"] == pytest.approx(densenet.find_rates(cell["parameters"]))
    assert answer["settings"]["layout"] == "NCHW"
