"""The contract between the two floors: the cell that goes down and the result that comes up.

The host writes a cell with every value resolved, the ground floor answers with a result, and
nothing else crosses. ``results/schema/`` holds the JSON Schemas generated from these types
(``python -m scripts.schema``); a test keeps both equal.

History of the schema version:

1. First version.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

SCHEMA = 1

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Seconds = Annotated[float, Meta(ge=0)]
Duration = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=0)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Scalar = bool | int | float | str | None
Parameter = Scalar | list[int | float | str]

Purpose = Literal["prepare", "proof", "measure"]
Role = Literal["baseline", "variant", "a_a", "ceiling"]
Edition = Literal["article", "fair"]
Precision = Literal["fp32", "tf32", "bf16"]
Runner = Literal["docker", "venv", "host"]
Status = Literal["measured", "proved", "prepared", "failed", "skipped"]


class Threads(msgspec.Struct, frozen=True):
    """How many threads each framework is told to use, and is read back to use."""

    intra_op: Annotated[int, Meta(ge=1)]
    """Threads that share one operator."""
    inter_op: Annotated[int, Meta(ge=1)]
    """Operators that may run at the same time."""


class Protocol(msgspec.Struct, frozen=True):
    """How long a launch measures. Measures whose name ends in ``_epoch`` take one sample an epoch, at most as
    many as the parameter ``epochs`` says, with neither calibration nor warm-up."""

    budget_s: Annotated[float, Meta(gt=0, le=1e6)]
    """Bound on the samples of one measure of a launch, warm-up apart."""
    warmup_s: Annotated[float, Meta(ge=0, le=1e6)]
    """Bound on the warm-up of one measure."""
    sample_s: Duration
    """A sample repeats the unit until it lasts at least this long."""
    min_samples: Annotated[int, Meta(ge=1)]
    max_samples: Annotated[int, Meta(ge=1)]
    relative_width: Duration
    """Sampling stops once the interval on the median is narrower than this share of it."""


class Tolerances(msgspec.Struct, frozen=True):
    """Largest relative errors against the committed float64 trajectory."""

    gradients: Duration
    """Losses before the first update, gradient norms and projections, in the proof's dtype."""
    update: Duration
    """The change that one optimiser step makes, and the losses after it, in the proof's dtype."""
    losses: Duration
    """First losses of a measured launch, in the cell's own precision."""
    dtype: Literal["float64", "float32"] = "float64"
    """What the variant is proved in; float32 only where it cannot compute in float64."""


class Data(msgspec.Struct, frozen=True):
    """A prepared data set, checked by the host before anything is timed."""

    name: Name
    sha256: Sha256
    folder: str
    """Where the launched process finds it, read-only; in a result where the host has it, within the project
    where it is there."""
    nature: str
    """What the data are, in words fit for a table's caption."""
    derived: str | None = None
    """Folder within ``folder``: what the cell's stack made of the data, such as tfds's files."""


class Git(msgspec.Struct, frozen=True):
    commit: str
    dirty: bool


class Identity(msgspec.Struct, frozen=True):
    """What was run, by content."""

    workload_sha256: Sha256
    """Over the workload's folder and the ground floor's shared files."""
    lock_sha256: Sha256 | None = None
    """The stack's lock file; none for the ``host`` runner."""
    image: str | None = None
    """The image's id or digest; none outside containers."""
    base: str | None = None
    """The base image; none outside containers."""
    git: Git | None = None


class Cell(msgspec.Struct, frozen=True):
    """One launch to be made, every value resolved."""

    schema: int
    id: Name
    """Names the cell within its run and its files; equal in all blocks."""
    run: Name
    purpose: Purpose
    role: Role
    workload: Name
    edition: Edition
    variant: Name
    framework: Name
    """Module of ``workloads/frameworks/`` that drives it."""
    module: Name
    """Module of ``workloads/<workload>/`` that builds it."""
    stack: Name
    runner: Runner
    device: Name
    """``cpu`` or ``cuda:N``, as the host numbers its GPUs (in the order of their bus, as nvidia-smi does)."""
    precision: Precision
    parameters: dict[str, Parameter]
    measures: Annotated[list[Name], Meta(min_length=1)]
    seed: Count
    block: Count
    """Counted from 0; 0 in a proof."""
    position: Count
    """Place in its block's random order, from 0; 0 in a proof."""
    threads: Threads
    protocol: Protocol
    tolerances: Tolerances
    identity: Identity
    cache: str
    """Folder for compilers' caches, as the launched process sees it."""
    cache_state: Literal["fresh", "warm"]
    baseline: Name | None = None
    """Variant that this cell's group is compared with; none for ceilings."""
    data: Data | None = None
    blocks: Annotated[int, Meta(ge=1)] | None = None
    """Blocks that hold this cell, from the first on, where not all do."""
    expected_s: Duration | None = None
    """What sampling is expected to take, where the budget is no measure of that."""
    device_index: Count | None = None
    """Index of the GPU as the launched process numbers those that it sees; N of ``device`` where none."""


class Cause(msgspec.Struct, frozen=True):
    """Why there is no measurement."""

    kind: Name
    """From a closed list of words, such as ``signal``, ``out-of-memory``, ``time-limit``, ``import``,
    ``device``, ``precision``, ``no-effect``, ``losses``, ``exception``, ``exit``, ``result``, ``python``,
    ``lock``."""
    message: str
    """One line for the table."""


class Phases(msgspec.Struct, frozen=True):
    """Where the launched process spent its time, in seconds. ``first_call_s``, ``warmup_s`` and
    ``sampling_s`` are sums over the launch's measures."""

    import_s: Seconds
    setup_s: Seconds
    first_call_s: Seconds
    warmup_s: Seconds
    sampling_s: Seconds


class Warmup(msgspec.Struct, frozen=True):
    samples_s: list[Duration]
    """Seconds a unit, in time order, after the first call."""
    ended_by: Literal["steady", "bound", "none"]
    seconds: Seconds


class Measure(msgspec.Struct, frozen=True):
    """One measure of one launch."""

    name: Name
    """``call``, ``step``, ``load_epoch``, ``train_epoch``, ``validate_epoch``,
    ``train_validate_epoch``, ``article_epoch`` (an epoch as an article's sides counted theirs); of the
    ceiling ``matmul_N`` and ``copy``."""
    work: dict[str, Annotated[float, Meta(gt=0)]]
    """Work in one unit, by what is counted: ``steps``, ``images``, ``flop``, ``bytes``."""
    loop: Literal["hand-written", "fit", "loader"]
    """Who drives the steps."""
    host_reads: Count
    """Values read from the device by the host in one unit."""
    repeats: Annotated[int, Meta(ge=1)]
    """Units in one sample."""
    samples_s: Annotated[list[Duration], Meta(min_length=1)]
    """Seconds a unit, each the mean over one sample's repeats, in time order. All are kept."""
    first_call_s: Duration
    """The first unit, synchronised: tracing, compiling and autotuning show here."""
    warmup: Warmup
    stopped_by: Literal["narrow", "budget", "count"]
    series: dict[str, list[float | None]] = {}
    """One value an epoch: ``epoch_s``, ``loss``, ``accuracy``, ``validation_loss``, ``validation_accuracy``,
    ``waiting_share``, ``learning_rate``."""
    figures: dict[str, float] = {}
    """Further figures with their unit in the name: ``construct_s``, ``first_batch_s``, ``closing_s``,
    ``cpu_s_per_image``, ``waiting_share``, ``best_validation_accuracy``, and ``images`` where epochs hand
    out others than ``work`` says."""


class Losses(msgspec.Struct, frozen=True):
    """First losses of a measured launch beside the trajectory's."""

    values: list[float]
    expected: list[float]
    tolerance: Duration
    error: Seconds
    """Largest relative error."""
    holds: bool


class Check(msgspec.Struct, frozen=True):
    """One quantity of a proof."""

    name: Name
    expected: float
    value: float
    error: Seconds
    """Relative to the scale that the proof states for this quantity."""
    tolerance: Duration


class Proof(msgspec.Struct, frozen=True):
    """The same work, shown in float64 (or in float32 where a variant cannot do better)."""

    dtype: Literal["float64", "float32"]
    trajectory_sha256: Sha256
    parameter_count: Count
    """Trainable ones only."""
    checks: Annotated[list[Check], Meta(min_length=1)]
    holds: bool
    figures: dict[str, float] = {}
    """What else was found, such as ``shuffle_rank_correlation``: how an epoch's order agrees with the data
    set's, from 0 (well shuffled) to 1 (not at all); ``reshuffle_rank_correlation``, the same between two
    epochs; ``images_repeated`` and ``images_missed`` of an epoch, where its accounting allows them."""


class Device(msgspec.Struct, frozen=True):
    """Where the work really ran."""

    asked: Name
    observed: Name
    """Read from a tensor that was computed there, as the launched process numbers its GPUs."""
    model: str
    driver: str | None = None
    capability: str | None = None
    memory_bytes: Count | None = None


class Machine(msgspec.Struct, frozen=True):
    host: str
    cpu_model: str
    cpus_online: Count
    cpus_usable: Count
    """By affinity and control group: what this process may really use."""
    memory_bytes: Count
    kernel: str
    governor: str | None
    load_1m: float | None
    """At start, 1 minute average."""


class Environment(msgspec.Struct, frozen=True):
    """By allow-list: never the user's other variables."""

    machine: Machine
    python: str
    packages: dict[str, str]
    variables: dict[str, str]


class Memory(msgspec.Struct, frozen=True):
    peak_resident_bytes: Count | None = None
    """Of the launched process."""
    peak_device_bytes: Count | None = None
    """As the framework's allocator counts it."""
    peak_tree_bytes: Count | None = None
    """Of the process and its loader workers, summed proportional set size."""


class GpuReading(msgspec.Struct, frozen=True):
    """State of a GPU at one moment, by NVML; what a GPU does not tell is none."""

    sm_clock_mhz: Count | None = None
    memory_clock_mhz: Count | None = None
    temperature_c: float | None = None
    power_w: Seconds | None = None
    throttle: list[str] = []
    """Reasons for which its clocks are held down now, NVML's names in words: ``power cap``."""


class GpuWatch(msgspec.Struct, frozen=True):
    """The GPU around one launch, read by the host."""

    uuid: Name
    before: GpuReading
    after: GpuReading
    mean_power_w: Seconds | None = None
    """Over the launch, by the GPU's own count of energy."""
    sm_clock_mhz: Seconds | None = None
    """Median over the launch, of the samples that the driver keeps by itself."""
    throttled_s: dict[str, Seconds] = {}
    """Seconds of the launch in which clocks were held down, by reason, as the driver counts them."""


class Result(msgspec.Struct, frozen=True):
    """What one launch answers. Written by the ground floor, or by the host for a launch that died
    or never started."""

    schema: int
    cell: Cell
    status: Status
    started: str
    """RFC 3339, UTC."""
    duration_s: Seconds
    """Of the whole launched process, as far as it can tell."""
    cause: Cause | None = None
    log: str | None = None
    """Path relative to the run's folder."""
    phases: Phases | None = None
    measures: list[Measure] = []
    losses: Losses | None = None
    proof: Proof | None = None
    synchronisation: str | None = None
    """The framework's call that waits for the device, before the start and before the stop of each
    sample. A measured result without one is refused."""
    settings: dict[str, Scalar] = {}
    """Read back, not asked for. Names without a dot mean the same in every framework and are
    compared: ``compiler``, ``autotune``, ``layout``, ``tf32``, ``threads_intra_op``,
    ``threads_inter_op``, ``memory_growth``, ``deterministic``, ``inputs``, ``keras``. Names with
    a dot (``torch.float32_matmul_precision``) are one framework's own."""
    device: Device | None = None
    memory: Memory | None = None
    environment: Environment | None = None
    warnings: list[str] = []
    gpu: GpuWatch | None = None
    """Written by the host."""


class Run(msgspec.Struct, frozen=True):
    """``run.json``: what was planned, on which host, with which stacks. Enough to resume."""

    schema: int
    id: Name
    started: str
    """RFC 3339, UTC."""
    command: list[str]
    """As the user could type it again."""
    profile: Name
    seed: Count
    blocks: Annotated[int, Meta(ge=1, le=1000)]
    cells: Annotated[list[Cell], Meta(min_length=1)]
    """Every cell to be measured, as in block 0 at position 0."""
    machine: Machine
    git: Git | None = None
    tools: dict[str, str] = {}
    """Versions of the host floor's own packages."""
    engine: dict[str, str] = {}
    """What is known of the container engine, where one was used."""
    gpu: dict[str, str] = {}
    """The GPU that is measured: ``uuid``, ``name``, ``driver``, ``capability``."""
