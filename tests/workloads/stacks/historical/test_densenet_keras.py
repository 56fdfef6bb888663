"""The DenseNet match in Keras 2.1 and in the Keras of TensorFlow 2.0, whole and with each thing broken that
matters."""

import copy
import sys
import types

import numpy
import pytest

from tests.workloads import densenet_cells
from tests.workloads.proofs import list_failing
from tests.workloads.stacks.historical.conftest import IS_GRAPH, THREADS
from workloads import densenet, frameworks, measurement, proof
from workloads.densenet import augment, keras_2, keras_2_data, keras_2_net, recipe, reference

VARIANCE = "keras-2" if IS_GRAPH else None
SIDES = [(edition, "keras", {"variance": VARIANCE} if VARIANCE else {}) for edition in ("fair", "article")]
TINY = {"blocks": [1, 1], "growth_rate": 4, "bottleneck": 8, "stem_channels": 8, "batch": 8}
"""Small enough to be made for each thing that is broken."""


REPLACED = ("_preprocess_conv2d_input", "_fused_normalize_batch_in_training")


@pytest.fixture
def make(make_densenet):
    return lambda **changes: make_densenet("keras-fit", "keras", "tensorflow", **changes)


@pytest.fixture(scope="module")
def framework(make_densenet):
    return frameworks.load(make_densenet("keras-fit", "keras", "tensorflow"))


@pytest.fixture(autouse=True)
def _fresh(framework):
    """Each net has a graph of its own, and layers' names, which are the plan's, are free again."""
    backend = framework.keras.backend
    backend.clear_session()
    if IS_GRAPH:
        configuration = framework.tf.ConfigProto(
            intra_op_parallelism_threads=THREADS["intra_op"],
            inter_op_parallelism_threads=THREADS["inter_op"],
            device_count={"GPU": 0},
        )
        framework.session = framework.tf.Session(config=configuration)
        backend.set_session(framework.session)
    replaced = dict(vars(sys.modules["keras.backend.tensorflow_backend"])) if IS_GRAPH else {}
    yield
    # A proof lets Keras 2.1 compute in float64, for the rest of its process.
    for name in REPLACED if IS_GRAPH else ():
        setattr(sys.modules["keras.backend.tensorflow_backend"], name, replaced[name])
    backend.set_floatx("float32")


@pytest.fixture
def prove(make, framework):
    return lambda **changes: proof.prove(make(purpose="proof", **changes), framework)


@pytest.fixture(scope="module")
def judges():
    """Trajectories of the tiny net, computed once."""
    parameters = dict(densenet_cells.PARAMETERS, **TINY)
    computed = (reference.compute(parameters, *side) for side in SIDES)
    return {judge["recipe"]: judge for judge in computed}


@pytest.fixture
def prove_tiny(prove, judges, monkeypatch):
    def find(workload, parameters, data_sha256=None, name=None):
        return judges[name], "0" * 64

    monkeypatch.setattr(proof.trajectory, "find", find)
    return lambda **changes: prove(parameters=TINY, **changes)


@pytest.mark.parametrize("edition", ["fair", "article"])
def test_fit_does_the_same_work(prove, edition):
    proved = prove(edition=edition)
    assert list_failing(proved) == set()
    kinds = {check["name"].partition("[")[0] for check in proved["checks"]}
    assert kinds == {"loss", "gradient", "statistics", "change", "parameter_count", "count"}


@pytest.mark.parametrize("edition", ["fair", "article"])
def test_the_tiny_net_does_the_same_work(prove_tiny, edition):
    assert list_failing(prove_tiny(edition=edition)) == set()


def with_layer(name, **changes):
    def replace(keras):
        real = getattr(keras.layers, name)
        return keras.layers, name, lambda *args, **said: real(*args, **dict(said, **changes))

    return replace


def with_activation(keras):
    real = keras.layers.Activation
    return keras.layers, "Activation", lambda kind, **said: real("linear", **said)


def with_softmax(keras):
    real = keras.layers.Dense
    return keras.layers, "Dense", lambda *args, **said: real(*args, **dict(said, activation="softmax"))


def with_recipe(name, change):
    def replace(keras):
        real = recipe.choose

        def choose(*args, **said):
            how = real(*args, **said)
            setattr(how, name, change(getattr(how, name)))
            return how

        return recipe, "choose", choose

    return replace


def with_rate(keras):
    def set_rate(self, rate):
        self.backend.set_value(self.optimiser.lr, 1.001 * rate)

    return keras_2_net.Trainer, "set_rate", set_rate


BREAKS = {
    "P1 momentum is the complement": with_layer("BatchNormalization", momentum=0.1),
    "P1 epsilon of the other framework": with_layer("BatchNormalization", epsilon=1e-3),
    "P2 L2 twice": with_recipe("decay", lambda decay: 2 * decay),
    "P2 no L2": with_recipe("decay", lambda decay: 0.0),
    "P3 learning rate": with_rate,
    "P3 betas": lambda keras: (recipe, "BETAS", (0.9, 0.99)),
    "P9 epsilon": with_recipe("adam_epsilon", lambda epsilon: 10 * epsilon),
    "P9 epsilon's other place": with_recipe("epsilon_at", lambda place: "uncorrected"),
    "bias dropped": with_layer("Conv2D", use_bias=False),
    "activation dropped": with_activation,
    "another pool": lambda keras: (keras.layers, "AveragePooling2D", keras.layers.MaxPooling2D),
    "doubled softmax": with_softmax,
}


def list_breaks():
    """List what a proof can find: where running statistics are debiased, those of the first step are the
    batch's own, whatever the momentum."""
    return sorted(name for name in BREAKS if not (IS_GRAPH and name.startswith("P1 momentum")))


def test_every_normalisation_has_the_recipes_momentum_and_epsilon(make, framework):
    """P1"""
    parameters = make(parameters=TINY)["parameters"]
    how = recipe.choose(parameters, "fair", "keras", variance=VARIANCE)
    model = keras_2_net.Trainer(framework, parameters, how, "float32").model
    norms = [layer for layer in model.layers if type(layer).__name__.startswith("BatchNormalization")]
    assert len(norms) > 4
    assert {(norm.momentum, norm.epsilon) for norm in norms} == {(how.norm_momentum, how.norm_epsilon)}


@pytest.mark.parametrize("broken", list_breaks())
def test_a_broken_side_fails_its_proof(prove_tiny, framework, monkeypatch, broken):
    """P1, P2, P3, P9"""
    monkeypatch.setattr(*BREAKS[broken](framework.keras))
    assert list_failing(prove_tiny())


def find_ancestors(operation):
    """Return the operations that run before one of a graph."""
    found, rest = set(), [operation]
    while rest:
        one = rest.pop()
        before = {tensor.op for tensor in one.inputs}.union(one.control_inputs) - found
        found |= before
        rest.extend(before)
    return found


@pytest.mark.skipif(not IS_GRAPH, reason="TensorFlow 2 keeps what a function reads and writes in order")
@pytest.mark.parametrize("edition", ["fair", "article"])
def test_a_variable_changes_when_the_loss_and_every_gradient_are_there(make, framework, monkeypatch, edition):
    """Left to itself, Keras 2.1 changes kernels while gradients still go back through them."""
    own, made = framework.keras.optimizers.Adam, []

    def get_gradients(self, loss, params):
        gradients = real(self, loss, params)
        made.extend(tensor.op for tensor in [loss] + gradients)
        return gradients

    real = own.get_gradients
    monkeypatch.setattr(own, "get_gradients", get_gradients)
    cell = make(edition=edition, parameters=TINY)
    how = recipe.choose(cell["parameters"], edition, "keras", variance=VARIANCE)
    trainer = keras_2_net.Trainer(framework, cell["parameters"], how, "float32")
    count, *changes = [change.op for change in trainer.optimiser.updates]
    assert len(made) == 1 + len(trainer.model.trainable_weights)
    assert len(changes) == 3 * len(trainer.model.trainable_weights)
    for change in changes:
        assert find_ancestors(change).issuperset(made)
    assert find_ancestors(count).issuperset(changes)


def test_a_broken_initial_value_fails_the_proof(prove_tiny, monkeypatch):
    """P5"""
    densenet_cells.break_initial_value(monkeypatch, "block2.layer1.norm1.bias")
    assert list_failing(prove_tiny())


def test_in_float32_the_running_variance_is_larger_as_settings_say(make, framework):
    """P1: fused, it is divided by n - 1 before Keras has it."""
    cell = make(parameters=TINY)
    parameters = cell["parameters"]
    subject = keras_2.build(cell, framework, "float32")
    subject.start()
    subject.step()
    how = recipe.choose(parameters, "fair", "keras", variance=VARIANCE)
    weights, batch = densenet.canonical(parameters), densenet.draw_batch(parameters)
    expected = reference.differentiate(parameters, weights, *batch, how=how)[2]
    # The last normalisation has the fewest values of each channel: 16 x 16 of 8 images.
    factor, began = 2048.0 / 2047, 0.0 if IS_GRAPH else how.norm_momentum
    wanted = began + (expected["norm.variance"] - began) * factor
    count = len(wanted)
    found = subject.statistics()["norm"]
    assert found[:count] == pytest.approx(expected["norm.mean"], rel=1e-3, abs=1e-5)
    assert numpy.abs(found[count:] / wanted - 1).max() < 5e-5
    assert subject.settings["running_variance"].startswith("unbiased")


def test_keras_2_1_divides_its_running_variance_by_another_number(prove_tiny, judges, monkeypatch):
    """P1: taken for today's, it fails, and today's taken for it."""
    parameters = dict(densenet_cells.PARAMETERS, **TINY)
    other = {} if IS_GRAPH else {"variance": "keras-2"}
    wrong = reference.compute(parameters, "fair", "keras", other)
    monkeypatch.setattr(proof.trajectory, "find", lambda *args: (wrong, "0" * 64))
    failing = list_failing(prove_tiny())
    assert failing
    assert all(name.startswith("statistics[") for name in failing)


@pytest.mark.parametrize(
    "make_wrong",
    [
        lambda choices: setattr(choices, "flipped", choices.flipped & False),
        lambda choices: setattr(choices, "rows", choices.columns),
    ],
    ids=["no flips", "rows for columns"],
)
def test_augmentation_that_does_something_else_is_found(prove_tiny, monkeypatch, make_wrong):
    real = keras_2_data.Batches.choose

    def choose(self, choices):
        other = copy.copy(choices)
        make_wrong(other)
        real(self, other)

    monkeypatch.setattr(keras_2_data.Batches, "choose", choose)
    assert list_failing(prove_tiny()) == {"count[other values of training images]"}


def test_the_articles_pipeline_standardises_what_it_crops_and_turns():
    images = numpy.random.RandomState(0).randint(0, 256, (40, 32, 32, 3)).astype("uint8")
    labels = numpy.arange(40, dtype="int64") % 10
    data = types.SimpleNamespace(
        train=(images, labels), validate=(images[:12], labels[:12]), draw=lambda: augment.draw(40, 0)
    )
    batches = keras_2_data.ArticleBatches(densenet_cells.PARAMETERS, data)
    epochs = []
    for _ in range(2):
        batches.draw()
        epochs.append(keras_2.join(batches.epoch("train")))
    first, second = epochs
    assert (first[0].shape, first[0].dtype) == ((40, 32, 32, 3), "float32")
    assert sorted(first[1]) == sorted(labels)
    assert not numpy.array_equal(first[0], second[0])
    assert numpy.abs(first[0].mean(axis=(1, 2, 3))).max() < 1e-4
    assert numpy.abs(first[0].std(axis=(1, 2, 3)) - 1).max() < 1e-3
    found = keras_2.join(batches.epoch("validate"))[0]
    assert numpy.abs(found - augment.standardise(images[:12])).max() < 1e-6


@pytest.mark.parametrize(
    ("edition", "measures"),
    [("fair", ["step", "train_epoch", "train_validate_epoch"]), ("article", ["article_epoch"])],
)
def test_a_measured_launch_has_its_epochs_with_their_series(make, framework, edition, measures):
    limits = dict(make()["protocol"], budget_s=1e5, warmup_s=0.1, min_samples=2, max_samples=2)
    cell = make(edition=edition, measures=measures, protocol=limits, parameters={"epochs": 2})
    answer = measurement.measure(cell, framework, 0.0)
    assert answer["status"] == "measured"
    # Of an epoch no loss is the trajectory's.
    assert answer["losses"] is None if edition == "article" else answer["losses"]["error"] < 1e-3
    record = answer["measures"][-1]
    assert len(record["series"]["validation_accuracy"]) == 2
    assert record["series"]["learning_rate"] == pytest.approx(densenet.find_rates(cell["parameters"]))
    # As the contract has it.
    assert record["loop"] == "fit"
    settings = answer["settings"]
    assert (settings["threads_intra_op"], settings["threads_inter_op"]) == (2, 3)
    assert settings["layout"] == "NHWC"
    assert settings["compiler"] == ("session" if IS_GRAPH else "tf.function")
    if edition == "article":
        assert record["work"]["images"] == 40
        assert settings["validation"] == "in the epoch's time"
    else:
        assert 0 < answer["measures"][1]["figures"]["waiting_share"] < 1
