"""Why a launch died: from how its process ended and what it printed last."""

import re
import signal
from pathlib import Path

from scripts.advice import advise
from scripts.contract import Cause
from scripts.process import Ending

TAIL_BYTES = 8192
LINE = 300
_ADVISED = (
    "shared-memory",
    "driver",
    "driver-absent",
    "driver-mismatch",
    "fabric",
    "gpu-busy",
    "gpu-lost",
    "kernels",
    "disk",
    "out-of-memory",
)
"""Kinds of advice on what a launched process prints; the others are on what an engine does."""
_MEMORY = re.compile(
    r"out of memory|MemoryError|(?:can't|cannot) allocate memory|std::bad_alloc|RESOURCE_EXHAUSTED",
    re.IGNORECASE,
)


def diagnose(ending: Ending, log: Path, limit_s: float) -> Cause:
    """Name the cause of a launch's end without a result."""
    if ending.cause is not None:
        return ending.cause
    if ending.timed_out:
        return Cause("time-limit", f"no end within {limit_s:.0f} s; it was killed")
    tail = read_tail(log)
    if cause := recognise(tail):
        return cause
    if ending.returncode < 0:
        return _explain_signal(-ending.returncode, ending.oom_kills)
    last = tail[-1] if tail else "it printed nothing"
    if ending.oom_kills:
        return Cause("out-of-memory", f"the kernel killed a process for memory meanwhile: {last}")
    return Cause("exit", f"ended with status {ending.returncode} and no result: {last}")


def recognise(lines: list[str]) -> Cause | None:
    """Find what is known among the last lines of a process, the last of them first."""
    for line in reversed(lines):
        advice = advise(line)
        if advice is not None and advice.kind in _ADVISED:
            return Cause(advice.kind, f"{advice.message} ({line})")
        if _MEMORY.search(line):
            return Cause("out-of-memory", f"out of memory: {line}")
    return None


def read_tail(log: Path) -> list[str]:
    """Return the last lines that a launch printed, blank ones apart."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
            content = file.read().decode(errors="replace")
    except OSError:
        return []
    lines = ("".join(filter(str.isprintable, line)).strip() for line in content.splitlines())
    return [line[:LINE] for line in lines if line]


def _explain_signal(number: int, oom_kills: int) -> Cause:
    try:
        name, words = signal.Signals(number).name, signal.strsignal(number) or "signal"
    except ValueError:
        name, words = f"signal {number}", "signal"
    if number == signal.SIGKILL:
        if oom_kills:
            return Cause("out-of-memory", "killed by SIGKILL while the kernel was out of memory")
        return Cause("signal", "killed by SIGKILL (out of memory, or by hand)")
    if number == signal.SIGBUS:
        return Cause("shared-memory", "killed by SIGBUS (bus error): shared memory is probably too small")
    return Cause("signal", f"killed by {name} ({words.lower()})")
