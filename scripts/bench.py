"""Measures, proves and compares: plans a run, launches it, and shows its tables.

Exit status: 0 all measured; 1 measured, with failures, each named; 2 bad options or configuration;
3 this host cannot run it; 4 nothing measured; 130 interrupted.
"""

from __future__ import annotations

import dataclasses
import importlib
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from scripts.catalogue import Workload, load_catalogue
from scripts.closing import describe_end, describe_order, describe_plan, judge, warn_of_load
from scripts.contract import Cause, Cell, Run
from scripts.derive import check_data, choose_data, derive, find_data, tell_data
from scripts.equipment import (
    Equipment,
    check_equipment,
    check_resumable,
    enter,
    find_images,
    find_primed,
    make_launcher,
)
from scripts.errors import ExitStatus, Refusal, run_program
from scripts.exclusion import hold_device
from scripts.execute import Account, execute, make_schedule, settle_known
from scripts.host import GroundFloor, describe_ground
from scripts.interruption import end_with_front_door, interruptible
from scripts.launch import GROUND_FLOOR, Launcher
from scripts.options import Options, check_threads, parse_options
from scripts.plan import Plan, make_plan
from scripts.progress import Forecast, Progress
from scripts.record import find_surroundings, hash_lock, make_record, name_run, name_session
from scripts.resume import check_unchanged, load_run, restore_plan
from scripts.runs import RUNS, RunFolder, write_whole
from scripts.stacks import Stack, load_stacks, tell_best_effort

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Session:
    """A run about to start, or to go on."""

    folder: RunFolder
    run: Run
    plan: Plan
    is_new: bool

    @property
    def device(self) -> str:
        return self.run.cells[0].device

    def tell_resume(self) -> str:
        """The command that goes on with this run."""
        path = self.folder.path
        name = path.name if path.parent == RUNS else str(path)
        return f"nox -s {name_session(self.run.cells)} -- --resume {shlex.quote(name)}"

    def on(self, cells: Sequence[Cell], equipment: Equipment) -> Session:
        """The same session, its cells and its record completed by what it runs on."""
        run = replace(
            self.run, cells=list(cells), engine=equipment.describe_engine(), gpu=equipment.describe_gpu()
        )
        return dataclasses.replace(self, run=run, plan=dataclasses.replace(self.plan, cells=cells))


def main(arguments: Sequence[str], program: Sequence[str] = GROUND_FLOOR) -> int:
    """Run a bench session and return its exit status.

    Args:
        arguments: the options, as the user typed them.
        program: what a stack's interpreter runs in each launch.
    """
    from scripts.output import PipedConsole

    console = PipedConsole(highlight=False, markup=False)
    say = partial(console.print, soft_wrap=True)
    try:
        with interruptible():
            end_with_front_door()
            options = parse_options(arguments)
            catalogue, stacks, ground = load_catalogue(), load_stacks(), describe_ground()
            session = _prepare(options, arguments, catalogue, stacks, ground)

            def describe() -> None:
                if session.is_new:
                    describe_plan(session.plan, catalogue, say)
                    warn_of_load(ground.machine, say)

            if options.dry_run:
                describe()
                describe_order(session.plan, say)
                return ExitStatus.MEASURED
            with hold_device(session.device, session.run.id, session.run.started):
                equipment = check_equipment(session.run.cells, stacks)
                describe()
                for note in equipment.gpu.notes if equipment.gpu else ():
                    say(f"note: {note}")
                return _run(session, equipment, options, catalogue, stacks, ground, console, program)
    except Refusal as refusal:
        print(f"bench: {refusal.message}", file=sys.stderr)
        return refusal.status
    except KeyboardInterrupt:
        print("bench: interrupted before anything was launched", file=sys.stderr)
        return ExitStatus.INTERRUPTED


def _prepare(
    options: Options,
    arguments: Sequence[str],
    catalogue: Mapping[str, Workload],
    stacks: Mapping[str, Stack],
    ground: GroundFloor,
) -> Session:
    if options.resume is not None:
        folder, run = load_run(options.resume, options.results)

        def hash_now(cell: Cell) -> str | None:
            return hash_lock(stacks, cell.stack, cell.runner, cell.device)

        check_unchanged(run, ground.machine, ground.workloads, hash_now)
        return Session(folder, run, restore_plan(run, catalogue, ground.machine), is_new=False)
    if options.threads is not None:
        check_threads(options.threads, ground.machine.cpus_usable)
    folder = RunFolder(name_run(options, ground.machine))
    around = find_surroundings(folder.path.name, options, catalogue, stacks, ground)
    plan = make_plan(options, catalogue, around)
    chosen = choose_data({cell.workload for cell in plan.cells}, catalogue, options.data)
    notes = (*plan.notes, *tell_data(chosen, catalogue), *tell_best_effort(plan.cells, stacks))
    plan = dataclasses.replace(plan, notes=notes)
    run = make_record(plan, around, arguments, ground.machine)
    return Session(folder, run, plan, is_new=True)


def _run(
    session: Session,
    equipment: Equipment,
    options: Options,
    catalogue: Mapping[str, Workload],
    stacks: Mapping[str, Stack],
    ground: GroundFloor,
    console: Console,
    program: Sequence[str],
) -> int:
    folder, say = session.folder, partial(console.print, soft_wrap=True)

    def needs(cell: Cell) -> frozenset[str]:
        return catalogue[cell.workload].needs(cell.variant)

    if session.is_new:
        # Before images and environments are made, which takes minutes, in case that it cannot be.
        write_whole(folder.record, msgspec.json.encode(session.run))
    else:
        check_resumable(session.run, equipment)
    try:
        if session.is_new:
            cells = find_data(session.run.cells, catalogue, options.data, say)
            cells = find_images(cells, stacks, equipment, options.base, say)
            session = session.on(cells, equipment)
            write_whole(folder.record, msgspec.json.encode(session.run))
        else:
            check_data(session.run, say)
        entrances = enter(session.run.cells, stacks, needs)
    except (Refusal, KeyboardInterrupt):
        if session.is_new:
            shutil.rmtree(folder.path, ignore_errors=True)
        raise
    say(f"run: {folder.path}")
    cells = session.run.cells
    launcher = make_launcher(folder, cells, equipment, entrances.pythons, ground.variables, program)
    primed = find_primed(cells, stacks, equipment)
    try:
        obstacles = dict(entrances.obstacles)
        obstacles |= derive(cells, launcher, obstacles.keys(), say)
        account = _launch(session, launcher, obstacles, primed, console)
        _compare(folder, console, is_shown=True)
    except (KeyboardInterrupt, BrokenPipeError):
        print(f"bench: interrupted; go on with: {session.tell_resume()}", file=sys.stderr)
        return ExitStatus.INTERRUPTED
    finally:
        launcher.close()
    describe_end(account, say)
    say(f"comparison: {folder.path / 'comparison.md'}")
    return judge(account.results)


def _launch(
    session: Session,
    launcher: Launcher,
    obstacles: Mapping[str, Cause],
    primed: AbstractSet[str],
    console: Console,
) -> Account:
    whole = make_schedule(session.plan)
    account, missing = settle_known(whole, session.folder, obstacles)
    # Now, since it takes its time and no launch may wait for it later.
    importlib.import_module("scripts.collect")
    launches = list(missing)
    if not session.is_new:
        console.print(f"{len(account.results)} results are there, {len(launches)} launches are missing")
    forecast = Forecast(launches, missing.overheads_s, session.plan.cpus_usable)

    def after_block() -> None:
        # On a terminal the table grows; in a log, the last one is enough.
        _compare(session.folder, console, is_shown=console.is_terminal)

    with Progress(console, forecast, len(launches)) as progress:
        execute(missing, launcher, progress, account, after_block, primed)
    return account


def _compare(folder: RunFolder, console: Console, is_shown: bool) -> None:
    from scripts.collect import collect, write_comparison
    from scripts.renderings import print_comparison

    comparison = collect([folder.path])
    write_comparison(folder.path, comparison)
    if is_shown:
        print_comparison(comparison, console)


if __name__ == "__main__":
    run_program("bench", main)
