"""Geometric means of ratios, only over what both sides have."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from scripts.comparison import Group, Mean, Row
from scripts.contract import Edition, Precision
from scripts.statistics import geometric_mean

FEWEST_GROUPS = 2


class _Side(NamedTuple):
    edition: Edition
    precision: Precision
    device: str
    host: str | None
    baseline_stack: str
    stack: str


def compute_means(groups: Iterable[Group]) -> list[Mean]:
    """Average each stack over the baselines' stack, edition by edition, where two or more groups have
    a ratio of it. A row without a ratio is in no mean, and is counted beside it."""
    sides: dict[_Side, list[list[Row]]] = defaultdict(list)
    for group in groups:
        judge = next((row for row in group.rows if row.is_baseline), None)
        if judge is None:
            continue
        stacks: dict[str, list[Row]] = defaultdict(list)
        for row in group.rows:
            if row.stack != judge.stack and row.status != "skipped":
                stacks[row.stack].append(row)
        for stack, rows in stacks.items():
            side = _Side(group.edition, group.precision, group.device, group.host, judge.stack, stack)
            sides[side].append(rows)
    means = []
    for side, members in sides.items():
        matched = [
            [row.ratio for row in rows if row.ratio is not None and row.verdict != "not comparable"]
            for rows in members
        ]
        if sum(bool(ratios) for ratios in matched) >= FEWEST_GROUPS:
            ratios = [ratio for each in matched for ratio in each]
            means.append(Mean(*side, geometric_mean(ratios), len(ratios), sum(map(len, members))))
    return means
