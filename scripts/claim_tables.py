"""What became of the articles' claims, as tables. ``scripts.renderings`` prints them."""

from collections.abc import Iterator, Sequence

from scripts.comparison import Comparison, Evidence, Judgement, Published, Remeasured, Trial
from scripts.tables import Column, Table
from scripts.words import describe_number, describe_ratio, describe_seconds, make_visible

KINDS = {"cpu": "CPU", "cuda": "GPU"}
ERAS = {"historical": "article's versions", "current": "today's"}
CLAIM_LEGEND = (
    "claims: holds where every ratio is shown to lie within the claim's bounds, reversed where one is shown "
    "to lie beyond them, not shown where noise, sizes or too few blocks leave it open; what was tested on "
    "another device than the claim's is no verdict on it."
)


def make_claim_tables(comparison: Comparison) -> list[Table]:
    """Make what there is to show of each article on each machine: verdicts, what another device says, ratios
    and figures."""
    machines: dict[tuple[str, str | None, str, str | None], list[Judgement]] = {}
    for one in comparison.claims:
        machines.setdefault((one.article, one.host, one.device, one.model), []).append(one)
    tables: list[Table] = []
    shown: set[str] = set()
    for (article, *_), judgements in machines.items():
        tables.append(_make_verdicts(judgements))
        tables += _make_elsewhere(judgements)
        tables += _make_ratios(judgements)
        if article not in shown:
            shown.add(article)
            tables += _make_figures([one for one in comparison.published if one.article == article])
    return tables


def _make_verdicts(judgements: Sequence[Judgement]) -> Table:
    first = judgements[0]
    title = make_visible(f"Claims of {first.title!r} ({first.year})")
    where = f"judged on {first.model or 'unknown ' + KINDS[first.device]}, host {first.host or 'unknown'}"
    columns = [
        Column("claim", [make_visible(one.id) for one in judgements], False, 0),
        Column("kind", [one.kind for one in judgements], False, 2),
        Column("about", [KINDS[one.claimed_device] for one in judgements], False, 1),
        Column("in the article", [_tell_article(one) for one in judgements], False, 3),
        *_make_era_columns([[trial.state for trial in one.trials] for one in judgements]),
    ]
    notes = [make_visible(f"{one.id}: {one.says}") for one in judgements]
    return Table(title, [make_visible(where)], columns, [*notes, *_tell_reasons(judgements)])


def _make_elsewhere(judgements: Sequence[Judgement]) -> Iterator[Table]:
    found = [one for one in judgements if any(trial.elsewhere for trial in one.trials)]
    if found:
        first = found[0]
        columns = [
            Column("claim", [make_visible(one.id) for one in found], False, 0),
            *_make_era_columns([[trial.elsewhere or "" for trial in one.trials] for one in found]),
        ]
        details = [
            f"on a {KINDS[first.device]}; the claims are about a {KINDS[first.claimed_device]}: "
            "no verdict on them"
        ]
        yield Table("Tested on another device", details, columns, [])


def _make_ratios(judgements: Sequence[Judgement]) -> Iterator[Table]:
    rows = [
        (one.id, pair, [trial.evidence[place] for trial in one.trials])
        for one in judgements
        for place, pair in enumerate(one.trials[0].evidence)
    ]
    if rows:
        ratios = [_show(pair.published) for _, pair, _ in rows]
        columns = [
            Column("claim", [make_visible(name) for name, _, _ in rows], False, 1),
            Column("over", [make_visible(f"{pair.variant} / {pair.over}") for _, pair, _ in rows], False, 0),
            Column("article", ratios, True, 0),
            *_make_era_columns([[_show_ratio(one) for one in found] for _, _, found in rows], is_number=True),
        ]
        yield Table("Their ratios of times, or of accuracies", [], columns, [])


def _make_figures(published: Sequence[Published]) -> Iterator[Table]:
    if published:
        columns = [
            Column("variant", [make_visible(one.variant) for one in published], False, 0),
            Column("on", [KINDS[one.device] for one in published], False, 0),
            Column("article", [_show_figure(one.seconds, one.accuracy) for one in published], True, 0),
            *_make_era_columns(
                [[_show_here(one, era) for era in ERAS] for one in published],
                is_number=True,
            ),
        ]
        causes: dict[str, list[str]] = {}
        for one in published:
            for here in one.here:
                if here.cause:
                    causes.setdefault(here.cause, []).append(f"{one.variant} ({here.stack})")
        notes = [
            make_visible(f"{', '.join(dict.fromkeys(names))}: {cause}") for cause, names in causes.items()
        ]
        devices = sorted({KINDS[here.device] for one in published for here in one.here})
        details = [f"a unit of the measure; here on {' and '.join(devices)}, whatever the article's was on"]
        yield Table("Its figures, and the same measured here", details, columns, notes)


def _make_era_columns(cells: Sequence[Sequence[str]], is_number: bool = False) -> list[Column]:
    titles = list(ERAS.values())
    return [Column(title, [row[place] for row in cells], is_number, 0) for place, title in enumerate(titles)]


def _tell_article(judgement: Judgement) -> str:
    if judgement.holds_in_article is None:
        return "no figure"
    return "holds" if judgement.holds_in_article else "does not hold"


def _tell_reasons(judgements: Sequence[Judgement]) -> list[str]:
    """Say why a state is none, once for all claims of the same reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for one in judgements:
        said: dict[str, list[Trial]] = {}
        for trial in one.trials:
            if trial.reason:
                said.setdefault(trial.reason, []).append(trial)
        for reason, trials in said.items():
            eras = " and ".join(ERAS[trial.era] for trial in trials) if len(trials) < len(one.trials) else ""
            reasons.setdefault((reason, eras), []).append(one.id)
    return [
        make_visible(f"{', '.join(ids)}{f', {eras}' if eras else ''}: {reason}")
        for (reason, eras), ids in reasons.items()
    ]


def _show_ratio(evidence: Evidence) -> str:
    return describe_ratio(evidence.ratio, evidence.ratio_interval) or "none"


def _show(ratio: float | None) -> str:
    return "" if ratio is None else f"{describe_number(ratio)}x"


def _show_figure(seconds: float | None, accuracy: float | None) -> str:
    return describe_seconds(seconds) if accuracy is None else f"{100 * accuracy:.2f} %"


def _show_here(published: Published, era: str) -> str:
    return ", ".join(_show_measured(published, here) for here in published.here if here.era == era)


def _show_measured(published: Published, here: Remeasured) -> str:
    if published.accuracy is None:
        return describe_seconds(here.median_s) or "none"
    # Of other sizes an accuracy says nothing.
    return _show_figure(None, here.accuracy) if here.accuracy is not None and here.cause is None else "none"
