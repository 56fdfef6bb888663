"""The stacks: every pinned environment that ``docker/stacks.toml`` describes."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from scripts.contract import Cell
from scripts.errors import Refusal
from scripts.runs import ROOT

STACKS = ROOT / "docker" / "stacks.toml"

Pinned = Literal["docker", "venv"]
"""Runners that enter a pinned environment; ``host`` takes the interpreter at hand."""
Version = Annotated[str, Meta(pattern=r"^\d+(\.\d+)*$")]


class Requirements(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names of files in the stack's folder."""

    input: str
    lock: str


class Base(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    image: str
    digest: Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")]
    alternative: str | None = None
    """Vendor's image with the same CUDA."""


class ImageSize(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an image takes, as was seen, rounded up."""

    download_gib: Annotated[float, Meta(gt=0)]
    disk_gib: Annotated[float, Meta(gt=0)]


class Stack(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One pinned environment."""

    name: str
    folder: str
    python: Annotated[str, Meta(pattern=r"^3\.\d+$")]
    frameworks: Annotated[dict[str, Version], Meta(min_length=1)]
    """Versions, by what a variant may ask for."""
    requirements: Requirements
    venv: Requirements | None = None
    """Of the ``venv`` runner on a CPU, where they differ from the image's."""
    sources: list[str] = []
    """Packages that have no wheel: built when the environment is, by what ``BUILD_LOCK`` pins."""
    base: Base
    cuda: Version
    driver: Version
    """Oldest driver that runs the CUDA of the wheels."""
    capabilities: list[Version]
    """Compute capabilities that the wheels have code for."""
    ptx: Version | None = None
    """Newest capability that the wheels have PTX for, which the driver compiles for any newer GPU."""
    disk_gib: Annotated[float, Meta(gt=0)]
    """Disk that the ``venv`` runner's environment takes, rounded up. uv's cache shares the files where it
    is on the same file system, and takes as much again where it is not."""
    image: ImageSize
    best_effort: str | None = None
    """What of it is not to be had in full, and why."""
    current: bool = False
    """Joins every plan that names no stack."""

    def lock_for(self, runner: Pinned, device: str = "cpu") -> Path:
        return Path(self.folder, self._requirements_for(runner, device).lock)

    def input_for(self, runner: Pinned, device: str = "cpu") -> Path:
        return Path(self.folder, self._requirements_for(runner, device).input)

    def environment_for(self, device: str) -> str:
        """Name the ``venv`` runner's environment: one with CUDA is another than one without."""
        return self.name if device == "cpu" or not self.venv else f"{self.name}-cuda"

    def _requirements_for(self, runner: Pinned, device: str) -> Requirements:
        return self.venv if runner == "venv" and device == "cpu" and self.venv else self.requirements


def load_stacks(path: Path = STACKS) -> dict[str, Stack]:
    """Return the stacks by name, in the file's order.

    Raises:
        Refusal: the file cannot be read, or says something that is no stack.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refusal(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refusal(f"{path}: no TOML: {error}") from error
    tables = content.pop("stacks", None)
    if content:
        raise Refusal(f"{path}: unknown table {next(iter(content))!r}; a stack is [stacks.NAME]")
    if not isinstance(tables, dict) or not tables:
        raise Refusal(f"{path}: no [stacks.NAME] in it")
    return {name: _decode(path, name, table) for name, table in tables.items()}


def tell_best_effort(cells: Iterable[Cell], stacks: Mapping[str, Stack]) -> Iterator[str]:
    """Say of the stacks that a GPU is asked of what of them is not to be had, and why."""
    for name in dict.fromkeys(cell.stack for cell in cells if cell.device != "cpu"):
        if name in stacks and (lacking := stacks[name].best_effort):
            yield f"{name}: {lacking}"


def _decode(path: Path, name: str, table: object) -> Stack:
    if not isinstance(table, dict):
        raise Refusal(f"{path}: stacks.{name} is no table")
    try:
        return msgspec.convert({**table, "name": name, "folder": str(path.parent / name)}, Stack)
    except msgspec.ValidationError as error:
        raise Refusal(f"{path}: stacks.{name}: {error}") from error
