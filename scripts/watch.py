"""The state of a GPU around each launch, read by the host.

Nothing is read while a launch runs: a thread that polls would take time from what it watches. What happened
meanwhile is taken from counts that the GPU keeps by itself.
"""

import math
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from scripts.contract import Cause, Cell, GpuReading, GpuWatch, Result
from scripts.launch import Launched, Launcher
from scripts.nvml import Counters, Nvml, NvmlUnavailable
from scripts.runs import write_whole

GONE = ("lost", "reset")
"""Reasons of a silent NVML that explain why a launch failed."""


class Moment(NamedTuple):
    """What is known of a GPU at one time."""

    reading: GpuReading
    counters: Counters
    monotonic_s: float
    unix_us: int


class WatchedLauncher:
    """Launches by another launcher, and adds to each measured result what became of the GPU meanwhile."""

    def __init__(self, inner: Launcher, nvml: Nvml, uuid: str) -> None:
        """
        Args:
            uuid: of the GPU that all launches use.
        """
        self.folder = inner.folder
        self._inner = inner
        self._nvml = nvml
        self._uuid = uuid

    def launch(self, cell: Cell, limit_s: float) -> Launched:
        """As in ``Launcher``. That NVML is silent fails no launch: it is a warning, and the cause of one that
        failed because its GPU is gone.

        Raises:
            Refusal: the result cannot be written.
        """
        if cell.purpose == "proof":
            # Untimed, and side by side with others: what the GPU did is nobody's own.
            launched = self._inner.launch(cell, limit_s)
            if launched.result.status != "failed":
                return launched
            return self._keep(launched, self._explain(launched.result, self._look()))
        before = self._look()
        launched = self._inner.launch(cell, limit_s)
        after = self._look()
        result = self._explain(launched.result, after)
        if isinstance(before, Moment) and isinstance(after, Moment):
            clocks = self._read_clocks(result, before, after)
            result = replace(result, gpu=make_watch(self._uuid, before, after, clocks))
        elif result.status == "measured":
            fault = before if isinstance(before, NvmlUnavailable) else after
            warning = f"the GPU's state is not known: {fault}"
            result = replace(result, warnings=[*result.warnings, warning])
        return self._keep(launched, result)

    def prime(self, cell: Cell, limit_s: float) -> Launched:
        """As in ``Launcher``, unwatched."""
        return self._inner.prime(cell, limit_s)

    def derive(self, cell: Cell, limit_s: float, target: Path) -> Launched:
        """As in ``Launcher``, unwatched."""
        return self._inner.derive(cell, limit_s, target)

    def stop(self) -> None:
        """As in ``Launcher``."""
        self._inner.stop()

    def close(self) -> None:
        """As in ``Launcher``."""
        self._inner.close()

    def _look(self) -> Moment | NvmlUnavailable:
        try:
            reading = self._nvml.read_state(self._uuid)
            counters = self._nvml.read_counters(self._uuid)
        except NvmlUnavailable as fault:
            return fault
        return Moment(reading, counters, time.monotonic(), time.time_ns() // 1000)

    def _explain(self, result: Result, seen: Moment | NvmlUnavailable) -> Result:
        if result.status != "failed" or isinstance(seen, Moment) or seen.reason not in GONE:
            return result
        said = f"; the launch said: {result.cause.message}" if result.cause else ""
        return replace(result, cause=Cause("device", f"{seen.message}{said}"))

    def _read_clocks(self, result: Result, before: Moment, after: Moment) -> list[int]:
        """Read the clocks of the launch's end, where it computed: imports and compilers leave a GPU idle."""
        since_us = before.unix_us
        if result.phases is not None:
            computing_s = result.phases.warmup_s + result.phases.sampling_s
            since_us = max(since_us, after.unix_us - round(computing_s * 1e6))
        try:
            return self._nvml.read_clocks(self._uuid, since_us)
        except NvmlUnavailable:
            return []

    def _keep(self, launched: Launched, result: Result) -> Launched:
        if result is launched.result:
            return launched
        block = None if result.cell.purpose == "proof" else result.cell.block
        write_whole(self.folder.result(result.cell.id, block), msgspec.json.encode(result))
        return Launched(result, launched.seconds)


def make_watch(uuid: str, before: Moment, after: Moment, clocks_mhz: list[int]) -> GpuWatch:
    """Say what became of a GPU between two moments.

    A count that went back, because the driver was loaded again in between, says nothing.

    Args:
        clocks_mhz: SM clocks in between.
    """
    seconds = after.monotonic_s - before.monotonic_s
    first, last = before.counters, after.counters
    power = None
    if first.energy_mj is not None and last.energy_mj is not None and last.energy_mj >= first.energy_mj:
        power = (last.energy_mj - first.energy_mj) / 1000 / seconds if seconds > 0 else None
        # Of hardly any time it is beyond what is a number.
        power = power if power is not None and math.isfinite(power) else None
    throttled = {
        reason: (count - first.throttled_ns[reason]) / 1e9
        for reason, count in last.throttled_ns.items()
        if count >= first.throttled_ns.get(reason, count + 1)
    }
    return GpuWatch(
        uuid=uuid,
        before=before.reading,
        after=after.reading,
        mean_power_w=power,
        sm_clock_mhz=float(median(clocks_mhz)) if clocks_mhz else None,
        throttled_s=throttled,
    )
