"""IDX files, the format of MNIST: read as numpy arrays.

Y. LeCun, C. Cortes, C. J. C. Burges: The MNIST database of handwritten digits, 1998.
"""

import os
import struct

import numpy

from workloads.fault import Fault

UNSIGNED_BYTES = 0x08
FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


def read_split(folder, split, count=None):
    """Read images and labels.

    Args:
        folder: holds torchvision's layout, ``MNIST/raw``.
        split: ``train`` or ``test``.
        count: how many from the start; all by default.

    Returns:
        (images, labels): uint8 of (count, rows, columns), and int64 of (count,).

    Raises:
        Fault: a file is missing or is no IDX file, or there are fewer than ``count``.
    """
    paths = [os.path.join(folder, "MNIST", "raw", name) for name in FILES[split]]
    images, labels = read(paths[0], 3), read(paths[1], 1)
    if len(images) != len(labels):
        raise Fault("data", "%s: %d images and %d labels" % (paths[0], len(images), len(labels)))
    if count is not None and count > len(images):
        raise Fault("data", "%s: %d images where %d are asked for" % (paths[0], len(images), count))
    return images[:count], labels[:count].astype("int64")


def read(path, dimensions):
    """Read a file of unsigned bytes.

    Raises:
        Fault: it is missing, no such file, or longer or shorter than it says.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise Fault("data", "%s: %s" % (path, error.strerror))
    head = 4 + 4 * dimensions
    if len(content) < head or content[:4] != bytes([0, 0, UNSIGNED_BYTES, dimensions]):
        raise Fault("data", "%s: no IDX file of %d dimensions of bytes" % (path, dimensions))
    shape = struct.unpack(">%dI" % dimensions, content[4:head])
    values = numpy.frombuffer(content, "uint8", offset=head)
    size = 1
    for length in shape:
        size *= length
    if values.size != size:
        raise Fault("data", "%s: %d bytes where its head says %d" % (path, values.size, size))
    return values.reshape(shape)
