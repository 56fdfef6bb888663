"""What a loader hands out, looked at: the same bytes in a fixed order, the same images in a drawn one, and
how well drawn it is."""

import numpy
import torch

from workloads import mnist
from workloads.data import idx
from workloads.fault import Fault
from workloads.mnist import reference
from workloads.mnist.model import Trainer
from workloads.proof import LOSSES
from workloads.subject import Subject

EPOCHS = 2
"""Of which the orders are compared."""
REPEATED, MISSED = "images_repeated", "images_missed"


def build(cell, framework, dtype, open_it):
    """Build what a proof looks at: training on what the loader hands out in a fixed order, and the loader."""
    audit = Audit(cell, open_it)
    trainer = Trainer(framework, cell["parameters"], dtype)
    batches = [
        (images.to(framework.place, trainer.dtype), labels.to(framework.place))
        for images, labels in audit.first
    ]
    later = iter(batches)
    return Subject(
        units={},
        losses=lambda value: [value],
        gradients=lambda: (
            trainer.differentiate(*batches[0]),
            trainer.name_tensors(lambda tensor: tensor.grad),
        ),
        parameters=lambda: trainer.name_tensors(lambda tensor: tensor),
        step=lambda: trainer.train(*next(later)),
        checks=audit.checks,
        figures=audit.figures,
        judge=lambda: reference.compute(cell["data"]["folder"], cell["data"]["sha256"]),
    )


def read_batches(folder, batch, count):
    """Read the first batches of the training images, as tensors."""
    images, labels = idx.read_split(folder, "train", batch * count)
    whole = torch.from_numpy(mnist.scale(images)), torch.from_numpy(labels)
    return list(zip(whole[0].split(batch), whole[1].split(batch)))


class Audit(object):
    """Goes through a loader's data.

    Attributes:
        first: the first batches in the fixed order.
        checks: name, expected and found count.
        figures: how well the order is drawn.
    """

    def __init__(self, cell, open_it):
        parameters = cell["parameters"]
        used = max(parameters["load_images"], parameters["train_images"])
        counts = {"train": used, "test": parameters["validate_images"]}
        folder = cell["data"]["folder"]
        self.first, self.checks, self.figures = [], [], {}
        loader = open_it(counts, fixed=True)
        for split, count in counts.items():
            images, labels = idx.read_split(folder, split, count)
            self.compare(split, loader.epoch(split), mnist.scale(images), labels)
        loader.close()
        images, _ = idx.read_split(folder, "train", used)
        known = number_images(images)
        loader = open_it({"train": used})
        self.judge_order(
            images, known, [read_order(loader.epoch("train"), known) for _ in range(EPOCHS)], cell
        )
        loader.close()

    def compare(self, split, batches, images, labels):
        """Count the bytes in which a fixed order differs from the data set's own.

        Raises:
            Fault: a batch is of another type or shape.
        """
        seen, differing = 0, 0
        for batch in batches:
            handed = [tensor.cpu().numpy() for tensor in batch]
            if split == "train" and len(self.first) < LOSSES:
                self.first.append(tuple(tensor.cpu() for tensor in batch))
            for found, whole in zip(handed, (images, labels)):
                wanted = whole[seen : seen + len(handed[1])]
                if found.dtype != wanted.dtype or found.shape != wanted.shape:
                    raise Fault(
                        "data",
                        "a batch is %s of %s where %s of %s is wanted"
                        % (found.dtype, found.shape, wanted.dtype, wanted.shape),
                    )
                differing += count_differing_bytes(found, wanted)
            seen += len(handed[1])
        self.checks.append(("count[%s images]" % split, len(labels), seen))
        self.checks.append(("count[different bytes of %s]" % split, 0, differing))

    def judge_order(self, images, known, orders, cell):
        """Say how many images were repeated and missed, and how well two epochs are shuffled."""
        wanted = numpy.bincount([known[image.tobytes()] for image in images], minlength=len(images))
        found = numpy.bincount(orders[0], minlength=len(images))
        repeated = int(numpy.maximum(found - wanted, 0).sum())
        missed = int(numpy.maximum(wanted - found, 0).sum())
        if cell["edition"] == "fair":
            self.checks.append(("count[%s]" % REPEATED, 0, repeated))
            self.checks.append(("count[%s]" % MISSED, 0, missed))
        elif repeated or missed:
            self.figures.update({REPEATED: repeated, MISSED: missed})
        self.figures["shuffle_rank_correlation"] = correlate(numpy.arange(len(orders[0])), orders[0])
        places = [find_places(order, len(images)) for order in orders]
        both = (places[0] >= 0) & (places[1] >= 0)
        self.figures["reshuffle_rank_correlation"] = correlate(places[0][both], places[1][both])


def count_differing_bytes(found, wanted):
    """Count the bytes in which two arrays of one type and shape differ."""
    pair = [numpy.ascontiguousarray(array).view("uint8") for array in (found, wanted)]
    return int((pair[0] != pair[1]).sum())


def number_images(images):
    """Number uint8 images (n, rows, columns) by content: equal ones have the number of the first of them."""
    known = {}  # type: dict
    for place, image in enumerate(images):
        known.setdefault(image.tobytes(), place)
    return known


def read_order(batches, known):
    """Return the number of each image that was handed out, in time order.

    Raises:
        Fault: one is not ``known``.
    """
    order = []
    for batch, _ in batches:
        # Exact: 255 steps of 1/255 are told apart by far.
        for image in numpy.rint(batch.cpu().numpy() * 255).astype("uint8"):
            number = known.get(image.tobytes())
            if number is None:
                raise Fault("data", "the loader handed out an image that is not in the data set")
            order.append(number)
    return numpy.array(order)


def find_places(order, count):
    """Return where each of ``count`` images came first in an order; -1 where it did not."""
    places = numpy.full(count, -1)
    places[order[::-1]] = numpy.arange(len(order))[::-1]
    return places


def correlate(one, other):
    """Spearman's rank correlation of two orders, whose values are ranks already: about 0 +- 1/sqrt(n) for
    independent ones, 1 for equal ones."""
    return float(numpy.corrcoef(one, other)[0, 1])
