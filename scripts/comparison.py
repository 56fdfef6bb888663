"""The types of ``comparison.json``: what merging runs says.

All times are in seconds and all ratios are of times, below 1 faster than the baseline. Every number
is finite; what is not known is null. ``results/schema/comparison.json`` is generated from here.

History of the schema version:

1. First version.
2. ``claims``, ``published`` and ``versions``; a launch's ``accuracy``; a run's ``cpus``; a row's ``version``.
"""

from typing import Literal

import msgspec

from scripts.contract import Count, Edition, Parameter, Precision, Runner, Scalar

SCHEMA = 2

Verdict = Literal["faster", "slower", "no difference shown", "not comparable", "failed", "skipped"]
ProofState = Literal["holds", "fails", "absent"]
ClaimState = Literal["holds", "reversed", "not shown", "cannot be tested"]
Era = Literal["historical", "current"]
"""The article's versions, or those of the stacks that join every plan."""
Interval = tuple[float, float]


class LeftOutFile(msgspec.Struct, frozen=True):
    """A file that was found and is in no figure."""

    file: str
    reason: str


class Launch(msgspec.Struct, frozen=True):
    """Where a figure of a row comes from."""

    run: str
    block: Count
    file: str
    median_s: float
    """Of the launch's samples."""
    accuracy: float | None = None
    """The best of its epochs, on images that are not trained on, as a share."""


class RunSummary(msgspec.Struct, frozen=True):
    """What became of one run, in launches that measure; proofs that failed are among the failed."""

    id: str
    host: str | None
    started: str | None
    profile: str | None
    planned: Count | None
    """None where ``run.json`` is missing or cannot be read."""
    measured: Count
    failed: Count
    skipped: Count
    missing: Count
    cpus: Count | None = None
    """That could be used."""


class Row(msgspec.Struct, frozen=True):
    """One variant in one environment, over all launches of the group."""

    variant: str
    stack: str
    version: str | None
    """Of its framework, as it was installed; null where nothing was measured."""
    runner: Runner
    image: str | None
    base: str | None
    lock: str | None
    """Sha256 of the stack's lock file."""
    a_a: bool
    """The baseline's twin: what this machine's noise looks like."""
    is_baseline: bool
    status: Literal["measured", "failed", "skipped"]
    cause: str | None
    """Why there is no verdict, or what else to know about it; one line."""
    log: str | None
    """Of the first launch that failed, relative to its run's folder."""
    verdict: Verdict | None
    ratio: float | None
    ratio_interval: Interval | None
    """95 %, between launches."""
    median_s: float | None
    """Median of the launches' medians, a unit."""
    interval_s: Interval | None
    """95 % t-interval of the geometric mean of the launches' medians."""
    best_s: float | None
    """Smallest of all samples: what an article's best-of-n would print."""
    first_call_s: float | None
    """Median over launches: tracing, compiling and autotuning show here."""
    peak_memory_bytes: Count | None
    """Largest over launches: on an accelerator its own memory, else the process tree's."""
    work: dict[str, float]
    """In one unit, by what is counted."""
    rates: dict[str, float]
    """Work a second at ``median_s``, by what is counted: ``flop`` is FLOP/s."""
    percent_of_ceiling: float | None
    """Of the best rate that any framework reached on this device in the same run."""
    figures: dict[str, float]
    """Further figures, medians over launches, with their unit in the name."""
    proof: ProofState
    blocks: Count
    """Complete ones: both this row and the baseline were measured."""
    samples: Count
    more_blocks: Count | None
    """About how many more would settle an undecided pair."""
    settings: dict[str, Scalar]
    differs: dict[str, tuple[Scalar, Scalar]]
    """Settings and ways of working that differ from the baseline's: its value, then this row's."""
    launches: list[Launch]
    warnings: list[str]


class Group(msgspec.Struct, frozen=True):
    """Rows that may be compared: like with like."""

    workload: str
    workload_sha256: str
    edition: Edition
    measure: str
    work: dict[str, float]
    """The baseline's, in one unit."""
    device: str
    """``cpu`` or ``cuda``."""
    model: str | None
    driver: str | None
    precision: Precision
    host: str | None
    threads: tuple[int, int]
    """Within one operator, and operators at the same time."""
    parameters: dict[str, Parameter]
    data: str | None
    data_sha256: str | None
    data_nature: str | None
    baseline: str | None
    runs: list[str]
    rows: list[Row]
    warnings: list[str]


class Mean(msgspec.Struct, frozen=True):
    """Geometric mean of ratios of one stack over another's, over the rows that have one."""

    edition: Edition
    precision: Precision
    device: str
    host: str | None
    baseline_stack: str
    stack: str
    ratio: float
    matched: Count
    of: Count
    """Rows of the stack in these groups, those without a ratio among them."""


class VersionTiming(msgspec.Struct, frozen=True):
    """A variant in one version of its framework."""

    version: str
    stack: str
    runner: Runner
    median_s: float | None
    is_oldest: bool
    """Whether the others are set beside it."""
    ratio: float | None
    """Over the oldest version."""
    ratio_interval: Interval | None
    """95 %, between launches."""
    cause: str | None
    """Why it has no ratio; one line."""


class Versions(msgspec.Struct, frozen=True):
    """A variant in several versions of its framework, oldest first."""

    group: Count
    """Place in ``groups`` of the rows that it is taken from."""
    variant: str
    timings: list[VersionTiming]


class Evidence(msgspec.Struct, frozen=True):
    """One ratio that a claim is about: of a variant over another."""

    variant: str
    over: str
    published: float | None
    """The article's own."""
    state: ClaimState
    reason: str | None
    """Why it is not shown, or cannot be tested; one line."""
    group: Count | None = None
    """Place in ``groups`` of the rows that it is taken from."""
    stack: str | None = None
    over_stack: str | None = None
    ratio: float | None = None
    ratio_interval: Interval | None = None
    """95 %, between launches."""
    blocks: Count = 0


class Trial(msgspec.Struct, frozen=True):
    """A claim on one generation of software."""

    era: Era
    state: ClaimState
    """The verdict on the claim."""
    reason: str | None
    elsewhere: ClaimState | None
    """What another kind of device than the claim's says, which is no verdict on the claim."""
    evidence: list[Evidence]


class Judgement(msgspec.Struct, frozen=True):
    """A claim of an article, judged on one machine."""

    article: str
    title: str
    year: int
    workload: str
    id: str
    says: str
    kind: Literal["stated", "derived", "conjectured"]
    claimed_device: str
    """``cpu`` or ``cuda``: what the claim is about."""
    bounds: tuple[float | None, float | None]
    """Within which all its ratios are said to lie."""
    margin: str
    """Why the bounds are where they are."""
    holds_in_article: bool | None
    """Whether the article's own figures bear it out; null where it has none."""
    device: str
    """What was measured."""
    host: str | None
    model: str | None
    trials: list[Trial]


class Remeasured(msgspec.Struct, frozen=True):
    """A published figure, measured again."""

    era: Era
    stack: str
    group: Count
    device: str
    host: str | None
    median_s: float | None
    accuracy: float | None
    cause: str | None
    """Why there is no figure, or why it is none to set beside the article's; one line."""


class Published(msgspec.Struct, frozen=True):
    """A figure of an article, and what was measured here of it: seconds of a unit of the measure."""

    article: str
    variant: str
    device: str
    seconds: float | None
    accuracy: float | None
    here: list[Remeasured]


class Comparison(msgspec.Struct, frozen=True):
    """What merging runs says."""

    schema: int
    runs: list[RunSummary]
    groups: list[Group]
    means: list[Mean]
    left_out: list[LeftOutFile]
    versions: list[Versions] = []
    """Variants that were measured in more than one version of their framework."""
    claims: list[Judgement] = []
    """Of articles whose own versions are among the rows."""
    published: list[Published] = []
    """Figures of these articles."""

    def has_measured(self) -> bool:
        return any(row.status == "measured" for group in self.groups for row in group.rows)

    def is_whole(self) -> bool:
        """Whether all that this machine can do was measured and every file could be read."""
        lacking = any(run.failed or run.missing for run in self.runs)
        return not lacking and not self.left_out
