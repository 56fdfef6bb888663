"""The same tables in the terminal, in Markdown and in CSV, whatever names results bring."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console

from scripts.collect import collect
from scripts.comparison import Comparison
from scripts.renderings import print_comparison, render_csv, render_markdown
from scripts.tables import LEGEND, make_table, tell_legend
from scripts.words import describe_number, describe_ratio, describe_seconds, describe_work, make_visible
from tests.scripts import made_runs
from tests.scripts.made_runs import both, find_row, make_run, of_variant, put

HOSTILE = "evil|`*_<b>[red]\x1b[31m\u202egnp.\u200b\n\ttwo"


def differ(result: dict[str, Any]) -> None:
    result["settings"] |= {"compiler": "inductor", "keras": "3.15.1"}


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    def kill(result: dict[str, Any]) -> None:
        made_runs.fail(result, "segmentation fault")
        result["log"] = "logs/script.log"

    change = both(
        of_variant("torch-compile", differ, "measure"),
        of_variant("torch-script", kill, "measure"),
    )
    speeds = {"torch-compile": 0.57, "torch-script": 1.0, "torch-new": 1.004}
    folder = make_run(tmp_path / "run", speeds, change=change)
    ceiling = made_runs.load("ceiling")
    ceiling["cell"]["run"] = "run"
    made_runs.write(folder, ceiling)
    return collect([folder])


def show(comparison: Comparison, width: int = 80, encoding: str = "utf-8", **options: Any) -> str:
    raw = io.BytesIO()
    target = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    print_comparison(comparison, Console(file=target, width=width, **options))
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("width", [80, 100, 160])
def test_the_terminal_table_fits_and_leads_with_ratio_verdict_and_median(
    comparison: Comparison, width: int
) -> None:
    lines = show(comparison, width).splitlines()
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "mlp, fair edition, step (10.2 GFLOP, 1 step)" in text
    assert "AMD EPYC 7B13, fp32, 2 threads, host atlas" in text
    (row,) = [line for line in lines if line.startswith("torch-compile ")]
    assert "0.570x [0.569, 0.570]" in row
    assert "faster" in row
    assert " ms" in row
    assert any(line.startswith("torch-eager  ") and "baseline" in line for line in lines)
    assert any(line.startswith("torch-eager (A/A)") for line in lines)


def test_a_wide_terminal_shows_more_columns(comparison: Comparison) -> None:
    narrow, wide = show(comparison, 80), show(comparison, 160)
    for title in ("best", "peak memory", "proof", "GFLOP/s"):
        assert f" {title} " in wide
    assert not any(line.startswith("variant") and "peak memory" in line for line in narrow.splitlines())
    assert "too narrow for: " in narrow
    assert "too narrow" not in show(comparison, 200)


def test_the_article_edition_shows_the_best_beside_the_median_in_80_columns(tmp_path: Path) -> None:
    """S1: a figure says which statistic it is."""
    folder = make_run(tmp_path / "run", {"torch-compile": 0.57}, change=put("cell.edition", "article"))
    head = next(line for line in show(collect([folder])).splitlines() if line.startswith("variant"))
    assert head.split()[:5] == ["variant", "ratio", "verdict", "median", "best"]


def test_settings_that_differ_and_causes_stand_below(comparison: Comparison) -> None:
    text = show(comparison)
    assert "torch-compile: compiler none -> inductor" in text
    assert "torch-script: segmentation fault (log: logs/script.log)" in text
    assert "keras" not in text


def test_an_undecided_pair_says_what_would_settle_it(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", {"torch-compile": 0.57}, range(2))
    text = " ".join(show(collect([folder]), 200).split())
    assert "torch-compile: 2 of the 5 blocks that a verdict needs; about " in text
    assert "more blocks would settle it" in text


def test_ceilings_are_lines_and_no_tables(comparison: Comparison) -> None:
    lines = show(comparison).splitlines()
    fastest = {one["name"]: min(one["samples_s"]) for one in made_runs.load("ceiling")["measures"]}
    flops, bytes_ = 2 * 4096**3 / fastest["matmul_4096"] / 1e9, 2 * 536870912 / fastest["copy"] / 1e9
    assert f"ceiling, matmul_4096, AMD EPYC 7B13, fp32: torch-ceiling {flops:.0f} GFLOP/s" in lines
    assert f"ceiling, copy, AMD EPYC 7B13, fp32: torch-ceiling {bytes_:.1f} GB/s" in lines


def test_colour_is_for_terminals_that_want_it(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b[1m" in show(comparison, force_terminal=True)
    assert "\x1b" not in show(comparison)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in show(comparison, force_terminal=True)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_utf_8_gets_what_it_can_show(tmp_path: Path, encoding: str) -> None:
    folder = make_run(tmp_path / "run", {"torch-köln-日本": 0.57})
    text = show(collect([folder]), 160, encoding)
    assert "\\u65e5" in text
    assert "faster" in text


def test_names_from_results_neither_format_nor_move_anything(tmp_path: Path) -> None:
    folder = make_run(
        tmp_path / "run",
        {"other": 0.57},
        change=both(
            of_variant("other", put("cell.variant", HOSTILE)),
            put("device.model", HOSTILE),
            put("warnings", [HOSTILE]),
        ),
    )
    comparison = collect([folder])
    for text in (show(comparison, 200), render_markdown(comparison), render_csv(comparison)):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "\u200b" not in text
        assert "\\u202e" in text
    assert "[red]" in show(comparison, 200)
    table = [line for line in render_markdown(comparison).splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1
    assert "<b>" not in render_markdown(comparison).replace("\\<b\\>", "")


def test_markdown_has_a_table_for_each_contest_with_all_columns(comparison: Comparison) -> None:
    text = render_markdown(comparison)
    head = next(line for line in text.splitlines() if line.startswith("| variant"))
    for title in ("ratio", "verdict", "median", "best", "first call", "GFLOP/s", "ceiling", "proof", "stack"):
        assert f" {title} |" in head
    assert text.count("\n## ") == 1
    assert "| torch-script |  | failed |" in text


def test_csv_has_a_line_for_every_row_with_plain_numbers(comparison: Comparison) -> None:
    lines = list(csv.DictReader(io.StringIO(render_csv(comparison))))
    assert len(lines) == sum(len(group.rows) for group in comparison.groups) == 9
    (line,) = [line for line in lines if line["variant"] == "torch-compile"]
    assert float(line["ratio_low"]) < float(line["ratio"]) < float(line["ratio_high"])
    assert line["a_a"] == "false"
    assert float(line["flop_per_s"]) > 1e9
    assert line["verdict"] == "faster"


def test_a_spreadsheet_does_not_compute_a_name(tmp_path: Path) -> None:
    folder = make_run(
        tmp_path / "run", {"other": 0.5}, change=of_variant("other", put("cell.variant", "=1+1"))
    )
    assert "'=1+1" in render_csv(collect([folder]))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1836.2, "1,836 s"), (61.4, "61.4 s"), (1.0, "1.00 s"), (0.9999, "1.00 s"), (0.0621, "62.1 ms"),
        (0.1, "100 ms"), (5e-5, "50.0 us"), (3.2e-8, "32.0 ns"), (None, ""),
    ],
)  # fmt: skip
def test_seconds_are_shown_in_the_unit_that_fits(seconds: float | None, words: str) -> None:
    assert describe_seconds(seconds) == words


@pytest.mark.parametrize(
    ("ratio", "interval", "words"),
    [
        (0.5712, (0.55, 0.59), "0.57x [0.55, 0.59]"),
        (1.0012, (0.9993, 1.0031), "1.001x [0.999, 1.003]"),
        (12.34, (11.0, 13.7), "12.34x [11.00, 13.70]"),
        (250.0, (240.0, 260.0), "250x [240, 260]"),
        (1e-5, (9e-6, 1.1e-5), "1e-05x [9e-06, 1.1e-05]"),
        (None, None, ""),
    ],
)
def test_ratios_have_the_digits_that_their_interval_bears(
    ratio: float | None, interval: tuple[float, float] | None, words: str
) -> None:
    assert describe_ratio(ratio, interval) == words


def test_numbers_and_work_are_read_without_exponents() -> None:
    assert [describe_number(value) for value in (0, 0.00182, 9.996, 184.4, 60000, 1e12)] == [
        "0", "0.00182", "10.0", "184", "60,000", "1e+12",
    ]  # fmt: skip
    assert describe_work({"steps": 1.0, "images": 60032.0, "flop": 4.46e12, "bytes": 1.9e8}) == (
        "1 step, 60,032 images, 4.46 TFLOP, 190 MB"
    )


def test_harmless_text_is_left_as_it_is() -> None:
    assert make_visible("torch-köln 日本 [x]") == "torch-köln 日本 [x]"
    assert make_visible("a\x00b\u202ec") == "a\\x00b\\u202ec"


def test_rows_by_two_runners_are_told_apart_and_each_names_its_image_base_and_lock(
    comparison: Comparison,
) -> None:
    """C8"""
    group = next(group for group in comparison.groups if group.baseline)
    row = group.rows[0]
    image, base = f"sha256:{'a' * 64}", f"local@sha256:{'b' * 64}"
    inside = replace(row, runner="docker", image=image, base=base, lock="c" * 64)
    outside = replace(row, runner="venv", image=None, base=None, lock="c" * 64)
    table = make_table(replace(group, rows=[outside, inside]))
    assert table.columns[0].cells == [
        f"{row.variant} (venv)",
        f"{row.variant} (docker, sha256:{'a' * 12}, local@sha256:{'b' * 12})",
    ]
    told = f"image sha256:{'a' * 12}, base local@sha256:{'b' * 12}, lock {'c' * 12}"
    assert f"{row.stack} by docker: {told}" in table.notes


def test_figures_that_rows_are_compared_by_have_columns_and_the_others_a_note(tmp_path: Path) -> None:
    figures = {"first_batch_s": 0.0312, "waiting_share": 0.25, "cpu_s_per_image": 4.1e-5, "construct_s": 3.4}

    def add(result: dict[str, Any]) -> None:
        for measure in result.get("measures", ()):
            measure["figures"] = figures
        if "proof" in result:
            result["proof"]["figures"] = {"shuffle_rank_correlation": 0.9996}

    comparison = collect([make_run(tmp_path / "run", {"torch-compile": 0.6}, change=add)])
    (group,) = [group for group in comparison.groups if group.baseline]
    assert find_row(comparison, "torch-compile").figures == figures | {"shuffle_rank_correlation": 0.9996}
    table = make_table(group)
    columns = {column.title: column.cells for column in table.columns}
    assert columns["first batch"][0] == "31.2 ms"
    assert columns["waiting"][0] == "25 %"
    assert columns["CPU an image"][0] == "41.0 us"
    # Of the proof, which stands for the A/A row as well.
    assert columns["order kept"] == ["1.00"] * 3
    assert "order repeated" not in columns
    notes = " ".join(table.notes)
    assert "construct 3.40 s" in notes
    assert "first batch" not in notes
    assert "order kept: rank correlation" in tell_legend(comparison.groups)
    (line,) = [line for line in csv.DictReader(io.StringIO(render_csv(comparison))) if line["a_a"] == "true"]
    assert (line["waiting_share"], line["closing_s"]) == ("0.25", "")


def test_tables_without_such_figures_are_not_explained_by_them(tmp_path: Path) -> None:
    comparison = collect([make_run(tmp_path / "run", {"torch-compile": 0.6})])
    assert tell_legend(comparison.groups) == LEGEND
