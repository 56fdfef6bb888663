import json
import math

import numpy
import pytest

from tests.workloads.fakes import PARAMETERS
from workloads import mlp, trajectory
from workloads.mlp import reference


def test_the_committed_trajectory_is_what_its_program_computes():
    """Up to what another order of summation changes."""
    committed, _ = trajectory.find("mlp", PARAMETERS)
    computed = reference.compute(PARAMETERS)
    assert committed["parameter_count"] == computed["parameter_count"]
    numpy.testing.assert_allclose(computed["losses"], committed["losses"], rtol=1e-12)
    for kind in ("gradients",):
        for name, expected in committed[kind].items():
            assert math.isclose(computed[kind][name]["norm"], expected["norm"], rel_tol=1e-11)
    assert set(committed["changes"]) == {"1", "10"}


def test_every_profile_of_the_table_has_its_trajectory():
    with open(trajectory.path("mlp")) as file:
        sizes = [one["parameters"]["batch"] for one in json.load(file)]
    assert sorted(sizes) == [256, 1024]


def test_the_reference_gradients_are_the_slopes_of_the_loss():
    """By central differences, so that the judge itself is judged."""
    parameters = dict(PARAMETERS, batch=5, features=4, hidden=3)
    weights, x, y = mlp.canonical(parameters)
    _, gradients = reference.differentiate(weights, x, y)
    for name in weights:
        index = tuple(0 for _ in weights[name].shape)
        slopes = []
        for sign in (1, -1):
            moved = {other: value.copy() for other, value in weights.items()}
            moved[name][index] += sign * 1e-6
            slopes.append(reference.differentiate(moved, x, y)[0])
        assert (slopes[0] - slopes[1]) / 2e-6 == pytest.approx(gradients[name][index], rel=1e-6)


def test_a_projection_tells_tensors_of_equal_norm_apart():
    tensor = numpy.arange(12.0).reshape(3, 4)
    one, other = trajectory.summarise({"w": tensor})["w"], trajectory.summarise({"w": tensor[::-1]})["w"]
    assert one["norm"] == other["norm"]
    assert one["projections"] != other["projections"]


def test_the_canonical_start_is_the_same_everywhere():
    """RandomState draws the same on every version of numpy: a few numbers, fixed."""
    weights, x, y = mlp.canonical(PARAMETERS)
    assert weights["w1"].shape == (250, 250)
    assert x.shape == (256, 250)
    assert y.shape == (256, 1)
    assert weights["w1"][0, 0] == pytest.approx(0.006174474119356815, rel=1e-12)
