"""What became of the GPU while rows were measured, and where that differs between them."""

from collections.abc import Mapping

from scripts.contract import GpuWatch

CLOCK, TEMPERATURE, POWER, THROTTLED = (
    "gpu_clock_mhz", "gpu_temperature_c", "gpu_power_w", "gpu_throttled_s",
)  # fmt: skip
CLOCK_SHARE = 0.03
"""Clocks move in steps of some 15 MHz of 1500; three per cent are more than one step, and more than the A/A
pair of a quiet machine shows."""
HEAT_C = 10.0
"""Between a GPU at rest and one at work lie some 30 degrees; a third of that is no like start."""


def take_figures(watch: GpuWatch | None) -> dict[str, float]:
    """Reduce the watch of one launch to figures, those that the GPU told."""
    if watch is None:
        return {}
    figures = {
        CLOCK: watch.sm_clock_mhz,
        TEMPERATURE: watch.before.temperature_c,
        POWER: watch.mean_power_w,
        THROTTLED: sum(watch.throttled_s.values()) if watch.throttled_s else None,
    }
    return {name: float(value) for name, value in figures.items() if value is not None}


def compare_heat(row: Mapping[str, float], baseline: Mapping[str, float]) -> list[str]:
    """Say where the medians of a row's launches differ from the baseline's so that a ratio may be the
    GPU's state rather than the framework's work."""
    warnings = []
    here, there = row.get(CLOCK), baseline.get(CLOCK)
    if here and there and abs(here / there - 1) > CLOCK_SHARE:
        warnings.append(f"the GPU ran at {here:.0f} MHz here and at {there:.0f} MHz in the baseline")
    here, there = row.get(TEMPERATURE), baseline.get(TEMPERATURE)
    if here is not None and there is not None and abs(here - there) > HEAT_C:
        warnings.append(f"launches began at {here:.0f} C here and at {there:.0f} C in the baseline")
    held, other = row.get(THROTTLED, 0.0), baseline.get(THROTTLED, 0.0)
    if held or other:
        warnings.append(
            f"the GPU's clocks were held down for {held:.2g} s of a launch here, and for {other:.2g} s in "
            "the baseline"
        )
    return warnings
