"""What stacks make of prepared data before anything is timed, such as tfds's files: made once, kept beside
the data, and verified before each run."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from msgspec.structs import replace

from scripts.catalogue import Workload, find_names
from scripts.contract import Cause, Cell, Run
from scripts.data import find, is_kept, is_path, prepare
from scripts.datasets import load_datasets
from scripts.errors import Refusal
from scripts.identity import file_sha256
from scripts.launch import Launcher
from scripts.prepared import hold, locate, replace_folder, verify, write_manifest
from scripts.runs import ROOT

SOURCES = ROOT / "workloads" / "data"
LIMIT_S = 1800.0
"""Half a minute was seen on two cores."""
Say = Callable[[str], None]


def find_data(
    cells: Sequence[Cell], catalogue: Mapping[str, Workload], asked: Sequence[str], say: Say
) -> list[Cell]:
    """Give cells their data, prepared and verified, and name the folder of what their stack makes of it: by
    the stack's lock, and by what makes it.

    Args:
        asked: data sets by name or path; each workload's own default where none of them is for it.

    Raises:
        Refusal: a set cannot be had, or no planned workload reads it.
    """
    named = choose_data({cell.workload for cell in cells}, catalogue, asked)
    sets = {name: prepare(name, say) for name in dict.fromkeys(named.values())}
    made_by = _hash_sources()
    found = []
    for cell in cells:
        if cell.workload in named:
            data = sets[named[cell.workload]]
            if catalogue[cell.workload].variants[cell.variant].derived:
                data = replace(data, derived=_name(cell, made_by))
            cell = replace(cell, data=data)
        found.append(cell)
    return found


def choose_data(
    workloads: AbstractSet[str], catalogue: Mapping[str, Workload], asked: Sequence[str]
) -> dict[str, str]:
    """Choose the data set of each workload that reads one.

    Raises:
        Refusal: what is asked for is for none of them.
    """
    readers = {name: catalogue[name].data for name in workloads if catalogue[name].data}
    own = load_datasets()
    chosen = {name: known[0] for name, known in readers.items()}
    every = sorted({name for known in readers.values() for name in known})
    for one in asked:
        # What is not known by name is for those whose own data have its format.
        form = find(one)[1].format if is_path(one) or is_kept(one) else None
        takers = [name for name, known in readers.items() if one in known or form == own[known[0]].format]
        if not takers and form is not None:
            raise Refusal(f"--data {one}: in the format of {form}, which nothing that is measured reads")
        if not takers and not every:
            raise Refusal(f"--data {one}: nothing that is measured reads data; leave it out")
        if not takers:
            find_names("data set of what is measured", [one], every)
        chosen |= dict.fromkeys(takers, one)
    return chosen


def tell_data(chosen: Mapping[str, str], catalogue: Mapping[str, Workload]) -> list[str]:
    """Say what data are read, and what else could be."""
    return [
        f"{workload}: its data are {name}"
        + "".join(
            f"; --data {other} takes another set" for other in catalogue[workload].data if other != name
        )
        for workload, name in chosen.items()
    ]


def check_data(run: Run, say: Say) -> None:
    """See that the data of a run that goes on are what it began with.

    Raises:
        Refusal: they differ, or cannot be had.
    """
    for data in {cell.data.folder: cell.data for cell in run.cells if cell.data is not None}.values():
        now = prepare(data.name, say)
        if now.sha256 != data.sha256:
            raise Refusal(f"{run.id} cannot go on: its data {data.name} changed; start a new run")


def derive(cells: Sequence[Cell], launcher: Launcher, barred: AbstractSet[str], say: Say) -> dict[str, Cause]:
    """Make what is missing or damaged of the folders that ``cells`` name.

    Args:
        barred: cells that are not launched anyway.

    Returns:
        by cell id, what bars the launch of those whose folder could not be made.

    Raises:
        Refusal: it cannot be kept.
    """
    wanted: dict[Path, list[Cell]] = {}
    for cell in cells:
        if cell.data is not None and cell.data.derived is not None and cell.id not in barred:
            wanted.setdefault(locate(cell.data.folder) / cell.data.derived, []).append(cell)
    obstacles: dict[str, Cause] = {}
    for folder, readers in wanted.items():
        cause = _make(folder, readers[0], launcher, say)
        if cause is not None:
            obstacles |= {cell.id: cause for cell in readers}
    return obstacles


def _make(folder: Path, cell: Cell, launcher: Launcher, say: Say) -> Cause | None:
    with hold(folder):
        fault = verify(folder)
        if not isinstance(fault, str):
            return None
        assert cell.data is not None
        say(f"{cell.data.name}: {cell.stack} makes its own files of it, once: {fault}")
        with replace_folder(folder) as fresh:
            launched = launcher.derive(replace(cell, purpose="prepare"), LIMIT_S, fresh)
            if launched.result.status != "prepared":
                found = launched.result.cause
                return Cause(
                    "data", f"its data could not be prepared: {found.message if found else 'no reason'}"
                )
            write_manifest(fresh)
    return None


def _name(cell: Cell, made_by: str) -> str:
    stack = cell.identity.lock_sha256 or cell.stack
    return f"derived-{hashlib.sha256(f'{stack} {made_by}'.encode()).hexdigest()[:12]}"


def _hash_sources() -> str:
    digest = hashlib.sha256()
    for path in sorted(SOURCES.glob("*.py")):
        digest.update(f"{path.name} {file_sha256(path)}\n".encode())
    return digest.hexdigest()
