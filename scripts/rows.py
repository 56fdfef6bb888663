"""Describes one row of a comparison: all but what it says beside the baseline."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Literal

from scripts.ceilings import Ceilings, compute_share
from scripts.comparison import Launch, ProofState, Row, Verdict
from scripts.observation import Contender, Observation, Timing
from scripts.obstacles import find_differences
from scripts.statistics import Location, estimate_location


def take_timings(launches: Iterable[Observation]) -> list[Timing]:
    return [launch.timing for launch in launches if launch.timing is not None]


def describe_row(
    contender: Contender,
    launches: Sequence[Observation],
    ceilings: Ceilings,
    proof: ProofState,
    found: Mapping[str, float],
    baseline: Timing | None,
    is_baseline: bool,
) -> Row:
    """Describe a row by its launches, in any order.

    Args:
        contender: What makes the row.
        launches: All that it has in its group.
        ceilings: The best rates of each run.
        proof: Whether the same work was shown.
        found: Figures of that proof.
        baseline: One timing of the baseline, to tell settings apart.
        is_baseline: Whether it is the baseline itself.
    """
    launches = sorted(launches, key=lambda launch: (launch.run, launch.block))
    measured = [launch for launch in launches if launch.timing is not None]
    lost = next((launch for launch in launches if launch.status in ("failed", "skipped")), None)
    status, verdict = _tell_status(launches)
    timings = take_timings(measured)
    first = timings[0] if timings else None
    share = compute_share(measured, ceilings)
    location = estimate_location([timing.median_s for timing in timings]) if timings else None
    return Row(
        variant=contender.variant,
        stack=contender.stack,
        version=first.version if first else None,
        runner=contender.runner,
        image=contender.image,
        base=contender.base,
        lock=contender.lock,
        a_a=contender.a_a,
        is_baseline=is_baseline,
        status=status,
        cause=_tell_losses(launches),
        log=lost.log if lost else None,
        verdict=verdict,
        ratio=None,
        ratio_interval=None,
        median_s=location.median if location else None,
        interval_s=_take_interval(location),
        best_s=min((timing.best_s for timing in timings), default=None),
        first_call_s=median(timing.first_call_s for timing in timings) if timings else None,
        peak_memory_bytes=max(
            (timing.peak_bytes for timing in timings if timing.peak_bytes is not None), default=None
        ),
        work=first.work if first else {},
        rates={counted: amount / location.median for counted, amount in first.work.items()}
        if first and location
        else {},
        percent_of_ceiling=share,
        figures=_summarise_figures(timings) | dict(found) if timings else {},
        proof=proof,
        blocks=len(measured),
        samples=sum(timing.samples for timing in timings),
        more_blocks=None,
        settings=first.settings if first else {},
        differs=find_differences(baseline, first) if baseline and first and not is_baseline else {},
        launches=[
            Launch(
                launch.run,
                launch.block,
                launch.file,
                launch.timing.median_s,
                launch.timing.figures.get("best_validation_accuracy"),
            )
            for launch in measured
            if launch.timing is not None
        ],
        warnings=_find_warnings(measured, timings, share),
    )


def _take_interval(location: Location | None) -> tuple[float, float] | None:
    if location is None or location.low is None or location.high is None:
        return None
    return location.low, location.high


def _tell_status(
    launches: Sequence[Observation],
) -> tuple[Literal["measured", "failed", "skipped"], Verdict | None]:
    statuses = {launch.status for launch in launches}
    if "measured" in statuses:
        return "measured", None
    return ("failed", "failed") if "failed" in statuses else ("skipped", "skipped")


def _tell_losses(launches: Sequence[Observation]) -> str | None:
    """Say how many launches gave nothing, and why the first of each kind did."""
    for status in ("failed", "skipped"):
        lost = [launch for launch in launches if launch.status == status]
        if not lost:
            continue
        if lost[0].is_proof:
            return f"the proof {status}: {lost[0].cause}"
        some = "" if len(lost) == len(launches) else f"{len(lost)} of {len(launches)} launches {status}: "
        return f"{some}{lost[0].cause}"
    return None


def _summarise_figures(timings: Sequence[Timing]) -> dict[str, float]:
    names = sorted({name for timing in timings for name in timing.figures})
    return {
        name: median(timing.figures[name] for timing in timings if name in timing.figures) for name in names
    }


def _find_warnings(
    measured: Sequence[Observation], timings: Sequence[Timing], share: float | None
) -> list[str]:
    warnings = list(dict.fromkeys(warning for launch in measured for warning in launch.warnings))
    outliers, samples = sum(timing.outliers for timing in timings), sum(timing.samples for timing in timings)
    if outliers:
        warnings.append(f"{outliers} of {samples} samples are outliers")
    unsteady = sum(not timing.is_steady for timing in timings)
    if unsteady:
        warnings.append(f"{unsteady} of {len(timings)} launches were not steady when their warm-up ended")
    if share is not None and share > 100:
        warnings.append("above the ceiling, which was measured while the machine was slower")
    return warnings
