"""The MNIST match of 2019: one small convolutional net in PyTorch, fed by one loader or another.

Convolutions of 32 and 64 filters of 3x3 (the second without an activation), maximum over 2x2, dense layers of
128 and 10, log-softmax; negative log likelihood; Adadelta.
"""

import numpy

from workloads import work

SEED = 0
SIDE, FILTERS, HIDDEN, CLASSES = 28, (32, 64), 128, 10
KERNEL = 3
FLAT = FILTERS[1] * ((SIDE - 2 * (KERNEL - 1)) // 2) ** 2
SHAPES = {
    "conv1.weight": (FILTERS[0], 1, KERNEL, KERNEL),
    "conv2.weight": (FILTERS[1], FILTERS[0], KERNEL, KERNEL),
    "fc1.weight": (HIDDEN, FLAT),
    "fc2.weight": (CLASSES, HIDDEN),
}
"""By name: (outputs, inputs, rows, columns) and (outputs, inputs)."""
FLOAT32_BYTES, INT64_BYTES = 4, 8


def canonical():
    """Draw the canonical start in float64: weights and biases by name, uniform on +-1/sqrt(inputs), as
    PyTorch draws its own."""
    draw = numpy.random.RandomState(SEED)
    weights = {}
    for name, shape in SHAPES.items():
        bound = numpy.prod(shape[1:]) ** -0.5
        weights[name] = draw.uniform(-bound, bound, shape)
        weights[name.replace("weight", "bias")] = draw.uniform(-bound, bound, shape[:1])
    return weights


def scale(images):
    """Turn uint8 images of (n, 28, 28) into what every loader hands out: float32 of (n, 1, 28, 28) in
    [0, 1]."""
    return (images.astype("float32") / numpy.float32(255))[:, None]


def count_work(parameters, measure):
    """Count the work in one unit of ``measure``.

    Loading is counted as a copy of the tensors that it hands out, which no loader can do without.
    """
    trained, validated = float(parameters["train_images"]), float(parameters["validate_images"])
    if measure == "load_epoch":
        loaded = float(parameters["load_images"])
        size = SIDE * SIDE * FLOAT32_BYTES + INT64_BYTES
        return {"images": loaded, "bytes": work.copied_bytes(loaded * size)}
    images = {
        "train_epoch": trained,
        "validate_epoch": validated,
        "train_validate_epoch": trained + validated,
    }
    flop = {"train_epoch": trained * training_flop(), "validate_epoch": validated * forward_flop()}
    flop["train_validate_epoch"] = sum(flop.values())
    return {"images": images[measure], "flop": flop[measure]}


def forward_flop():
    """Operations of the forward pass on one image."""
    return sum(_list_flop())


def training_flop():
    """Operations of a training step on one image: backward two products a layer, but for the first layer,
    since nobody asks for the gradient of the data."""
    layers = _list_flop()
    return 3 * sum(layers) - layers[0]


def _list_flop():
    sides = SIDE - (KERNEL - 1), SIDE - 2 * (KERNEL - 1)
    return [
        work.matmul_flop(sides[0] ** 2, KERNEL**2, FILTERS[0]),
        work.matmul_flop(sides[1] ** 2, FILTERS[0] * KERNEL**2, FILTERS[1]),
        work.matmul_flop(1, FLAT, HIDDEN),
        work.matmul_flop(1, HIDDEN, CLASSES),
    ]
