"""Stands in for the ground floor: a real process that answers each cell as a scenario says.

Started as ``python fake_ground.py SCENARIO --cell FILE --result FILE --die-with-parent``. SCENARIO is a
JSON file: behaviours by cell id, by ``id.block``, or by ``*``. Each start is a line of ``starts`` beside it.
"""

import argparse
import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures"
PR_SET_PDEATHSIG = 1


def answer(cell: dict[str, Any]) -> dict[str, Any]:
    """Make the result of ``cell`` from a template."""
    name = "mlp.proof.json" if cell["purpose"] == "proof" else "mlp.json"
    made: dict[str, Any] = json.loads((FIXTURES / name).read_text())
    made.pop("log", None)
    made["cell"] = cell
    if cell["purpose"] == "measure":
        made["losses"]["tolerance"] = cell["tolerances"]["losses"]
        measure = made["measures"][0]
        made["measures"] = [dict(measure, name=name) for name in cell["measures"]]
        made["device"].update(asked=cell["device"], observed=cell["device"])
    return made


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario", type=Path)
    parser.add_argument("--cell", type=Path, required=True)
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("--die-with-parent", type=int)
    options = parser.parse_args()
    if options.die_with_parent:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    cell = json.loads(options.cell.read_text())
    block = "proof" if cell["purpose"] == "proof" else cell["block"]
    folder = options.scenario.parent
    with (folder / "starts").open("a") as starts:
        starts.write(f"{os.getpid()} {cell['id']}.{block}\n")
    if cell["purpose"] == "prepare":
        prepare(options.result)
    if (folder / "epochs").exists():
        (options.result.parent / "epochs.jsonl").write_text((folder / "epochs").read_text())
    behaviours = json.loads(options.scenario.read_text())
    names = (f"{cell['id']}.{block}", cell["id"], "*")
    behaviour = next((behaviours[name] for name in names if name in behaviours), "answer")
    end(behaviour, folder, cell)
    options.result.write_text(tell(behaviour, cell))
    if behaviour == "answer, then die":
        os.kill(os.getpid(), signal.SIGSEGV)


def prepare(result: Path) -> None:
    """Make what the ground floor makes of data."""
    derived = result.parent / "derived"
    derived.mkdir()
    (derived / "made").write_text("of the data")


def end(behaviour: str, folder: Path, cell: dict[str, Any]) -> None:
    """Do what the scenario says before the result; most of it has no return."""
    first, _, rest = behaviour.partition(" ")
    if behaviour == "tell surroundings":
        seen = {
            "variables": dict(os.environ),
            "folder": str(Path.cwd()),
            "cache": Path(cell["cache"]).is_dir(),
            "input": sys.stdin.read(),
        }
        (folder / "surroundings").write_text(json.dumps(seen))
    elif first == "print":
        sys.exit(rest)
    elif first == "exit":
        sys.exit(int(rest))
    elif first == "die":
        os.kill(os.getpid(), getattr(signal, rest))
    elif first == "hang":
        if rest == "with a child":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            child = os.fork()
            if child:
                (folder / "grandchild").write_text(str(child))
        time.sleep(600)


def tell(behaviour: str, cell: dict[str, Any]) -> str:
    """Make what the scenario says is written as the result."""
    made = answer(cell)
    if behaviour == "answer another cell":
        made["cell"] = dict(cell, seed=cell["seed"] + 1)
    if behaviour == "fail":
        kept = {name: made[name] for name in ("schema", "cell", "started", "duration_s")}
        made = dict(kept, status="failed", cause={"kind": "device", "message": "no such device"})
    if cell["purpose"] == "prepare" and behaviour == "answer":
        kept = {name: made[name] for name in ("schema", "cell", "started", "duration_s")}
        made = dict(kept, status="prepared")
    content = json.dumps(made)
    return content[: len(content) // 2] if behaviour == "answer half" else content


if __name__ == "__main__":
    main()
