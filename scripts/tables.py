"""What a group's table holds, whatever it is printed as. ``scripts.renderings`` prints it."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from scripts.comparison import Comparison, Group, Row
from scripts.words import (
    RATES,
    describe_bytes,
    describe_figure,
    describe_number,
    describe_ratio,
    describe_seconds,
    describe_setting,
    describe_work,
    find_unit,
    make_visible,
)

LEGEND = (
    "ratio: time over the baseline's, below 1 is faster, with its 95 % interval between launches; "
    "median: of the launches' medians, a unit of work; first call: the first unit, which traces, "
    "compiles and tunes; ceiling: share of the best rate that any framework "
    "reached on this device, the largest above."
)
FIGURE_LEGEND = (
    "waiting: share of an epoch in which the host waited for data; order kept: rank correlation of an "
    "epoch's order with the data set's, about 0 where it is well shuffled; order repeated: the same between "
    "two epochs; best accuracy: of all epochs, on images that are not trained on."
)
FIGURE_COLUMNS = {
    "first_batch_s": "first batch",
    "waiting_share": "waiting",
    "cpu_s_per_image": "CPU an image",
    "shuffle_rank_correlation": "order kept",
    "reshuffle_rank_correlation": "order repeated",
    "best_validation_accuracy": "best accuracy",
}
"""Figures that rows are compared by, and their columns."""
MOST_NAMED = 20
"""Files left out that are named under the table; comparison.json names all."""


def tell_legend(groups: Iterable[Group]) -> str:
    """Say how to read the tables of these groups."""
    rows = [row for group in groups for row in group.rows]
    known = any(name in row.figures for row in rows for name in FIGURE_COLUMNS)
    return f"{LEGEND.removesuffix('.')}; {FIGURE_LEGEND}" if known else LEGEND


class Column(NamedTuple):
    title: str
    cells: list[str]
    is_number: bool
    rank: int
    """The highest goes first where the terminal is narrow; 0 stays."""


class Table(NamedTuple):
    title: str
    details: list[str]
    columns: list[Column]
    notes: list[str]


def make_table(group: Group) -> Table:
    labels = label_rows(group)
    return Table(
        make_title(group), _make_details(group), _make_columns(group, labels), _make_notes(group, labels)
    )


def label_rows(group: Group) -> list[str]:
    """Name rows by their variant, and by what tells them apart where two share it."""
    fields: list[Callable[[Row], str | None]] = [
        lambda row: row.stack, lambda row: row.runner, lambda row: row.image and shorten_digest(row.image),
        lambda row: row.base and shorten_digest(row.base), lambda row: row.lock and row.lock[:12],
    ]  # fmt: skip
    labels = []
    for row in group.rows:
        twins = [other for other in group.rows if (other.variant, other.a_a) == (row.variant, row.a_a)]
        apart = [field(row) or "" for field in fields if len({field(other) for other in twins}) > 1]
        # What only one of them has, such as an image, needs no word in the other.
        suffix = f" ({', '.join(filter(None, apart))})" if any(apart) else ""
        labels.append(make_visible(row.variant + suffix + (" (A/A)" if row.a_a else "")))
    return labels


def shorten_digest(identity: str) -> str:
    """Keep of each digest in an identity as much as tells it apart."""
    return re.sub(r"(sha256:[0-9a-f]{12})[0-9a-f]{52}", r"\1", identity)


def _tell_stacks(group: Group) -> list[str]:
    """Say what each stack of the group is, by content: a row's stack and runner lead here."""
    lines = []
    for row in group.rows:
        said = [f"image {shorten_digest(row.image)}"] if row.image else []
        said += [f"base {shorten_digest(row.base)}"] if row.base else []
        said += [f"lock {row.lock[:12]}"] if row.lock else []
        if said:
            lines.append(f"{row.stack} by {row.runner}: {', '.join(said)}")
    return [make_visible(line) for line in dict.fromkeys(lines)]


def make_title(group: Group) -> str:
    work = describe_work(group.work)
    title = f"{group.workload}, {group.edition} edition, {group.measure}"
    return make_visible(title) + (f" ({work})" if work else "")


def _make_details(group: Group) -> list[str]:
    intra, inter = group.threads
    threads = f"{intra} thread{'s' * (intra != 1)}" + ("" if inter == intra else f" x {inter}")
    where = [
        group.model or f"unknown {group.device}",
        group.precision,
        threads,
        f"host {group.host or 'unknown'}",
    ]
    if group.driver:
        where.insert(1, f"driver {group.driver}")
    details = [", ".join(where)]
    if group.parameters:
        shown = (f"{name} {describe_parameter(value)}" for name, value in group.parameters.items())
        details.append(", ".join(shown))
    if group.data:
        details.append(f"data: {group.data_nature or group.data}")
    return [make_visible(line) for line in details]


def describe_parameter(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(describe_parameter(one) for one in value) + "]"
    return describe_setting(value)  # type: ignore[arg-type]


def _make_columns(group: Group, labels: list[str]) -> list[Column]:
    rows = group.rows
    # An article's best-of-n stands beside the median, which is what is judged.
    best_rank = 1 if group.edition == "article" else 8
    columns = [
        Column("variant", labels, False, 0),
        Column("ratio", [_show_ratio(row) for row in rows], True, 0),
        Column("verdict", [row.verdict or "" for row in rows], False, 0),
        Column("median", [describe_seconds(row.median_s) for row in rows], True, 0),
        Column("best", [describe_seconds(row.best_s) for row in rows], True, best_rank),
        Column("first call", [describe_seconds(row.first_call_s) for row in rows], True, 3),
    ]
    counted = next((name for name in RATES if any(name in row.rates for row in rows)), None)
    if counted is not None:
        scale, unit = RATES[counted]
        shown = [describe_number(row.rates[counted] / scale) if counted in row.rates else "" for row in rows]
        columns.append(Column(unit, shown, True, 4))
    columns += [_make_figure_column(rows, name, title) for name, title in FIGURE_COLUMNS.items()]
    columns += [
        Column("ceiling", [_show_percent(row.percent_of_ceiling) for row in rows], True, 2),
        Column("proof", [row.proof for row in rows], False, 5),
        Column("peak memory", [describe_bytes(row.peak_memory_bytes) for row in rows], True, 7),
        Column("blocks", [str(row.blocks) for row in rows], True, 6),
        Column("stack", [make_visible(row.stack) for row in rows], False, 9),
    ]
    return [column for column in columns if column.rank == 0 or any(column.cells)]


def _make_figure_column(rows: Sequence[Row], name: str, title: str) -> Column:
    _, describe = find_unit(name)
    return Column(
        title, [describe(row.figures[name]) if name in row.figures else "" for row in rows], True, 5
    )


def _show_ratio(row: Row) -> str:
    return "baseline" if row.is_baseline else describe_ratio(row.ratio, row.ratio_interval)


def _show_percent(percent: float | None) -> str:
    return "" if percent is None else f"{percent:.0f} %" if percent >= 0.95 else f"{percent:.1g} %"


def _make_notes(group: Group, labels: list[str]) -> list[str]:
    notes = [*group.warnings, *_tell_stacks(group)]
    for label, row in zip(labels, group.rows, strict=True):
        said = []
        if row.differs and (settings := _show_differences(row)):
            said.append(settings)
        if row.cause:
            said.append(make_visible(row.cause) + (f" (log: {make_visible(row.log)})" if row.log else ""))
        if row.more_blocks:
            said.append(f"about {row.more_blocks} more block{'s' * (row.more_blocks > 1)} would settle it")
        if row.proof != "holds" and row.status == "measured" and row.verdict != "not comparable":
            said.append(f"proof {row.proof}")
        if row.figures:
            said += [
                describe_figure(name, value)
                for name, value in row.figures.items()
                if name not in FIGURE_COLUMNS
            ]
        said += [make_visible(warning) for warning in row.warnings]
        if said:
            notes.append(f"{label}: {'; '.join(said)}")
    return notes


def _show_differences(row: Row) -> str:
    """Leave out what one side does not have: another framework cannot be told from it."""
    return ", ".join(
        f"{make_visible(name)} {describe_setting(there)} -> {describe_setting(here)}"
        for name, (there, here) in row.differs.items()
        if there is not None and here is not None
    )


def _tell_ceilings(group: Group) -> str:
    """What is no contest needs no table: the best rate of each framework."""
    named = zip(label_rows(group), group.rows, strict=True)
    reached = [f"{label} {_show_best_rate(row)}" for label, row in named]
    where = group.model or f"unknown {group.device}"
    return f"{group.workload}, {group.measure}, {where}, {group.precision}: {', '.join(reached)}"


def _show_best_rate(row: Row) -> str:
    for counted, (scale, unit) in RATES.items():
        if counted in row.work and row.best_s:
            return f"{describe_number(row.work[counted] / row.best_s / scale)} {unit}"
    return row.cause or describe_seconds(row.best_s)


def tell_end(comparison: Comparison) -> list[str]:
    """Say what holds for the whole: ceilings, means, what became of each run, what was left out."""
    lines = [_tell_ceilings(group) for group in comparison.groups if not group.baseline]
    lines += [
        f"{mean.stack} over {mean.baseline_stack}, {mean.edition} edition, {mean.precision}, {mean.device}: "
        f"geometric mean {mean.ratio:.2f}x, matched {mean.matched} of {mean.of} rows"
        for mean in comparison.means
    ]
    for run in comparison.runs:
        measured = f"{run.measured} launches measured"
        if run.planned is not None:
            measured = f"{run.measured} of {run.planned} launches measured"
        losses = (run.failed, "failed"), (run.skipped, "skipped"), (run.missing, "missing")
        counts = [measured, *(f"{count} {word}" for count, word in losses if count)]
        lines.append(f"run {run.id}: {', '.join(counts)}")
    lines += [f"left out: {left.file}: {left.reason}" for left in comparison.left_out[:MOST_NAMED]]
    if len(comparison.left_out) > MOST_NAMED:
        reasons = Counter(left.reason for left in comparison.left_out[MOST_NAMED:])
        lines.append(f"left out: {reasons.total()} more files, each with its reason in comparison.json")
    return [make_visible(line) for line in lines]


def choose_columns(columns: Sequence[Column], width: int, gap: int) -> list[Column]:
    """Drop columns, the least needed first, until what is left fits ``width`` characters."""
    chosen = list(columns)
    while _measure_width(chosen, gap) > width and any(column.rank for column in chosen):
        chosen.remove(max(chosen, key=lambda column: column.rank))
    return chosen


def _measure_width(columns: Sequence[Column], gap: int) -> int:
    return sum(_measure_column(column) + gap for column in columns) - gap


def _measure_column(column: Column) -> int:
    lines = [line for cell in column.cells for line in wrap_verdict(cell).split("\n")]
    return max(map(len, [column.title, *lines]))


def wrap_verdict(cell: str) -> str:
    return cell.replace("no difference shown", "no difference\nshown")
