"""``digits``: real handwriting in MNIST's format and size, for hosts without network.

The 1,797 images of 8 x 8 pixels that scikit-learn bundles (E. Alpaydin, C. Kaynak: Optical recognition of
handwritten digits, UCI machine learning repository, 1998) are enlarged, shifted, slanted and stretched at
random. All in whole numbers, so that every machine makes the same bytes.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts import idx

if TYPE_CHECKING:
    from numpy.random import RandomState
    from numpy.typing import NDArray

EMBEDDED = Path(__file__).resolve().parent / "embedded"
IMAGES, LABELS = EMBEDDED / "digits-images-idx3-ubyte.gz", EMBEDDED / "digits-labels-idx1-ubyte.gz"
COUNTS = {"train": 60000, "test": 10000}
TEST_SHARE = 7
"""One in so many originals serves the test set alone."""
SEED = 0
SOURCE_SIDE, INTENSITIES = 8, 16
ONE = 1 << 16
"""A pixel of the original, in fixed point."""
STRIDE = (22000, 31000)
"""Of the original a pixel: 8 pixels become 17 to 24."""
SLANT = 6000
"""At most, either way."""
SHIFT = 6
"""At most, either way, in half pixels."""
FAINT = 4
"""Below this part of full intensity an image is black, and as far below full it is white: enlarging blurs."""
CHUNK = 2000
"""Images at a time, for memory's sake."""


def generate() -> dict[str, bytes]:
    """Return the four IDX files by name."""
    import numpy

    images, labels = read_embedded()
    draw = numpy.random.RandomState(SEED)
    files = {}
    for split, sources in split_sources(labels, draw).items():
        count = COUNTS[split]
        chosen = numpy.concatenate([draw.permutation(sources) for _ in range(-(-count // len(sources)))])[
            :count
        ]
        made = numpy.concatenate(list(_transform(images, chosen, draw)))
        for name, array in zip(idx.SPLITS[split], (made, labels[chosen]), strict=True):
            files[name] = idx.encode(array)
    return files


def read_embedded() -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the originals, uint8 of (1797, 8, 8) from 0 to 16, and their labels."""
    images, labels = (idx.decode(gzip.decompress(path.read_bytes())) for path in (IMAGES, LABELS))
    return images, labels


def split_sources(labels: NDArray[Any], draw: RandomState) -> dict[str, NDArray[Any]]:
    """Divide the originals, so that no test image is a training image that was moved."""
    import numpy

    test = numpy.concatenate(
        [
            (own := draw.permutation(numpy.flatnonzero(labels == label)))[: len(own) // TEST_SHARE]
            for label in range(10)
        ]
    )
    return {"train": numpy.setdiff1d(numpy.arange(len(labels)), test), "test": numpy.sort(test)}


def _transform(images: NDArray[Any], chosen: NDArray[Any], draw: RandomState) -> Iterator[NDArray[Any]]:
    """Yield uint8 images of (n, 28, 28): the chosen originals, each by an affine map of its own."""
    import numpy

    # Nothing is written around an original, wherever a map may look.
    padded = numpy.zeros((len(images), SOURCE_SIDE + 3, SOURCE_SIDE + 3), numpy.int32)
    padded[:, 1 : SOURCE_SIDE + 1, 1 : SOURCE_SIDE + 1] = images
    # From the middle, in half pixels.
    offsets = 2 * numpy.arange(idx.SIDE, dtype=numpy.int64) - (idx.SIDE - 1)
    for begin in range(0, len(chosen), CHUNK):
        sources = chosen[begin : begin + CHUNK]
        shape = (2, len(sources), 1, 1)
        stride = draw.randint(STRIDE[0], STRIDE[1] + 1, shape)
        slant = draw.randint(-SLANT, SLANT + 1, shape)
        shift = draw.randint(-SHIFT, SHIFT + 1, shape)
        down, right = offsets[:, None] - shift[0], offsets[None, :] - shift[1]
        places = [
            (stride[axis] * along + slant[axis] * across) // 2 + (SOURCE_SIDE - 1) * ONE // 2
            for axis, (along, across) in enumerate(((down, right), (right, down)))
        ]
        corners = [numpy.clip(place >> 16, -1, SOURCE_SIDE) + 1 for place in places]
        # Eight bits of each fraction: their products, times the intensities, stay within 32.
        parts = [(place & (ONE - 1)) >> 8 for place in places]
        total = numpy.zeros((len(sources), idx.SIDE, idx.SIDE), numpy.int64)
        for lower in (0, 1):
            for righter in (0, 1):
                weight = (parts[0] if lower else 256 - parts[0]) * (parts[1] if righter else 256 - parts[1])
                total += weight * padded[sources[:, None, None], corners[0] + lower, corners[1] + righter]
        full = ONE * INTENSITIES
        inked = (total - full // FAINT) * 255 // (full - 2 * full // FAINT)
        yield numpy.clip(inked, 0, 255).astype(numpy.uint8)
