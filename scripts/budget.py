"""Time: what each launch may take, and what the whole plan will."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from scripts.contract import Cell, Protocol
from scripts.order import count_at_once, count_launches
from scripts.profiles import Profile

UNBOUNDED_S = 1e6
"""Stands for as long as it takes."""
USED = 0.92
"""Of a bound; the rest is for planning, for the tables and for a machine slower than expected."""
MOST_S = 12.0
"""Of warm-up and sampling in one launch, where the profile's bound decides."""
SAMPLING_SHARE = 2 / 3
"""The rest is warm-up, divided among the measures."""
LEAST_OF_EPOCHS_S = 0.05
CROWDED = 1.5
"""Proofs side by side slow each other by about so much; those that come first also compile the byte code
of a new environment."""
MIN_SAMPLES = 5
MAX_SAMPLES = 200
RELATIVE_WIDTH = 0.005


def divide_bound(
    cells: Sequence[Cell],
    bound_s: float | None,
    overheads_s: Mapping[str, float],
    blocks: int,
    profile: Profile,
    cpus: int,
) -> list[Cell]:
    """Give the cells of one workload the time that its bound leaves for warm-up and sampling, or without a
    bound, all that they take.

    The same for every measure, since what is sampled longer would be known better.
    """
    if bound_s is None:
        return [allot(cell, UNBOUNDED_S, profile) for cell in cells]
    shares = sum(count_launches(cell, blocks) * len(cell.measures) for cell in cells)
    most = max(len(cell.measures) for cell in cells)
    free_s = bound_s - _sum_overheads(cells, overheads_s, blocks) - estimate_proofs(cells, overheads_s, cpus)
    # Of epochs, one after the first is always taken.
    least_s = LEAST_OF_EPOCHS_S if all(map(_has_epochs, cells)) else profile.least_s / most
    share_s = max(min(free_s / shares, MOST_S / most), least_s)
    return [allot(cell, share_s, profile) for cell in cells]


def share_budget(cells: Sequence[Cell], budget_s: float, profile: Profile) -> list[Cell]:
    """Give each launch ``budget_s`` seconds of sampling, divided among as many measures as any cell has."""
    share_s = budget_s / max(len(cell.measures) for cell in cells)
    return [
        allot(cell, share_s if _has_epochs(cell) else share_s / SAMPLING_SHARE, profile) for cell in cells
    ]


def allot(cell: Cell, share_s: float, profile: Profile) -> Cell:
    """Give each measure of a cell ``share_s`` seconds: of warm-up and sampling, or of sampling alone where it
    takes epochs, which have no warm-up."""
    budget_s = share_s if _has_epochs(cell) else share_s * SAMPLING_SHARE
    warmup_s = share_s - budget_s
    protocol = Protocol(
        budget_s=round(budget_s, 3),
        warmup_s=round(warmup_s, 3),
        sample_s=profile.sample_s,
        min_samples=MIN_SAMPLES,
        max_samples=MAX_SAMPLES,
        relative_width=RELATIVE_WIDTH,
    )
    return replace(cell, protocol=protocol)


def estimate_launch(cell: Cell, overhead_s: float) -> float:
    """Seconds that a launch is expected to take."""
    if cell.purpose == "proof":
        return overhead_s
    if cell.expected_s is not None:
        return overhead_s + cell.expected_s
    return overhead_s + (cell.protocol.budget_s + cell.protocol.warmup_s) * len(cell.measures)


def limit_launch(cell: Cell, overhead_s: float) -> float:
    """Seconds after which a launch is taken to hang."""
    return 60 + (5 if cell.expected_s is None else 50) * estimate_launch(cell, overhead_s)


def estimate_proofs(cells: Sequence[Cell], overheads_s: Mapping[str, float], cpus: int) -> float:
    """Seconds that the proofs of these cells are expected to take, side by side."""
    each = [overheads_s[cell.id] for cell in cells if cell.role in ("baseline", "variant")]
    return max([sum(each) / count_at_once(cpus), *each]) * CROWDED if each else 0.0


def estimate_blocks(cells: Sequence[Cell], overheads_s: Mapping[str, float], blocks: int) -> float:
    """Seconds that the measured launches are expected to take, one after the other."""
    return sum(count_launches(cell, blocks) * estimate_launch(cell, overheads_s[cell.id]) for cell in cells)


def _has_epochs(cell: Cell) -> bool:
    return all(name.endswith("_epoch") for name in cell.measures)


def _sum_overheads(cells: Sequence[Cell], overheads_s: Mapping[str, float], blocks: int) -> float:
    return sum(count_launches(cell, blocks) * overheads_s[cell.id] for cell in cells)
