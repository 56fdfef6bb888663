"""Linear MLP of 2018: three dense layers without activations, mean squared error, plain SGD."""

import numpy

from workloads import work

# PyTorch's nn.Linear and the articles' scripts differ in how they draw a first parameter; both
# sides here load the same: uniform on +-1/sqrt(inputs), as nn.Linear does.
SEED = 0


def widths(parameters):
    """Return the widths between the layers, input first."""
    return [parameters["features"], parameters["hidden"], parameters["hidden"], parameters["outputs"]]


def canonical(parameters):
    """Draw the canonical start in float64.

    Returns:
        (weights, x, y): weights by name, ``w1`` of shape (inputs, outputs) and ``b1`` of (outputs,)
        and so on; x of (batch, features) and y of (batch, outputs), standard normal.
    """
    draw = numpy.random.RandomState(SEED)
    weights = {}
    sizes = widths(parameters)
    for layer, (inputs, outputs) in enumerate(zip(sizes, sizes[1:]), start=1):
        bound = inputs**-0.5
        weights["w%d" % layer] = draw.uniform(-bound, bound, (inputs, outputs))
        weights["b%d" % layer] = draw.uniform(-bound, bound, (outputs,))
    x = draw.standard_normal((parameters["batch"], sizes[0]))
    y = draw.standard_normal((parameters["batch"], sizes[-1]))
    return weights, x, y


def steps(parameters, measure):
    """Return the training steps in one unit of ``measure``."""
    return {"step": 1, "call": parameters["steps_per_call"]}[measure]


def count_work(parameters, measure):
    """Count the work in one unit of ``measure``."""
    count = steps(parameters, measure)
    return {
        "steps": float(count),
        "flop": count * work.dense_training_flop(parameters["batch"], widths(parameters)),
    }
