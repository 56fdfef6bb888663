"""The DenseNet match in Keras, whole and with each thing broken that matters."""

import copy

import keras
import numpy
import pytest
import tensorflow as tf

from tests.workloads import densenet_cells
from tests.workloads.proofs import list_failing
from workloads import densenet, frameworks, measurement, proof
from workloads.densenet import augment, keras_data, keras_net, plan, recipe, reference
from workloads.densenet import keras as module

TINY = {"blocks": [1, 1], "growth_rate": 4, "bottleneck": 8, "stem_channels": 8, "batch": 8}
"""Small enough to be traced for each thing that is broken."""


@pytest.fixture(scope="module")
def framework(tmp_path_factory):
    folder = tmp_path_factory.mktemp("set")
    return frameworks.load(densenet_cells.make(folder, "keras-fit", "keras", "tensorflow"))


@pytest.fixture(autouse=True)
def _floats():
    yield
    keras.config.set_floatx("float32")


@pytest.fixture
def make(tmp_path_factory):
    folder = tmp_path_factory.getbasetemp() / "cifar"
    folder.mkdir(exist_ok=True)

    def make_it(variant="keras-fit", **changes):
        return densenet_cells.make(folder, variant, "keras", "tensorflow", **changes)

    return make_it


@pytest.fixture
def prove(make, framework):
    return lambda **changes: proof.prove(make(purpose="proof", **changes), framework)


@pytest.fixture(scope="module")
def judges():
    """Trajectories of the tiny net, computed once."""
    parameters = dict(densenet_cells.PARAMETERS, **TINY)
    return {
        judge["recipe"]: judge for judge in (reference.compute(parameters, *side) for side in reference.SIDES)
    }


@pytest.fixture
def prove_tiny(prove, judges, monkeypatch):
    def find(workload, parameters, data_sha256=None, name=None):
        return judges[name], "0" * 64

    monkeypatch.setattr(proof.trajectory, "find", find)
    return lambda **changes: prove(parameters=TINY, **changes)


@pytest.mark.parametrize(
    ("variant", "edition"),
    [("keras-fit", "fair"), ("keras-fit", "article"), ("keras-loop", "fair")],
)
def test_every_variant_does_the_same_work(prove, variant, edition):
    proved = prove(variant=variant, edition=edition)
    assert list_failing(proved) == set()
    assert max(check["error"] for check in proved["checks"]) < 1e-10
    kinds = {check["name"].partition("[")[0] for check in proved["checks"]}
    assert kinds == {"loss", "gradient", "statistics", "change", "parameter_count", "count"}


def test_the_full_net_has_the_plans_tensors_and_no_others():
    """P8"""
    parameters = dict(densenet_cells.PARAMETERS, **reference.SIZES[1])
    how = recipe.choose(parameters, "fair", "keras")
    model = keras_net.make_model(keras, parameters, how, None, dtype="float32")
    expected = sum(int(numpy.prod(shape)) for shape in plan.find_shapes(parameters).values())
    assert sum(int(numpy.prod(variable.shape)) for variable in model.trainable_variables) == expected
    assert len(model.trainable_variables) == 482
    # What Keras counts beside those are running statistics.
    assert model.count_params() > expected


def test_the_tiny_net_does_the_same_work(prove_tiny):
    for edition in ("fair", "article"):
        assert list_failing(prove_tiny(edition=edition)) == set()
    assert list_failing(prove_tiny(variant="keras-xla")) == set()


def with_adam(decay=lambda decay: decay, **changes):
    real = keras_net.CorrectedAdam
    return lambda own, **said: real(decay(own), **dict(said, **changes))


def with_layer(name, **changes):
    real = getattr(keras.layers, name)
    return lambda *args, **said: real(*args, **dict(said, **changes))


def dense_with_softmax(*args, real=keras.layers.Dense, **said):
    # Keras sees through a softmax that is the last thing, and takes what went into it.
    return lambda x: keras.ops.softmax(real(*args, **said)(x)) * 1.0


class PlainAdam(keras_net.CorrectedAdam):
    """Its epsilon where Keras's own has it."""

    @property
    def epsilon(self):
        return self.corrected_epsilon

    @epsilon.setter
    def epsilon(self, value):
        self.corrected_epsilon = value


class OnAll(keras_net.CorrectedAdam):
    def update_step(self, gradient, variable, learning_rate):
        keras.optimizers.Adam.update_step(self, gradient + self.decay * variable, variable, learning_rate)


CROSS_ENTROPY = keras.losses.SparseCategoricalCrossentropy
NORM = (keras.layers, "BatchNormalization")
BREAKS = {
    "P1 momentum is the complement": (*NORM, with_layer("BatchNormalization", momentum=0.1)),
    "P1 epsilon of the other framework": (*NORM, with_layer("BatchNormalization", epsilon=1e-3)),
    "P2 L2 twice": (keras_net, "CorrectedAdam", with_adam(decay=lambda decay: 2 * decay)),
    "P2 no L2": (keras_net, "CorrectedAdam", with_adam(decay=lambda decay: 0.0)),
    "P2 L2 on everything": (keras_net, "CorrectedAdam", OnAll),
    "P3 learning rate": (
        keras_net.Trainer,
        "set_rate",
        lambda self, rate: setattr(self.optimiser, "learning_rate", 1.001 * rate),
    ),
    "P3 betas": (keras_net, "CorrectedAdam", with_adam(beta_2=numpy.float64(0.99))),
    "P3 decoupled": (keras_net, "CorrectedAdam", with_adam(decay=lambda decay: 0.0, weight_decay=2e-4)),
    "P9 epsilon": (keras_net, "CorrectedAdam", with_adam(epsilon=1e-7)),
    "P9 epsilon's other place": (keras_net, "CorrectedAdam", PlainAdam),
    "bias dropped": (keras.layers, "Conv2D", with_layer("Conv2D", use_bias=False)),
    "activation dropped": (keras.layers, "Activation", lambda kind, **said: keras.layers.Identity()),
    "another pool": (keras.layers, "AveragePooling2D", keras.layers.MaxPooling2D),
    "doubled softmax": (keras.layers, "Dense", dense_with_softmax),
    "summed loss": (
        keras.losses,
        "SparseCategoricalCrossentropy",
        lambda from_logits, real=CROSS_ENTROPY: real(from_logits, reduction="sum"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("broken", sorted(BREAKS))
def test_a_broken_side_fails_its_proof(prove_tiny, monkeypatch, broken):
    """P1, P2, P3, P9"""
    monkeypatch.setattr(*BREAKS[broken])
    assert list_failing(prove_tiny())


def test_a_broken_initial_value_fails_the_proof(prove_tiny, monkeypatch):
    """P5"""
    densenet_cells.break_initial_value(monkeypatch, "block2.layer1.norm1.bias")
    assert list_failing(prove_tiny())


def test_the_articles_l2_is_a_penalty_with_twice_its_factor_in_the_gradient(prove_tiny, monkeypatch):
    """P2: taken for PyTorch's weight decay, it fails."""
    real = recipe.choose

    def choose(parameters, edition, side):
        how = real(parameters, edition, side)
        how.decay /= 2
        return how

    monkeypatch.setattr(recipe, "choose", choose)
    assert "loss[0]" in list_failing(prove_tiny(edition="article"))


def test_same_padding_with_a_stride_is_found(framework, monkeypatch, make):
    """P4: Keras puts its zeros on one side; the plan's stem has them on both."""
    parameters = dict(densenet_cells.PARAMETERS, **dict(TINY, stem_stride=2))
    how = recipe.choose(parameters, "fair", "keras")
    expected = reference.differentiate(
        parameters, densenet.canonical(parameters), *densenet.draw_batch(parameters), how=how
    )[0]
    images, labels = densenet.draw_batch(parameters)

    def compute():
        trainer = keras_net.Trainer(framework, parameters, how, "float64", False)
        scores = trainer.model(tf.constant(images), training=True)
        return float(trainer.model.loss(labels, scores))

    assert compute() == pytest.approx(expected, rel=1e-12)
    real = keras.layers.Conv2D
    monkeypatch.setattr(
        keras.layers, "Conv2D", lambda *args, **said: real(*args, **dict(said, padding="same"))
    )
    monkeypatch.setattr(keras.layers, "ZeroPadding2D", lambda *_, **__: keras.layers.Identity())
    assert compute() != pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("broken", "make_wrong"),
    [
        ("no flips", lambda choices: setattr(choices, "flipped", choices.flipped & False)),
        ("rows for columns", lambda choices: setattr(choices, "rows", choices.columns)),
    ],
)
def test_augmentation_that_does_something_else_is_found(prove_tiny, monkeypatch, broken, make_wrong):
    """The same random choices, injected on both sides, must make the same images."""
    real = keras_data.Batches.choose

    def choose(self, choices):
        other = copy.copy(choices)
        make_wrong(other)
        real(self, other)

    monkeypatch.setattr(keras_data.Batches, "choose", choose)
    assert list_failing(prove_tiny()) == {"count[other values of training images]"}


def test_a_schedule_that_drops_elsewhere_is_found(prove_tiny, monkeypatch):
    real = densenet.find_rates
    monkeypatch.setattr(
        densenet, "find_rates", lambda parameters: real(dict(parameters, milestones=[0.5, 0.9]))
    )
    assert list_failing(prove_tiny()) == {"count[other learning rates]"}


def measure(make, framework, variant, keep=None, **changes):
    limits = dict(make()["protocol"], budget_s=1e5, warmup_s=0.1, min_samples=2, max_samples=2)
    parameters = {"epochs": 2}
    cell = make(variant, protocol=limits, parameters=parameters, **changes)
    return measurement.measure(cell, framework, 0.0, keep=keep)


@pytest.mark.parametrize("variant", ["keras-fit", "keras-loop"])
def test_a_measured_launch_has_steps_and_epochs_with_their_series(make, framework, monkeypatch, variant):
    """T6: one trace of the training step serves steps, whole batches and ragged ones."""
    traces = []
    real = keras.Model.compute_loss
    counted = keras_net.CorrectedAdam.apply_gradients if variant == "keras-loop" else real

    def count(self, *args, **said):
        traces.append(1)
        return counted(self, *args, **said)

    if variant == "keras-loop":
        monkeypatch.setattr(keras_net.CorrectedAdam, "apply_gradients", count)
    else:
        monkeypatch.setattr(keras.Model, "compute_loss", count)
    answer = measure(make, framework, variant, measures=["step", "train_epoch", "train_validate_epoch"])
    assert answer["status"] == "measured"
    assert answer["losses"]["error"] < 1e-3
    # Keras's own loss is traced for training and for validation.
    assert len(traces) == (1 if variant == "keras-loop" else 2)
    records = {record["name"]: record for record in answer["measures"]}
    series = [records[name]["series"] for name in ("train_epoch", "train_validate_epoch")]
    for name in ("loss", "accuracy", "learning_rate"):
        assert series[0][name] == pytest.approx(series[1][name], rel=1e-5)
    assert len(series[1]["validation_accuracy"]) == 2
    assert 0 < records["train_epoch"]["figures"]["waiting_share"] < 1
    assert [record["host_reads"] for record in answer["measures"]] == [2, 4, 8]
    assert {record["loop"] for record in answer["measures"]} == {
        "fit" if variant == "keras-fit" else "hand-written"
    }
    assert answer["settings"]["layout"] == "NHWC"
    assert answer["settings"]["keras.jit_compile"] is False


def test_both_loops_train_the_same(make, framework):
    """P6: they are different loops, and the result says which; what they compute is the same."""
    series = [
        measure(make, framework, variant, measures=["train_validate_epoch"])["measures"][0]["series"]
        for variant in ("keras-fit", "keras-loop")
    ]
    for name in ("loss", "accuracy", "validation_loss", "validation_accuracy"):
        assert series[0][name] == pytest.approx(series[1][name], rel=1e-4), name


def test_the_articles_epoch_holds_the_validation_and_counts_the_training(make, framework):
    kept = []
    answer = measure(make, framework, "keras-fit", kept.append, edition="article", measures=["article_epoch"])
    (record,) = answer["measures"]
    assert answer["settings"]["validation"] == "in the epoch's time"
    assert record["work"]["images"] == 40
    assert "images" not in record["figures"]
    assert record["host_reads"] == 8
    assert len(record["series"]["validation_accuracy"]) == 2
    assert [one["epoch"] for one in kept] == [1, 2]


def test_xla_is_on_where_it_is_asked_for_and_nowhere_else(make, framework):
    """T9"""
    for variant, jit in (("keras-fit", False), ("keras-xla", True)):
        settings = module.build(make(variant), framework, "float32").settings
        assert settings["keras.jit_compile"] is jit
        assert settings["compiler"] == ("xla" if jit else "tf.function")


def test_fit_is_called_once_for_a_sample_of_many_steps(make, framework, monkeypatch):
    """What ``fit`` costs by itself is in a sample once, as in an epoch."""
    subject = module.build(make(), framework, "float32")
    calls = []
    real = keras.Model.fit

    def fit(self, *args, **said):
        calls.append(said["steps_per_epoch"])
        return real(self, *args, **said)

    monkeypatch.setattr(keras.Model, "fit", fit)
    subject.units["step"].many(3)
    assert calls == [3]


def test_the_articles_pipeline_hands_out_every_image_and_crops_and_turns_some():
    images = numpy.random.RandomState(0).randint(0, 256, (40, 32, 32, 3)).astype("uint8")
    labels = numpy.arange(40, dtype="int64") % 10

    class Data(object):
        train, validate, seed = (images, labels), (images[:12], labels[:12]), 0

    batches = keras_data.ArticleBatches(densenet_cells.PARAMETERS, Data)
    first, second = (module.join(batches.train) for _ in range(2))
    assert first[0].shape == (40, 32, 32, 3)
    assert first[0].dtype == numpy.float32
    assert sorted(first[1]) == sorted(labels)
    assert not numpy.array_equal(first[0], second[0])
    # Each image has a mean of 0 and a deviation of 1.
    assert numpy.abs(first[0].mean(axis=(1, 2, 3))).max() < 1e-4
    assert numpy.abs(first[0].std(axis=(1, 2, 3)) - 1).max() < 1e-3
    found = module.join(batches.validate)[0]
    assert numpy.abs(found - augment.standardise(images[:12])).max() < 1e-5


def test_choices_make_the_same_images_as_on_the_other_side(make):
    images = numpy.random.RandomState(0).randint(0, 256, (40, 32, 32, 3)).astype("uint8")
    labels = numpy.arange(40, dtype="int64") % 10

    class Data(object):
        train, validate, seed = (images, labels), (images[:12], labels[:12]), 0

        def draw(self):
            return augment.draw(40, 0)

    batches = keras_data.Batches(densenet_cells.PARAMETERS, Data())
    before = batches.seen.numpy()
    for choices in (next(augment.draw(40, seed)) for seed in range(3)):
        batches.choose(choices)
        found = module.join(batches.train)
        assert numpy.abs(found[0] - augment.apply(images, choices)).max() < 1e-6
        assert (found[1] == labels[choices.images]).all()
    seconds, handed = batches.seen.numpy() - before
    assert handed == 120
    assert seconds > 0
