"""A run's name and its record, and what of the host and the sources goes into them."""

import re
import secrets
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from scripts.catalogue import Workload
from scripts.cells import Place, Surroundings
from scripts.contract import SCHEMA, Cell, Machine, Run, Runner
from scripts.errors import Refusal
from scripts.host import GroundFloor
from scripts.identity import file_sha256, git_state
from scripts.options import Options
from scripts.plan import Plan
from scripts.runners import HOST
from scripts.stacks import Stack

TOOLS = ("docker", "filelock", "msgspec", "nvidia-ml-py", "rich")
DEFAULT_RUNNERS: tuple[Runner, ...] = ("venv",)


def name_run(options: Options, machine: Machine) -> Path:
    """Choose the folder of a new run: ``<UTC time>-<host>-<device>``."""
    host = re.sub(r"[^A-Za-z0-9.-]+", "-", machine.host).strip("-.")[:60] or "host"
    device = (options.device or "cpu").replace(":", "-")
    name = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{host}-{device}"
    path, count = options.results / name, 1
    while path.exists():
        count += 1
        path = options.results / f"{name}-{count}"
    return path


def find_surroundings(
    run: str,
    options: Options,
    catalogue: Mapping[str, Workload],
    stacks: Mapping[str, Stack],
    ground: GroundFloor,
) -> Surroundings:
    """Gather what a plan takes from outside."""
    device = options.device or "cpu"
    places: list[Place] = []
    for runner in options.runners or DEFAULT_RUNNERS:
        if runner == "host":
            # What the interpreter has is seen when it is entered.
            frameworks = frozenset[str]().union(
                *(workload.needs(variant) for workload in catalogue.values() for variant in workload.variants)
            )
            unknown = dict.fromkeys(frameworks, "")
            places.append(Place(HOST, unknown, current=True, lock_sha256=None, runner=runner))
        else:
            places += [
                Place(
                    name,
                    stack.frameworks,
                    stack.current,
                    hash_lock(stacks, name, runner, device),
                    runner,
                )
                for name, stack in stacks.items()
            ]
    return Surroundings(
        run=run,
        places=places,
        workloads_sha256=ground.workloads,
        git=git_state(),
        cpus_usable=ground.machine.cpus_usable,
        seed=secrets.randbelow(2**31) if options.seed is None else options.seed,
    )


def name_session(cells: Sequence[Cell]) -> str:
    """Name the session whose defaults a plan is nearest to."""
    if cells[0].device != "cpu":
        return "bench-gpu"
    return "bench-docker" if any(cell.runner == "docker" for cell in cells) else "bench-cpu"


def make_record(plan: Plan, around: Surroundings, arguments: Sequence[str], machine: Machine) -> Run:
    """Write down a plan, so that it can be resumed, and repeated in the same order."""
    # argparse takes the last one that is given.
    seed = ["--seed", str(plan.seed)]
    return Run(
        schema=SCHEMA,
        id=around.run,
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        command=["nox", "-s", name_session(plan.cells), "--", *arguments, *seed],
        profile=plan.profile,
        seed=plan.seed,
        blocks=plan.blocks,
        cells=list(plan.cells),
        machine=machine,
        git=around.git,
        tools={name: metadata.version(name) for name in TOOLS},
    )


def hash_lock(stacks: Mapping[str, Stack], name: str, runner: Runner, device: str) -> str | None:
    """Hash the lock file of a stack. A missing one is refused when its environment is made.

    Raises:
        Refusal: there is no such stack.
    """
    if runner == "host":
        return None
    if name not in stacks:
        raise Refusal(f"there is no stack {name!r} here; start a new run")
    lock = stacks[name].lock_for(runner, device)
    return file_sha256(lock) if lock.is_file() else None
