"""CIFAR-10's archive, opened without running what is in it, and the plain files that are made of it.

A. Krizhevsky: Learning multiple layers of features from tiny images, 2009. The archive is a tar of Python 2
pickles; what is kept is the layout of the set's own binary version: for each image a byte of label and 3072
of pixels, red, green and blue one after the other.
"""

import io
import pickle
import struct
import tarfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from scripts.errors import Refusal

ARCHIVE = "cifar-10-python.tar.gz"
FOLDER = "cifar-10-batches-py"
"""Within the archive."""
RAW = Path("cifar-10-batches-bin")
SPLITS = {"train": [f"data_batch_{number}" for number in range(1, 6)], "test": ["test_batch"]}
BATCHES = [name for names in SPLITS.values() for name in names]
FILES = [f"{name}.bin" for name in BATCHES]
PIXELS = 3 * 32 * 32
CLASSES = 10
BATCH = 10000
"""Images of a batch, in the set's own archive."""
LARGEST_BYTES = 2**28
"""Of a batch in an archive: eight times as many as the set's own have."""
CHUNK_BYTES = 2**20
FAULTS = (
    pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError,
    ImportError, MemoryError, OverflowError, RecursionError, struct.error,
)  # fmt: skip
"""What reading a pickle that is damaged or made to deceive may end in."""


def unpack(archive: Path) -> None:
    """Replace an archive by the files that are made of it, in the same folder.

    Raises:
        Refusal: it is damaged, or not an archive of this kind.
        OSError: the folder cannot be written.
    """
    for name, content in read_batches(archive):
        (archive.parent / f"{name}.bin").write_bytes(content)
    archive.unlink()


def read_batches(archive: Path) -> Iterable[tuple[str, bytes]]:
    """Yield each batch's name and its images as the binary version has them.

    Raises:
        Refusal: the archive is damaged, or not of this kind.
    """
    wanted = {f"{FOLDER}/{name}": name for name in BATCHES}
    try:
        with tarfile.open(archive, "r:*") as packed:
            for member in packed:
                name = wanted.pop(member.name.removeprefix("./"), None)
                if name is None:
                    continue
                file = packed.extractfile(member) if member.isreg() else None
                if file is None or member.size > LARGEST_BYTES:
                    raise Refusal(f"{archive.name}: {name} is no file of a sensible size")
                yield name, decode_batch(file.read(), f"{archive.name}: {name}")
            # The packing's own checksum stands at its end, which the last member is not.
            assert packed.fileobj is not None
            while packed.fileobj.read(CHUNK_BYTES):
                pass
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise Refusal(f"{archive.name}: damaged, or no archive; get it again") from error
    if wanted:
        raise Refusal(f"{archive.name}: {', '.join(sorted(wanted))} is not in it")


def decode_batch(content: bytes, where: str) -> bytes:
    """Turn a pickled batch into the binary version's records.

    Nothing that a pickle may name is called: what stands for numpy's arrays only keeps what it is given.

    Raises:
        Refusal: it is damaged, or holds something else.
    """
    try:
        batch = _Unpickler(io.BytesIO(content), encoding="bytes").load()
        pixels, labels = batch[b"data"], batch[b"labels"]
        shape, kind, data = pixels.shape, pixels.kind, pixels.data
        count = len(labels)
        numbers = bytes(labels)
    except _Foreign as foreign:
        raise Refusal(
            f"{where}: a foreign pickle, which names {foreign}; it was not opened; take the set's own archive"
        ) from foreign
    except FAULTS as error:
        raise Refusal(
            f"{where}: damaged, or no batch of CIFAR-10's format ({type(error).__name__})"
        ) from error
    if kind not in (b"u1", "u1") or shape != (count, PIXELS) or len(data) != count * PIXELS:
        raise Refusal(
            f"{where}: {count} labels, and {shape} of {kind!r}, where images of {PIXELS} bytes are wanted"
        )
    return join(data, numbers)


def join(pixels: bytes, labels: bytes) -> bytes:
    """Put each image behind its label."""
    view = memoryview(pixels)
    parts: list[bytes | memoryview] = []
    for at in range(len(labels)):
        parts += labels[at : at + 1], view[at * PIXELS : (at + 1) * PIXELS]
    return b"".join(parts)


class _Foreign(Exception):
    """A pickle names something that no batch does."""


class _Kind:
    """In place of ``numpy.dtype``: its name."""

    def __init__(self, name: bytes | str, *_: object) -> None:
        self.name = name

    def __setstate__(self, state: object) -> None:
        pass


class _Array:
    """In place of ``numpy.ndarray``: its shape, its type and its bytes."""

    shape: tuple[int, ...] = ()
    kind: bytes | str = b""
    data: bytes = b""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, self.shape, kind, is_fortran, data = state
        if not isinstance(kind, _Kind) or not isinstance(data, bytes) or is_fortran:
            raise ValueError("no array of bytes")
        self.kind, self.data = kind.name, data


def _make_array(*_: object) -> _Array:
    return _Array()


class _Unpickler(pickle._Unpickler):
    """The one in Python, whose memo is a dictionary: that in C makes a table of as many entries as six bytes
    may ask for."""

    KNOWN: Mapping[tuple[str, str], Any] = {
        ("numpy.core.multiarray", "_reconstruct"): _make_array,
        ("numpy._core.multiarray", "_reconstruct"): _make_array,
        ("numpy", "ndarray"): _Array,
        ("numpy", "dtype"): _Kind,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.KNOWN:
            raise _Foreign(f"{module}.{name}"[:100])
        return self.KNOWN[module, name]

    def persistent_load(self, pid: object) -> Any:
        raise _Foreign("an object elsewhere")


def pack(batches: Mapping[str, tuple[bytes, bytes]], archive: Path) -> None:
    """Write an archive of the set's own format.

    Args:
        batches: by name their pixels, 3072 bytes an image, and their labels, a byte each.
        archive: what is written; packed if its name says so.
    """
    with tarfile.open(archive, "w:gz" if archive.suffix == ".gz" else "w") as packed:
        for name, (pixels, labels) in batches.items():
            content = encode_batch(pixels, labels, name)
            member = tarfile.TarInfo(f"{FOLDER}/{name}")
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))


def encode_batch(pixels: bytes, labels: bytes, name: str) -> bytes:
    """Pickle a batch as Python 2 and numpy 1 did, which no later pickler does: protocol 2, its text as
    strings of bytes."""
    shape = pickle.BININT + struct.pack("<i", len(labels)) + pickle.BININT + struct.pack("<i", PIXELS)
    parts = [
        pickle.PROTO + b"\x02" + pickle.EMPTY_DICT + pickle.MARK,
        _string(b"data"),
        pickle.GLOBAL + b"numpy.core.multiarray\n_reconstruct\n",
        pickle.GLOBAL + b"numpy\nndarray\n" + _number(0) + pickle.TUPLE1 + _string(b"b"),
        pickle.TUPLE3 + pickle.REDUCE + pickle.MARK,
        _number(1) + shape + pickle.TUPLE2,
        pickle.GLOBAL + b"numpy\ndtype\n" + _string(b"u1") + _number(0) + _number(1),
        pickle.TUPLE3 + pickle.REDUCE + pickle.MARK + _number(3) + _string(b"|") + pickle.NONE * 3,
        (pickle.BININT + struct.pack("<i", -1)) * 2 + _number(0) + pickle.TUPLE + pickle.BUILD,
        pickle.NEWFALSE + _string(pixels) + pickle.TUPLE + pickle.BUILD,
        _string(b"labels")
        + pickle.EMPTY_LIST
        + pickle.MARK
        + b"".join(map(_number, labels))
        + pickle.APPENDS,
        _string(b"batch_label") + _string(name.encode()),
        pickle.SETITEMS + pickle.STOP,
    ]
    return b"".join(parts)


def _number(value: int) -> bytes:
    return pickle.BININT1 + bytes([value])


def _string(value: bytes) -> bytes:
    if len(value) < 256:
        return pickle.SHORT_BINSTRING + bytes([len(value)]) + value
    return pickle.BINSTRING + struct.pack("<i", len(value)) + value


def find_fault(folder: Path, counts: Mapping[str, int]) -> str | None:
    """Say what is wrong with the files of a prepared set, if anything is.

    Args:
        folder: holds the binary version's layout.
        counts: images by split, where they are known.
    """
    for split, names in SPLITS.items():
        total = 0
        for name in names:
            path = RAW / f"{name}.bin"
            try:
                content = (folder / path).read_bytes()
            except OSError as error:
                return f"{path}: {error.strerror}"
            if len(content) % (PIXELS + 1):
                return f"{path}: {len(content)} bytes are no whole number of images"
            labels = content[:: PIXELS + 1]
            if labels and max(labels) >= CLASSES:
                return f"{path}: labels up to {max(labels)}, where {CLASSES - 1} is the largest that is known"
            total += len(labels)
        if not total:
            return f"{RAW}: no images for {split}"
        if total != counts.get(split, total):
            return f"{RAW}: {total} images for {split}, where {counts[split]} are wanted"
    return None
