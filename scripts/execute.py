"""Executing a plan: proofs side by side, then block by block, one launch at a time."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from scripts.budget import limit_launch
from scripts.cells import A_A
from scripts.contract import SCHEMA, Cause, Cell, Result
from scripts.launch import Launched, Launcher
from scripts.order import count_at_once, make_proofs
from scripts.plan import Plan
from scripts.progress import Progress, describe_launch
from scripts.resume import find_result
from scripts.runs import RunFolder, write_whole

PRIMING_LIMIT_S = 7200.0
"""For all kernels of a framework from PTX: half an hour was reported."""
SKIPPING = ("python", "import", "precision", "no-effect")
"""Causes of a launch that was never started because it would show nothing on this machine, or this machine
lacks something."""


@dataclass(frozen=True)
class Schedule:
    """Every launch of a run, in order."""

    proofs: Sequence[Cell]
    blocks: Sequence[Sequence[Cell]]
    overheads_s: Mapping[str, float]
    at_once: int
    """Proofs side by side."""

    def __iter__(self) -> Iterator[Cell]:
        yield from self.proofs
        for block in self.blocks:
            yield from block


@dataclass
class Account:
    """What a run came to."""

    results: list[Result] = field(default_factory=list)
    """Of all launches, those of earlier invocations too."""
    launched: list[Launched] = field(default_factory=list)
    """Measured launches of this invocation."""
    blocks_s: float = 0.0
    """Seconds of this invocation from its first block's start to its last one's end."""

    def idle_share(self) -> float:
        """Share of the blocks' time in which no launch lived."""
        lived_s = sum(one.seconds for one in self.launched)
        return 1 - lived_s / self.blocks_s if self.launched else 0.0


def make_schedule(plan: Plan) -> Schedule:
    """Lay out a plan's launches."""
    proofs = make_proofs(plan.cells, plan.cpus_usable)
    # So that no long one runs alone at the end.
    proofs.sort(key=lambda cell: -plan.overheads_s[cell.id])
    return Schedule(proofs, plan.order(), plan.overheads_s, count_at_once(plan.cpus_usable))


def settle_known(
    schedule: Schedule, folder: RunFolder, obstacles: Mapping[str, Cause]
) -> tuple[Account, Schedule]:
    """Take the results that are there, and write those of launches that something bars.

    Args:
        obstacles: what bars a cell's launches, by cell id.

    Returns:
        the account so far, and what is left to launch.
    """
    account = Account()

    def is_open(cell: Cell) -> bool:
        result = find_result(folder, cell)
        if result is None and cell.id in obstacles:
            # A proof that was not tried is absent: only the measured launches have rows.
            if cell.purpose == "proof":
                return False
            result = _bar(folder, cell, obstacles[cell.id])
        if result is not None:
            account.results.append(result)
        return result is None

    proofs = [cell for cell in schedule.proofs if is_open(cell)]
    blocks = [[cell for cell in block if is_open(cell)] for block in schedule.blocks]
    left = [block for block in blocks if block]
    return account, Schedule(proofs, left, schedule.overheads_s, schedule.at_once)


def execute(
    schedule: Schedule,
    launcher: Launcher,
    progress: Progress,
    account: Account,
    after_block: Callable[[], None],
    primed: AbstractSet[str] = frozenset(),
) -> None:
    """Launch everything in ``schedule``. A launch that fails stops nothing.

    Args:
        account: is added to.
        after_block: is called between blocks, when nothing is measured.
        primed: stacks whose kernels the driver compiles first, untimed, into a cache that stays.

    Raises:
        Refusal: a result cannot be written.
        KeyboardInterrupt: the user wants no more; no launch is left in flight.
    """
    try:
        _prime(schedule, launcher, progress, primed)
        _prove(schedule, launcher, progress, account)
        _measure(schedule, launcher, progress, account, after_block)
    except BaseException:
        launcher.stop()
        raise


def _prime(schedule: Schedule, launcher: Launcher, progress: Progress, primed: AbstractSet[str]) -> None:
    """Run what each launch of these stacks will run, so that the driver's compilations are in its cache. How
    it ends is of no account: the launch itself will say."""
    kinds = {(cell.purpose, subject_of(cell)): cell for cell in schedule if cell.stack in primed}
    for (purpose, _), cell in kinds.items():
        progress.say(f"filling the driver's cache, untimed: {describe_launch(cell)}")
        least = replace(cell.protocol, budget_s=0.1, warmup_s=0.1, min_samples=1, max_samples=1)
        launcher.prime(cell if purpose == "proof" else replace(cell, protocol=least), PRIMING_LIMIT_S)


def _prove(schedule: Schedule, launcher: Launcher, progress: Progress, account: Account) -> None:
    def launch(cell: Cell) -> Launched:
        progress.start(cell)
        return launcher.launch(cell, limit_launch(cell, schedule.overheads_s[cell.id]))

    with ThreadPoolExecutor(schedule.at_once) as pool:
        try:
            for future in as_completed([pool.submit(launch, cell) for cell in schedule.proofs]):
                launched = future.result()
                account.results.append(launched.result)
                progress.finish(launched.result, launched.seconds)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            launcher.stop()
            raise


def _measure(
    schedule: Schedule,
    launcher: Launcher,
    progress: Progress,
    account: Account,
    after_block: Callable[[], None],
) -> None:
    unproved = _find_unproved(account)
    begin = time.monotonic()
    for number, block in enumerate(schedule.blocks):
        if number:
            after_block()
        for cell in block:
            progress.start(cell)
            if (cause := unproved.get(subject_of(cell))) is not None:
                # Without a proof that holds there is no ratio, and its time is of no use.
                account.results.append(_bar(launcher.folder, cell, cause))
                progress.finish(account.results[-1], 0.0)
                continue
            launched = launcher.launch(cell, limit_launch(cell, schedule.overheads_s[cell.id]))
            account.results.append(launched.result)
            account.launched.append(launched)
            progress.finish(launched.result, launched.seconds)
    account.blocks_s = time.monotonic() - begin


def subject_of(cell: Cell) -> str:
    """Name what a cell's proof is about: an A/A cell does the work of its twin."""
    return cell.id.removesuffix(A_A) if cell.role == "a_a" else cell.id


def _find_unproved(account: Account) -> dict[str, Cause]:
    """Say why cells are not measured, by cell id: their proofs found other work, or were skipped. A proof
    that died says nothing about the work."""
    return {
        result.cell.id: Cause(result.cause.kind, f"its proof {result.status}: {result.cause.message}")
        for result in account.results
        if result.cell.purpose == "proof"
        and result.cause is not None
        and (result.status == "skipped" or result.cause.kind == "proof")
    }


def _bar(folder: RunFolder, cell: Cell, cause: Cause) -> Result:
    result = Result(
        schema=SCHEMA,
        cell=cell,
        status="skipped" if cause.kind in SKIPPING else "failed",
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        duration_s=0.0,
        cause=cause,
    )
    write_whole(folder.result(cell.id, cell.block), msgspec.json.encode(result))
    return result
