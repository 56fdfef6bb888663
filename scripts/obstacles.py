"""Why a row, though measured, gets no ratio."""

from collections.abc import Iterable, Mapping, Sequence

from scripts.comparison import ProofState
from scripts.contract import Scalar
from scripts.observation import Contender, Observation, Timing

Proofs = Mapping[tuple[object, ...], Observation]
"""The proof of each subject, the one that fails where there are several."""


def collect_proofs(observations: Iterable[Observation]) -> dict[tuple[object, ...], Observation]:
    proofs: dict[tuple[object, ...], Observation] = {}
    for seen in observations:
        if seen.is_proof and (seen.status != "proved" or seen.subject() not in proofs):
            proofs[seen.subject()] = seen
    return proofs


def judge_proof(launches: Iterable[Observation], proofs: Proofs) -> tuple[ProofState, str | None]:
    """Tell whether all launches of a row did the work that was proved, and if not, why."""
    state: ProofState = "holds"
    cause: str | None = None
    for launch in launches:
        if not launch.losses_hold:
            return (
                "fails",
                f"block {launch.block}: {launch.cause or 'the first losses differ from the trajectory'}",
            )
        proof = proofs.get(launch.subject())
        if proof is None:
            state, cause = "absent", "there is no proof of it"
        elif proof.status == "skipped":
            state, cause = "absent", f"its proof was skipped: {proof.cause}"
        elif proof.status != "proved":
            return "fails", proof.cause
    return state, cause


def find_figures(launches: Iterable[Observation], proofs: Proofs) -> Mapping[str, float]:
    """Return what the proof of a row found beside the same work."""
    return next((proofs[launch.subject()].found for launch in launches if launch.subject() in proofs), {})


def find_change(timings: Sequence[Timing]) -> str | None:
    """Say what differs between launches of the same row, which then are none."""
    first = timings[0]
    for other in timings[1:]:
        if other.settings is not first.settings:
            for name in sorted(first.settings.keys() | other.settings.keys()):
                mine, theirs = first.settings.get(name), other.settings.get(name)
                if mine != theirs:
                    return f"its own launches differ in {name}: {mine} and {theirs}"
        if other.work is not first.work:
            return f"its own launches differ in work: {first.work} and {other.work}"
        if other.packages != first.packages:
            return "its own launches had different packages"
    return None


def find_clashes(timings: Mapping[Contender, Timing], baseline: Contender) -> dict[Contender, str]:
    """Say which rows may not stand beside others: unequal precision, and Keras of two major versions in what
    is not told apart by a pinned stack."""
    judge = timings[baseline].settings
    versions = {row: str(seen.settings["keras"]) for row, seen in timings.items() if "keras" in seen.settings}
    clashes = {}
    for row, timing in timings.items():
        here, there = timing.settings.get("tf32"), judge.get("tf32")
        if here is not None and there is not None and here != there:
            clashes[row] = f"differs from the baseline in precision: tf32 is {here} here, {there} there"
        mixed = [other for other in versions if row in versions and _mixes(versions, row, other)]
        if baseline in mixed:
            clashes[row] = f"Keras {versions[row]} here and {versions[baseline]} in the baseline"
        elif mixed and baseline not in versions:
            said = sorted({versions[row], *(versions[other] for other in mixed)})
            clashes[row] = f"Keras {' and '.join(said)} are mixed in one comparison"
    return clashes


def _mixes(versions: Mapping[Contender, str], row: Contender, other: Contender) -> bool:
    """Tell whether two rows have Keras of two major versions and are not each a pinned stack's own."""
    is_told = bool(row.lock and other.lock) and row.stack != other.stack
    return _major(versions[row]) != _major(versions[other]) and not is_told


def find_differences(baseline: Timing, row: Timing) -> dict[str, tuple[Scalar, Scalar]]:
    """Compare settings: those whose names have no dot, and one framework's own where both have it; and
    the work."""
    differs = {}
    for name in sorted(baseline.settings.keys() | row.settings.keys()):
        mine, theirs = row.settings.get(name), baseline.settings.get(name)
        shared = name in row.settings and name in baseline.settings
        if mine != theirs and (shared or "." not in name):
            differs[name] = theirs, mine
    for name in sorted(baseline.work.keys() | row.work.keys()):
        if baseline.work.get(name) != row.work.get(name):
            differs[f"work.{name}"] = baseline.work.get(name), row.work.get(name)
    return differs


def _major(version: str) -> str:
    return version.partition(".")[0]
