"""Making cells: every value resolved."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from scripts.catalogue import Workload, find_names
from scripts.contract import (
    SCHEMA,
    Cell,
    Edition,
    Git,
    Identity,
    Precision,
    Protocol,
    Role,
    Runner,
    Threads,
    Tolerances,
)
from scripts.errors import Refusal
from scripts.options import Options
from scripts.profiles import PROFILES

A_A = "_aa"
UNDECIDED = Protocol(budget_s=1, warmup_s=1, sample_s=1, min_samples=1, max_samples=1, relative_width=1)
"""Until the time is divided among the launches."""


@dataclass(frozen=True)
class Place:
    """A stack as the plan sees it."""

    name: str
    versions: Mapping[str, str]
    """Of its frameworks, by name; empty where it is not known before it is entered."""
    current: bool
    """Joins every plan that names no stack."""
    lock_sha256: str | None
    runner: Runner = "venv"

    @property
    def frameworks(self) -> AbstractSet[str]:
        return self.versions.keys()


@dataclass(frozen=True)
class Surroundings:
    """What the plan takes from outside: this host, the sources, the names of the run."""

    run: str
    places: Sequence[Place]
    workloads_sha256: Mapping[str, str]
    git: Git | None
    cpus_usable: int
    seed: int


class CellMaker:
    """Makes the cells of one workload."""

    def __init__(
        self, name: str, workload: Workload, profile: str, options: Options, around: Surroundings
    ) -> None:
        find_names(f"profile of {name}", [profile], workload.profiles)
        self.name = name
        self.workload = workload
        self.around = around
        self.profile = workload.profiles[profile]
        self.scale = PROFILES[profile]
        self.asked_blocks = options.blocks
        self.device = options.device or "cpu"
        self.precisions: Sequence[Precision] = options.precisions or ("fp32",)
        threads = options.threads or around.cpus_usable
        self.threads = Threads(intra_op=threads, inter_op=threads)
        named = options.baseline if options.baseline in workload.variants else None
        self.baseline = named or workload.baseline

    def make(self, variant: str, edition: Edition, precision: Precision, place: Place, role: Role) -> Cell:
        """Make the cell of one variant in one place.

        Raises:
            Refusal: the workload states no tolerance for this precision.
        """
        entry = self.workload.variants[variant]
        words = (
            self.name,
            edition,
            variant,
            place.name,
            place.runner,
            self.device.replace(":", "-"),
            precision,
        )
        return Cell(
            schema=SCHEMA,
            id="_".join(words) + (A_A if role == "a_a" else ""),
            run=self.around.run,
            purpose="measure",
            role=role,
            workload=self.name,
            edition=edition,
            variant=variant,
            framework=entry.framework,
            module=entry.module or entry.framework,
            stack=place.name,
            runner=place.runner,
            device=self.device,
            precision=precision,
            parameters={**self.workload.parameters, **self.profile.parameters},
            measures=self._choose_measures(variant, edition),
            seed=self.around.seed,
            block=0,
            position=0,
            threads=self.threads,
            protocol=UNDECIDED,
            tolerances=self._resolve_tolerances(precision),
            identity=Identity(
                workload_sha256=self.around.workloads_sha256[self.name],
                lock_sha256=place.lock_sha256,
                git=self.around.git,
            ),
            # The launcher gives each launch its own.
            cache="",
            cache_state="fresh",
            baseline=self.baseline,
            blocks=self._count_blocks(role),
            expected_s=self._expect_epochs(),
        )

    def _count_blocks(self, role: Role) -> int | None:
        """Few where nothing is contested, or where a profile has few and the user asks for no number."""
        if role == "ceiling":
            return self.scale.ceiling_blocks
        return None if self.asked_blocks else self.profile.blocks

    def _expect_epochs(self) -> float | None:
        epoch_s = self.profile.epochs_s.get(self.device.partition(":")[0])
        epochs = {**self.workload.parameters, **self.profile.parameters}.get("epochs")
        return epoch_s * epochs if epoch_s is not None and isinstance(epochs, int) else None

    def _choose_measures(self, variant: str, edition: Edition) -> list[str]:
        own = self.workload.editions[edition].measures
        measures = self.profile.measures or own if edition == "fair" else own
        return [name for name in measures if variant in self.profile.only.get(name, [variant])]

    def _resolve_tolerances(self, precision: Precision) -> Tolerances:
        stated = self.workload.tolerances
        if precision not in stated.losses:
            raise Refusal(f"{self.name} states no tolerance for {precision}; give another --precision")
        return Tolerances(stated.gradients, stated.update, stated.losses[precision], stated.dtype)
