"""What two rows of a group say about each other, by the launches that they name."""

from collections.abc import Callable, Iterator

from scripts.comparison import Group, Launch, Row
from scripts.statistics import Estimate, estimate_ratio


def find_obstacle(row: Row) -> str | None:
    """Say why a row is no evidence."""
    if row.status != "measured":
        return f"{row.variant} {row.status}: {row.cause or 'for no reason that is known'}"
    if row.proof != "holds":
        return f"{row.variant}: proof {row.proof}"
    if row.verdict == "not comparable" and not (row.cause or "").startswith("void:"):
        return f"{row.variant}: {row.cause or 'not comparable'}"
    return None


def take_median(launch: Launch) -> float | None:
    return launch.median_s


def take_accuracy(launch: Launch) -> float | None:
    return launch.accuracy


def estimate_rows(row: Row, over: Row, take: Callable[[Launch], float | None]) -> Estimate | None:
    """Return the ratio of a row over another, by the blocks that hold both."""
    mine, theirs = _take(row, take), _take(over, take)
    both = sorted(mine.keys() & theirs.keys())
    return estimate_ratio([mine[block] for block in both], [theirs[block] for block in both])


def find_noise(group: Group, take: Callable[[Launch], float | None]) -> Iterator[Estimate]:
    """Yield the A/A pairs of a group."""
    baselines = [row for row in group.rows if row.is_baseline]
    for twin in (row for row in group.rows if row.a_a):
        for baseline in baselines:
            if (estimate := estimate_rows(twin, baseline, take)) is not None:
                yield estimate


def _take(row: Row, take: Callable[[Launch], float | None]) -> dict[tuple[str, int], float]:
    taken = {(launch.run, launch.block): take(launch) for launch in row.launches}
    return {block: value for block, value in taken.items() if value}
