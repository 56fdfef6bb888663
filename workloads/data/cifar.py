"""The files of CIFAR-10's binary version, read as numpy arrays.

A. Krizhevsky: Learning multiple layers of features from tiny images, 2009.
"""

import os

import numpy

from workloads.fault import Fault

FOLDER = "cifar-10-batches-bin"
FILES = {
    "train": ["data_batch_%d.bin" % number for number in range(1, 6)],
    "test": ["test_batch.bin"],
}
SIDE, CHANNELS = 32, 3


def read_split(folder, split, count=None):
    """Read images and labels.

    Args:
        folder: holds the binary version's layout.
        split: ``train`` or ``test``.
        count: how many from the start; all by default.

    Returns:
        (images, labels): uint8 of (count, 32, 32, 3), and int64 of (count,).

    Raises:
        Fault: a file is missing or is none of this kind, or there are fewer than ``count``.
    """
    parts, found = [], 0
    for name in FILES[split]:
        if count is not None and found >= count:
            break
        parts.append(read(os.path.join(folder, FOLDER, name)))
        found += len(parts[-1])
    if count is not None and count > found:
        where = os.path.join(folder, FOLDER)
        raise Fault("data", "%s: %d images where %d are asked for" % (where, found, count))
    records = numpy.concatenate(parts)[:count]
    images = records[:, 1:].reshape(-1, CHANNELS, SIDE, SIDE).transpose(0, 2, 3, 1)
    return numpy.ascontiguousarray(images), records[:, 0].astype("int64")


def read(path):
    """Read a file's records: uint8 of (n, 3073), the label first.

    Raises:
        Fault: it is missing, or no whole number of records.
    """
    try:
        records = numpy.fromfile(path, "uint8")
    except (IOError, OSError) as error:
        raise Fault("data", "%s: %s" % (path, error.strerror))
    size = 1 + CHANNELS * SIDE * SIDE
    if records.size % size:
        raise Fault("data", "%s: %d bytes are no whole number of images" % (path, records.size))
    return records.reshape(-1, size)
