"""Small data sets in MNIST's format."""

import json
import os
import struct

import numpy


def encode(array):
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(">%dI" % array.ndim, *array.shape)
    return head + array.astype("uint8").tobytes()


def write_set(folder, train=640, test=100, seed=0):
    """Write distinct images, a tenth of their pixels lit, their label told by the row of one bright pixel."""
    draw = numpy.random.RandomState(seed)
    raw = os.path.join(str(folder), "MNIST", "raw")
    os.makedirs(raw)
    for prefix, count in (("train", train), ("t10k", test)):
        labels = draw.randint(0, 10, count)
        images = draw.randint(1, 256, (count, 28, 28)) * (draw.uniform(size=(count, 28, 28)) < 0.1)
        images[numpy.arange(count), 4 + 2 * labels] = 255
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            with open(os.path.join(raw, "%s-%s-ubyte" % (prefix, kind)), "wb") as file:
                file.write(encode(array))
    return {"name": "noise", "sha256": "%064x" % seed, "folder": str(folder), "nature": "noise"}


def write_manifest(folder, data):
    with open(os.path.join(str(folder), "manifest.json"), "w") as file:
        json.dump(data, file)
