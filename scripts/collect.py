"""Merges runs into comparison.json, .csv and .md, and prints the tables.

Without a folder, all runs in results/runs are merged. The files go into the run's own folder where
there is one run, otherwise into results/runs/merged; --results names another place.

Exit status: 0 all measured, whatever the verdicts; 1 measured, but launches failed or are missing, or
files are left out, each named; 2 bad options, or no such folder; 4 nothing measured.
"""

import argparse
import contextlib
import gc
import os
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from scripts.catalogue import find_names, load_catalogue
from scripts.claims import judge_claims
from scripts.compare import compare
from scripts.comparison import Comparison, LeftOutFile, RunSummary
from scripts.contract import Cell, Result, Run
from scripts.decode import LeftOut, check_version, decode_result, explain, read_bytes
from scripts.errors import ExitStatus, Refusal, run_program
from scripts.observation import Observation, Observer
from scripts.order import count_launches
from scripts.output import PipedConsole
from scripts.published import load_articles
from scripts.renderings import print_comparison, render_csv, render_markdown
from scripts.runs import RUNS, RunFolder, write_whole
from scripts.stacks import load_stacks
from scripts.versions import list_versions
from scripts.words import make_visible

MERGED = RUNS / "merged"


class _Reading:
    """What was read so far of all runs."""

    def __init__(self) -> None:
        self.observer = Observer()
        self.observations: list[Observation] = []
        self.records: dict[str, Run] = {}
        self.launches: dict[str, dict[tuple[str, int | None], str]] = defaultdict(dict)
        """Status by run, then by cell and block; no block for a proof."""
        self.left_out: list[LeftOutFile] = []

    def read_run(self, folder: RunFolder) -> None:
        """Read a run's record and results; what cannot be read or trusted is left out, with the reason."""
        name = _show_name(folder.path.resolve().name)
        planned: dict[str, Cell] = {}
        with self._leaving_out(f"{name}/run.json"):
            if not folder.record.exists():
                raise LeftOut(str(folder.record), "missing, so that nobody knows what was planned")
            record = _decode_record(folder.record)
            if record.id in self.records:
                raise LeftOut(str(folder.record), f"says again what run {record.id} is")
            self.records[record.id] = record
            planned = {cell.id: cell for cell in record.cells}
        files: list[str] = []
        with self._leaving_out(f"{name}/cells"):
            files = _list_files(folder.cells)
        for file in files:
            shown = f"{name}/cells/{_show_name(file)}"
            with self._leaving_out(shown):
                if not file.endswith(".json"):
                    raise LeftOut(shown, "not a result: its name does not end in .json")
                result = decode_result(f"{folder.cells}/{file}")
                if result.status == "prepared":
                    raise LeftOut(shown, "of a launch that prepared data and measured nothing")
                _check_planned(result.cell, planned, shown)
                self._take(result, file, shown)

    @contextlib.contextmanager
    def _leaving_out(self, shown: str) -> Iterator[None]:
        try:
            yield
        except LeftOut as left:
            self.left_out.append(LeftOutFile(shown, left.reason))

    def _take(self, result: Result, file: str, shown: str) -> None:
        cell = result.cell
        block = None if cell.purpose == "proof" else cell.block
        if file != f"{cell.id}.{'proof' if block is None else block}.json":
            raise LeftOut(shown, f"its name is not that of its content, {cell.id}, block {block}")
        launches = self.launches[cell.run]
        if (cell.id, block) in launches:
            raise LeftOut(shown, f"says again what another file says of run {cell.run}")
        launches[cell.id, block] = result.status
        self.observations += self.observer.observe(result, shown)

    def summarise(self) -> list[RunSummary]:
        runs = sorted(self.records.keys() | self.launches.keys())
        return [_summarise(run, self.records.get(run), self.launches[run]) for run in runs]


def collect(folders: Sequence[Path], baseline: str | None = None) -> Comparison:
    """Merge runs.

    Args:
        folders: Runs, or folders that hold runs.
        baseline: Variant to compare with instead of each workload's own, where a workload has it.

    Raises:
        Refusal: a folder is not there or holds no run, or no workload has the baseline.
    """
    reading = _Reading()
    with _collection_paused():
        for folder in find_runs(folders):
            reading.read_run(RunFolder(folder))
        if baseline is not None and reading.observations:
            find_names("variant", [baseline], [seen.contender.variant for seen in reading.observations])
        comparison = compare(reading.observations, reading.summarise(), reading.left_out, baseline)
    claims, published = judge_claims(
        comparison.groups,
        comparison.runs,
        load_articles(),
        load_catalogue(),
        {name for name, stack in load_stacks().items() if stack.current},
    )
    return msgspec.structs.replace(
        comparison, versions=list_versions(comparison.groups), claims=claims, published=published
    )


def write_comparison(folder: Path, comparison: Comparison) -> None:
    """Write comparison.json, .csv and .md.

    Raises:
        Refusal: the folder cannot be written.
    """
    content = msgspec.json.format(msgspec.json.encode(comparison), indent=1)
    write_whole(folder / "comparison.json", content + b"\n")
    write_whole(folder / "comparison.csv", render_csv(comparison).encode())
    write_whole(folder / "comparison.md", render_markdown(comparison).encode())


def find_runs(folders: Sequence[Path]) -> list[Path]:
    """Find the folders of runs among and in ``folders``, each once.

    Raises:
        Refusal: a folder is not there or holds no run.
    """
    found: dict[Path, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            raise Refusal(f"{folder}: no such folder; name a run's folder, or one that holds runs")
        try:
            runs = (
                [folder] if _is_run(folder) else sorted(child for child in folder.iterdir() if _is_run(child))
            )
        except OSError as error:
            raise Refusal(f"{folder}: cannot be read ({error.strerror})") from error
        if not runs:
            raise Refusal(
                f"{folder}: there is no run in it; measure one with nox -s bench-cpu",
                ExitStatus.NOTHING_MEASURED,
            )
        for run in runs:
            found.setdefault(run.resolve(), run)
    return list(found.values())


def _is_run(folder: Path) -> bool:
    run = RunFolder(folder)
    try:
        return run.cells.is_dir() or run.record.is_file()
    except PermissionError:
        # Somebody else's, perhaps: it is left out with its reason, and the others go on.
        return True


def _check_planned(cell: Cell, planned: Mapping[str, Cell], shown: str) -> None:
    """See that a result answers a cell of its run's plan, where the run says what it planned.

    Raises:
        LeftOut: it does not, and in which field.
    """
    if not planned:
        return
    if cell.id not in planned:
        raise LeftOut(shown, f"{cell.id} is no cell that its run planned")
    one = planned[cell.id]
    own = {"block", "position", "cache", "cache_state", "purpose"}
    if cell.purpose == "proof":
        own.add("threads")
    for field in cell.__struct_fields__:
        if field not in own and getattr(cell, field) != getattr(one, field):
            raise LeftOut(shown, f"its {field} is not what its run planned")


def _list_files(folder: Path) -> list[str]:
    """Hidden files are results that are being written."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if not entry.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LeftOut("", f"cannot be read ({error.strerror})") from error


def _show_name(name: str) -> str:
    """A name that JSON can hold, whatever the file system holds."""
    return name.encode(errors="backslashreplace").decode()


def _decode_record(path: Path) -> Run:
    content = read_bytes(str(path))
    try:
        record = msgspec.json.decode(content, type=Run)
    except (msgspec.DecodeError, RecursionError) as error:
        raise LeftOut(str(path), explain(content, error)) from error
    if fault := check_version(record.schema):
        raise LeftOut(str(path), fault)
    return record


def _summarise(run: str, record: Run | None, launches: dict[tuple[str, int | None], str]) -> RunSummary:
    statuses = list(launches.values())
    planned = missing = 0
    for cell in record.cells if record else []:
        lost = launches.get((cell.id, None)) in ("failed", "skipped")
        found = (
            [launches[cell.id, block] for block in range(record.blocks) if (cell.id, block) in launches]
            if record
            else []
        )
        # Ceilings need not stand in every block; what was skipped, or not proved, is not launched again.
        wanted = count_launches(cell, record.blocks) if record and cell.role != "ceiling" else 1
        planned += max(wanted, len(found))
        if not lost and "skipped" not in found:
            missing += max(0, wanted - len(found))
    return RunSummary(
        id=run,
        host=record.machine.host if record else None,
        started=record.started if record else None,
        profile=record.profile if record else None,
        planned=planned if record else None,
        measured=statuses.count("measured"),
        failed=statuses.count("failed"),
        skipped=statuses.count("skipped"),
        missing=missing,
        cpus=record.machine.cpus_usable if record else None,
    )


@contextlib.contextmanager
def _collection_paused() -> Iterator[None]:
    """Nothing here is cyclic, and looking for cycles among ever more observations would take a third
    of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.collect",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "folders", nargs="*", type=Path, metavar="FOLDER", help="a run, or a folder that holds runs"
    )
    parser.add_argument("--baseline", metavar="VARIANT", help="compare with this variant instead")
    parser.add_argument("--results", type=Path, metavar="DIR", help="where the files go")
    options = parser.parse_args(arguments)
    try:
        if not options.folders and not RUNS.is_dir():
            raise Refusal(
                "there is no run yet; measure one with nox -s bench-cpu", ExitStatus.NOTHING_MEASURED
            )
        folders = find_runs(options.folders or [RUNS])
        comparison = collect(folders, options.baseline)
        write_comparison(options.results or (folders[0] if len(folders) == 1 else MERGED), comparison)
        print_comparison(comparison, PipedConsole())
    except Refusal as refusal:
        print(f"collect: {refusal.message}", file=sys.stderr)
        return refusal.status
    for run in comparison.runs:
        if run.missing:
            name = make_visible(shlex.quote(run.id))
            print(f"collect: a run is not complete; --resume {name} measures the rest", file=sys.stderr)
    if not comparison.has_measured():
        print("collect: nothing was measured", file=sys.stderr)
        return ExitStatus.NOTHING_MEASURED
    return ExitStatus.MEASURED if comparison.is_whole() else ExitStatus.PARTLY_MEASURED


if __name__ == "__main__":
    run_program("collect", main)
