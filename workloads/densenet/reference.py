"""Computes the match's trajectories in plain numpy: ``python -m workloads.densenet.reference``.

Written from the formulas, without a framework, so that no framework is its own judge.
"""

from typing import Dict, Tuple

import numpy

from workloads import densenet, trajectory
from workloads.densenet import plan, recipe

LOSSES = 6
PLAN = {
    "blocks": [6, 12, 24, 16],
    "growth_rate": 16,
    "bottleneck": 128,
    "stem_channels": 32,
    "stem_stride": 1,
    "compression": 0.5,
}
TRAINING = {
    "learning_rate": 1e-3,
    "l2": 2e-4,
    "norm_epsilon": 1e-5,
    "norm_momentum": 0.9,
    "adam_epsilon": 1e-8,
}
SIZES = (
    # Of the profiles: smoke, quick, and the article's.
    dict(PLAN, blocks=[1, 1, 1, 1], bottleneck=32, batch=32),
    dict(PLAN, batch=16),
    dict(PLAN, batch=128),
)
SIDES: Tuple[Tuple[str, str, Dict[str, str]], ...] = (
    ("fair", "torch", {}),
    ("fair", "keras", {}),
    ("article", "torch", {}),
    ("article", "keras", {}),
    # Of PyTorch 1.0 and of Keras 2.1, where they are not as today's.
    ("article", "torch", {"epsilon_at": "uncorrected"}),
    ("fair", "keras", {"variance": "keras-2"}),
    ("article", "keras", {"variance": "keras-2"}),
)


def compute(parameters, edition, side, own):
    """Train for ``LOSSES`` steps in float64 on the canonical batch and return the trajectory.

    Args:
        own: what a version has of its own, as ``recipe.choose`` takes it.
    """
    how = recipe.choose(parameters, edition, side, **own)
    weights = densenet.canonical(parameters)
    start = {name: value.copy() for name, value in weights.items()}
    images, labels = densenet.draw_batch(parameters)
    moments = {name: (numpy.zeros_like(value), numpy.zeros_like(value)) for name, value in weights.items()}
    losses, first, changes, statistics = [], None, None, None
    for step in range(1, LOSSES + 1):
        loss, gradients, seen = differentiate(parameters, weights, images, labels, how)
        losses.append(float(loss))
        for name, gradient in gradients.items():
            moments[name], change = move(moments[name], gradient, step, parameters["learning_rate"], how)
            weights[name] = weights[name] - change
        if first is None:
            first, statistics = gradients, seen
            changes = {name: weights[name] - start[name] for name in weights if is_told(name, how)}
    return {
        "parameters": parameters,
        "recipe": how.name,
        "parameter_count": sum(value.size for value in weights.values()),
        "losses": losses,
        "gradients": trajectory.summarise(plan.group_by_layer(first)),
        "changes": {"1": trajectory.summarise(plan.group_by_layer(changes))},
        "statistics": trajectory.summarise(plan.group_by_layer(statistics)),
    }


def is_told(name, how):
    """Tell whether a tensor's change says anything: where its gradient is nothing but rounding, Adam makes a
    full step of that."""
    return not plan.is_silent(name) or how.decayed == "all"


def move(moments, gradient, step, rate, how):
    """Return the moments after a step of Adam, and what it takes from the tensor."""
    mean, square = moments
    mean = recipe.BETAS[0] * mean + (1 - recipe.BETAS[0]) * gradient
    square = recipe.BETAS[1] * square + (1 - recipe.BETAS[1]) * gradient**2
    corrections = [1 - beta**step for beta in recipe.BETAS]
    if how.epsilon_at == "corrected":
        root = numpy.sqrt(square / corrections[1]) + how.adam_epsilon
    else:
        root = (numpy.sqrt(square) + how.adam_epsilon) / corrections[1] ** 0.5
    return (mean, square), rate / corrections[0] * mean / root


def schedule(parameters):
    """Yield the learning rate of each epoch: a tenth of it from half of all epochs on, of that a tenth from
    four fifths on, for the milestones 0.5 and 0.8."""
    bounds = [0.0, *parameters["milestones"], 1.0]
    for drops, (begin, end) in enumerate(zip(bounds, bounds[1:])):
        for epoch in range(parameters["epochs"]):
            if begin * parameters["epochs"] <= epoch < end * parameters["epochs"]:
                yield parameters["learning_rate"] / 10**drops


def differentiate(parameters, weights, images, labels, how):
    """Return the loss as it is trained on, the gradients as the optimiser gets them, and the running
    statistics after the step, each by name."""
    net = Net(parameters, weights, how)
    loss = net.forward(images, labels)
    gradients = net.backward()
    for name, weight in weights.items():
        if how.decayed == "all" or plan.is_kernel(name):
            gradients[name] = gradients[name] + how.decay * weight
            # A penalty of c w^2 has the gradient 2 c w.
            loss = loss + (how.decay / 2 * (weight**2).sum() if how.in_loss else 0.0)
    return loss, gradients, net.statistics


class Net(object):
    """The net in training, layer by layer; images lie as (n, rows, columns, channels)."""

    def __init__(self, parameters, weights, how):
        self.plan = plan.make(parameters)
        self.stride = parameters["stem_stride"]
        self.weights = weights
        self.how = how
        self.gradients, self.statistics, self.kept = {}, {}, {}

    def forward(self, images, labels):
        """Return the mean cross entropy."""
        x = self.convolve("stem.conv", images, self.stride)
        for block, layers in enumerate(self.plan.blocks):
            if block:
                name = plan.name_transition(block)
                x = self.convolve(name + ".conv", self.activate(name + ".norm", x))
                n, side, _, channels = x.shape
                x = x.reshape(n, side // 2, 2, side // 2, 2, channels).mean(axis=(2, 4))
            for layer in range(len(layers)):
                name = plan.name_layer(block, layer)
                new = self.convolve(name + ".conv1", self.activate(name + ".norm1", x))
                new = self.convolve(name + ".conv2", self.activate(name + ".norm2", new))
                x = numpy.concatenate([x, new], axis=3)
        active = self.activate("norm", x)
        pooled = active.mean(axis=(1, 2))
        scores = pooled.dot(self.weights["classifier.weight"].T) + self.weights["classifier.bias"]
        shifted = scores - scores.max(axis=1, keepdims=True)
        logs = shifted - numpy.log(numpy.exp(shifted).sum(axis=1, keepdims=True))
        self.kept["end"] = active.shape, pooled, logs, labels
        return -logs[numpy.arange(len(labels)), labels].mean()

    def backward(self):
        """Return the gradients of the loss by name."""
        shape, pooled, logs, labels = self.kept.pop("end")
        upstream = numpy.exp(logs)
        upstream[numpy.arange(len(labels)), labels] -= 1
        upstream /= len(labels)
        self.gradients["classifier.weight"] = upstream.T.dot(pooled)
        self.gradients["classifier.bias"] = upstream.sum(axis=0)
        upstream = upstream.dot(self.weights["classifier.weight"]) / (shape[1] * shape[2])
        upstream = numpy.broadcast_to(upstream[:, None, None], shape)
        upstream = self.deactivate("norm", upstream)
        for block in reversed(range(len(self.plan.blocks))):
            for layer in reversed(range(len(self.plan.blocks[block]))):
                name = plan.name_layer(block, layer)
                width = self.plan.blocks[block][layer]
                new = self.deactivate(
                    name + ".norm2", self.unconvolve(name + ".conv2", upstream[..., width:])
                )
                new = self.deactivate(name + ".norm1", self.unconvolve(name + ".conv1", new))
                upstream = upstream[..., :width] + new
            if block:
                name = plan.name_transition(block)
                upstream = upstream.repeat(2, axis=1).repeat(2, axis=2) / 4
                upstream = self.deactivate(name + ".norm", self.unconvolve(name + ".conv", upstream))
        self.unconvolve("stem.conv", upstream, self.stride, is_first=True)
        return self.gradients

    def activate(self, name, x):
        """Normalise by the batch's own statistics, scale, shift, and cut below 0."""
        mean, variance = x.mean(axis=(0, 1, 2)), x.var(axis=(0, 1, 2))
        deviation = numpy.sqrt(variance + self.how.norm_epsilon)
        normal = (x - mean) / deviation
        self.kept[name] = normal, deviation
        count = x.size // x.shape[3]
        divisors = {"biased": 0, "unbiased": 1, "keras-2": 1 + self.how.norm_epsilon}
        told = variance * count / (count - divisors[self.how.variance])
        # They are told after the first step.
        kept = 0.0 if self.how.is_debiased else self.how.norm_momentum
        self.statistics[name + ".mean"] = (1 - kept) * mean
        self.statistics[name + ".variance"] = kept + (1 - kept) * told
        return numpy.maximum(normal * self.weights[name + ".weight"] + self.weights[name + ".bias"], 0)

    def deactivate(self, name, upstream):
        """Hand a gradient on to what ``activate`` took, and keep those of its scale and offset."""
        normal, deviation = self.kept.pop(name)
        scale = self.weights[name + ".weight"]
        upstream = upstream * (normal * scale + self.weights[name + ".bias"] > 0)
        places = (0, 1, 2)
        by_scale, by_offset = (upstream * normal).sum(axis=places), upstream.sum(axis=places)
        self.gradients[name + ".weight"], self.gradients[name + ".bias"] = by_scale, by_offset
        count = normal.size // normal.shape[3]
        return scale / deviation * (upstream - by_offset / count - normal * by_scale / count)

    def convolve(self, name, x, stride=1):
        """Convolve with zeros around, so that a stride of 1 keeps the size."""
        weight = self.weights[name + ".weight"]
        self.kept[name] = x
        out = self.weights[name + ".bias"]
        for i, j, part in cut(x, weight.shape[-1], stride):
            out = out + weigh(part, weight[:, :, i, j].T)
        return out

    def unconvolve(self, name, upstream, stride=1, is_first=False):
        """Hand a gradient on to what ``convolve`` took, unless nobody asks, and keep those of its weight and
        bias."""
        weight, x = self.weights[name + ".weight"], self.kept.pop(name)
        flat = upstream.reshape(-1, upstream.shape[3])
        by_weight = numpy.empty_like(weight)
        for i, j, part in cut(x, weight.shape[-1], stride):
            by_weight[:, :, i, j] = flat.T.dot(part.reshape(-1, part.shape[3]))
        self.gradients[name + ".weight"], self.gradients[name + ".bias"] = by_weight, flat.sum(axis=0)
        if is_first:
            return None
        # Its mirror image: with a stride of 1 the same walk, the kernel turned round.
        turned = weight[:, :, ::-1, ::-1]
        return sum(weigh(part, turned[:, :, i, j]) for i, j, part in cut(upstream, weight.shape[-1], 1))


def weigh(x, matrix):
    """Multiply the last axis by a matrix: as two dimensions, for which alone numpy asks BLAS."""
    return x.reshape(-1, x.shape[-1]).dot(matrix).reshape(x.shape[:-1] + matrix.shape[1:])


def cut(x, size, stride):
    """Yield row, column and what lies under that element of a kernel, for each place of the result."""
    edge = size // 2
    padded = numpy.pad(x, ((0, 0), (edge, edge), (edge, edge), (0, 0)), "constant") if edge else x
    for i in range(size):
        for j in range(size):
            yield i, j, padded[:, i : i + x.shape[1] : stride, j : j + x.shape[2] : stride]


if __name__ == "__main__":
    trajectory.write(
        "densenet",
        [compute(dict(sizes, **TRAINING), *side) for sizes in SIZES for side in SIDES],
    )
