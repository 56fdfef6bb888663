"""The DenseNet match in PyTorch, whole and with each thing broken that matters."""

import copy

import numpy
import pytest
import torch

from tests.workloads import densenet_cells
from tests.workloads.proofs import list_failing
from tests.workloads.stacks.broken.densenet_torch import BREAKS, with_adam
from workloads import __main__ as main
from workloads import content, densenet, frameworks, measurement, proof
from workloads.densenet import augment, plan, recipe, reference, torch_data, torch_net
from workloads.densenet import torch as module
from workloads.fault import Fault

# What is compiled takes a minute; each smoke run proves it.
VARIANTS = ("torch-autotune-off", "torch-channels-last", "torch-no-metrics")


@pytest.fixture
def make(tmp_path_factory):
    folder = tmp_path_factory.getbasetemp() / "cifar"
    folder.mkdir(exist_ok=True)

    def make_it(variant="torch-autotune-off", **changes):
        return densenet_cells.make(folder, variant, "torch", "torch", **changes)

    return make_it


@pytest.fixture
def prove(make, framework):
    return lambda **changes: proof.prove(make(purpose="proof", **changes), framework)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("edition", ["fair", "article"])
def test_every_variant_does_the_same_work(prove, variant, edition):
    proved = prove(variant=variant, edition=edition)
    assert list_failing(proved) == set()
    assert max(check["error"] for check in proved["checks"]) < 1e-10
    kinds = {check["name"].partition("[")[0] for check in proved["checks"]}
    assert kinds == {"loss", "gradient", "statistics", "change", "parameter_count", "count"}


def test_the_full_net_does_the_same_work(prove):
    """On the plan of 121 layers, in the batch of the quick profile."""
    assert list_failing(prove(parameters=reference.SIZES[1])) == set()


@pytest.mark.parametrize("broken", sorted(BREAKS))
def test_a_broken_side_fails_its_proof(prove, monkeypatch, broken):
    """P1, P2, P3, P4, P9"""
    monkeypatch.setattr(*BREAKS[broken])
    assert list_failing(prove())


@pytest.mark.parametrize("name", ["stem.conv.weight", "block2.layer1.norm1.bias", "classifier.bias"])
def test_a_broken_initial_value_fails_the_proof(prove, monkeypatch, name):
    """P5"""
    densenet_cells.break_initial_value(monkeypatch, name)
    assert list_failing(prove())


def test_a_dropped_bias_that_changes_no_output_is_found_by_the_count(prove, monkeypatch):
    """P8, P10: its gradient is nothing but rounding, so that only the count of parameters tells."""
    real = torch.nn.Conv2d
    monkeypatch.setattr(torch.nn, "Conv2d", lambda *args, **said: real(*args, **dict(said, bias=False)))
    shapes = plan.find_shapes
    monkeypatch.setattr(
        plan,
        "find_shapes",
        lambda parameters: {k: v for k, v in shapes(parameters).items() if not plan.is_silent(k)},
    )
    assert list_failing(prove()) >= {"parameter_count"}


def test_silent_biases_that_walk_at_random_change_nothing_that_is_judged(prove, monkeypatch):
    """P10: Adam makes full steps of the rounding in their gradients."""
    real = torch_net.Trainer.train

    def train(self, images, labels):
        result = real(self, images, labels)
        with torch.no_grad():
            for name, parameter in self.net.named_parameters():
                if plan.is_silent(name):
                    parameter.add_(torch.randn_like(parameter), alpha=1e-3)
        return result

    monkeypatch.setattr(torch_net.Trainer, "train", train)
    assert list_failing(prove()) == set()


def test_a_schedule_that_drops_elsewhere_is_found(prove, monkeypatch):
    real = densenet.find_rates
    monkeypatch.setattr(
        densenet, "find_rates", lambda parameters: real(dict(parameters, milestones=[0.5, 0.9]))
    )
    assert list_failing(prove()) == {"count[other learning rates]"}


@pytest.mark.parametrize(
    ("broken", "make_wrong"),
    [
        ("no flips", lambda choices: setattr(choices, "flipped", choices.flipped & False)),
        ("rows for columns", lambda choices: setattr(choices, "rows", choices.columns)),
        ("another image", lambda choices: setattr(choices, "images", choices.images[::-1].copy())),
    ],
)
def test_augmentation_that_does_something_else_is_found(prove, monkeypatch, broken, make_wrong):
    """The same random choices, injected on both sides, must make the same images."""
    real = torch_data.Batches.make

    def make(self, choices):
        other = copy.copy(choices)
        make_wrong(other)
        return real(self, other)

    monkeypatch.setattr(torch_data.Batches, "make", make)
    assert list_failing(prove()) == {"count[other values of training images]"}


def test_another_normalisation_is_found(prove, monkeypatch):
    real = torch_data.Batches.normalise
    monkeypatch.setattr(torch_data.Batches, "normalise", lambda self, images: real(self, images) * 0.999)
    assert list_failing(prove()) == {
        "count[other values of training images]",
        "count[other values of validation images]",
    }


def test_the_articles_pipeline_hands_out_every_image_and_crops_and_turns_some(make, framework):
    subject = module.build(make(edition="article", purpose="proof"), framework, "float32")
    assert subject.settings["layout"] == "NCHW"
    images = numpy.arange(40 * 3072).astype("uint8").reshape(40, 32, 32, 3)
    labels = numpy.zeros(40, "int64")

    class Data(object):
        train, validate, seed = (images, labels), (images[:12], labels[:12]), 0

    batches = torch_data.ArticleBatches(densenet_cells.PARAMETERS, Data)
    first, second = (torch.cat([batch for batch, _ in batches.train()]) for _ in range(2))
    assert first.shape == (40, 3, 32, 32)
    assert first.dtype == torch.float32
    assert first.abs().max() <= 1
    assert not torch.equal(first, second)
    tests = torch.cat([batch for batch, _ in batches.validate()])
    expected = augment.normalise(images[:12]).transpose(0, 3, 1, 2)
    assert numpy.abs(tests.numpy() - expected).max() < 1e-6


def measure(make, framework, **changes):
    limits = dict(make()["protocol"], budget_s=0.2, warmup_s=0.1, min_samples=2)
    return measurement.measure(make(protocol=limits, **changes), framework, 0.0)


def test_a_measured_launch_has_steps_and_epochs_with_their_series(make, framework):
    measures = ["step", "train_epoch", "validate_epoch", "train_validate_epoch"]
    answer = measure(make, framework, measures=measures)
    assert answer["status"] == "measured"
    assert answer["losses"]["error"] < 1e-5
    records = {record["name"]: record for record in answer["measures"]}
    assert list(records) == measures
    assert set(records["train_validate_epoch"]["series"]) == {
        "accuracy", "epoch_s", "learning_rate", "loss", "validation_accuracy", "validation_loss",
        "waiting_share",
    }  # fmt: skip
    # Every measure begins at the canonical start: what they share is equal, to the last bit.
    for name in ("loss", "accuracy", "learning_rate"):
        pair = [records[measure]["series"][name] for measure in ("train_epoch", "train_validate_epoch")]
        count = min(map(len, pair))
        assert pair[0][:count] == pair[1][:count]
    assert records["train_epoch"]["figures"]["waiting_share"] > 0
    assert "best_validation_accuracy" in records["validate_epoch"]["figures"]
    assert [record["host_reads"] for record in answer["measures"]] == [2, 4, 4, 8]


def test_the_article_validates_outside_of_an_epochs_time(make, framework, monkeypatch):
    waits = []
    real = module.Side.validate

    def validate(self):
        waits.append(1)
        return real(self)

    monkeypatch.setattr(module.Side, "validate", validate)
    kept = []
    limits = dict(make()["protocol"], budget_s=1e5)
    cell = make(edition="article", measures=["article_epoch"], protocol=limits)
    answer = measurement.measure(cell, framework, 0.0, keep=kept.append)
    (record,) = answer["measures"]
    assert answer["settings"]["validation"] == "outside of the epoch's time"
    assert len(record["series"]["validation_accuracy"]) == len(waits) == 5
    assert record["figures"]["best_validation_accuracy"] == max(record["series"]["validation_accuracy"])
    assert [one["epoch"] for one in kept] == [1, 2, 3, 4, 5]
    assert kept[2]["validation_accuracy"] == record["series"]["validation_accuracy"][2]
    # 40 % and 20 % of five epochs at a tenth each.
    assert record["series"]["learning_rate"] == pytest.approx([1e-3, 1e-3, 1e-3, 1e-4, 1e-5])


class Counting(object):
    """Counts reads of the device by the host."""

    def __init__(self, monkeypatch):
        self.count = 0
        real = torch.Tensor.item

        def item(tensor):
            self.count += 1
            return real(tensor)

        monkeypatch.setattr(torch.Tensor, "item", item)


@pytest.mark.parametrize(("variant", "reads"), [("torch-autotune-off", 2), ("torch-no-metrics", 0)])
def test_loss_and_accuracy_are_read_in_each_step_but_where_a_variant_is_about_that(
    make, framework, monkeypatch, variant, reads
):
    """T16"""
    # Which reads its own count of steps, on the host.
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self: None)
    subject = module.build(make(variant, measures=["step", "train_epoch"]), framework, "float32")
    counting = Counting(monkeypatch)
    subject.units["step"]()
    assert counting.count == reads == subject.host_reads["step"]
    counting.count = 0
    subject.units["train_epoch"]()
    assert counting.count == 2 * reads == subject.host_reads["train_epoch"]


def test_metrics_that_stay_on_the_device_are_the_same_metrics(make, framework):
    series = []
    for variant in ("torch-autotune-off", "torch-no-metrics"):
        subject = module.build(make(variant, measures=["train_epoch"]), framework, "float32")
        epoch = subject.units["train_epoch"]()
        series.append([float(epoch.series[name]) for name in ("loss", "accuracy")])
    assert series[0] == pytest.approx(series[1], rel=1e-6)


def test_autotuning_on_a_cpu_has_no_effect_and_is_said_to_have_none(make, framework):
    """T7"""
    with pytest.raises(Fault, match="no effect on a CPU") as caught:
        module.build(make("torch-autotune-on"), framework, "float32")
    assert (caught.value.status, caught.value.kind) == ("skipped", "no-effect")


@pytest.mark.parametrize(("variant", "on"), [("torch-autotune-on", True), ("torch-autotune-off", False)])
def test_autotuning_on_a_gpu_is_switched_for_the_variant_alone(make, monkeypatch, variant, on):
    """T7"""

    class OnGpu(object):
        index = 0
        place = torch.device("cpu")

        def autocast(self):
            return torch.no_grad()

        def clear_by(self, optimiser):
            return optimiser.zero_grad

    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    monkeypatch.setattr(torch.optim, "Adam", with_adam(foreach=False))
    module.build(make(variant), OnGpu(), "float32")
    assert torch.backends.cudnn.benchmark is on


def test_layouts_are_what_settings_say(make, framework):
    """P7"""
    for variant, layout in (("torch-autotune-off", "NCHW"), ("torch-channels-last", "NHWC")):
        cell = make(variant, measures=["train_epoch"])
        trainer = torch_net.Trainer(
            framework, cell["parameters"], recipe.choose(cell["parameters"], "fair", "torch"), "float32",
            channels_last=layout == "NHWC",
        )  # fmt: skip
        side = module.Side(cell, trainer, True)
        images, labels = next(side.batches.train())
        moved = trainer.move(images, labels)[0]
        assert moved.is_contiguous(memory_format=torch.channels_last) == (layout == "NHWC")
        weight = trainer.net.block1.layer1.conv2.weight
        assert weight.is_contiguous(memory_format=torch.channels_last) == (layout == "NHWC")
        assert module.build(cell, framework, "float32").settings["layout"] == layout


def test_a_stem_with_a_stride_has_its_zeros_on_both_sides(framework, make):
    """P4: where "same" of the other framework has them on one."""
    parameters = dict(densenet_cells.PARAMETERS, stem_stride=2, batch=4)
    how = recipe.choose(parameters, "fair", "torch")
    trainer = torch_net.Trainer(framework, parameters, how, "float64")
    images, labels = torch_data.draw_batch(parameters, trainer.dtype)
    loss, _ = trainer.train(images, labels)
    expected = reference.differentiate(
        parameters, densenet.canonical(parameters), *densenet.draw_batch(parameters), how=how
    )[0]
    assert float(loss) == pytest.approx(expected, rel=1e-12)


def test_a_batch_larger_than_memory_is_a_failed_row_with_its_cause(make, framework, monkeypatch):
    monkeypatch.setattr(frameworks, "load", lambda cell: framework)
    cell = make(parameters={"batch": 10**8})
    cell["identity"]["workload_sha256"] = content.sha256("densenet")
    answer = main.launch(cell, None)
    assert answer["status"] == "failed"
    assert answer["cause"]["kind"] == "out-of-memory"
    assert "allocate" in answer["cause"]["message"]
