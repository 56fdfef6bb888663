"""A run's name and its record, and what of the host and the sources goes into them."""

import re
import secrets
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from scripts.catalogue import Workload
from scripts.cells import Place, Surroundings
from scripts.contract import SCHEMA, Machine, Run, Runner
from scripts.host import GroundFloor
from scripts.identity import file_sha256, git_state
from scripts.options import Options
from scripts.plan import Plan
from scripts.runners import HOST
from scripts.stacks import Stack

TOOLS = ("filelock", "msgspec", "rich")


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
    runner: Runner = options.runner or "venv"
    if runner == "host":
        variants = (variant for workload in catalogue.values() for variant in workload.variants.values())
        frameworks = frozenset(variant.framework for variant in variants)
        places = [Place(HOST, frameworks, current=True, lock_sha256=None)]
    else:
        locks = hash_locks(stacks, runner)
        places = [
            Place(name, frozenset(stack.frameworks), stack.current, locks[name])
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


def make_record(plan: Plan, around: Surroundings, arguments: Sequence[str], machine: Machine) -> Run:
    """Write down a plan, so that it can be resumed, and repeated in the same order."""
    # argparse takes the last one that is given.
    seed = ["--seed", str(plan.seed)]
    return Run(
        schema=SCHEMA,
        id=around.run,
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        command=["nox", "-s", "bench-cpu", "--", *arguments, *seed],
        profile=plan.profile,
        seed=plan.seed,
        blocks=plan.blocks,
        cells=list(plan.cells),
        machine=machine,
        git=around.git,
        tools={name: metadata.version(name) for name in TOOLS},
    )


def hash_locks(stacks: Mapping[str, Stack], runner: Runner) -> dict[str, str | None]:
    """Hash each stack's lock file, by stack. A missing one is refused when its environment is made."""
    if runner == "host":
        return {HOST: None}
    locks = {name: stack.lock_for(runner) for name, stack in stacks.items()}
    return {name: file_sha256(lock) if lock.is_file() else None for name, lock in locks.items()}
