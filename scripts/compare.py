"""Turns observations into the comparison: ratios, intervals, verdicts, and reasons where there is none."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from scripts.ceilings import Ceilings, find_ceilings
from scripts.comparison import SCHEMA, Comparison, Group, LeftOutFile, Row, RunSummary
from scripts.grouping import Draft, complete, explain_absence, group
from scripts.heat import compare_heat
from scripts.means import compute_means
from scripts.observation import Contender, Observation, Timing
from scripts.obstacles import Proofs, collect_proofs, find_change, find_clashes, find_figures, judge_proof
from scripts.rows import describe_row, take_timings
from scripts.statistics import BLOCKS_FOR_VERDICT, Estimate, blocks_to_settle, estimate_ratio, judge
from scripts.words import describe_ratio


def compare(
    observations: Iterable[Observation],
    runs: list[RunSummary],
    left_out: list[LeftOutFile],
    baseline: str | None = None,
) -> Comparison:
    """Compare like with like.

    Args:
        observations: Of all results of these runs.
        runs: What became of each.
        left_out: Files that could not be read.
        baseline: Variant to compare with instead of each group's own, where a group has it.
    """
    seen = complete(observations, {run.id: run.host for run in runs if run.host})
    proofs = collect_proofs(seen)
    launches = [launch for launch in seen if not launch.is_proof]
    launched = {launch.subject() for launch in launches}
    # A cell whose proof failed may never have been measured: it is a row all the same.
    unlaunched = [
        proof
        for proof in seen
        if proof.is_proof
        and proof.status != "proved"
        and not proof.contender.a_a
        and proof.subject() not in launched
    ]
    drafts, repeated = group([*launches, *unlaunched], baseline)
    ceilings = find_ceilings(launches)
    groups = [_judge_group(draft, drafts, proofs, ceilings) for draft in drafts]
    groups.sort(key=_order_groups)
    return Comparison(SCHEMA, runs, groups, compute_means(groups), [*left_out, *repeated])


def _judge_group(draft: Draft, drafts: Sequence[Draft], proofs: Proofs, ceilings: Ceilings) -> Group:
    timings = {row: taken for row, launches in draft.rows.items() if (taken := take_timings(launches))}
    firsts = {row: taken[0] for row, taken in timings.items()}
    states = {row: judge_proof(launches, proofs) for row, launches in draft.rows.items()}
    others = {row: firsts.get(other) if (other := _find_other(draft, row)) else None for row in draft.rows}
    rows = {
        row: describe_row(
            row,
            launches,
            ceilings,
            states[row][0],
            find_figures(launches, proofs),
            others[row],
            row == draft.baseline,
        )
        for row, launches in draft.rows.items()
    }
    warnings = []
    if draft.wanted is not None:
        causes = {row: cause for row, (state, cause) in states.items() if state != "holds" and row in timings}
        obstacles = _find_obstacles(draft, drafts, timings, firsts, causes)
        for row, cause in obstacles.items():
            rows[row] = msgspec.structs.replace(
                rows[row], verdict="not comparable", cause=_join(rows[row].cause, cause), blocks=0
            )
        estimates = _estimate(draft, [row for row in timings if row not in obstacles])
        pairs = [estimate for row, (_, estimate) in estimates.items() if row.a_a and estimate]
        for row, (blocks, estimate) in estimates.items():
            rows[row] = _judge_row(rows[row], blocks, estimate, pairs)
            if row.a_a:
                warnings += _find_void_runs(draft, row)
        if any(pair.excludes_one for pair in pairs):
            warnings.append(
                "void: the A/A pair differs, so there are no verdicts; measure again on a quieter machine"
            )
    if draft.baseline in rows:
        judge_figures = rows[draft.baseline].figures
        for row, described in rows.items():
            if row != draft.baseline and (heat := compare_heat(described.figures, judge_figures)):
                rows[row] = msgspec.structs.replace(described, warnings=[*described.warnings, *heat])
    return _make_group(draft, firsts, sorted(rows.values(), key=_order_rows), warnings)


def _find_obstacles(
    draft: Draft,
    drafts: Sequence[Draft],
    timings: Mapping[Contender, list[Timing]],
    firsts: Mapping[Contender, Timing],
    unproved: Mapping[Contender, str | None],
) -> dict[Contender, str]:
    """Say of measured rows why they get no ratio."""
    obstacles = {row: f"no proof that holds: {cause}" for row, cause in unproved.items()}
    for row, taken in timings.items():
        if row not in obstacles and (change := find_change(taken)):
            obstacles[row] = change
    baseline = draft.baseline
    if baseline is None:
        general = explain_absence(draft, drafts)
    elif baseline not in timings:
        general = f"the baseline {baseline.variant} was not measured"
    elif baseline in obstacles:
        general = f"the baseline {baseline.variant}: {obstacles[baseline]}"
    else:
        return find_clashes(firsts, baseline) | obstacles
    return {row: general for row in timings if row != baseline} | obstacles


def _estimate(draft: Draft, rows: Iterable[Contender]) -> dict[Contender, tuple[int, Estimate | None]]:
    """Compare rows with the baseline, an A/A row with its twin, over the blocks of a run that both have.

    Returns:
        how many complete blocks there are, and what they say.
    """
    estimates = {}
    for row in rows:
        other = _find_other(draft, row)
        if row != other and other in draft.rows:
            mine, theirs = _take_medians(draft.rows[row]), _take_medians(draft.rows[other])
            blocks = sorted(mine.keys() & theirs.keys())
            estimate = estimate_ratio([mine[block] for block in blocks], [theirs[block] for block in blocks])
            estimates[row] = len(blocks), estimate
    return estimates


def _find_other(draft: Draft, row: Contender) -> Contender | None:
    """Return what a row is compared with: the baseline, and an A/A row with its twin."""
    return row._replace(a_a=False) if row.a_a else draft.baseline


def _find_void_runs(draft: Draft, row: Contender) -> list[str]:
    """Name the runs whose A/A pair differs by itself: merging it with others does not quiet a machine."""
    mine, theirs = _take_medians(draft.rows[row]), _take_medians(draft.rows[row._replace(a_a=False)])
    blocks = sorted(mine.keys() & theirs.keys())
    runs = sorted({run for run, _ in blocks})
    warnings = []
    for run in runs if len(runs) > 1 else ():
        own = [block for block in blocks if block[0] == run]
        estimate = estimate_ratio([mine[block] for block in own], [theirs[block] for block in own])
        if estimate is not None and estimate.blocks >= BLOCKS_FOR_VERDICT and estimate.excludes_one:
            interval = describe_ratio(estimate.ratio, (estimate.low, estimate.high))
            warnings.append(f"the A/A pair of run {run} differs by itself: {interval}")
    return warnings


def _take_medians(launches: Iterable[Observation]) -> dict[tuple[str, int], float]:
    return {
        (launch.run, launch.block): launch.timing.median_s for launch in launches if launch.timing is not None
    }


def _judge_row(row: Row, blocks: int, estimate: Estimate | None, pairs: Sequence[Estimate]) -> Row:
    changes: dict[str, Any] = {"blocks": blocks}
    if blocks < row.blocks:
        lacking = f"{row.blocks - blocks} of its {row.blocks} launches have none to stand beside"
        row = msgspec.structs.replace(row, cause=_join(row.cause, lacking))
        changes["cause"] = row.cause
    if estimate is not None:
        changes |= {"ratio": estimate.ratio, "ratio_interval": (estimate.low, estimate.high)}
    if not row.a_a:
        judgement = judge(estimate, pairs)
        reason: str | None = judgement.reason
        if blocks < BLOCKS_FOR_VERDICT:
            reason = f"{blocks} of the {BLOCKS_FOR_VERDICT} blocks that a verdict needs"
        changes |= {"verdict": judgement.verdict, "cause": _join(row.cause, reason)}
        if estimate is not None and judgement.verdict in (None, "no difference shown"):
            changes["more_blocks"] = blocks_to_settle(estimate, pairs)
    return msgspec.structs.replace(row, **changes)


def _join(*causes: str | None) -> str | None:
    return "; ".join(cause for cause in causes if cause) or None


def _make_group(
    draft: Draft, firsts: Mapping[Contender, Timing], rows: list[Row], warnings: list[str]
) -> Group:
    seen = draft.conditions
    launches = [launch for members in draft.rows.values() for launch in members]
    shown = firsts.get(draft.baseline) if draft.baseline else None
    data = launches[0].data
    return Group(
        workload=draft.contest.workload,
        workload_sha256=seen.workload_sha256,
        edition=draft.contest.edition,
        measure=draft.contest.measure,
        work=(shown or next(iter(firsts.values()))).work if firsts else {},
        device=seen.device,
        model=seen.model,
        driver=seen.driver,
        precision=seen.precision,
        host=seen.host,
        threads=seen.threads,
        parameters=msgspec.json.decode(seen.parameters),
        data=data[0] if data else None,
        data_sha256=seen.data_sha256,
        data_nature=data[1] if data else None,
        baseline=draft.wanted,
        runs=sorted({launch.run for launch in launches}),
        rows=rows,
        warnings=warnings,
    )


def _order_rows(row: Row) -> tuple[object, ...]:
    """The baseline, its twin, then from fast to slow, then what was not measured."""
    return not row.is_baseline, not row.a_a, row.median_s is None, row.median_s or 0.0, row.variant, row.stack


def _order_groups(group: Group) -> tuple[object, ...]:
    """Ceilings last."""
    return (
        group.baseline is None, group.workload, group.edition, group.device, group.precision,
        str(group.host), group.measure,
    )  # fmt: skip
