"""Which observations may be compared: like with like."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from scripts.comparison import LeftOutFile
from scripts.observation import Conditions, Contender, Contest, Observation

NAMES = {
    "workload_sha256": "the workload's content hash",
    "parameters": "a parameter",
    "data_sha256": "the data's hash",
    "precision": "precision",
    "device": "device",
    "model": "device model",
    "driver": "driver",
    "host": "host",
    "threads": "number of threads",
    "protocol": "time to sample",
}


class Draft:
    """A group before it is judged: launches by row, each block once."""

    def __init__(self, contest: Contest, conditions: Conditions, baseline: Contender | None) -> None:
        self.contest = contest
        self.conditions = conditions
        self.baseline = baseline
        self.wanted: str | None = None
        """The variant that should be the baseline."""
        self.rows: dict[Contender, list[Observation]] = defaultdict(list)


def complete(observations: Iterable[Observation], hosts: Mapping[str, str]) -> list[Observation]:
    """Fill in what a launch that died could not say, and a proof does not, from its run: host, device
    model, driver, and threads, of which a proof has its own.

    ``hosts`` gives the host of a run by its record.
    """
    observations = list(observations)
    known: dict[tuple[str, str], Conditions] = {}
    run_hosts = dict(hosts)
    for seen in observations:
        if seen.timing is not None:
            known.setdefault((seen.run, seen.asked), seen.conditions)
        if seen.conditions.host is not None:
            run_hosts.setdefault(seen.run, seen.conditions.host)
    return [
        seen if seen.timing is not None else _fill(seen, known.get((seen.run, seen.asked)), run_hosts)
        for seen in observations
    ]


def _fill(seen: Observation, known: Conditions | None, hosts: Mapping[str, str]) -> Observation:
    said = seen.conditions
    filled = said._replace(host=said.host or hosts.get(seen.run))
    if known is not None:
        threads = known.threads if seen.is_proof else said.threads
        filled = filled._replace(model=known.model, driver=known.driver, threads=threads)
    return seen._replace(conditions=filled)


def group(observations: Iterable[Observation], baseline: str | None) -> tuple[list[Draft], list[LeftOutFile]]:
    """Put launches of the same contest, conditions and baseline together.

    The baseline is found run by run, as the plan marked it, or the variant named ``baseline`` where a
    run has it. Blocks pair within a run only, so that runs with another baseline stay apart.

    Returns:
        the groups, and the files that say again what another file says.
    """
    places: dict[tuple[str, Contest, Conditions], list[Observation]] = defaultdict(list)
    for seen in observations:
        places[seen.run, seen.contest, seen.conditions].append(seen)
    drafts: dict[tuple[object, ...], Draft] = {}
    left_out = []
    for (_, contest, conditions), place in places.items():
        original = _find_original(place)
        chosen = _find_named(place, baseline, original) if baseline else original
        key = contest, conditions, chosen
        draft = drafts.setdefault(key, Draft(*key))
        draft.wanted = draft.wanted or (chosen.variant if chosen else place[0].baseline)
        taken: dict[tuple[Contender, int], str] = {}
        for seen in place:
            first = taken.setdefault((seen.contender, seen.block), seen.file)
            if first == seen.file:
                draft.rows[seen.contender].append(seen)
            else:
                left_out.append(LeftOutFile(seen.file, f"says again what {first} says of block {seen.block}"))
    return list(drafts.values()), left_out


def _find_original(place: list[Observation]) -> Contender | None:
    return min((seen.contender for seen in place if seen.role == "baseline"), key=_order, default=None)


def _find_named(place: list[Observation], name: str, original: Contender | None) -> Contender | None:
    if original is not None and original.variant == name:
        return original
    named = {seen.contender for seen in place if seen.contender.variant == name and not seen.contender.a_a}
    return min(named, key=_order, default=original)


def _order(contender: Contender) -> tuple[str, ...]:
    return tuple(str(field) for field in contender)


def explain_absence(draft: Draft, drafts: Iterable[Draft]) -> str:
    """Say why a group has no baseline: what differs from the nearest group that has it."""
    siblings = [
        other
        for other in drafts
        if other.contest == draft.contest and other.baseline and other.baseline.variant == draft.wanted
    ]
    if not siblings:
        return f"the baseline {draft.wanted} was not measured"
    differing = [_find_differing(draft.conditions, other.conditions) for other in siblings]
    nearest = min(differing, key=len)
    if not nearest:
        return f"the baseline {draft.wanted} was measured in another run: no block holds both"
    return f"differs from the baseline {draft.wanted} in {'; in '.join(nearest)}"


def _find_differing(here: Conditions, there: Conditions) -> list[str]:
    words = []
    for field, mine, other in zip(Conditions._fields, here, there, strict=True):
        if mine == other:
            continue
        if field == "parameters":
            words += _compare_parameters(str(mine), str(other))
        else:
            words.append(f"{NAMES[field]}: {_shorten(field, mine)} here, {_shorten(field, other)} there")
    return words


def _compare_parameters(here: str, there: str) -> list[str]:
    mine, other = msgspec.json.decode(here), msgspec.json.decode(there)
    return [
        f"parameter {name}: {mine.get(name)} here, {other.get(name)} there"
        for name in sorted(mine.keys() | other.keys())
        if mine.get(name) != other.get(name)
    ]


def _shorten(field: str, value: object) -> str:
    text = "unknown" if value is None else str(value)
    return text[:12] if field.endswith("sha256") and value is not None else text
