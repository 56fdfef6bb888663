"""A small catalogue, the places it can be measured in, and a launcher without processes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from scripts.catalogue import EditionEntry, ProfileEntry, TolerancesEntry, VariantEntry, Workload
from scripts.cells import Place, Surroundings
from scripts.contract import Cause, Cell, Result, Runner
from scripts.launch import Launched
from scripts.options import Options
from scripts.plan import Plan, make_plan
from scripts.runs import RunFolder, write_whole
from tests.scripts.fake_ground import answer

TORCH = Place("torch-2", {"torch": "2.12.0"}, current=True, lock_sha256="1" * 64)
OLD_TORCH = Place("torch-1", {"torch": "1.0.0"}, current=False, lock_sha256="2" * 64)
TENSORFLOW = Place("tensorflow-2", {"tensorflow": "2.21.0"}, current=True, lock_sha256="3" * 64)
PLACES = (OLD_TORCH, TORCH, TENSORFLOW)

TOLERANCES = TolerancesEntry(1e-8, 1e-8, {"fp32": 1e-5, "bf16": 1e-2})
PROFILES = {name: ProfileEntry(bound_s=100) for name in ("smoke", "quick", "standard")}

TOY = Workload(
    title="Toy",
    baseline="torch-eager",
    parameters={"size": 8},
    tolerances=TOLERANCES,
    editions={"article": EditionEntry(["call"], ""), "fair": EditionEntry(["step"], "")},
    variants={
        "torch-eager": VariantEntry("torch", 2, "", headline=True),
        "torch-compile": VariantEntry("torch", 10, "", headline=False, module="torch_compiled"),
        "tensorflow-graph": VariantEntry("tensorflow", 3, "", headline=True),
        "tensorflow-fit": VariantEntry("tensorflow", 3, "", headline=False, editions=["article"]),
    },
    profiles={**PROFILES, "smoke": ProfileEntry(bound_s=100, parameters={"size": 2})},
)
ROOF = Workload(
    title="Roof",
    ceiling=True,
    parameters={},
    tolerances=TOLERANCES,
    editions={"fair": EditionEntry(["copy"], "")},
    variants={
        "torch-roof": VariantEntry("torch", 1, ""),
        "tensorflow-roof": VariantEntry("tensorflow", 1, ""),
    },
    profiles=PROFILES,
)
CATALOGUE = {"roof": ROOF, "toy": TOY}


def plan(
    cpus: int = 2,
    seed: int = 1,
    catalogue: dict[str, Workload] | None = None,
    runners: Sequence[Runner] = ("venv",),
    **said: Any,
) -> Plan:
    """Make a plan from options."""
    chosen = catalogue or CATALOGUE
    around = Surroundings(
        run="run",
        places=[replace(place, runner=runner) for runner in runners for place in PLACES],
        workloads_sha256=dict.fromkeys(chosen, "a" * 64),
        git=None,
        cpus_usable=cpus,
        seed=seed,
    )
    return make_plan(Options(**said), chosen, around)


class FakeLauncher:
    """Answers at once, from a template, and remembers what it was asked for."""

    def __init__(self, folder: RunFolder, before: Callable[[Cell], None] = lambda cell: None) -> None:
        self.folder = folder
        self.before = before
        self.cells: list[Cell] = []
        self.primed: list[Cell] = []
        self.derived: list[Cell] = []
        self.limits_s: list[float] = []
        self.is_stopped = False
        self.is_closed = False
        self.failing: set[str] = set()
        self.failure: tuple[Literal["failed", "skipped"], Cause] = (
            "failed",
            Cause("signal", "killed by SIGSEGV"),
        )

    def launch(self, cell: Cell, limit_s: float) -> Launched:
        self.before(cell)
        self.cells.append(cell)
        self.limits_s.append(limit_s)
        result = msgspec.convert(answer(msgspec.to_builtins(cell)), Result)
        if cell.id in self.failing:
            status, cause = self.failure
            result = Result(1, cell, status, result.started, 1.0, cause, "logs/x.log")
        block = None if cell.purpose == "proof" else cell.block
        write_whole(self.folder.result(cell.id, block), msgspec.json.encode(result))
        return Launched(result, 1.0)

    def prime(self, cell: Cell, limit_s: float) -> Launched:
        self.primed.append(cell)
        return Launched(msgspec.convert(answer(msgspec.to_builtins(cell)), Result), 1.0)

    def derive(self, cell: Cell, limit_s: float, target: Path) -> Launched:
        self.derived.append(cell)
        if cell.id in self.failing:
            status, cause = self.failure
            return Launched(Result(1, cell, status, "", 1.0, cause), 1.0)
        target.mkdir(parents=True)
        (target / "made").write_text(cell.stack)
        return Launched(Result(1, cell, "prepared", "", 1.0), 1.0)

    def stop(self) -> None:
        self.is_stopped = True

    def close(self) -> None:
        self.is_closed = True


def names(cells: list[Cell]) -> list[str]:
    """Tell cells by what differs in these tests."""
    return [f"{cell.edition} {cell.variant}" + (" again" if cell.role == "a_a" else "") for cell in cells]


def folder_in(path: Path) -> RunFolder:
    """An empty run's folder."""
    (path / "run").mkdir()
    return RunFolder(path / "run")
