"""Batches for the Keras of before tf.data, made by numpy: in ``fair`` the arithmetic of both sides, in
``article`` one image after the other, each standardised by its own mean and deviation."""

import itertools

import numpy

from workloads import densenet
from workloads.clock import Clock
from workloads.densenet import augment, plan


def draw_batch(parameters, dtype):
    """Return a generator, which is all that Keras takes, that hands out the canonical batch without end."""
    images, labels = densenet.draw_batch(parameters)
    return (batch for batch in itertools.repeat((images.astype(dtype), labels)))


def open_batches(cell, data):
    """Open the batches of the cell's edition."""
    return (Batches if cell["edition"] == "fair" else ArticleBatches)(cell["parameters"], data)


class Batches(object):
    """Whole batches at a time, made when they are asked for.

    Args:
        parameters: the cell's.
        data: a ``match.Data``.

    Attributes:
        ns: nanoseconds that making batches took.
        images: how many were handed out.
    """

    ahead = {"workers": 0}
    """How ``fit_generator`` is told to have them made."""

    def __init__(self, parameters, data):
        self.data = data
        self.sizes = {"train": parameters["batch"], "validate": parameters["validation_batch"]}
        self.ns = self.images = 0
        self.start()

    def start(self):
        """Begin with the first epoch's choices again."""
        self.choices = self.data.draw()
        self.pixels = augment.pad(self.data.train[0]).reshape(-1, plan.CHANNELS)

    def draw(self):
        """Draw the choices of the epoch that begins."""
        self.choose(next(self.choices))

    def choose(self, choices):
        """Have the next epoch made with these choices."""
        self.chosen = choices

    def count(self, split):
        """Count the batches of an epoch."""
        return -(-len(getattr(self.data, split)[1]) // self.sizes[split])

    def epoch(self, split):
        """Yield the batches of an epoch, and say meanwhile what they took."""
        make, size = getattr(self, split), self.sizes[split]
        for place in range(self.count(split)):
            begin_ns = Clock.now_ns()
            batch = make(slice(place * size, (place + 1) * size))
            self.ns += Clock.now_ns() - begin_ns
            self.images += len(batch[1])
            yield batch

    def train(self, places):
        """Make the training batch of these places in the epoch's order."""
        chosen = self.chosen
        sides = numpy.arange(plan.SIDE)
        turned = chosen.flipped[places, None]
        across = numpy.where(turned, plan.SIDE - 1 - sides, sides) + chosen.columns[places, None]
        down = chosen.rows[places, None] + sides
        images = chosen.images[places]
        start = images * augment.PADDED**2
        index = start[:, None, None] + down[:, :, None] * augment.PADDED + across[:, None, :]
        return augment.normalise(self.pixels[index]), self.data.train[1][images]

    def validate(self, places):
        """Make a batch of the images for validation, in order."""
        images, labels = self.data.validate
        return augment.normalise(images[places]), labels[places]


class ArticleBatches(Batches):
    """Made ahead by a thread, as ``fit_generator`` does by itself."""

    ahead = {"workers": 1, "max_queue_size": 10, "use_multiprocessing": False}

    def start(self):
        """Begin with the first epoch's choices again."""
        self.choices = self.data.draw()

    def train(self, places):
        """Turn, crop and standardise one image after the other."""
        chosen, made = self.chosen, []
        for image, row, column, flipped in zip(
            chosen.images[places], chosen.rows[places], chosen.columns[places], chosen.flipped[places]
        ):
            padded = augment.pad(self.data.train[0][image : image + 1])
            crop = padded[:, row : row + plan.SIDE, column : column + plan.SIDE]
            made.append(augment.standardise(crop[:, :, ::-1] if flipped else crop))
        return numpy.concatenate(made), self.data.train[1][chosen.images[places]]

    def validate(self, places):
        """Standardise one image after the other."""
        images, labels = self.data.validate
        made = [augment.standardise(image[None]) for image in images[places]]
        return numpy.concatenate(made), labels[places]
