"""A comparison for the terminal, as Markdown and as CSV."""

import csv
import io
import re

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as TerminalTable
from rich.text import Text

from scripts.claim_tables import CLAIM_LEGEND, make_claim_tables
from scripts.comparison import Comparison, Group, Row
from scripts.tables import (
    FIGURE_COLUMNS,
    Table,
    choose_columns,
    label_rows,
    make_table,
    tell_end,
    tell_legend,
    wrap_verdict,
)
from scripts.version_tables import VERSION_LEGEND, make_version_tables
from scripts.words import make_visible

GAP = 2
"""Columns between two columns' text: one that rich draws, and one of padding."""


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print all tables, what became of the runs and how to read them, as wide as the console is."""
    for group in comparison.groups:
        if group.baseline:
            _print_table(make_table(group), console)
    for table in make_version_tables(comparison):
        _print_table(table, console)
    if comparison.versions:
        _print_line(VERSION_LEGEND, console, "dim")
        console.print()
    for line in tell_end(comparison):
        _print_line(line, console)
    if comparison.claims:
        console.print()
    for table in make_claim_tables(comparison):
        _print_table(table, console)
    if comparison.claims:
        _print_line(CLAIM_LEGEND, console, "dim")
    if any(group.baseline for group in comparison.groups):
        _print_line(tell_legend(comparison.groups), console, "dim")


def _print_table(table: Table, console: Console) -> None:
    _print_line(table.title, console, "bold")
    for line in table.details:
        _print_line(line, console, "dim")
    shown = TerminalTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, GAP - 1, 0, 0), show_edge=False)
    columns = choose_columns(table.columns, console.width, GAP)
    for column in columns:
        shown.add_column(column.title, justify="right" if column.is_number else "left", overflow="fold")
    for cells in zip(*(column.cells for column in columns), strict=True):
        shown.add_row(*(_make_text(wrap_verdict(cell), console) for cell in cells))
    console.print(shown)
    if left := [column.title for column in table.columns if column not in columns]:
        _print_line(f"  too narrow for: {', '.join(left)} (see comparison.md)", console, "dim")
    for note in table.notes:
        console.print(Padding(_make_text(note, console), (0, 0, 0, 2), expand=False))
    console.print()


def _print_line(line: str, console: Console, style: str = "") -> None:
    console.print(_make_text(line, console, style))


def _make_text(text: str, console: Console, style: str = "") -> Text:
    """Text is never read as markup, and has no character that the terminal cannot show."""
    return Text(text.encode(console.encoding, "backslashreplace").decode(console.encoding), style)


def render_markdown(comparison: Comparison) -> str:
    parts = ["# Comparison"]
    for group in comparison.groups:
        if group.baseline:
            parts += _render_table(make_table(group))
    for table in make_version_tables(comparison):
        parts += _render_table(table)
    if comparison.versions:
        parts.append(_escape(VERSION_LEGEND[0].upper() + VERSION_LEGEND[1:]))
    for table in make_claim_tables(comparison):
        parts += _render_table(table)
    if comparison.claims:
        parts.append(_escape(CLAIM_LEGEND[0].upper() + CLAIM_LEGEND[1:]))
    parts.append("\n".join(f"- {_escape(line)}" for line in tell_end(comparison)))
    legend = tell_legend(comparison.groups)
    parts.append(_escape(legend[0].upper() + legend[1:]))
    return "\n\n".join(part for part in parts if part) + "\n"


def _render_table(table: Table) -> list[str]:
    head = "| " + " | ".join(column.title for column in table.columns) + " |"
    rule = "|" + "|".join(" ---: " if column.is_number else " --- " for column in table.columns) + "|"
    rows = zip(*(column.cells for column in table.columns), strict=True)
    return [
        f"## {_escape(table.title)}",
        "  \n".join(_escape(line) for line in table.details),
        "\n".join([head, rule, *("| " + " | ".join(map(_escape, row)) + " |" for row in rows)]),
        "\n".join(f"- {_escape(note)}" for note in table.notes),
    ]


def _escape(text: str) -> str:
    return re.sub(r"([\\`*|<>\[\]&~])", r"\\\1", text)


CSV_FIELDS = (
    "workload", "edition", "measure", "device", "model", "driver", "precision", "host", "data",
    "row", "variant", "stack", "runner", "a_a", "is_baseline", "status", "verdict", "ratio", "ratio_low",
    "ratio_high", "median_s", "launches_low_s", "launches_high_s", "best_s", "first_call_s", "flop_per_s",
    "images_per_s", "bytes_per_s", "percent_of_ceiling", "peak_memory_bytes", "proof", "blocks", "samples",
    "more_blocks", "construct_s", *FIGURE_COLUMNS, "closing_s", "image", "base", "lock", "cause", "log",
)  # fmt: skip


def render_csv(comparison: Comparison) -> str:
    """One line a row, all groups under one head."""
    target = io.StringIO()
    writer = csv.DictWriter(target, CSV_FIELDS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for group in comparison.groups:
        for label, row in zip(label_rows(group), group.rows, strict=True):
            writer.writerow({name: _show(value) for name, value in _flatten(group, row, label).items()})
    return target.getvalue()


def _flatten(group: Group, row: Row, label: str) -> dict[str, object]:
    low, high = row.ratio_interval or (None, None)
    median_low, median_high = row.interval_s or (None, None)
    flat: dict[str, object] = {name: getattr(group, name) for name in CSV_FIELDS[:9]}
    flat |= {name: getattr(row, name) for name in row.__struct_fields__ if name in CSV_FIELDS}
    flat |= row.figures
    flat |= {f"{counted}_per_s": rate for counted, rate in row.rates.items()}
    return flat | {
        "row": label,
        "ratio_low": low,
        "ratio_high": high,
        "launches_low_s": median_low,
        "launches_high_s": median_high,
    }


def _show(value: object) -> object:
    if not isinstance(value, str):
        return str(value).lower() if isinstance(value, bool) else value
    # A spreadsheet would compute what begins like this.
    return f"'{make_visible(value)}" if value.startswith(("=", "+", "-", "@")) else make_visible(value)
