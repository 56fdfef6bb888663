"""How far from the hardware: the best rates that ceiling cells reached, and shares of them."""

from collections.abc import Iterable, Mapping
from statistics import median

from scripts.observation import Observation

Ceilings = Mapping[tuple[str, str, str, str], float]
"""Best rate, in work a second, by run, device, precision and what is counted."""


def find_ceilings(observations: Iterable[Observation]) -> dict[tuple[str, str, str, str], float]:
    """Find the largest rates over frameworks, sizes, launches and samples: a ceiling is what this machine
    can do, so its luckiest sample is the one that counts."""
    best: dict[tuple[str, str, str, str], float] = {}
    for seen in observations:
        if seen.role != "ceiling" or seen.timing is None:
            continue
        for counted, amount in seen.timing.work.items():
            key = seen.run, seen.asked, seen.conditions.precision, counted
            best[key] = max(best.get(key, 0.0), amount / seen.timing.best_s)
    return best


def compute_share(launches: Iterable[Observation], ceilings: Ceilings) -> float | None:
    """Median over launches of the rate as per cent of its own run's ceiling: of arithmetic where the
    work's operations are counted, else of copying."""
    shares = []
    for seen in launches:
        if seen.timing is None:
            continue
        counted = "flop" if "flop" in seen.timing.work else "bytes"
        ceiling = ceilings.get((seen.run, seen.asked, seen.conditions.precision, counted))
        if ceiling and counted in seen.timing.work:
            shares.append(100 * seen.timing.work[counted] / seen.timing.median_s / ceiling)
    return median(shares) if shares else None
