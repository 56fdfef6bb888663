"""The one plan from which both frameworks build the net: its layers, their names and their shapes.

A dense layer is normalisation, rectifier, 1 x 1 convolution to ``bottleneck`` channels, normalisation,
rectifier, 3 x 3 convolution to ``growth_rate`` channels, concatenation. Between blocks a transition:
normalisation, rectifier, 1 x 1 convolution to ``compression`` of the channels, mean over 2 x 2. After the
last block: normalisation, rectifier, mean over all places, a dense layer. Every convolution has a bias.
"""

import numpy

from workloads import work
from workloads.fault import Fault

SIDE, CHANNELS, CLASSES = 32, 3, 10
KERNEL = 3


class Plan(object):
    """The net's widths.

    Attributes:
        stem: channels.
        blocks: for each, the input channels of its layers.
        transitions: input and output channels of each.
        last: channels at the end.
    """

    def __init__(self, stem, blocks, transitions, last):
        self.stem, self.blocks, self.transitions, self.last = stem, blocks, transitions, last


def make(parameters):
    """Lay the net out.

    Raises:
        Fault: an image does not survive so many halvings.
    """
    channels = parameters["stem_channels"]
    blocks, transitions = [], []  # type: list, list
    for layers in parameters["blocks"]:
        if blocks:
            narrow = int(channels * parameters["compression"])
            transitions.append((channels, narrow))
            channels = narrow
        blocks.append([channels + layer * parameters["growth_rate"] for layer in range(layers)])
        channels += layers * parameters["growth_rate"]
    if SIDE % (parameters["stem_stride"] * 2 ** len(transitions)):
        raise Fault("plan", "images of %d pixels cannot be halved so often" % SIDE)
    return Plan(parameters["stem_channels"], blocks, transitions, channels)


def name_layer(block, layer):
    """Name a dense layer, both counted from 0."""
    return "block%d.layer%d" % (block + 1, layer + 1)


def name_transition(block):
    """Name the transition before a block, counted from 0."""
    return "transition%d" % block


def is_norm(layer):
    """Tell whether a layer's name is that of a normalisation."""
    return "norm" in layer.rpartition(".")[2]


def is_silent(name):
    """Tell whether a tensor is a bias of a convolution. Each of them reaches the loss through a normalisation
    alone, which takes it away again: its gradient is nothing but rounding."""
    return name.endswith(("conv.bias", "conv1.bias", "conv2.bias"))


def is_kernel(name):
    """Tell whether a tensor is the weight of a convolution or of the dense layer."""
    layer, _, kind = name.rpartition(".")
    return kind == "weight" and not is_norm(layer)


def find_shapes(parameters):
    """Return the shapes of all trainable tensors by name, in order: (outputs, inputs, rows, columns) of a
    convolution, (outputs, inputs) of the dense layer, (channels,) of all others."""
    laid, shapes = make(parameters), {}

    def add(name, *shape):
        shapes[name + ".weight"] = shape
        shapes[name + ".bias"] = shape[:1]

    add("stem.conv", laid.stem, CHANNELS, KERNEL, KERNEL)
    for block, layers in enumerate(laid.blocks):
        if block:
            wide, narrow = laid.transitions[block - 1]
            add(name_transition(block) + ".norm", wide)
            add(name_transition(block) + ".conv", narrow, wide, 1, 1)
        for layer, channels in enumerate(layers):
            name = name_layer(block, layer)
            add(name + ".norm1", channels)
            add(name + ".conv1", parameters["bottleneck"], channels, 1, 1)
            add(name + ".norm2", parameters["bottleneck"])
            add(name + ".conv2", parameters["growth_rate"], parameters["bottleneck"], KERNEL, KERNEL)
    add("norm", laid.last)
    add("classifier", CLASSES, laid.last)
    return shapes


def group_by_layer(tensors):
    """Join the tensors of each dense layer, transition and so on into one vector by its name.

    A net of 121 layers has 482 trainable tensors; what is told of each would be a megabyte a proof. A
    projection of the whole vector changes with any of its elements.
    """
    joined = {}  # type: dict
    for name in sorted(tensors):
        parts = name.split(".")
        joined.setdefault(".".join(parts[:2]) if parts[0].startswith("block") else parts[0], []).append(
            numpy.asarray(tensors[name], dtype="float64").ravel()
        )
    return {name: numpy.concatenate(parts) for name, parts in joined.items()}


def list_flop(parameters):
    """Operations of the forward pass on one image, by convolution and dense layer, the stem first."""
    laid = make(parameters)
    side = SIDE // parameters["stem_stride"]
    found = [work.matmul_flop(side**2, CHANNELS * KERNEL**2, laid.stem)]
    for block, layers in enumerate(laid.blocks):
        if block:
            wide, narrow = laid.transitions[block - 1]
            found.append(work.matmul_flop(side**2, wide, narrow))
            side //= 2
        for channels in layers:
            found.append(work.matmul_flop(side**2, channels, parameters["bottleneck"]))
            inner = parameters["bottleneck"] * KERNEL**2
            found.append(work.matmul_flop(side**2, inner, parameters["growth_rate"]))
    return [*found, work.matmul_flop(1, laid.last, CLASSES)]
