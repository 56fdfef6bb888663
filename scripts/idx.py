"""IDX files, the format of MNIST: written, and their heads checked.

Y. LeCun, C. Cortes, C. J. C. Burges: The MNIST database of handwritten digits, 1998.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

UNSIGNED_BYTES = 8
SIDE = 28
CLASSES = 10
RAW = Path("MNIST", "raw")
"""torchvision's layout."""
SPLITS = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
"""Images and labels."""
FILES = [name for names in SPLITS.values() for name in names]


def encode(array: NDArray[numpy.uint8]) -> bytes:
    """Return the file of an array of unsigned bytes."""
    head = bytes([0, 0, UNSIGNED_BYTES, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.tobytes()


def decode(content: bytes) -> NDArray[Any]:
    """Return the array of a file that ``read_shape`` would take."""
    import numpy

    dimensions = content[3]
    shape = struct.unpack(f">{dimensions}I", content[4 : 4 + 4 * dimensions])
    return numpy.frombuffer(content, numpy.uint8, offset=4 + 4 * dimensions).reshape(shape)


def find_fault(folder: Path, counts: Mapping[str, int]) -> str | None:
    """Say what is wrong with the four files of a data set, if anything is.

    Args:
        folder: holds torchvision's layout.
        counts: images by split, where they are known.
    """
    for split, (images, labels) in SPLITS.items():
        shapes = []
        for name, dimensions in ((images, 3), (labels, 1)):
            shape = read_shape(folder / RAW / name, dimensions)
            if isinstance(shape, str):
                return f"{RAW / name}: {shape}"
            shapes.append(shape)
        if shapes[0][1:] != (SIDE, SIDE):
            return (
                f"{RAW / images}: images of {shapes[0][1]} x {shapes[0][2]}, where {SIDE} x {SIDE} are wanted"
            )
        if shapes[0][0] != shapes[1][0]:
            return f"{RAW / images}: {shapes[0][0]} images and {shapes[1][0]} labels"
        if shapes[0][0] != counts.get(split, shapes[0][0]):
            return f"{RAW / images}: {shapes[0][0]} images, where {counts[split]} are wanted"
        if not shapes[0][0]:
            return f"{RAW / images}: no images"
        largest = max(decode((folder / RAW / labels).read_bytes()))
        if largest >= CLASSES:
            return f"{RAW / labels}: labels up to {largest}, where {CLASSES - 1} is the largest that is known"
    return None


def read_shape(path: Path, dimensions: int) -> tuple[int, ...] | str:
    """Return the shape that a file has, or what is wrong with it: it must be as long as its head says."""
    try:
        # Opening a pipe would wait for whoever writes into it.
        if path.exists() and not path.is_file():
            return "no file"
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(4 + 4 * dimensions)
    except OSError as error:
        return error.strerror or "cannot be read"
    if len(head) < 4 + 4 * dimensions or head[:4] != bytes([0, 0, UNSIGNED_BYTES, dimensions]):
        return f"no IDX file of {dimensions} dimensions"
    shape = struct.unpack(f">{dimensions}I", head[4:])
    if size != len(head) + math.prod(shape):
        return f"{size - len(head)} bytes of content, where its head says {math.prod(shape)}"
    return shape
