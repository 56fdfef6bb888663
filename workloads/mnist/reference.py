"""Computes the net's trajectory in plain numpy, on the data set that was prepared in FOLDER:
``python -m workloads.mnist.reference FOLDER``.

Written from the formulas, without a framework, so that no framework is its own judge. Adadelta as in M. D.
Zeiler, ADADELTA: an adaptive learning rate method, arXiv:1212.5701 (2012), with a learning rate.
"""

import json
import sys

import numpy

from workloads import mnist, trajectory
from workloads.data import idx

BATCH, LEARNING_RATE, RHO, EPSILON = 64, 1.0, 0.9, 1e-6
LOSSES = 6


def compute(folder, sha256):
    """Train in float64 on the first batches of a data set, in its order, and return the trajectory.

    Args:
        folder: where it was prepared.
        sha256: its identity.
    """
    images, labels = idx.read_split(folder, "train", BATCH * LOSSES)
    images = mnist.scale(images).astype("float64")
    weights = mnist.canonical()
    start = {name: value.copy() for name, value in weights.items()}
    squares = {name: numpy.zeros_like(value) for name, value in weights.items()}
    deltas = {name: numpy.zeros_like(value) for name, value in weights.items()}
    losses, first, changes = [], None, None
    for begin in range(0, BATCH * LOSSES, BATCH):
        batch = slice(begin, begin + BATCH)
        loss, gradients = differentiate(weights, images[batch], labels[batch])
        losses.append(float(loss))
        first = first or gradients
        for name, gradient in gradients.items():
            squares[name] = RHO * squares[name] + (1 - RHO) * gradient**2
            step = numpy.sqrt(deltas[name] + EPSILON) / numpy.sqrt(squares[name] + EPSILON) * gradient
            deltas[name] = RHO * deltas[name] + (1 - RHO) * step**2
            weights[name] = weights[name] - LEARNING_RATE * step
        changes = changes or trajectory.summarise({name: weights[name] - start[name] for name in weights})
    return {
        "parameters": {"batch": BATCH, "learning_rate": LEARNING_RATE, "rho": RHO, "epsilon": EPSILON},
        "data": sha256,
        "parameter_count": sum(value.size for value in weights.values()),
        "losses": losses,
        "gradients": trajectory.summarise(first),
        "changes": {"1": changes},
    }


def differentiate(weights, x, labels):
    """Return the mean negative log likelihood and its gradients by name, at ``weights``."""
    columns1, hidden1 = convolve(x, weights["conv1.weight"], weights["conv1.bias"])
    active1 = numpy.maximum(hidden1, 0)
    columns2, hidden2 = convolve(active1, weights["conv2.weight"], weights["conv2.bias"])
    pooled, chosen = pool(hidden2)
    flat = pooled.reshape(len(x), -1)
    hidden3 = flat.dot(weights["fc1.weight"].T) + weights["fc1.bias"]
    active3 = numpy.maximum(hidden3, 0)
    scores = active3.dot(weights["fc2.weight"].T) + weights["fc2.bias"]
    shifted = scores - scores.max(axis=1, keepdims=True)
    logs = shifted - numpy.log(numpy.exp(shifted).sum(axis=1, keepdims=True))
    rows = numpy.arange(len(x))

    gradients = {}
    upstream = numpy.exp(logs)
    upstream[rows, labels] -= 1
    upstream /= len(x)
    gradients["fc2.weight"], gradients["fc2.bias"] = upstream.T.dot(active3), upstream.sum(axis=0)
    upstream = upstream.dot(weights["fc2.weight"]) * (hidden3 > 0)
    gradients["fc1.weight"], gradients["fc1.bias"] = upstream.T.dot(flat), upstream.sum(axis=0)
    upstream = upstream.dot(weights["fc1.weight"]).reshape(pooled.shape)
    upstream = unpool(upstream, chosen)
    gradients["conv2.weight"], gradients["conv2.bias"] = weigh(upstream, columns2, weights["conv2.weight"])
    upstream = unconvolve(upstream, weights["conv2.weight"]) * (hidden1 > 0)
    gradients["conv1.weight"], gradients["conv1.bias"] = weigh(upstream, columns1, weights["conv1.weight"])
    return -logs[rows, labels].mean(), gradients


def convolve(x, weight, bias):
    """Convolve (n, channels, side, side) without padding; return the patches as columns, and the result."""
    size = weight.shape[-1]
    side = x.shape[-1] - size + 1
    columns = numpy.stack(
        [x[:, :, i : i + side, j : j + side] for i in range(size) for j in range(size)], axis=2
    ).reshape(len(x), -1, side * side)
    result = numpy.einsum("fk,nkp->nfp", weight.reshape(len(weight), -1), columns, optimize=True)
    return columns, result.reshape(len(x), -1, side, side) + bias[:, None, None]


def weigh(upstream, columns, weight):
    """Return the gradients by a convolution's weight and bias."""
    flat = upstream.reshape(len(upstream), upstream.shape[1], -1)
    by_weight = numpy.einsum("nfp,nkp->fk", flat, columns, optimize=True)
    return by_weight.reshape(weight.shape), flat.sum(axis=(0, 2))


def unconvolve(upstream, weight):
    """Return the gradient by a convolution's input."""
    size = weight.shape[-1]
    side = upstream.shape[-1]
    result = numpy.zeros((len(upstream), weight.shape[1], side + size - 1, side + size - 1))
    for i in range(size):
        for j in range(size):
            part = numpy.einsum("nfab,fc->ncab", upstream, weight[:, :, i, j], optimize=True)
            result[:, :, i : i + side, j : j + side] += part
    return result


def pool(x):
    """Take the maximum of each 2x2; return it, and which of the four it was (the first of equals)."""
    count, channels, side, _ = x.shape
    blocks = x.reshape(count, channels, side // 2, 2, side // 2, 2).transpose(0, 1, 2, 4, 3, 5)
    blocks = blocks.reshape(count, channels, side // 2, side // 2, 4)
    chosen = blocks.argmax(axis=-1)
    return numpy.take_along_axis(blocks, chosen[..., None], axis=-1)[..., 0], chosen


def unpool(upstream, chosen):
    """Hand a gradient on to what ``pool`` chose."""
    count, channels, half, _ = upstream.shape
    blocks = numpy.zeros(upstream.shape + (4,))
    numpy.put_along_axis(blocks, chosen[..., None], upstream[..., None], axis=-1)
    blocks = blocks.reshape(count, channels, half, half, 2, 2).transpose(0, 1, 2, 4, 3, 5)
    return blocks.reshape(count, channels, 2 * half, 2 * half)


if __name__ == "__main__":
    with open(sys.argv[1] + "/manifest.json") as manifest:
        trajectory.write("mnist", [compute(sys.argv[1], json.load(manifest)["sha256"])])
