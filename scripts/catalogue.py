"""Workloads as data: what ``workloads/*/workload.toml`` says, and names looked up in it."""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import msgspec.toml
from msgspec import Meta

from scripts.contract import Duration, Edition, Name, Parameter, Precision
from scripts.errors import Refusal
from scripts.runs import ROOT
from scripts.stacks import Version

WORKLOADS = ROOT / "workloads"


class EditionEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an edition measures."""

    measures: Annotated[list[Name], Meta(min_length=1)]
    says: str


class VariantEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way to compute the workload."""

    framework: Name
    overhead_s: Duration
    """Of a launch outside warm-up and sampling, on two cores, for estimates."""
    says: str
    headline: bool = False
    needs: list[Name] = []
    """Packages of a stack, by the names in ``docker/stacks.toml``; the framework by default."""
    since: dict[Name, Version] = {}
    """Oldest versions of packages that can do it."""
    derived: bool = False
    """Whether it reads what its stack makes of the data, such as tfds's files."""
    module: Name | None = None
    """Of the workload's folder; the framework's name by default."""
    editions: list[Edition] | None = None
    """All that the workload has by default."""


class ProfileEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a profile changes, and the time it may take."""

    bound_s: Duration | None = None
    """None where it takes as long as it takes."""
    parameters: dict[str, Parameter] = {}
    measures: Annotated[list[Name], Meta(min_length=1)] | None = None
    """Of the fair edition, in place of all that it has."""
    only: dict[Name, list[Name]] = {}
    """Variants that take a measure, where not all do."""
    overheads_s: dict[Name, Duration] = {}
    """In place of the variants' own, where parameters differ much."""
    blocks: Annotated[int, Meta(ge=1)] | None = None
    """At most so many hold this workload's cells, where launches take long."""
    variants: list[Name] = []
    """Only these; all that the profile asks for by default."""
    epochs_s: dict[Name, Duration] = {}
    """By kind of device, what an epoch is expected to take where all of them are taken."""


class TolerancesEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """As the contract's ``Tolerances``, the losses' by precision."""

    gradients: Duration
    update: Duration
    losses: dict[Precision, Duration]
    dtype: Literal["float64", "float32"] = "float64"


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One ``workload.toml``."""

    title: str
    parameters: dict[str, Parameter]
    tolerances: TolerancesEntry
    editions: dict[Edition, EditionEntry]
    variants: Annotated[dict[Name, VariantEntry], Meta(min_length=1)]
    profiles: dict[Name, ProfileEntry]
    source: str | None = None
    """The article, by its name in ``results/published/``."""
    baseline: Name | None = None
    ceiling: bool = False
    """Joins every plan and is no contest."""
    together: bool = False
    """Whether all variants run in one stack, because it is not frameworks that are compared."""
    data: list[Name] = []
    """Data sets that it can read, the default first."""

    def has(self, variant: str, edition: Edition) -> bool:
        editions = self.variants[variant].editions
        return edition in self.editions and (editions is None or edition in editions)

    def needs(self, variant: str) -> frozenset[str]:
        """Packages that a variant imports."""
        entry = self.variants[variant]
        return frozenset(entry.needs or [entry.framework])

    def runs_on(self, variant: str, versions: Mapping[str, str]) -> bool:
        """Tell whether a stack has a variant's packages, new enough where that is known."""
        since = self.variants[variant].since
        return self.needs(variant) <= versions.keys() and not any(
            versions[name] and order_version(versions[name]) < order_version(since[name])
            for name in since.keys() & versions.keys()
        )

    def overhead_s(self, variant: str, profile: str) -> float:
        own_s = self.variants[variant].overhead_s
        return self.profiles[profile].overheads_s.get(variant, own_s) if profile in self.profiles else own_s


def load_catalogue(folder: Path = WORKLOADS) -> dict[str, Workload]:
    """Read every workload below ``folder``, by name.

    Raises:
        Refusal: one cannot be read or contradicts itself; the message names file and field.
    """
    paths = sorted(folder.glob("*/workload.toml"))
    if not paths:
        raise Refusal(f"{folder}: no workload.toml in any folder of it; is this a whole clone?")
    return {path.parent.name: _read(path) for path in paths}


def order_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def find_names(kind: str, wanted: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return ``wanted`` without repetitions.

    Raises:
        Refusal: one is not among ``known``; the message offers the nearest real names.
    """
    names, real = list(dict.fromkeys(wanted)), sorted(set(known))
    for name in names:
        if name not in real:
            near = difflib.get_close_matches(name, real, n=3, cutoff=0.5)
            offer = f"did you mean {' or '.join(near)}?" if near else f"there is {', '.join(real)}"
            raise Refusal(f"there is no {kind} {name!r}; {offer}")
    return names


def _read(path: Path) -> Workload:
    try:
        workload = msgspec.toml.decode(path.read_bytes(), type=Workload)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refusal(f"{path}: {error}") from error
    if not workload.ceiling and workload.baseline not in workload.variants:
        raise Refusal(f"{path}: baseline {workload.baseline!r} is none of its variants")
    for name, profile in workload.profiles.items():
        if unknown := set(profile.parameters) - set(workload.parameters):
            raise Refusal(f"{path}: profile {name!r} sets unknown parameters {', '.join(sorted(unknown))}")
        named = {
            *profile.overheads_s,
            *profile.variants,
            *(variant for only in profile.only.values() for variant in only),
        }
        if strange := named - set(workload.variants):
            raise Refusal(f"{path}: profile {name!r} names unknown variants {', '.join(sorted(strange))}")
    return workload
