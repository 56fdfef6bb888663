"""``shapes``: ten classes of drawn shapes in CIFAR-10's format and size, for hosts without network.

Disc, ring, square, frame, triangle, plus, cross, bars that lie, bars that stand, chequers: each of its own
size, place and colours, on a ground of another colour, with noise. All look alike in a mirror. All in whole
numbers, so that every machine makes the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from scripts import cifar

if TYPE_CHECKING:
    from numpy.random import RandomState
    from numpy.typing import NDArray

SEED = 0
SIDE = 32
RADIUS = (6, 12)
"""In pixels, from and to."""
SHIFT = 6
"""At most, either way, in pixels."""
NOISE = 3
"""A byte of noise is shifted right by so many bits."""
CONTRAST = 40
"""At least, between ground and shape, in the channel that differs most."""
CHUNK = 1000
"""Images at a time, for memory's sake."""


def generate() -> dict[str, tuple[bytes, bytes]]:
    """Return pixels and labels of each batch of the archive."""
    import numpy

    chance = numpy.random.RandomState(SEED)
    batches = {}
    for name in cifar.BATCHES:
        labels = chance.permutation(numpy.arange(cifar.BATCH) % cifar.CLASSES).astype(numpy.uint8)
        made = b"".join(
            _draw(labels[at : at + CHUNK], chance).tobytes() for at in range(0, len(labels), CHUNK)
        )
        batches[name] = made, labels.tobytes()
    return batches


def _draw(labels: NDArray[Any], chance: RandomState) -> NDArray[Any]:
    """Draw images, uint8 of (n, 3, 32, 32)."""
    import numpy

    count = len(labels)
    radius = chance.randint(RADIUS[0], RADIUS[1] + 1, (count, 1, 1))
    shift = chance.randint(-SHIFT, SHIFT + 1, (2, count, 1, 1))
    ground = chance.randint(0, 256, (count, 3))
    ink = chance.randint(0, 256, (count, 3))
    # Where both are too much alike, the ink's first channel goes to the other half.
    alike = abs(ground - ink).max(axis=1) < CONTRAST
    ink[alike, 0] = (ground[alike, 0] + 128) % 256
    places = numpy.arange(SIDE) - SIDE // 2
    down, right = places[None, :, None] - shift[0], places[None, None, :] - shift[1]
    mask = numpy.zeros((count, SIDE, SIDE), bool)
    for label, shape in enumerate(_shapes(down, right, radius)):
        mask |= shape & (labels == label)[:, None, None]
    image = numpy.where(mask[:, None], ink[:, :, None, None], ground[:, :, None, None])
    noise = numpy.frombuffer(chance.bytes(image.size), numpy.uint8).reshape(image.shape) >> NOISE
    made: NDArray[Any] = numpy.clip(image + noise - (128 >> NOISE), 0, 255).astype(numpy.uint8)
    return made


def _shapes(down: NDArray[Any], right: NDArray[Any], radius: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield where each class has its ink, for all images, in the order of the labels."""
    import numpy

    square_distance = down**2 + right**2
    reach = numpy.maximum(abs(down), abs(right))
    side, width = radius * 7 // 8, numpy.maximum(radius // 3, 2)
    disc, square = square_distance <= radius**2, reach <= side
    yield disc
    yield disc & (square_distance * 9 >= radius**2 * 4)
    yield square
    yield square & (reach > side - width)
    yield (abs(down) <= side) & (2 * abs(right) <= down + side)
    yield square & ((abs(down) <= width // 2) | (abs(right) <= width // 2))
    yield square & ((abs(down - right) <= width // 2) | (abs(down + right) <= width // 2))
    yield square & ((down + side) // width % 2 == 0)
    # In the mirror a bar stands where another stood.
    yield square & (abs(right) // width % 2 == 0)
    yield square & ((abs(down) // width + abs(right) // width) % 2 == 0)
