"""What becomes of the articles' claims on the machines of a comparison: evidence, and a state for each.

A claim is judged where the rows of its article's own versions are: on those, and on the current ones. Its
state is that of its ratios. All must be shown to lie within its bounds for it to hold; one beyond its limits
reverses it. ``scripts.statistics.place`` says when that is shown, by the launches that the rows name.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import msgspec

from scripts.catalogue import Workload
from scripts.comparison import (
    ClaimState,
    Era,
    Evidence,
    Group,
    Interval,
    Judgement,
    Published,
    Remeasured,
    Row,
    RunSummary,
    Trial,
)
from scripts.contract import Runner
from scripts.evidence import estimate_rows, find_noise, find_obstacle, take_accuracy, take_median
from scripts.published import Article, Claim, Pair, holds_in_article
from scripts.statistics import place

ERAS: tuple[Era, ...] = ("historical", "current")
STATES: Mapping[str, ClaimState] = {"within": "holds", "beyond": "reversed", "not shown": "not shown"}


class Machine(NamedTuple):
    """Rows of which may stand beside each other, as far as claims go."""

    host: str | None
    device: str
    model: str | None


class Place(NamedTuple):
    """A group and its place in the comparison."""

    position: int
    group: Group


class Judge:
    """Judges the claims of one article on one machine.

    Args:
        article: the article.
        workload: what it is about, as it is now.
        current: names of the stacks that are current.
        cpus: usable CPUs, by run.
        places: the machine's groups of the article's workload and edition.
    """

    def __init__(
        self,
        article: Article,
        workload: Workload,
        current: AbstractSet[str],
        cpus: Mapping[str, int],
        places: Sequence[Place],
    ) -> None:
        self.article = article
        self.workload = workload
        self.current = current
        self.cpus = cpus
        # The article's sizes before others.
        self.places = sorted(places, key=lambda one: bool(self.find_other_sizes(one.group)))

    def find_other_sizes(self, group: Group) -> str | None:
        """Say what parameters are not the article's."""
        own = self.workload.parameters
        other = [
            f"{name} {group.parameters.get(name)} instead of {value}"
            for name, value in own.items()
            if group.parameters.get(name) != value
        ]
        return ", ".join(other) or None

    def is_of(self, row: Row, era: Era) -> bool:
        return row.stack == self.article.stack if era == "historical" else row.stack in self.current

    def try_claim(self, claim: Claim, era: Era) -> Trial:
        """Judge a claim by what one generation of software did."""
        if claim.untestable is not None:
            return Trial(era, "cannot be tested", claim.untestable, None, [])
        evidence = [self.weigh(claim, pair, era) for pair in claim.compares]
        state, reason = combine(evidence)
        device = self.places[0].group.device
        if device != claim.device:
            elsewhere = state if state != "cannot be tested" else None
            why = f"it is about {claim.device}, and {device} was measured" if elsewhere else reason
            return Trial(era, "cannot be tested", why, elsewhere, evidence)
        return Trial(era, state, reason, None, evidence)

    def weigh(self, claim: Claim, pair: Pair, era: Era) -> Evidence:
        """Judge one ratio of a claim."""
        blank = Evidence(pair.variant, pair.over, pair.ratio, "cannot be tested", None)
        found = self.find_pair(pair, era)
        if found is None:
            absent = [name for name in (pair.variant, pair.over) if self.find_row(name, era) is None]
            said = f"no row of {' and '.join(absent)}" if absent else "no group holds both"
            where = self.article.stack if era == "historical" else "a current stack"
            return msgspec.structs.replace(blank, reason=f"{said} on {where}")
        spot, row, over = found
        group = spot.group
        named = msgspec.structs.replace(blank, group=spot.position, stack=row.stack, over_stack=over.stack)

        def give(state: ClaimState, reason: str | None) -> Evidence:
            return msgspec.structs.replace(named, state=state, reason=reason)

        if obstacle := find_obstacle(row) or find_obstacle(over) or self.find_unfit(claim, group):
            return give("cannot be tested", obstacle)
        take = take_accuracy if claim.of == "accuracy" else take_median
        estimate = estimate_rows(row, over, take)
        if estimate is None:
            return give("not shown", f"fewer than two blocks hold both {pair.variant} and {pair.over}")
        interval: Interval = (estimate.low, estimate.high)
        named = msgspec.structs.replace(
            named, ratio=estimate.ratio, ratio_interval=interval, blocks=estimate.blocks
        )
        if other := self.find_other_sizes(group):
            return give("not shown", f"other sizes than the article's: {other}")
        placing = place(estimate, list(find_noise(group, take)), claim.bounds(), claim.limits())
        return give(STATES[placing.place], placing.reason or None)

    def find_unfit(self, claim: Claim, group: Group) -> str | None:
        """Say what of the machine or the training keeps a claim from being tested."""
        if claim.cpus is not None:
            counts = sorted({self.cpus[run] for run in group.runs if run in self.cpus})
            if counts != [claim.cpus]:
                here = " and ".join(map(str, counts)) or "an unknown number"
                return f"it is about {claim.cpus} CPUs, and {here} can be used here"
        if claim.of == "accuracy":
            if claim.epochs is not None and group.parameters.get("epochs") != claim.epochs:
                return f"it takes {claim.epochs} epochs, of {self.article.data}: --profile published"
            if self.article.data is not None and group.data != self.article.data:
                return f"it is about {self.article.data}: --data {self.article.data}"
        return None

    def find_pair(self, pair: Pair, era: Era) -> tuple[Place, Row, Row] | None:
        """Find the group whose rows bear on a ratio: one that measured both before one that did not."""
        best: tuple[Place, Row, Row] | None = None
        for spot in self.places:
            for runner in dict.fromkeys(row.runner for row in spot.group.rows):
                row, over = (self.pick(spot.group, name, era, runner) for name in (pair.variant, pair.over))
                if row is None or over is None:
                    continue
                if row.status == over.status == "measured":
                    return spot, row, over
                best = best or (spot, row, over)
        return best

    def pick(self, group: Group, variant: str, era: Era, runner: Runner | None = None) -> Row | None:
        """Return a variant's row in a group: that of the most blocks where there are several."""
        rows = [
            row
            for row in group.rows
            if row.variant == variant
            and not row.a_a
            and runner in (None, row.runner)
            and self.is_of(row, era)
        ]
        return max(rows, key=lambda row: (row.status == "measured", row.blocks), default=None)

    def find_row(self, variant: str, era: Era) -> Row | None:
        """Find a variant's row in any group of the machine."""
        rows = (self.pick(spot.group, variant, era) for spot in self.places)
        return next(filter(None, rows), None)

    def remeasure(self, variant: str) -> Iterator[Remeasured]:
        """Yield what a variant took here, on each generation that has a row of it."""
        for era in ERAS:
            for spot in self.places:
                row = self.pick(spot.group, variant, era)
                if row is None:
                    continue
                group = spot.group
                cause = find_obstacle(row)
                if (other := self.find_other_sizes(group)) and cause is None:
                    cause = f"other sizes than the article's: {other}"
                yield Remeasured(
                    era=era,
                    stack=row.stack,
                    group=spot.position,
                    device=group.device,
                    host=group.host,
                    median_s=row.median_s,
                    accuracy=row.figures.get("best_validation_accuracy"),
                    cause=cause,
                )
                break


def judge_claims(
    groups: Sequence[Group],
    runs: Sequence[RunSummary],
    articles: Mapping[str, Article],
    catalogue: Mapping[str, Workload],
    current: AbstractSet[str],
) -> tuple[list[Judgement], list[Published]]:
    """Judge the claims of the articles whose own versions are among the rows, measured or not.

    Args:
        groups: the comparison's.
        runs: what became of each run.
        articles: by key.
        catalogue: workloads by name.
        current: names of the stacks that are current.

    Returns:
        claims by article, machine and the article's order; and the articles' figures.
    """
    cpus = {run.id: run.cpus for run in runs if run.cpus is not None}
    judgements: list[Judgement] = []
    published: list[Published] = []
    for key, article in sorted(articles.items(), key=lambda item: (item[1].year, item[0])):
        workload = catalogue.get(article.workload)
        if workload is None:
            continue
        judges = {
            machine: Judge(article, workload, current, cpus, places)
            for machine, places in find_machines(groups, article).items()
        }
        for machine, judge in judges.items():
            judgements += [_judge(key, claim, machine, judge) for claim in article.claims]
        if judges:
            published += _list_figures(key, article, list(judges.values()))
    return judgements, published


def find_machines(groups: Sequence[Group], article: Article) -> dict[Machine, list[Place]]:
    """Return the groups of an article's edition by machine, those with a row of its own stack among them."""
    machines: dict[Machine, list[Place]] = {}
    for index, group in enumerate(groups):
        said = group.workload, group.edition, group.measure, group.precision
        if said == (article.workload, "article", article.measure, "fp32"):
            machine = Machine(group.host, group.device, group.model)
            machines.setdefault(machine, []).append(Place(index, group))
    # A row that died may not tell its device's model.
    for machine in [one for one in machines if one.model is None]:
        twins = [one for one in machines if one.model is not None and one[:2] == machine[:2]]
        if len(twins) == 1:
            machines[twins[0]] += machines.pop(machine)
    return {
        machine: places
        for machine, places in machines.items()
        if any(row.stack == article.stack for spot in places for row in spot.group.rows)
    }


def combine(evidence: Sequence[Evidence]) -> tuple[ClaimState, str | None]:
    """Return the state that all ratios of a claim have together, and why."""
    for state in ("reversed", "cannot be tested", "not shown"):
        found = [one for one in evidence if one.state == state]
        if found:
            reasons = dict.fromkeys(one.reason for one in found if one.reason)
            return state, "; ".join(reasons) or None
    return "holds", None


def _judge(key: str, claim: Claim, machine: Machine, judge: Judge) -> Judgement:
    article = judge.article
    return Judgement(
        article=key,
        title=article.title,
        year=article.year,
        workload=article.workload,
        id=claim.id,
        says=claim.says,
        kind=claim.kind,
        claimed_device=claim.device,
        bounds=(claim.low, claim.high),
        margin=claim.margin,
        holds_in_article=holds_in_article(claim),
        device=machine.device,
        host=machine.host,
        model=machine.model,
        trials=[judge.try_claim(claim, era) for era in ERAS],
    )


def _list_figures(key: str, article: Article, judges: Sequence[Judge]) -> Iterator[Published]:
    for figure in article.figures:
        yield Published(
            article=key,
            variant=figure.variant,
            device=figure.device,
            seconds=None if figure.seconds is None else figure.seconds / article.units,
            accuracy=figure.accuracy,
            here=[one for judge in judges for one in judge.remeasure(figure.variant)],
        )
