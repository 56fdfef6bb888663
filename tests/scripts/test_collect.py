"""The program: which files count, what is named, and how it ends."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scripts import collect as program
from scripts.collect import collect, main
from scripts.comparison import Comparison
from scripts.errors import Refusal
from scripts.schema import FOLDER
from tests.scripts import made_runs
from tests.scripts.made_runs import find_row, make_run, of_variant


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = make_run(tmp_path / "run", {"torch-compile": 0.57})
    record(made)
    return made


def record(folder: Path) -> None:
    """Write the run.json of a made run."""
    run = made_runs.load("run")
    cells: dict[str, Any] = {}
    for path in sorted(folder.glob("cells/*.0.json")):
        cell = json.loads(path.read_text())["cell"]
        cells[cell["id"]] = cell
    run |= {"id": folder.name, "blocks": 6, "cells": list(cells.values())}
    (folder / "run.json").write_text(json.dumps(run))


def test_a_whole_run_ends_with_0_and_leaves_three_files(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(folder)]) == 0
    assert {path.name for path in folder.glob("comparison.*")} == {
        "comparison.json", "comparison.csv", "comparison.md",
    }  # fmt: skip
    assert "torch-compile" in capsys.readouterr().out
    written = (folder / "comparison.json").read_bytes()
    assert msgspec.json.decode(written, type=Comparison) == collect([folder])
    schema = json.loads((FOLDER / "comparison.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(json.loads(written))


def test_collecting_twice_says_the_same(folder: Path) -> None:
    main([str(folder)])
    first = (folder / "comparison.json").read_bytes()
    main([str(folder)])
    assert (folder / "comparison.json").read_bytes() == first


@pytest.mark.parametrize("length", range(0, 3800, 211))
def test_a_truncated_file_loses_itself_only(
    folder: Path, length: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """R2"""
    (cut,) = folder.glob("cells/*torch-compile*.3.json")
    cut.write_bytes(cut.read_bytes()[:length])
    assert main([str(folder)]) == 1
    comparison = collect([folder])
    (left,) = comparison.left_out
    assert left.file == f"run/cells/{cut.name}"
    assert left.reason.startswith(("truncated", "empty"))
    assert find_row(comparison, "torch-compile").blocks == 5
    assert cut.name in capsys.readouterr().out.replace("\n", "")


def test_foreign_files_are_named_and_others_go_on(folder: Path) -> None:
    cells = folder / "cells"
    (cells / "notes.txt").write_text("mine")
    (cells / "package.json").write_text('{"name": "another"}')
    (cells / "folder.json").mkdir()
    os.mkfifo(cells / "pipe.json")
    (cells / ".mlp.0.json.x7k").write_text("{")
    os.close(os.open(os.fsencode(cells) + b"/\xff.json", os.O_CREAT))
    comparison = collect([folder])
    assert {left.file.rpartition("/")[2]: left.reason for left in comparison.left_out} == {
        "notes.txt": "not a result: its name does not end in .json",
        "package.json": "not a result: it has no schema version",
        "folder.json": "not a regular file",
        "pipe.json": "not a regular file",
        "\\udcff.json": "empty",
    }
    assert find_row(comparison, "torch-compile").verdict == "faster"
    assert main([str(folder)]) == 1


def test_a_copy_of_a_result_counts_once(folder: Path, tmp_path: Path) -> None:
    (one,) = folder.glob("cells/*torch-compile*.3.json")
    shutil.copy(one, folder / "cells" / "copy.json")
    comparison = collect([folder])
    assert [left.file for left in comparison.left_out] == ["run/cells/copy.json"]
    assert "its name is not that of its content" in comparison.left_out[0].reason
    assert find_row(comparison, "torch-compile").samples == 6 * 24

    (folder / "cells" / "copy.json").unlink()
    shutil.copytree(folder, tmp_path / "run-copy")
    twice = collect([tmp_path])
    assert find_row(twice, "torch-compile").samples == 6 * 24
    assert len(twice.left_out) == len(list(folder.glob("cells/*"))) + 1


def test_launches_that_are_missing_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for block in (4, 5):
        next(folder.glob(f"cells/*torch-compile*.{block}.json")).unlink()
    assert main([str(folder)]) == 1
    (run,) = collect([folder]).runs
    assert (run.planned, run.measured, run.missing) == (18, 16, 2)
    said = capsys.readouterr()
    assert "run run: 16 of 18 launches measured, 2 missing" in said.out
    assert "--resume run" in said.err


def test_what_was_skipped_is_a_row_and_not_missing(folder: Path) -> None:
    for path in folder.glob("cells/*torch-compile*"):
        path.unlink()
    skipped = made_runs.load("skipped")
    compiled = made_runs.make_launch("torch-compile", 0, 1.0)["cell"]
    made_runs.write(folder, skipped | {"cell": compiled | {"run": "run"}})
    assert main([str(folder)]) == 0
    comparison = collect([folder])
    assert (comparison.runs[0].skipped, comparison.runs[0].missing) == (1, 0)
    row = find_row(comparison, "torch-compile")
    assert (row.status, row.verdict) == ("skipped", "skipped")
    assert row.cause == "AMD EPYC 7B13 does not compute in bfloat16"


def test_ceilings_need_not_stand_in_every_block(folder: Path) -> None:
    ceiling = made_runs.load("ceiling")
    ceiling["cell"]["run"] = "run"
    made_runs.write(folder, ceiling)
    record(folder)
    assert main([str(folder)]) == 0


def test_a_failure_ends_with_1_and_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = folder.glob("cells/*torch-compile*.3.json")
    result = json.loads(one.read_text())
    made_runs.fail(result)
    one.write_text(json.dumps(result))
    assert main([str(folder)]) == 1
    assert "1 of 6 launches failed: killed by SIGKILL" in capsys.readouterr().out


def test_nothing_measured_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """R8"""
    both = ("torch-eager", "torch-compile")
    change = made_runs.both(*(of_variant(name, made_runs.fail, "measure") for name in both))
    folder = make_run(tmp_path / "run", {"torch-compile": 0.57}, change=change)
    record(folder)
    assert main([str(folder)]) == 4
    assert "nothing was measured" in capsys.readouterr().err
    shutil.rmtree(folder / "cells")
    assert main([str(folder)]) == 4


def test_a_folder_without_a_run_is_nothing_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R8"""
    assert main([str(tmp_path)]) == 4
    assert str(tmp_path) in capsys.readouterr().err


def test_no_such_folder_is_a_bad_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "absent")]) == 2
    assert "no such folder" in capsys.readouterr().err
    with pytest.raises(Refusal):
        collect([tmp_path / "absent"])


def test_an_unknown_baseline_is_a_bad_option(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder), "--baseline", "torch-compil"]) == 2
    assert "torch-compile" in capsys.readouterr().err
    assert main([str(folder), "--baseline", "torch-compile"]) == 0


def test_a_run_without_its_record_is_compared_and_said_to_be_so(folder: Path) -> None:
    (folder / "run.json").unlink()
    comparison = collect([folder])
    assert [(left.file, left.reason) for left in comparison.left_out] == [
        ("run/run.json", "missing, so that nobody knows what was planned")
    ]
    assert comparison.runs[0].planned is None
    assert find_row(comparison, "torch-compile").verdict == "faster"


@pytest.mark.parametrize("content", ["{", '{"schema": 2}', "[]", ""])
def test_a_damaged_record_is_named(folder: Path, content: str) -> None:
    (folder / "run.json").write_text(content)
    (left,) = collect([folder]).left_out
    assert left.file == "run/run.json"


def test_without_a_folder_all_runs_are_merged(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(make_run(tmp_path / "run2", {"torch-compile": 0.57}))
    monkeypatch.setattr(program, "RUNS", tmp_path)
    monkeypatch.setattr(program, "MERGED", tmp_path / "merged")
    assert main([]) == 0
    assert "run2" in (tmp_path / "merged" / "comparison.md").read_text()
    assert main([]) == 0
    assert main(["--results", str(tmp_path / "elsewhere")]) == 0
    assert (tmp_path / "elsewhere" / "comparison.csv").is_file()
    monkeypatch.setattr(program, "RUNS", tmp_path / "absent")
    assert main([]) == 4


def test_a_place_that_cannot_be_written_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "file").write_text("")
    assert main([str(folder), "--results", str(folder / "file")]) == 2
    assert str(folder / "file") in capsys.readouterr().err


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damage_to_one_file_leaves_the_others_figures_as_they_were(folder: Path, data: st.DataObject) -> None:
    """R1, R2"""
    before = find_row(collect([folder]), "torch-eager")
    (one,) = folder.glob("cells/*torch-compile*.3.json")
    whole = one.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    one.write_bytes(
        whole[:place] + data.draw(st.binary(max_size=8)) + whole[place + data.draw(st.integers(0, 40)) :]
    )
    try:
        comparison = collect([folder])
        if comparison.left_out:
            assert comparison.left_out[0].file == f"run/cells/{one.name}"
        if len(comparison.groups) == 1:
            assert find_row(comparison, "torch-eager") == before
        msgspec.json.encode(comparison)
    finally:
        one.write_bytes(whole)
