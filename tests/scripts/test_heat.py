"""Where the GPU's own state may be what a ratio shows."""

from pathlib import Path
from typing import Any

from scripts.contract import GpuReading, GpuWatch
from scripts.heat import compare_heat, take_figures
from tests.scripts import made_runs

BEFORE = {"sm_clock_mhz": 345, "temperature_c": 40.0, "power_w": 70.0}


def make_watch(clock: float, throttled_s: float) -> dict[str, Any]:
    return {
        "uuid": "GPU-1",
        "before": BEFORE,
        "after": BEFORE,
        "mean_power_w": 300.0,
        "sm_clock_mhz": clock,
        "throttled_s": {"power cap": throttled_s},
    }


def test_a_watch_is_reduced_to_what_the_gpu_told() -> None:
    assert take_figures(None) == {}
    silent = GpuWatch("GPU-1", GpuReading(), GpuReading())
    assert take_figures(silent) == {}
    watch = GpuWatch("GPU-1", GpuReading(temperature_c=40), GpuReading(), 300, 1700, {"a": 1.0, "b": 0.5})
    assert take_figures(watch) == {
        "gpu_clock_mhz": 1700.0,
        "gpu_temperature_c": 40.0,
        "gpu_power_w": 300.0,
        "gpu_throttled_s": 1.5,
    }


def test_a_small_difference_is_silent_and_a_large_one_is_told() -> None:
    assert compare_heat({"gpu_clock_mhz": 1700}, {"gpu_clock_mhz": 1730}) == []
    assert compare_heat({"gpu_clock_mhz": 1700}, {}) == []
    (told,) = compare_heat({"gpu_clock_mhz": 1500}, {"gpu_clock_mhz": 1700})
    assert "1500 MHz here and at 1700 MHz" in told
    (told,) = compare_heat({"gpu_temperature_c": 70}, {"gpu_temperature_c": 45})
    assert "70 C here and at 45 C" in told
    (told,) = compare_heat({"gpu_throttled_s": 2.0}, {"gpu_throttled_s": 0.0})
    assert "held down for 2 s" in told


def test_a_row_that_ran_at_another_clock_than_its_baseline_says_so(tmp_path: Path) -> None:
    """T12"""
    for block in range(5):
        for variant, role, clock in (
            ("torch-eager", "baseline", 1700),
            ("tensorflow-graph", "variant", 1500),
        ):
            launch = made_runs.make_launch(variant, block, 1.0, role)
            launch["gpu"] = make_watch(clock, 0.0)
            made_runs.write(tmp_path / "run", launch)
            if block == 0:
                made_runs.write(tmp_path / "run", made_runs.make_proof(launch))
    from scripts.collect import collect

    (group,) = [one for one in collect([tmp_path / "run"]).groups if one.measure == "step"]
    rows = {row.variant: row for row in group.rows}
    assert rows["tensorflow-graph"].figures["gpu_clock_mhz"] == 1500
    assert any("1500 MHz here" in warning for warning in rows["tensorflow-graph"].warnings)
    assert not any("MHz" in warning for warning in rows["torch-eager"].warnings)
