"""The DenseNet match's plan, its judge by its own arithmetic, and what both sides are given."""

import numpy
import pytest

from tests.workloads.cifar_files import write_set
from tests.workloads.densenet_cells import PARAMETERS
from workloads import densenet, trajectory
from workloads.data import cifar
from workloads.densenet import augment, match, plan, recipe, reference
from workloads.fault import Fault

FULL = dict(reference.PLAN, **reference.TRAINING)
TINY = dict(
    reference.TRAINING,
    blocks=[1, 2],
    growth_rate=3,
    bottleneck=4,
    stem_channels=5,
    stem_stride=2,
    compression=0.5,
    batch=4,
)


def test_the_full_plan_is_densenet_121():
    """58 dense layers of two convolutions, a stem, three transitions and a dense layer: 121."""
    laid = plan.make(FULL)
    assert [len(block) for block in laid.blocks] == [6, 12, 24, 16]
    layers = sum(name.endswith(".weight") and plan.is_kernel(name) for name in plan.find_shapes(FULL))
    assert layers == 121
    # 32 + 6 x 16 = 128, halved; 64 + 12 x 16 = 256, halved; and so on.
    assert laid.transitions == [(128, 64), (256, 128), (512, 256)]
    assert laid.last == 512
    assert len(plan.find_shapes(FULL)) == 482


def test_images_that_cannot_be_halved_so_often_are_a_fault():
    with pytest.raises(Fault, match="cannot be halved so often"):
        plan.make(dict(FULL, stem_stride=8))


def test_operations_are_those_of_the_shapes():
    """Of each convolution twice the size of its weight, at each place of its result."""
    sides = {"stem": 32, "block1": 32, "transition1": 32, "block2": 16, "transition2": 16, "block3": 8}
    sides.update(transition3=8, block4=4, classifier=1)
    expected = sum(
        2.0 * numpy.prod(shape) * sides[name.partition(".")[0]] ** 2
        for name, shape in plan.find_shapes(FULL).items()
        if plan.is_kernel(name)
    )
    assert sum(plan.list_flop(FULL)) == pytest.approx(expected)
    work = densenet.count_work(PARAMETERS, "step")
    assert work["images"] == 32
    assert work["flop"] < 3 * 32 * sum(plan.list_flop(PARAMETERS))
    both = densenet.count_work(PARAMETERS, "train_validate_epoch")
    assert both["images"] == 52
    # What Keras's seconds hold beyond that is no work that both sides' figures share.
    assert densenet.count_work(PARAMETERS, "article_epoch")["images"] == 40


def test_steps_are_counted_with_the_ragged_last_batch():
    """T6"""
    assert densenet.count_steps(PARAMETERS, "train_validate_epoch") == (2, 2)
    assert densenet.count_steps(PARAMETERS, "validate_epoch") == (0, 2)
    assert densenet.count_steps(PARAMETERS, "step") == (1, 0)


@pytest.mark.parametrize("side", ["torch", "keras"])
@pytest.mark.parametrize("edition", ["fair", "article"])
def test_gradients_are_what_differences_of_the_loss_say(edition, side):
    """P2: in the article's Keras edition a penalty of c w^2, whose gradient is 2 c w, is part of the loss;
    elsewhere L2 is added to the gradient alone."""
    how = recipe.choose(TINY, edition, side)
    weights = densenet.canonical(TINY)
    images, labels = densenet.draw_batch(TINY)
    _, gradients, _ = reference.differentiate(TINY, weights, images, labels, how)
    draw = numpy.random.RandomState(2)
    for name in weights:
        direction = draw.standard_normal(weights[name].shape)
        sides = []
        for sign in (1, -1):
            moved = dict(weights, **{name: weights[name] + sign * 1e-6 * direction})
            sides.append(reference.differentiate(TINY, moved, images, labels, how)[0])
        expected = (sides[0] - sides[1]) / 2e-6
        touched = how.decayed == "all" or plan.is_kernel(name)
        if touched and not how.in_loss:
            expected += how.decay * (weights[name] * direction).sum()
        found = (gradients[name] * direction).sum()
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-7), name


def test_gradients_of_biases_under_a_normalisation_are_nothing_but_rounding():
    """P10: they are left out of what is judged of a step, unless L2 gives them a direction."""
    how = recipe.choose(TINY, "fair", "torch")
    _, gradients, _ = reference.differentiate(
        TINY, densenet.canonical(TINY), *densenet.draw_batch(TINY), how=how
    )
    silent = [name for name in gradients if plan.is_silent(name)]
    assert len(silent) == 8
    assert max(abs(gradients[name]).max() for name in silent) < 1e-14
    told = [name for name in gradients if reference.is_told(name, how)]
    assert set(told) == set(gradients) - set(silent)
    assert all(reference.is_told(name, recipe.choose(TINY, "article", "torch")) for name in silent)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-4])
def test_epsilons_two_places_make_two_steps(epsilon):
    """P9: after the correction of the second moment's bias, or before."""
    gradient, moments = numpy.array([1e-4, 1.0]), (numpy.zeros(2), numpy.zeros(2))
    steps = {}
    for place in ("corrected", "uncorrected"):
        how = recipe.choose(FULL, "fair", "torch")
        how.epsilon_at, how.adam_epsilon = place, epsilon
        _, steps[place] = reference.move(moments, gradient, 1, 1e-3, how)
    # The first step's moments are (1 - beta) g, so that g / (|g| + epsilon) is left.
    assert steps["corrected"] == pytest.approx(1e-3 * gradient / (abs(gradient) + epsilon))
    larger = epsilon / (1 - recipe.BETAS[1]) ** 0.5
    assert steps["uncorrected"] == pytest.approx(1e-3 * gradient / (abs(gradient) + larger))


def test_the_editions_differ_in_what_frameworks_have_of_their_own_and_fair_in_nothing_that_trains():
    """P1, P2, P9"""
    fair = [recipe.choose(FULL, "fair", side).settings() for side in ("torch", "keras")]
    assert {name for name in fair[0] if fair[0][name] != fair[1][name]} == {"running_variance"}
    article = [recipe.choose(FULL, "article", side).settings() for side in ("torch", "keras")]
    assert {name for name in article[0] if article[0][name] != article[1][name]} == set(article[0])


@pytest.mark.parametrize("epochs", [80, 5, 3, 1])
def test_the_learning_rate_is_a_tenth_from_half_of_the_epochs_on_and_again_from_four_fifths(epochs):
    parameters = dict(PARAMETERS, epochs=epochs)
    rates = densenet.find_rates(parameters)
    assert rates == pytest.approx(list(reference.schedule(parameters)))
    if epochs == 80:
        assert rates[39:41] == pytest.approx([1e-3, 1e-4])
        assert rates[63:65] == pytest.approx([1e-4, 1e-5])


def test_choices_are_drawn_alike_for_whoever_asks_and_cover_an_epoch():
    one, other = augment.draw(50, 3), augment.draw(50, 3)
    first, second = next(one), next(one)
    assert (next(other).images == first.images).all()
    assert sorted(first.images) == sorted(second.images) == list(range(50))
    assert (first.images != second.images).any()
    many = next(augment.draw(20000, 0))
    assert set(many.rows) == set(many.columns) == set(range(9))
    assert abs(many.flipped.mean() - 0.5) < 0.02
    assert not (next(augment.draw(50, 4)).images == first.images).all()


def test_the_largest_seed_has_later_blocks_too(tmp_path):
    data = write_set(tmp_path)
    cell = {"parameters": PARAMETERS, "data": data, "seed": 2**32 - 1, "block": 4}
    assert match.Data(cell).seed == 3
    assert len(next(match.Data(cell).draw()).images) == 40


def test_what_choices_make_of_an_image():
    image = numpy.arange(3072, dtype="uint8").reshape(1, 32, 32, 3)
    zero = numpy.array([0])
    middle, edge = numpy.array([4]), numpy.array([8])
    plain = augment.apply(image, augment.Choices(zero, middle, middle, numpy.array([False])))
    assert (plain == augment.normalise(image)).all()
    assert plain.dtype == numpy.float32
    assert (plain.min(), plain.max()) == (-1.0, 1.0)
    turned = augment.apply(image, augment.Choices(zero, middle, middle, numpy.array([True])))
    assert (turned == plain[:, :, ::-1]).all()
    moved = augment.apply(image, augment.Choices(zero, edge, zero, numpy.array([False])))
    assert (moved[:, :28, 4:] == plain[:, 4:, :28]).all()
    # Where the crop leaves the image there are zeros, which are black.
    assert (moved[:, 28:] == -1).all()
    assert (moved[:, :, :4] == -1).all()


def test_canonical_values_are_the_same_on_every_machine():
    """P5"""
    weights = densenet.canonical(PARAMETERS)
    assert weights["stem.conv.weight"][0, 0, 0, 0] == pytest.approx(0.48011423635337724, rel=1e-12)
    assert set(weights) == set(plan.find_shapes(PARAMETERS))
    for name, value in weights.items():
        assert value.shape == plan.find_shapes(PARAMETERS)[name]
        assert abs(value).min() > 0


@pytest.mark.parametrize("sizes", reference.SIZES)
@pytest.mark.parametrize(("edition", "side", "own"), reference.SIDES)
def test_every_profiles_net_has_a_trajectory_for_each_side(sizes, edition, side, own):
    """P8: with the count of trainable parameters, the same on both sides."""
    parameters = dict(PARAMETERS, **sizes)
    name = recipe.choose(parameters, edition, side, **own).name
    judge, _ = trajectory.find("densenet", parameters, "5" * 64, name)
    assert judge["recipe"] == name
    expected = sum(int(numpy.prod(shape)) for shape in plan.find_shapes(parameters).values())
    assert judge["parameter_count"] == expected
    assert judge["losses"][-1] < judge["losses"][0]
    # Of another plan, or for nobody's recipe, there is none.
    for other in (dict(parameters, growth_rate=17), dict(parameters, learning_rate=2e-3)):
        assert trajectory.find("densenet", other, None, name)[0] is None
    assert trajectory.find("densenet", parameters, None)[0] is None


def test_the_committed_trajectory_is_what_the_reference_computes(monkeypatch):
    monkeypatch.setattr(reference, "LOSSES", 2)
    parameters = dict(reference.SIZES[0], **reference.TRAINING)
    for side in reference.SIDES:
        computed = reference.compute(parameters, *side)
        judge, _ = trajectory.find("densenet", parameters, None, computed["recipe"])
        assert computed["losses"] == pytest.approx(judge["losses"][:2], rel=1e-12)
        for kind in ("gradients", "statistics"):
            for layer, expected in judge[kind].items():
                assert computed[kind][layer]["norm"] == pytest.approx(expected["norm"], rel=1e-9)


def test_joined_layers_hold_every_tensor_once():
    weights = densenet.canonical(FULL)
    joined = plan.group_by_layer(weights)
    assert sum(vector.size for vector in joined.values()) == sum(value.size for value in weights.values())
    assert len(joined) == 58 + 3 + 3
    assert joined["block1.layer1"].size == sum(
        value.size for name, value in weights.items() if name.startswith("block1.layer1.")
    )


def test_prepared_images_are_read_in_order_and_as_many_as_are_asked_for(tmp_path):
    data = write_set(tmp_path)
    images, labels = cifar.read_split(data["folder"], "train")
    assert (images.shape, images.dtype) == ((60, 32, 32, 3), "uint8")
    assert (labels.shape, labels.dtype) == ((60,), "int64")
    part = cifar.read_split(data["folder"], "train", 30)
    assert (part[0] == images[:30]).all()
    record = numpy.fromfile(str(tmp_path / cifar.FOLDER / "data_batch_2.bin"), "uint8")[:3073]
    assert labels[12] == record[0]
    # Red, green and blue one after the other, row by row.
    assert images[12, 0, 1].tolist() == [record[2], record[1026], record[2050]]
    with pytest.raises(Fault, match="12 images where 13 are asked for"):
        cifar.read_split(data["folder"], "test", 13)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"x" * 3072, "no whole number of images"), (None, "No such file")],
)
def test_files_that_are_none_are_a_fault_that_names_them(tmp_path, content, words):
    data = write_set(tmp_path)
    path = tmp_path / cifar.FOLDER / "test_batch.bin"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Fault, match="test_batch.bin.*" + words):
        cifar.read_split(data["folder"], "test")
