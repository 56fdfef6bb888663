"""Bench sessions as real processes, with a stand-in for the ground floor."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from scripts.contract import Run
from scripts.errors import ExitStatus
from scripts.runs import ROOT
from tests.scripts.test_launch import await_death

SMALL = ("--workload", "mlp", "--variant", "torch-eager", "--blocks", "2", "--seed", "1", "--threads", "1")
EAGER = "mlp_fair_torch-eager_host_host_cpu_fp32"
CEILING = "ceiling_fair_torch-ceiling_host_host_cpu_fp32"
SECOND_BLOCK = {f"{name}.1" for name in (EAGER, f"{EAGER}_aa", CEILING)}
ALL = SECOND_BLOCK | {f"{name}.0" for name in (EAGER, f"{EAGER}_aa", CEILING)} | {f"{EAGER}.proof"}


class Bench:
    """Sessions that share a results folder, a scenario, and a folder for locks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results"
        (folder / "locks").mkdir()
        self.behave({})

    def behave(self, behaviours: dict[str, str]) -> None:
        (self.folder / "scenario.json").write_text(json.dumps(behaviours))

    def start(self, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.scripts.drive_bench", str(self.folder / "scenario.json")]
        return subprocess.Popen(
            [*command, "--results", str(self.results), *options],
            cwd=ROOT,
            env=os.environ | {"TMPDIR": str(self.folder / "locks"), "COLUMNS": "100"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *options: str) -> tuple[int, str, str]:
        process = self.start(*options)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def await_launch(self, count: int) -> int:
        """Wait for the start of launch ``count``, and return its process id."""
        deadline = time.monotonic() + 60
        while len(started := self.starts()) < count:
            assert time.monotonic() < deadline, f"only {len(started)} launches came"
            time.sleep(0.01)
        return int(started[count - 1].split()[0])

    def starts(self) -> list[str]:
        path = self.folder / "starts"
        return path.read_text().splitlines() if path.exists() else []

    def only_run(self) -> Path:
        (path,) = self.results.iterdir()
        return path

    def measured(self) -> set[str]:
        return {path.name.removesuffix(".json") for path in (self.only_run() / "cells").iterdir()}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_run_measures_proves_and_compares(bench: Bench) -> None:
    status, out, err = bench.run(*SMALL)
    assert (status, err) == (ExitStatus.MEASURED, "")
    run = bench.only_run()
    assert re.fullmatch(r"\d{8}T\d{6}Z-.+-cpu", run.name)
    assert bench.measured() == ALL
    assert {path.name for path in run.glob("comparison.*")} == {
        "comparison.json",
        "comparison.csv",
        "comparison.md",
    }
    record = msgspec.json.decode((run / "run.json").read_bytes(), type=Run)
    assert (record.id, record.profile, record.blocks, record.seed) == (run.name, "quick", 2, 1)
    assert record.command[:4] == ["nox", "-s", "bench-cpu", "--"]
    assert "torch-eager" in out
    assert "of which no launch ran in" in out
    assert not [path for path in (bench.folder / "locks").iterdir() if path.is_dir()], "private folders stay"


def test_a_launch_killed_in_mid_run_is_a_failed_row_named_at_the_end(bench: Bench) -> None:
    bench.behave({f"{EAGER}_aa.1": "die SIGKILL"})
    status, out, _ = bench.run(*SMALL)
    assert status == ExitStatus.PARTLY_MEASURED
    assert bench.measured() == ALL
    assert re.search(
        r"^failed: block 2 mlp fair torch-eager \(A/A\): killed by SIGKILL.*logs/", out, re.MULTILINE
    )


def test_nothing_measured_says_so_by_its_status(bench: Bench) -> None:
    """R8"""
    bench.behave({"*": "print No module named 'torch'"})
    status, out, _ = bench.run(*SMALL)
    assert status == ExitStatus.NOTHING_MEASURED
    assert "No module named 'torch'" in out


def test_a_dry_run_shows_plan_order_and_estimate_and_touches_nothing(bench: Bench) -> None:
    status, out, err = bench.run(*SMALL, "--dry-run")
    assert (status, err) == (0, "")
    assert "1 proof, then 6 launches in 2 blocks" in out
    assert "environments apart" in out
    assert out.index("block 1:") < out.index("block 2:")
    assert not bench.results.exists()
    assert not bench.starts()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("hanging", "launch"), [({f"{EAGER}.proof"}, 1), (SECOND_BLOCK, 5)])
def test_an_interruption_leaves_nothing_running_and_says_how_to_go_on(
    bench: Bench, number: signal.Signals, hanging: set[str], launch: int
) -> None:
    bench.behave(dict.fromkeys(hanging, "hang with a child"))
    process = bench.start(*SMALL)
    pid = bench.await_launch(launch)
    process.send_signal(number)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == ExitStatus.INTERRUPTED, (out, err)
    command = f"nox -s bench-cpu -- --resume {bench.only_run()}"
    assert err.strip() == f"bench: interrupted; go on with: {command}"
    await_death(pid)
    assert not [path for path in (bench.folder / "locks").iterdir() if path.is_dir()]

    bench.behave({})
    before = len(bench.starts())
    assert bench.run("--resume", str(bench.only_run()))[0] == 0
    assert bench.measured() == ALL
    assert len(bench.starts()) - before == len(ALL) - (launch - 1)


def test_a_killed_host_takes_its_launches_with_it_and_the_run_goes_on_later(bench: Bench) -> None:
    bench.behave(dict.fromkeys(SECOND_BLOCK, "hang"))
    process = bench.start(*SMALL)
    pid = bench.await_launch(5)
    process.kill()
    process.communicate(timeout=60)
    await_death(pid)
    bench.behave({})
    status, out, err = bench.run("--resume", bench.only_run().name)
    assert (status, err) == (0, "")
    assert "4 results are there, 3 launches are missing" in out
    assert bench.measured() == ALL
    assert len(bench.starts()) == len(ALL) + 1


def change(bench: Bench, alter: Callable[[dict[str, dict[str, object]]], None]) -> None:
    path = bench.only_run() / "run.json"
    record = json.loads(path.read_text())
    alter(record)
    path.write_text(json.dumps(record))


def test_a_run_does_not_go_on_where_something_that_matters_has_changed(bench: Bench) -> None:
    assert bench.run(*SMALL)[0] == 0
    whole = (bench.only_run() / "run.json").read_text()
    changes = {
        "host was elsewhere": lambda record: record["machine"].update(host="elsewhere"),
        "cpus_usable was 999": lambda record: record["machine"].update(cpus_usable=999),
        "workload_sha256 of mlp was": lambda record: record["cells"][0]["identity"].update(
            workload_sha256="0" * 64
        ),
        "lock_sha256 of host was": lambda record: record["cells"][0]["identity"].update(lock_sha256="0" * 64),
        "schema 2": lambda record: record.update(schema=2),
        "start a new one": lambda record: record.pop("cells"),
        "profile 'slow'": lambda record: record.update(profile="slow"),
        "a cell's id is no plain name": lambda record: record["cells"][0].update(id="../../../x"),
        "a cell's stack is no plain name": lambda record: record["cells"][0].update(stack="/etc"),
        "a container's cell has no image": lambda record: record["cells"][0].update(runner="docker"),
        "there is no stack 'host' here": lambda record: record["cells"][0].update(runner="venv"),
        "length >= 1": lambda record: record.update(cells=[]),
        "<= 1000": lambda record: record.update(blocks=10**12),
        "there is no torch-else of mlp": lambda record: record["cells"][0].update(variant="torch-else"),
    }
    for words, alter in changes.items():
        (bench.only_run() / "run.json").write_text(whole)
        change(bench, alter)
        status, _, err = bench.run("--resume", bench.only_run().name)
        assert status == ExitStatus.BAD_OPTIONS, words
        assert words in err
        assert err.count("\n") == 1


def test_a_second_run_on_a_device_is_refused_with_who_holds_it_and_no_hold_outlives_its_process(
    bench: Bench,
) -> None:
    bench.behave({"*": "hang"})
    first = bench.start(*SMALL)
    pid = bench.await_launch(1)
    status, _, err = bench.run(*SMALL)
    assert status == ExitStatus.HOST_CANNOT
    assert f"process {first.pid}, run {bench.only_run().name}, since 2" in err
    first.kill()
    first.communicate(timeout=60)
    await_death(pid)
    bench.behave({})
    assert bench.run("--resume", bench.only_run().name)[0] == 0


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (("--workload", "mlpp"), 2, "did you mean mlp"),
        (("--blocks", "0"), 2, "--blocks"),
        (("--threads", "4000"), 2, "may use"),
        (("--resume", "nowhere"), 2, "no run.json"),
        (("--device", "cuda:7"), 3, "GPU"),
    ],
)
def test_what_cannot_be_is_one_line_and_a_status(
    bench: Bench, options: tuple[str, ...], status: int, words: str
) -> None:
    found, _, err = bench.run(*options)
    assert found == status
    assert words in err
    assert err.count("\n") == 1
    assert not bench.starts()


def test_a_results_folder_that_cannot_be_is_refused_before_anything_is_built(bench: Bench) -> None:
    bench.results.write_text("a file, no folder")
    status, _, err = bench.run(*SMALL)
    assert status == ExitStatus.BAD_OPTIONS
    assert err.startswith(f"bench: {bench.results}/")
    assert err.count("\n") == 1
    assert not bench.starts()


def test_foreign_files_in_the_results_folder_disturb_nothing(bench: Bench) -> None:
    bench.results.mkdir()
    (bench.results / "notes.txt").write_text("mine")
    assert bench.run(*SMALL)[0] == 0
    assert (bench.results / "notes.txt").read_text() == "mine"


def test_the_launch_path_loads_neither_statistics_nor_drawing() -> None:
    heavy = "{'scipy', 'numpy', 'rich.console', 'rich.live', 'scripts.collect'}"
    code = f"import sys, scripts.bench; print({heavy} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout == "set()\n"
