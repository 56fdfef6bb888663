"""What comparing needs of each result, a fraction of its size: results by the ten thousand fit in
memory, and every later step is cheap."""

from typing import Any, NamedTuple

import msgspec

from scripts.contract import Cell, Edition, Measure, Precision, Protocol, Result, Runner, Scalar, Status
from scripts.heat import take_figures
from scripts.statistics import find_outliers

CLOCK_RESOLUTION_S = 1e-7
"""The coarsest that clocks of supported systems are."""


class Contest(NamedTuple):
    """What is contested."""

    workload: str
    edition: Edition
    measure: str


class Conditions(NamedTuple):
    """What must be equal for rows to be compared: like with like."""

    workload_sha256: str
    parameters: str
    """As JSON, keys sorted."""
    data_sha256: str | None
    precision: Precision
    device: str
    """``cpu`` or ``cuda``."""
    model: str | None
    driver: str | None
    host: str | None
    threads: tuple[int, int]
    protocol: str
    """How long launches warm up and sample."""


class Contender(NamedTuple):
    """What makes a row."""

    variant: str
    stack: str
    runner: Runner
    image: str | None
    base: str | None
    lock: str | None
    a_a: bool


class Timing(NamedTuple):
    """One measure of one launch. Times in seconds a unit."""

    median_s: float
    best_s: float
    samples: int
    outliers: int
    is_steady: bool
    """Whether the warm-up ended in a steady state, where there was one."""
    first_call_s: float
    peak_bytes: int | None
    work: dict[str, float]
    figures: dict[str, float]
    settings: dict[str, Scalar]
    """What was read back, and how the work was driven: ``loop``, ``host_reads``."""
    version: str | None
    """Of the framework, as it was installed."""
    packages: int
    """Hash over the environment's packages where no lock file names them, else 0."""


class Observation(NamedTuple):
    """What a launch says of one measure, be it that there is none."""

    contest: Contest
    conditions: Conditions
    contender: Contender
    role: str
    baseline: str | None
    cell_id: str
    asked: str
    """Device, by its full name."""
    data: tuple[str, str] | None
    """Name and nature."""
    run: str
    block: int
    file: str
    status: Status
    is_proof: bool
    cause: str | None
    log: str | None
    losses_hold: bool
    warnings: tuple[str, ...]
    timing: Timing | None
    found: dict[str, float]
    """Figures that a proof found."""

    def subject(self) -> tuple[object, ...]:
        """What a proof must share with a measurement: all but the place where it was computed."""
        seen = self.conditions
        return (
            self.run, self.contest[:2], self.contender[:6], seen.workload_sha256, seen.parameters,
            seen.data_sha256, seen.precision, self.asked,
        )  # fmt: skip


class Observer:
    """Reduces results. What is equal in many of them is kept once."""

    def __init__(self) -> None:
        self._shared: dict[Any, Any] = {}

    def observe(self, result: Result, file: str) -> list[Observation]:
        """Reduce a result to an observation for each of its measures; a proof to a single one for each
        measure that it stands for."""
        cell = result.cell
        measures = (
            {measure.name: measure for measure in result.measures} if result.status == "measured" else {}
        )
        conditions = self._share(_describe_conditions(result))
        contender = self._share(_describe_contender(cell))
        cause = result.cause.message if result.cause else None
        losses_hold = result.losses is None or result.losses.holds
        return [
            Observation(
                self._share(Contest(cell.workload, cell.edition, name)),
                conditions,
                contender,
                cell.role,
                cell.baseline,
                self._share(cell.id),
                cell.device,
                self._share((cell.data.name, cell.data.nature)) if cell.data else None,
                self._share(cell.run),
                cell.block,
                file,
                result.status,
                cell.purpose == "proof",
                cause,
                result.log,
                losses_hold,
                self._share(tuple(result.warnings)),
                self._time(result, measures[name]) if name in measures else None,
                self._share_dict(result.proof.figures if result.proof else {}),
            )
            for name in cell.measures
        ]

    def _time(self, result: Result, measure: Measure) -> Timing:
        ordered = sorted(measure.samples_s)
        count = len(ordered)
        settings = {**result.settings, "loop": measure.loop, "host_reads": measure.host_reads}
        if result.environment is not None:
            settings["python"] = result.environment.python
            for name, value in result.environment.variables.items():
                settings[f"variable.{name}"] = value
        return Timing(
            (ordered[(count - 1) // 2] + ordered[count // 2]) / 2,
            ordered[0],
            count,
            len(find_outliers(measure.samples_s, CLOCK_RESOLUTION_S / measure.repeats)),
            measure.warmup.ended_by != "bound",
            measure.first_call_s,
            _find_peak(result),
            self._share_dict(measure.work),
            self._share_dict(measure.figures | take_figures(result.gpu) if result.gpu else measure.figures),
            self._share_dict(settings),
            self._share(_find_version(result)),
            _hash_packages(result),
        )

    def _share(self, value: Any) -> Any:
        return self._shared.setdefault(value, value)

    def _share_dict(self, value: dict[str, Any]) -> dict[str, Any]:
        shared: dict[str, Any] = self._shared.setdefault(msgspec.json.encode(value), value)
        return shared


def _describe_conditions(result: Result) -> Conditions:
    cell = result.cell
    device = result.device if result.status == "measured" else None
    return Conditions(
        cell.identity.workload_sha256,
        msgspec.json.encode(cell.parameters, order="sorted").decode(),
        cell.data.sha256 if cell.data else None,
        cell.precision,
        cell.device.partition(":")[0],
        device.model if device else None,
        device.driver if device else None,
        result.environment.machine.host if result.environment else None,
        (cell.threads.intra_op, cell.threads.inter_op),
        _describe_protocol(cell.protocol),
    )


def _describe_protocol(protocol: Protocol) -> str:
    warmup = f"{protocol.warmup_s:g} s of warm-up"
    return f"{protocol.budget_s:g} s after {warmup}, samples of {protocol.sample_s:g} s"


def _describe_contender(cell: Cell) -> Contender:
    identity = cell.identity
    return Contender(
        cell.variant,
        cell.stack,
        cell.runner,
        identity.image,
        identity.base,
        identity.lock_sha256,
        cell.role == "a_a",
    )


def _find_peak(result: Result) -> int | None:
    memory = result.memory
    if memory is None:
        return None
    if result.cell.device != "cpu" and memory.peak_device_bytes is not None:
        return memory.peak_device_bytes
    return memory.peak_resident_bytes if memory.peak_tree_bytes is None else memory.peak_tree_bytes


def _find_version(result: Result) -> str | None:
    if result.environment is None:
        return None
    # ``torch_tfds`` is PyTorch with what feeds it.
    name, packages = result.cell.framework.partition("_")[0], result.environment.packages
    # TensorFlow's build without CUDA is a package of another name.
    return packages.get(name, packages.get(f"{name}-cpu"))


def _hash_packages(result: Result) -> int:
    if result.cell.identity.lock_sha256 is not None or result.environment is None:
        return 0
    return hash(frozenset(result.environment.packages.items()))
