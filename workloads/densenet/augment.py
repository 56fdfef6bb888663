"""Random flips and crops of an epoch: drawn once by numpy for whichever framework, so that both train on the
same images in the same order; and what they come to, written plainly, for proofs."""

import numpy

from workloads.densenet import plan

PADDING = 4
"""Zeros around an image, of which a crop of the image's own size is taken."""
PADDED = plan.SIDE + 2 * PADDING


class Choices(object):
    """What is drawn for the images of an epoch, in the order in which they are handed out.

    Attributes:
        images: their places in the data set, int64 of (n,).
        rows, columns: where the crop begins in the padded image, 0 to 8, int64 of (n,).
        flipped: whether the crop is turned left to right, bool of (n,).
    """

    def __init__(self, images, rows, columns, flipped):
        self.images, self.rows, self.columns, self.flipped = images, rows, columns, flipped


def draw(count, seed):
    """Draw the choices of epoch after epoch over the first ``count`` images, without end."""
    chance = numpy.random.RandomState(seed)
    while True:
        yield Choices(
            chance.permutation(count),
            chance.randint(0, 2 * PADDING + 1, count),
            chance.randint(0, 2 * PADDING + 1, count),
            chance.randint(0, 2, count).astype(bool),
        )


def pad(images):
    """Put zeros around uint8 images of (n, 32, 32, 3)."""
    edge = (PADDING, PADDING)
    return numpy.pad(images, ((0, 0), edge, edge, (0, 0)), "constant")


def normalise(images):
    """Turn 0 to 255 into -1 to 1, as subtracting 0.5 of the whole and dividing by 0.5 do."""
    return images.astype("float32") / numpy.float32(127.5) - numpy.float32(1)


def standardise(images):
    """Return uint8 images each less its mean, divided by its deviation, which is taken to be 1/sqrt(values)
    at least: float32 of the same shape."""
    flat = images.reshape(len(images), -1).astype("float64")
    least = flat.shape[1] ** -0.5
    made = (flat - flat.mean(axis=1, keepdims=True)) / numpy.maximum(flat.std(axis=1, keepdims=True), least)
    return made.astype("float32").reshape(images.shape)


def apply(images, choices):
    """Return what an epoch's choices make of uint8 images (n, 32, 32, 3): float32 of the same shape.

    One image after the other: slow, and plain to read.
    """
    made = []
    for place, row, column, flipped in zip(choices.images, choices.rows, choices.columns, choices.flipped):
        crop = pad(images[place : place + 1])[0, row : row + plan.SIDE, column : column + plan.SIDE]
        made.append(crop[:, ::-1] if flipped else crop)
    return normalise(numpy.array(made))
