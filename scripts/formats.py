"""Formats of data sets: which files one has, how they are made of archives or of a user's folder."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts import cifar, digits, idx, shapes
from scripts.download import unpack
from scripts.errors import Refusal
from scripts.identity import file_sha256
from scripts.prepared import identify


@dataclass(frozen=True)
class Format:
    """How sets of one format are opened."""

    title: str
    raw: Path
    """Where a prepared set has its files."""
    archives: tuple[str, ...]
    """What is downloaded."""
    sources: tuple[Path, ...]
    """What a user's folder has to hold."""
    layout: str
    """The same in words."""
    unpack: Callable[[Path], None]
    """Replaces an archive by the files that it holds."""
    find_fault: Callable[[Path, Mapping[str, int]], str | None]
    """Says what is wrong with a set's files, given its folder and the images by split that are wanted."""
    generate: Mapping[str, Callable[[Path], None]]
    """By name, what writes the files of the project's own sets."""

    def holds(self, folder: Path) -> bool:
        """Tell whether a user's folder looks like a set of this format."""
        return any((folder / path).exists() for path in self.sources)

    def find_lack(self, folder: Path) -> str | None:
        """Say what a user's folder lacks, if anything."""
        for path in self.sources:
            # Opening a pipe would wait for whoever writes into it.
            if not (folder / path).is_file():
                return f"{path}: " + ("no file" if (folder / path).exists() else "No such file or directory")
        return None

    def identify(self, folder: Path) -> str:
        """Hash what a user's folder holds."""
        return identify({str(path): file_sha256(folder / path) for path in self.sources})

    def take(self, folder: Path, raw: Path) -> None:
        """Make a set's files of what a user's folder holds, which is not touched.

        Raises:
            Refusal: an archive in it cannot be opened.
        """
        for path in self.sources:
            shutil.copyfile(folder / path, raw / path.name)
            if path.name in self.archives:
                try:
                    self.unpack(raw / path.name)
                except Refusal as refusal:
                    raise Refusal(f"{folder}: {refusal.message}", refusal.status) from refusal


def _write_digits(raw: Path) -> None:
    for name, content in digits.generate().items():
        (raw / name).write_bytes(content)


def _write_shapes(raw: Path) -> None:
    # Through the archive, so that one way of opening serves every set of this format.
    archive = raw / Path(cifar.ARCHIVE).stem
    cifar.pack(shapes.generate(), archive)
    cifar.unpack(archive)


FORMATS = {
    "mnist": Format(
        title="MNIST's",
        raw=idx.RAW,
        archives=tuple(f"{name}.gz" for name in idx.FILES),
        sources=tuple(idx.RAW / name for name in idx.FILES),
        layout=f"torchvision's {idx.RAW}, unpacked",
        unpack=unpack,
        find_fault=idx.find_fault,
        generate={"digits": _write_digits},
    ),
    "cifar-10": Format(
        title="CIFAR-10's",
        raw=cifar.RAW,
        archives=(cifar.ARCHIVE,),
        sources=(Path(cifar.ARCHIVE),),
        layout=f"the set's own {cifar.ARCHIVE}",
        unpack=cifar.unpack,
        find_fault=cifar.find_fault,
        generate={"shapes": _write_shapes},
    ),
}


def recognise(folder: Path) -> str:
    """Return the name of the format of the set in a user's folder.

    Raises:
        Refusal: it holds none that is known, or more than one.
    """
    found = [name for name, form in FORMATS.items() if form.holds(folder)]
    if len(found) > 1:
        raise Refusal(f"{folder}: sets of two formats are in it; give each a folder of its own")
    if not found:
        layouts = " or ".join(form.layout for form in FORMATS.values())
        raise Refusal(f"{folder}: a folder of data holds {layouts}; nothing of that is in it")
    return found[0]
