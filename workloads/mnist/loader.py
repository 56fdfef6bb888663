"""What every loader of the match hands out, and in which order and size.

A loader's module has ``open_loader(cell, framework, order)``, which returns a ``Loader``.
"""

from typing import Optional

from workloads.fault import Fault

WAIT_S = 60
"""A batch that takes longer never comes: a worker hangs."""


class Order(object):
    """How a loader is to hand out its data.

    Attributes:
        images: by split, how many are used, from the start of the data set.
        batch: by split, images in a batch.
        shuffled: by split, whether the order is drawn anew in each epoch.
        epochs: how often a split is gone through.
        seed: of the order.
        pinned: whether batches lie in page-locked memory.
    """

    def __init__(self, images, batch, shuffled, epochs, seed, pinned):
        self.images = images
        self.batch = batch
        self.shuffled = shuffled
        self.epochs = epochs
        self.seed = seed
        self.pinned = pinned

    def fixed(self):
        """Return the same with shuffling off."""
        never = dict.fromkeys(self.shuffled, False)
        return Order(self.images, self.batch, never, self.epochs, self.seed, False)


class Loader(object):
    """Feeds batches: images, float32 of (n, 1, 28, 28) in [0, 1], and labels, int64 of (n,), as tensors.

    Each loader has ``epoch(split)``, which returns an iterator over one epoch of ``train`` or ``test``.

    Attributes:
        settings: what stands beside a row.
        resident: whether batches come on the device already.
        closing_s: seconds from the last batch of an epoch to its end, where the loader knows.
    """

    resident = False
    closing_s: Optional[float] = None

    def __init__(self, settings):
        self.settings = settings

    def close(self):
        """End what outlives an epoch."""


def read_count(variant, prefix):
    """Read the number at the end of a variant's name.

    Raises:
        Fault: there is none.
    """
    digits = variant[len(prefix) :].partition("-")[0]
    if not digits.isdigit():
        raise Fault("variant", "%s: no number of workers after %s" % (variant, prefix))
    return int(digits)
