"""The DenseNet match of 2018: the same net on CIFAR-10's images, in Keras and in PyTorch.

G. Huang, Z. Liu, L. van der Maaten, K. Q. Weinberger: Densely connected convolutional networks, CVPR 2017,
arXiv:1608.06993, with bottlenecks and compression.
"""

import numpy

from workloads.densenet import plan

SEED = 0


def canonical(parameters):
    """Draw the canonical start in float64.

    Weights of convolutions are normal with a deviation of sqrt(2 / inputs), as K. He et al. (Delving deep
    into rectifiers, ICCV 2015) give for nets with rectifiers; biases and the dense layer uniform on
    +-1/sqrt(inputs); scales of normalisations are near 1 and offsets near 0, so that none hides behind a 1
    or a 0.

    Returns:
        weights by name, in the shapes of ``plan.find_shapes``.
    """
    draw = numpy.random.RandomState(SEED)
    shapes, weights = plan.find_shapes(parameters), {}
    for name, shape in shapes.items():
        layer, _, kind = name.rpartition(".")
        if plan.is_norm(layer):
            weights[name] = draw.uniform(-0.1, 0.1, shape) + (kind == "weight")
            continue
        inputs = numpy.prod(shapes[layer + ".weight"][1:])
        if len(shape) == 4:
            weights[name] = draw.standard_normal(shape) * (2.0 / inputs) ** 0.5
        else:
            weights[name] = draw.uniform(-(inputs**-0.5), inputs**-0.5, shape)
    return weights


def draw_batch(parameters):
    """Draw the batch that steps are timed and proved on.

    Returns:
        (images, labels): float64 of (batch, 32, 32, 3), standard normal, and int64 of (batch,).
    """
    draw = numpy.random.RandomState(SEED + 1)
    images = draw.standard_normal((parameters["batch"], plan.SIDE, plan.SIDE, plan.CHANNELS))
    return images, draw.randint(0, plan.CLASSES, parameters["batch"]).astype("int64")


def find_rates(parameters):
    """Return the learning rate of each epoch: divided by 10 at each of ``milestones``, as shares of all."""
    epochs = parameters["epochs"]
    return [
        parameters["learning_rate"]
        * 0.1 ** sum(epoch >= share * epochs for share in parameters["milestones"])
        for epoch in range(epochs)
    ]


def count_work(parameters, measure):
    """Count the work in one unit of ``measure``.

    ``article_epoch`` is counted as what both sides' figures hold: the training.
    """
    trained, validated = float(parameters["train_images"]), float(parameters["validate_images"])
    forward = sum(plan.list_flop(parameters))
    training = 3 * forward - plan.list_flop(parameters)[0]
    if measure == "step":
        batch = float(parameters["batch"])
        return {"steps": 1.0, "images": batch, "flop": batch * training}
    images = {"train_epoch": trained, "article_epoch": trained, "validate_epoch": validated}
    images["train_validate_epoch"] = trained + validated
    flop = {"train_epoch": trained * training, "validate_epoch": validated * forward}
    flop["article_epoch"] = flop["train_epoch"]
    flop["train_validate_epoch"] = flop["train_epoch"] + flop["validate_epoch"]
    return {"images": images[measure], "flop": flop[measure]}


def count_steps(parameters, measure):
    """Count the steps of training and of validation in one unit of ``measure``."""
    if measure == "step":
        return 1, 0
    training = -(-parameters["train_images"] // parameters["batch"])
    validation = -(-parameters["validate_images"] // parameters["validation_batch"])
    return (
        0 if measure == "validate_epoch" else training,
        validation if measure in ("validate_epoch", "train_validate_epoch") else 0,
    )
