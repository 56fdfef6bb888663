"""A small data set in CIFAR-10's binary version, for tests of what reads it."""

import numpy

from workloads.data import cifar


def write_set(folder, count=12, seed=0):
    """Write ``count`` images a file and return the contract's ``Data``."""
    place = folder / cifar.FOLDER
    place.mkdir(parents=True)
    draw = numpy.random.RandomState(seed)
    for names in cifar.FILES.values():
        for name in names:
            records = draw.randint(0, 256, (count, 3073)).astype("uint8")
            records[:, 0] = draw.randint(0, 10, count)
            records.tofile(str(place / name))
    return {"name": "small", "sha256": "2" * 64, "folder": str(folder), "nature": "", "derived": None}
