"""What a run says before it starts and after it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from scripts.catalogue import Workload
from scripts.contract import Machine, Result
from scripts.errors import ExitStatus
from scripts.execute import Account
from scripts.host import BUSY
from scripts.plan import Plan
from scripts.progress import describe_launch
from scripts.words import describe_duration, make_visible

if TYPE_CHECKING:
    from collections.abc import Mapping

Say = Callable[[str], None]
ROUNDING = 1.01
PHASES = ("import_s", "setup_s", "first_call_s", "warmup_s", "sampling_s")


def describe_plan(plan: Plan, catalogue: Mapping[str, Workload], say: Say) -> None:
    """Say what will be measured and how long that takes."""
    launches = sum(map(len, plan.order()))
    proofs = sum(cell.role in ("baseline", "variant") for cell in plan.cells)
    counts = f"{_count(proofs, 'proof')}, then {_count(launches, 'launch')} in {_count(plan.blocks, 'block')}"
    say(f"profile {plan.profile}, seed {plan.seed}: {counts}")
    for name in dict.fromkeys(cell.workload for cell in plan.cells):
        cells = [cell for cell in plan.cells if cell.workload == name]
        protocol, threads = cells[0].protocol, cells[0].threads.intra_op
        warmup = f" after up to {protocol.warmup_s:.3g} s of warm-up" if protocol.warmup_s else ""
        sampling = f"{protocol.budget_s:.3g} s of sampling{warmup} for each measure of a launch"
        if (expected_s := cells[0].expected_s) is not None:
            sampling = f"all epochs, about {describe_duration(expected_s)} a launch, each in logs/ as it ends"
        say(f"  {catalogue[name].title}: {sampling}; {threads} threads")
        for cell in cells:
            says = catalogue[name].variants[cell.variant].says
            words = [cell.edition, cell.variant, cell.stack, cell.runner, cell.device, cell.precision]
            role = {"baseline": " (baseline)", "a_a": " (A/A)"}.get(cell.role, "")
            say(f"    {' '.join(words)}{role}" + ("" if cell.role == "a_a" else f": {says}"))
    for note in plan.notes:
        say(f"note: {note}")
    estimate_s = plan.estimate_s()
    allowed = "as long as it takes" if plan.bound_s is None else describe_duration(plan.bound_s)
    say(f"about {describe_duration(estimate_s)}, environments apart; the profile allows {allowed}")
    if plan.bound_s is not None and estimate_s > plan.bound_s * ROUNDING:
        say("note: what is asked for takes longer; fewer --variant, --edition or --blocks take less")


def warn_of_load(machine: Machine, say: Say) -> None:
    """Say before anything is measured that this machine is not quiet."""
    if machine.load_1m is not None and machine.load_1m > BUSY * machine.cpus_usable:
        say(
            f"note: other work runs here (load {machine.load_1m:.1f}); intervals will be wide, and the A/A "
            "pair may void the verdicts"
        )


def describe_order(plan: Plan, say: Say) -> None:
    """Say in which order the launches come."""
    for number, block in enumerate(plan.order()):
        if block:
            say(f"block {number + 1}:")
        for cell in block:
            say(f"  {cell.position + 1:>3} {cell.id}")


def describe_end(account: Account, say: Say) -> None:
    """Name what is missing and say where the time went."""
    lacking = [result for result in account.results if result.cause is not None]
    counts = Counter((result.cell.purpose, result.cell.id) for result in lacking)
    for result in lacking:
        count = counts.pop((result.cell.purpose, result.cell.id), 0)
        if count and result.cause is not None:
            more = f", and {count - 1} more" if count > 1 else ""
            log = f" (log: {result.log})" if result.log else ""
            why = make_visible(result.cause.message)
            say(f"{result.status}: {describe_launch(result.cell)}{more}: {why}{log}")
    total_s = sum(one.seconds for one in account.launched)
    if not total_s:
        return
    measured = [one.result.phases for one in account.launched if one.result.phases]
    shares = {name: sum(getattr(phases, name) for phases in measured) / total_s for name in PHASES}
    shares["other"] = 1 - sum(shares.values())
    words = (f"{name.removesuffix('_s').replace('_', ' ')} {share:.0%}" for name, share in shares.items())
    say(f"launches: {describe_duration(total_s)}, of which {', '.join(words)}")
    say(
        f"blocks: {describe_duration(account.blocks_s)}, of which no launch ran in {account.idle_share():.1%}"
    )


def _count(number: int, word: str) -> str:
    ending = "es" if word.endswith("ch") else "s"
    return f"{number} {word}{ending * (number != 1)}"


def judge(results: list[Result]) -> ExitStatus:
    """Say what became of a run, as an exit status.

    What was skipped, because this machine lacks it, is said in its row and is no failure.
    """
    counts = Counter(result.status for result in results)
    if not counts["measured"]:
        return ExitStatus.NOTHING_MEASURED
    return ExitStatus.PARTLY_MEASURED if counts["failed"] else ExitStatus.MEASURED
