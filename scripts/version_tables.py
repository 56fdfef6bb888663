"""What versions brought, as tables. ``scripts.renderings`` prints them."""

from collections import defaultdict
from collections.abc import Iterator

from scripts.comparison import Comparison, Group, Versions, VersionTiming
from scripts.tables import Column, Table, make_title
from scripts.words import describe_ratio, describe_seconds, make_visible

VERSION_LEGEND = (
    "versions: time over that of the oldest version of the same framework that was measured, below 1 is "
    "faster, with its 95 % interval between launches. Interpreter and libraries changed with the framework."
)


def make_version_tables(comparison: Comparison) -> Iterator[Table]:
    """Make a table for each group that has a variant in several versions."""
    groups: dict[int, list[Versions]] = defaultdict(list)
    for one in comparison.versions:
        groups[one.group].append(one)
    for index, found in groups.items():
        yield _make_table(comparison.groups[index], found)


def _make_table(group: Group, found: list[Versions]) -> Table:
    rows = [(one.variant, timing) for one in found for timing in one.timings]
    has_several_runners = len({timing.runner for _, timing in rows}) > 1
    columns = [
        Column("variant", [make_visible(variant) for variant, _ in rows], False, 0),
        Column("version", [make_visible(timing.version) for _, timing in rows], False, 0),
        Column("over the oldest", [_show_ratio(timing) for _, timing in rows], True, 0),
        Column("median", [describe_seconds(timing.median_s) for _, timing in rows], True, 0),
        Column("stack", [make_visible(timing.stack) for _, timing in rows], False, 2),
    ]
    if has_several_runners:
        columns.append(Column("runner", [timing.runner for _, timing in rows], False, 1))
    notes = [
        make_visible(f"{variant} {timing.version}: {timing.cause}")
        for variant, timing in rows
        if timing.cause
    ]
    return Table(f"What versions brought: {make_title(group)}", [], columns, list(dict.fromkeys(notes)))


def _show_ratio(timing: VersionTiming) -> str:
    return "oldest" if timing.is_oldest else describe_ratio(timing.ratio, timing.ratio_interval) or "none"
