"""Runs made from the results in ``fixtures/``, changed where a test says so."""

import copy
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from scripts.collect import collect
from scripts.comparison import Comparison, Group, Row

FIXTURES = Path(__file__).parent / "fixtures"
NOISE = (1.0, 1.004, 0.997, 1.001, 0.995, 1.003, 0.999, 1.002, 0.996, 1.005)
"""What a block does to all launches in it."""
TWITCH = (1.0, 1.001, 0.999, 1.0012, 0.9991, 1.0004, 0.9993, 1.0008, 0.9995, 1.0)
"""What is a launch's own."""

Change = Callable[[dict[str, Any]], None]


def load(name: str) -> dict[str, Any]:
    """Load a fixture, such as ``mlp`` or ``mlp.proof``."""
    made: dict[str, Any] = json.loads((FIXTURES / f"{name}.json").read_text())
    return made


def write(folder: Path, result: dict[str, Any]) -> Path:
    """Put a result where its run would."""
    cell = result["cell"]
    block = "proof" if cell["purpose"] == "proof" else cell["block"]
    path = folder / "cells" / f"{cell['id']}.{block}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result))
    return path


def make_launch(
    variant: str, block: int, speed: float, role: str = "variant", base: str = "mlp"
) -> dict[str, Any]:
    """One measured launch whose times are those of the fixture times ``speed`` and the block's noise."""
    made = load(base)
    cell = made["cell"]
    cell["id"] = cell["id"].replace(cell["variant"], variant) + ("_again" if role == "a_a" else "")
    cell.update(variant=variant, block=block, role=role)
    # The A/A pair differs by a hair, as real ones do.
    own = TWITCH[(block * 3 + len(variant) + 4 * (role == "a_a")) % len(TWITCH)]
    factor = speed * NOISE[block % len(NOISE)] * own
    for measure in made["measures"]:
        measure["samples_s"] = [sample * factor for sample in measure["samples_s"]]
    return made


def make_proof(launch: dict[str, Any]) -> dict[str, Any]:
    """The proof of a launch's cell."""
    made = load("mlp.proof")
    made["cell"] = copy.deepcopy(launch["cell"]) | {"purpose": "proof", "block": 0, "position": 0}
    made["cell"]["threads"] = {"intra_op": 1, "inter_op": 1}
    return made


def fail(launch: dict[str, Any], message: str = "killed by SIGKILL: out of memory") -> None:
    """Turn a measured launch into one that died."""
    for field in ("measures", "phases", "losses", "device", "environment", "synchronisation", "settings"):
        launch.pop(field, None)
    launch.update(status="failed", cause={"kind": "out-of-memory", "message": message})


def break_proof(proof: dict[str, Any]) -> None:
    """Turn a proof into one that does not hold."""
    check = proof["proof"]["checks"][0]
    check.update(value=check["expected"] * 1.001, error=0.001)
    proof["proof"]["holds"] = False
    proof.update(status="failed", cause={"kind": "proof", "message": "loss[0] is off by 1e-3"})


def make_run(
    folder: Path,
    speeds: dict[str, float],
    blocks: Iterable[int] = range(6),
    change: Change = lambda result: None,
    base: str = "mlp",
) -> Path:
    """Write a run: the fixture's own variant as baseline, its A/A twin, ``speeds`` as the others' share
    of its time, and proofs. ``change`` sees every result before it is written."""
    baseline = load(base)["cell"]["baseline"]
    contenders = [(baseline, 1.0, "baseline"), (baseline, 1.0, "a_a")]
    contenders += [(variant, speed, "variant") for variant, speed in speeds.items()]
    for variant, speed, role in contenders:
        launches = [make_launch(variant, block, speed, role, base) for block in blocks]
        results = launches if role == "a_a" else [*launches, make_proof(launches[0])]
        for result in results:
            result["cell"]["run"] = folder.name
            change(result)
            write(folder, result)
    return folder


class Compare:
    """Makes a run of a baseline and ``torch-compile``, and collects it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self, change: Change = lambda result: None, speed: float = 0.57, blocks: Iterable[int] = range(6)
    ) -> Comparison:
        return collect([make_run(self.folder, {"torch-compile": speed}, blocks, change)])


def of_variant(variant: str, change: Change, purpose: str | None = None) -> Change:
    """Change results of one variant, or only its launches of one purpose."""

    def apply(result: dict[str, Any]) -> None:
        cell = result["cell"]
        if cell["variant"] == variant and purpose in (None, cell["purpose"]):
            change(result)

    return apply


def put(path: str, value: object) -> Change:
    """Set a field by its path, where a result has what holds it."""

    def change(result: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        place: Any = result
        for name in parents:
            place = place.get(name)
            if place is None:
                return
        place[last] = value

    return change


def both(*changes: Change) -> Change:
    """Make several changes."""

    def change(result: dict[str, Any]) -> None:
        for one in changes:
            one(result)

    return change


def find_row(comparison: Comparison, variant: str, measure: str = "step") -> Row:
    """Find the only row of a variant, its A/A twin apart."""
    (found,) = [
        row
        for group in comparison.groups
        if group.measure == measure
        for row in group.rows
        if row.variant == variant and not row.a_a
    ]
    return found


def find_a_a(group: Group) -> Row:
    """Find the A/A row."""
    return next(row for row in group.rows if row.a_a)
