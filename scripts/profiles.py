"""How much is measured."""

from dataclasses import dataclass

from scripts.contract import Edition


@dataclass(frozen=True)
class Profile:
    blocks: int
    editions: tuple[Edition, ...]
    headline_only: bool
    """Only the variants that a workload's headline is about."""
    sample_s: float
    """Shortest sample, in seconds."""
    ceiling_blocks: int
    """At most so many blocks hold the ceiling's cells."""
    least_s: float
    """Of warm-up and sampling in a launch, however little time the bound leaves."""
    needed: bool = True
    """Whether every workload has it; what lacks it is left out otherwise."""


PROFILES = {
    "smoke": Profile(
        2, ("article", "fair"), headline_only=False, sample_s=0.02, ceiling_blocks=1, least_s=0.5
    ),
    "quick": Profile(5, ("fair",), headline_only=True, sample_s=0.05, ceiling_blocks=2, least_s=2.0),
    "standard": Profile(
        10, ("article", "fair"), headline_only=False, sample_s=0.05, ceiling_blocks=2, least_s=3.0
    ),
    "published": Profile(
        5, ("article",), headline_only=False, sample_s=0.05, ceiling_blocks=1, least_s=3.0, needed=False
    ),
}
DEFAULT = "quick"
