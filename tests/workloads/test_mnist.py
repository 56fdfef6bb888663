"""The net's judge, by its own arithmetic."""

import numpy
import pytest

from tests.workloads.idx_files import write_set
from workloads import mnist, trajectory
from workloads.mnist import reference

PARAMETERS = {"load_images": 60000, "train_images": 60000, "validate_images": 10000}


@pytest.fixture(scope="module")
def batch():
    draw = numpy.random.RandomState(1)
    return draw.uniform(size=(2, 1, 28, 28)), numpy.array([3, 7])


def test_gradients_are_what_differences_of_the_loss_say(batch):
    weights = mnist.canonical()
    _, gradients = reference.differentiate(weights, *batch)
    draw = numpy.random.RandomState(2)
    for name in weights:
        direction = draw.standard_normal(weights[name].shape)
        sides = []
        for sign in (1, -1):
            moved = dict(weights, **{name: weights[name] + sign * 1e-8 * direction})
            sides.append(reference.differentiate(moved, *batch)[0])
        expected = (sides[0] - sides[1]) / 2e-8
        assert (gradients[name] * direction).sum() == pytest.approx(expected, rel=1e-4), name


def test_the_first_of_equal_values_is_the_one_that_a_pool_takes():
    """As the frameworks do: on a black background all are equal."""
    values = numpy.array([[[[1.0, 1.0], [1.0, 0.0]]]])
    pooled, chosen = reference.pool(values)
    assert pooled.tolist() == [[[[1.0]]]]
    assert reference.unpool(numpy.ones((1, 1, 1, 1)), chosen).tolist() == [[[[1.0, 0.0], [0.0, 0.0]]]]


def test_the_trajectory_of_a_data_set_is_judged_by_what_was_committed_or_computed_for_it(tmp_path):
    data = write_set(tmp_path)
    judge = reference.compute(data["folder"], data["sha256"])
    assert judge["parameter_count"] == 1199882
    assert len(judge["losses"]) == 6
    assert judge["losses"][0] == pytest.approx(numpy.log(10), rel=0.05)
    parameters = {"batch": 64, "learning_rate": 1.0, "rho": 0.9, "epsilon": 1e-6, "epochs": 2}
    assert trajectory.is_for(judge, parameters)
    assert not trajectory.is_for(judge, dict(parameters, rho=0.95))
    # Of these data nobody committed one, and what is committed for others does not judge them.
    assert trajectory.find("mnist", parameters, data["sha256"])[0] is None


def test_the_work_of_an_epoch_is_counted_by_its_images():
    work = mnist.count_work(PARAMETERS, "load_epoch")
    assert work == {"images": 60000.0, "bytes": 2.0 * 60000 * (28 * 28 * 4 + 8)}
    trained, validated, both = (
        mnist.count_work(PARAMETERS, name)
        for name in ("train_epoch", "validate_epoch", "train_validate_epoch")
    )
    assert both == {name: trained[name] + validated[name] for name in ("images", "flop")}
    # 2 m n k of each layer, by hand.
    forward = 2 * (26 * 26 * 9 * 32 + 24 * 24 * 288 * 64 + 9216 * 128 + 128 * 10)
    assert validated["flop"] == 10000 * forward
    assert trained["flop"] == 60000 * (3 * forward - 2 * 26 * 26 * 9 * 32)


def test_images_are_scaled_to_one_and_get_their_channel():
    scaled = mnist.scale(numpy.array([[[0, 255], [51, 1]]], dtype="uint8"))
    assert (scaled.shape, scaled.dtype) == ((1, 1, 2, 2), "float32")
    assert scaled[0, 0, 0].tolist() == [0.0, 1.0]
    assert scaled[0, 0, 1, 1] == numpy.float32(1) / numpy.float32(255)
