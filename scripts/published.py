"""What the articles published, as data: figures, and claims as statements over ratios."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import msgspec.toml
from msgspec import Meta

from scripts.contract import Duration, Name
from scripts.errors import Refusal
from scripts.runs import ROOT

PUBLISHED = ROOT / "results" / "published"

Kind = Literal["stated", "derived", "conjectured"]
Target = Literal["cpu", "cuda"]
Source = Literal["named", "seen", "derived"]
Ratio = Annotated[float, Meta(gt=0)]


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number of an article: seconds of its unit of work, or an accuracy as a share."""

    variant: Name
    device: Target
    source: Source
    seconds: Duration | None = None
    accuracy: Annotated[float, Meta(gt=0, le=1)] | None = None
    statistic: str | None = None
    """Where it is not the article's usual one."""
    note: str | None = None


class Asymmetry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was unequal between the sides."""

    says: str
    source: Source


class Pair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A ratio: of a variant over another."""

    variant: Name
    over: Name
    ratio: Ratio | None = None
    """The article's own."""


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence of an article, as something that ratios can hold or reverse."""

    id: Name
    says: str
    kind: Kind
    device: Target
    """What it is about."""
    margin: str
    """Why the bounds are where they are."""
    compares: list[Pair] = []
    """All of which have to lie within the bounds."""
    of: Literal["time", "accuracy"] = "time"
    low: Ratio | None = None
    high: Ratio | None = None
    against: Ratio | None = None
    """Beyond which it is reversed, where that is not the bound itself."""
    cpus: Annotated[int, Meta(ge=1)] | None = None
    """It is about machines with so many."""
    epochs: Annotated[int, Meta(ge=1)] | None = None
    """So many are needed to tell."""
    untestable: str | None = None
    """Why no measurement decides it."""

    def bounds(self) -> tuple[float, float]:
        return self.low or 0.0, self.high or math.inf

    def limits(self) -> tuple[float, float]:
        """Return the ratios below and above which it is reversed."""
        low, high = self.bounds()
        if self.against is None:
            return low, high
        return (low, self.against) if self.high is not None else (self.against, high)


class Article(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One article."""

    title: str
    year: int
    workload: Name
    stack: Name
    """Environment with its versions, or the nearest to be had."""
    measure: Name
    unit: str
    """What the seconds are of."""
    statistic: str
    versions: dict[Name, str]
    hardware: dict[Target, str]
    figures: Annotated[list[Figure], Meta(min_length=1)]
    claims: Annotated[list[Claim], Meta(min_length=1)]
    asymmetries: list[Asymmetry] = []
    cpus: int | None = None
    epochs: int | None = None
    data: Name | None = None
    """Data set, by its name in this project."""
    units: Annotated[int, Meta(ge=1)] = 1
    """How many units of the measure the seconds are of."""

    def list_variants(self) -> list[str]:
        """Name the variants that figures and claims are about."""
        named = [figure.variant for figure in self.figures]
        named += [
            name for claim in self.claims for pair in claim.compares for name in (pair.variant, pair.over)
        ]
        return list(dict.fromkeys(named))


def load_articles(folder: Path = PUBLISHED) -> dict[str, Article]:
    """Read every article below ``folder``, by key.

    Raises:
        Refusal: one cannot be read or contradicts itself; the message names file and field.
    """
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise Refusal(f"{folder}: no article in it; is this a whole clone?")
    articles = {path.stem: _read(path) for path in paths}
    taken: dict[str, str] = {}
    for key, article in articles.items():
        for claim in article.claims:
            if claim.id in taken:
                raise Refusal(f"{folder / key}.toml: claim {claim.id!r} is in {taken[claim.id]} too")
            taken[claim.id] = key
    return articles


def holds_in_article(claim: Claim) -> bool | None:
    """Tell whether the article's own ratios bear its claim out; ``None`` where it has none."""
    ratios = [pair.ratio for pair in claim.compares if pair.ratio is not None]
    if not ratios or len(ratios) < len(claim.compares):
        return None
    low, high = claim.bounds()
    return all(low <= ratio <= high for ratio in ratios)


def _read(path: Path) -> Article:
    try:
        article = msgspec.toml.decode(path.read_bytes(), type=Article)
    except OSError as error:
        raise Refusal(f"{path}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refusal(f"{path}: {error}") from error
    for fault in _find_faults(article):
        raise Refusal(f"{path}: {fault}")
    return article


def _find_faults(article: Article) -> Iterable[str]:
    for figure in article.figures:
        if (figure.seconds is None) == (figure.accuracy is None):
            yield f"the figure of {figure.variant} on {figure.device} is to be seconds or an accuracy"
    for claim in article.claims:
        low, high = claim.bounds()
        if not claim.compares and claim.untestable is None:
            yield f"claim {claim.id!r} compares nothing and does not say why it is untestable"
        if claim.compares and (low, high) == (0.0, math.inf):
            yield f"claim {claim.id!r} has no bound"
        if low > high:
            yield f"claim {claim.id!r} is to lie between {low:g} and {high:g}"
        for pair in claim.compares:
            if pair.ratio is not None and not {pair.variant, pair.over} <= {
                one.variant for one in article.figures
            }:
                yield f"claim {claim.id!r} has a ratio of {pair.variant} over {pair.over}; one has no figure"
