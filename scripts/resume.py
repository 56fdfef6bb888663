"""Going on with a run: what it planned, whether it may go on here, and what it still lacks."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from scripts.catalogue import Workload
from scripts.contract import SCHEMA, Cell, Machine, Result, Run
from scripts.decode import LeftOut, decode_result
from scripts.errors import Refusal
from scripts.plan import Plan, sum_bounds, tell_overhead
from scripts.profiles import PROFILES
from scripts.runs import RunFolder

OUTER_CAUSES = ("signal", "time-limit", "python", "install", "engine", "image", "data")
_HOST = ("host", "cpu_model", "cpus_usable")


def load_run(named: str, results: Path) -> tuple[RunFolder, Run]:
    """Read the record of a run, named by its folder or by its id within ``results``.

    Raises:
        Refusal: there is none, or it is not whole.
    """
    candidates = [Path(named), results / named]
    try:
        folder = next((RunFolder(path) for path in candidates if (path / "run.json").is_file()), None)
    except (OSError, ValueError) as error:
        raise Refusal(f"--resume {named[:200]}: cannot be read ({error})") from error
    if folder is None:
        raise Refusal(f"--resume {named}: no run.json in {' or '.join(map(str, candidates))}")
    try:
        run = msgspec.json.decode(folder.record.read_bytes(), type=Run)
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise Refusal(f"{folder.record}: {error}; this run cannot be resumed, start a new one") from error
    for cell in run.cells:
        for field in ("id", "run", "workload", "framework", "module", "stack", "variant"):
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}", getattr(cell, field)):
                raise Refusal(f"{folder.record}: a cell's {field} is no plain name; start a new run")
        if cell.runner == "docker" and not re.fullmatch("sha256:[0-9a-f]{64}", cell.identity.image or ""):
            raise Refusal(f"{folder.record}: a container's cell has no image; start a new run")
    if run.schema != SCHEMA:
        raise Refusal(f"{folder.record}: schema {run.schema}, where {SCHEMA} is read; start a new run")
    return folder, run


def check_unchanged(
    run: Run,
    machine: Machine,
    workloads_sha256: Mapping[str, str],
    hash_lock: Callable[[Cell], str | None],
) -> None:
    """See that what ``run`` measured and what it would measure now are the same thing.

    Args:
        workloads_sha256: content hashes of this checkout, by workload.
        hash_lock: hashes the lock file of a cell's stack.

    Raises:
        Refusal: a field differs; the message names it.
    """
    pairs: list[tuple[str, object, object]] = [
        (name, getattr(run.machine, name), getattr(machine, name)) for name in _HOST
    ]
    for cell in run.cells:
        identity = cell.identity
        name = cell.workload
        pairs.append((f"workload_sha256 of {name}", identity.workload_sha256, workloads_sha256.get(name)))
        pairs.append((f"lock_sha256 of {cell.stack}", identity.lock_sha256, hash_lock(cell)))
    for field, then, now in pairs:
        if then != now:
            raise Refusal(f"{run.id} cannot go on: {field} was {then} and is {now}; start a new run")


def restore_plan(run: Run, catalogue: Mapping[str, Workload], machine: Machine) -> Plan:
    """Make the plan that ``run`` recorded.

    Raises:
        Refusal: it has a profile that is not known here.
    """
    if run.profile not in PROFILES:
        raise Refusal(f"{run.id} has the profile {run.profile!r}, which is not known here; start a new run")
    for cell in run.cells:
        if cell.workload not in catalogue or cell.variant not in catalogue[cell.workload].variants:
            raise Refusal(f"{run.id}: there is no {cell.variant} of {cell.workload} here; start a new run")
    return Plan(
        cells=run.cells,
        blocks=run.blocks,
        profile=run.profile,
        seed=run.seed,
        overheads_s={cell.id: tell_overhead(cell, catalogue, run.profile) for cell in run.cells},
        bound_s=sum_bounds(run.cells, catalogue, run.profile),
        cpus_usable=machine.cpus_usable,
    )


def find_result(folder: RunFolder, cell: Cell) -> Result | None:
    """Return the result that ``folder`` already has of this launch, if it is whole, and if what it says
    is of the cell's own making: what was killed or could not start is launched again."""
    try:
        result = decode_result(folder.result(cell.id, None if cell.purpose == "proof" else cell.block))
    except LeftOut:
        return None
    if result.cause is not None and result.cause.kind in OUTER_CAUSES:
        return None
    asked = replace(result.cell, cache=cell.cache, device_index=cell.device_index)
    return result if asked == cell else None
