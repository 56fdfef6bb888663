"""The plan of a run: what is measured, where, and for how long."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from scripts.budget import USED, divide_bound, estimate_blocks, estimate_proofs, share_budget
from scripts.catalogue import Workload, find_names
from scripts.cells import CellMaker, Place, Surroundings
from scripts.contract import Cell, Edition
from scripts.errors import Refusal
from scripts.options import Options
from scripts.order import order_blocks
from scripts.profiles import DEFAULT, PROFILES, Profile

CONTAINER_S = 0.3
"""What a container adds to a launch: made, started, and removed."""
ALL = "all"
"""In place of a stack's name: of every version the leanest that can."""
Entered = AbstractSet[tuple[str, str, str]]
"""Stack, runner and framework of the contests."""


@dataclass(frozen=True)
class Plan:
    """Cells as in block 0 at position 0, and what they take."""

    cells: Sequence[Cell]
    blocks: int
    profile: str
    seed: int
    overheads_s: Mapping[str, float]
    """By cell id: seconds of a launch outside warm-up and sampling."""
    bound_s: float | None
    """What the profile allows the planned workloads together, ceilings included; none where one of them
    takes as long as it takes."""
    cpus_usable: int
    notes: Sequence[str] = ()
    """What the user did not ask for in so many words."""

    def order(self) -> list[list[Cell]]:
        return order_blocks(self.cells, self.blocks, self.seed)

    def estimate_s(self) -> float:
        proofs_s = estimate_proofs(self.cells, self.overheads_s, self.cpus_usable)
        return proofs_s + estimate_blocks(self.cells, self.overheads_s, self.blocks)


def make_plan(options: Options, catalogue: Mapping[str, Workload], around: Surroundings) -> Plan:
    """Resolve the options into cells.

    Raises:
        Refusal: a name is unknown, or nothing is left to measure.
    """
    profile_name = options.profile or DEFAULT
    profile = PROFILES[profile_name]
    blocks = options.blocks or profile.blocks
    named = find_names("workload", options.workloads or catalogue, catalogue)
    lacking = [name for name in named if profile_name not in catalogue[name].profiles]
    if not profile.needed and not options.workloads:
        named = [name for name in named if name not in lacking]
    known = [variant for name in named for variant in catalogue[name].variants]
    find_names("variant", options.variants, known)
    find_names("baseline", [options.baseline] if options.baseline else [], known)
    find_names("stack", options.stacks, [ALL, *(place.name for place in around.places)])

    notes = [f"{name} is left out: it has no profile {profile_name}" for name in lacking if name not in named]
    contests = [name for name in named if not catalogue[name].ceiling]
    found: dict[str, list[Cell]] = {}
    for name in contests:
        maker = CellMaker(name, catalogue[name], profile_name, options, around)
        found[name] = _make_contest(maker, options, profile, notes)
    if contests and not any(found.values()) and not _asks_for_ceiling(options, catalogue):
        raise Refusal("; ".join(["nothing to measure", *notes]))
    entered = {(cell.stack, cell.runner, cell.framework) for cells in found.values() for cell in cells}
    for name in (name for name, workload in catalogue.items() if workload.ceiling):
        maker = CellMaker(name, catalogue[name], profile_name, options, around)
        found[name] = _make_ceiling(maker, options, entered)

    overheads_s = {
        cell.id: tell_overhead(cell, catalogue, profile_name) for cells in found.values() for cell in cells
    }
    found = {name: cells for name, cells in found.items() if cells}
    if not found:
        raise Refusal("nothing to measure: no stack has a framework of what is asked for")
    # Ceilings first: their time is taken from the contests' bounds, so that the whole keeps within them.
    ceiling_s, contests = 0.0, [name for name in found if not catalogue[name].ceiling]
    for name in sorted(found, key=contests.count):
        bound_s = catalogue[name].profiles[profile_name].bound_s
        if options.budget_s is not None:
            found[name] = share_budget(found[name], options.budget_s, profile)
        else:
            ceilings_s = ceiling_s / len(contests) if name in contests else 0
            own_s = None if bound_s is None else bound_s * USED - ceilings_s
            found[name] = divide_bound(found[name], own_s, overheads_s, blocks, profile, around.cpus_usable)
        if name not in contests:
            ceiling_s += estimate_blocks(found[name], overheads_s, blocks)
    planned = [cell for cells in found.values() for cell in cells]
    return Plan(
        cells=planned,
        blocks=blocks,
        profile=profile_name,
        seed=around.seed,
        overheads_s=overheads_s,
        bound_s=sum_bounds(planned, catalogue, profile_name),
        cpus_usable=around.cpus_usable,
        notes=tuple(notes),
    )


def tell_overhead(cell: Cell, catalogue: Mapping[str, Workload], profile: str) -> float:
    """Seconds that a launch is expected to take outside warm-up and sampling."""
    own_s = catalogue[cell.workload].overhead_s(cell.variant, profile)
    return own_s + (CONTAINER_S if cell.runner == "docker" else 0)


def sum_bounds(cells: Sequence[Cell], catalogue: Mapping[str, Workload], profile: str) -> float | None:
    """Seconds that a profile allows the contests among ``cells``, ceilings included; the ceilings' own
    where there is no contest."""
    names = dict.fromkeys(cell.workload for cell in cells)
    contests = [name for name in names if not catalogue[name].ceiling]
    bounds = [catalogue[name].profiles[profile].bound_s for name in contests or names]
    return None if None in bounds else sum(filter(None, bounds))


def _asks_for_ceiling(options: Options, catalogue: Mapping[str, Workload]) -> bool:
    return any(
        name in options.workloads or not workload.variants.keys().isdisjoint(options.variants)
        for name, workload in catalogue.items()
        if workload.ceiling
    )


def _make_contest(maker: CellMaker, options: Options, profile: Profile, notes: list[str]) -> list[Cell]:
    workload, baseline = maker.workload, maker.baseline
    assert baseline is not None
    article = options.articles.get(workload.source or "")
    if options.articles and article is None:
        notes.append(f"{maker.name} is left out: no article is about it")
        return []
    own = maker.profile.variants or list(workload.variants)
    if article is not None:
        own = article.list_variants()
    variants = [
        name
        for name, entry in workload.variants.items()
        if (
            name in options.variants
            if options.variants
            else name in own and (entry.headline or not profile.headline_only or article is not None)
        )
    ]
    places = {name: _find_places(workload, name, options, maker.around) for name in variants}
    for name in variants:
        if not places[name]:
            needed = _tell_needs(workload, name)
            notes.append(f"{maker.name}: {name} is left out: no stack that is asked for has {needed}")
    variants = [name for name in variants if places[name]]
    if not variants:
        if not options.variants or options.workloads:
            notes.append(f"{maker.name}: no variant of it is asked for")
        return []
    if baseline not in variants:
        places[baseline] = _find_baseline_places(maker, baseline, options)
        variants.insert(0, baseline)
        notes.append(f"{maker.name}: {baseline} is added: the others are compared with it")
    cells = []
    own_editions: Sequence[Edition] = ("article",) if options.articles else profile.editions
    for edition in options.editions or own_editions:
        cells += _make_groups(maker, edition, variants, places)
    return cells


def _tell_needs(workload: Workload, variant: str) -> str:
    since = workload.variants[variant].since
    return ", ".join(
        f"{name} {since[name]} or newer" if name in since else name
        for name in sorted(workload.needs(variant))
    )


def _make_groups(
    maker: CellMaker, edition: Edition, variants: Sequence[str], places: Mapping[str, Sequence[Place]]
) -> list[Cell]:
    workload, baseline = maker.workload, maker.baseline
    assert baseline is not None
    if edition not in workload.editions:
        return []
    if not workload.has(baseline, edition):
        raise Refusal(
            f"{maker.name}: baseline {baseline} is not in the {edition} edition; give another --baseline"
        )
    cells = []
    for precision in maker.precisions:
        judge = places[baseline][0]
        cells += [maker.make(baseline, edition, precision, judge, role) for role in ("baseline", "a_a")]
        cells += [
            maker.make(variant, edition, precision, place, "variant")
            for variant in variants
            if workload.has(variant, edition)
            for place in places[variant]
            if (variant, place) != (baseline, judge)
        ]
    return cells


def _make_ceiling(maker: CellMaker, options: Options, entered: Entered) -> list[Cell]:
    """Make the ceilings of the stacks and frameworks that the contests enter; of all that are asked for
    where there is no contest."""
    variants = maker.workload.variants
    named = [name for name in variants if name in options.variants] or list(variants)
    return [
        maker.make(name, "fair", precision, place, "ceiling")
        for precision in maker.precisions
        for name in named
        for place in _find_ceiling_places(maker.workload, name, options, maker.around, entered)
    ]


def _find_places(workload: Workload, variant: str, options: Options, around: Surroundings) -> list[Place]:
    """Return the places that are asked for and have what a variant needs, the current ones first.

    Where none is asked for by name: the current ones, and of those the leanest; where all are asked for, or
    articles are replayed, older ones besides, of each set of versions the leanest, or the stack of the
    workload's article. Variants that belong together go where all of them can.
    """
    if options.stacks and ALL not in options.stacks:
        named = [place for place in around.places if place.name in options.stacks]
        able = [place for place in named if workload.runs_on(variant, place.versions)]
        return sorted(able, key=lambda place: not place.current)
    current = [place for place in around.places if place.current]
    if workload.together:
        every = frozenset[str]().union(*map(workload.needs, workload.variants))
        current = [place for place in current if every <= place.frameworks] or current
    able = [place for place in current if workload.runs_on(variant, place.versions)]
    older = [
        place for place in around.places if not place.current and workload.runs_on(variant, place.versions)
    ]
    if options.stacks:
        return _find_leanest(able) + _find_leanest(older)
    article = options.articles.get(workload.source or "")
    return _find_leanest(able) + [
        place for place in older if article is not None and place.name == article.stack
    ]


def _find_leanest(places: Sequence[Place]) -> list[Place]:
    """Leave out what holds all that another of the same runner holds, in the same versions, and more."""
    return [
        place
        for place in places
        if not any(
            other.runner == place.runner and other.versions.items() < place.versions.items()
            for other in places
        )
    ]


def _find_ceiling_places(
    workload: Workload, variant: str, options: Options, around: Surroundings, entered: Entered
) -> list[Place]:
    if not entered:
        return _find_places(workload, variant, options, around)
    framework = workload.variants[variant].framework
    places = [place for place in around.places if (place.name, place.runner, framework) in entered]
    # A ceiling is the best of all that a device was brought to: an article's stack adds only time.
    current = [place for place in places if place.current]
    return current if options.articles and current else places


def _find_baseline_places(maker: CellMaker, baseline: str, options: Options) -> list[Place]:
    able = [place for place in maker.around.places if maker.workload.runs_on(baseline, place.versions)]
    anywhere = sorted(able, key=lambda place: not place.current)
    places = _find_places(maker.workload, baseline, options, maker.around) or anywhere
    if not places:
        needed = _tell_needs(maker.workload, baseline)
        raise Refusal(f"{maker.name}: no stack has {needed}, which its baseline {baseline} needs")
    return places[:1]
