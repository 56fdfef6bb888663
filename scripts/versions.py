"""What newer versions of a framework brought: each variant over its oldest version."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from scripts.comparison import Group, Row, Versions, VersionTiming
from scripts.evidence import estimate_rows, find_obstacle, take_median


def list_versions(groups: Sequence[Group]) -> list[Versions]:
    """List the variants that a group has in more than one version of their framework.

    Each version is set beside the oldest that has a figure, block by block, whatever the group's baseline is.
    """
    return [found for index, group in enumerate(groups) for found in _list_of(index, group)]


def _list_of(index: int, group: Group) -> Iterator[Versions]:
    # What a container adds to a launch is no version's doing.
    variants: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in group.rows:
        if not row.a_a and row.version is not None:
            variants[row.variant, row.runner].append(row)
    for (variant, _), rows in sorted(variants.items()):
        if group.baseline and len({row.version for row in rows}) > 1:
            rows.sort(key=lambda row: (_order(row.version or ""), row.stack))
            yield Versions(group=index, variant=variant, timings=list(_compare(rows)))


def _compare(rows: Sequence[Row]) -> Iterator[VersionTiming]:
    obstacles = [find_obstacle(row) for row in rows]
    oldest = next((row for row, obstacle in zip(rows, obstacles, strict=True) if obstacle is None), None)
    for row, obstacle in zip(rows, obstacles, strict=True):
        estimate = None
        if obstacle is None and oldest is not None and row is not oldest:
            estimate = estimate_rows(row, oldest, take_median)
        yield VersionTiming(
            version=row.version or "",
            stack=row.stack,
            runner=row.runner,
            median_s=row.median_s,
            is_oldest=row is oldest,
            ratio=estimate.ratio if estimate else None,
            ratio_interval=(estimate.low, estimate.high) if estimate else None,
            cause=obstacle,
        )


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))
