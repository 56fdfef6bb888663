"""Why a launch died: from how its process ended and what it printed last."""

import re
import signal
from pathlib import Path

from scripts.contract import Cause
from scripts.process import Ending

TAIL_BYTES = 8192
LINE = 300

_PATTERNS = (
    (
        "shared-memory",
        re.compile(r"insufficient shared memory|\(shm\)|bus error", re.IGNORECASE),
        "shared memory too small for loader workers",
    ),
    (
        "out-of-memory",
        re.compile(
            r"out of memory|MemoryError|(?:can't|cannot) allocate memory|std::bad_alloc|RESOURCE_EXHAUSTED",
            re.IGNORECASE,
        ),
        "out of memory",
    ),
)


def diagnose(ending: Ending, log: Path, limit_s: float, oom_kills: int) -> Cause:
    """Name the cause of a launch's end without a result.

    Args:
        oom_kills: processes that the kernel killed for memory meanwhile, see ``count_oom_kills``.
    """
    if ending.timed_out:
        return Cause("time-limit", f"no end within {limit_s:.0f} s; it was killed")
    tail = read_tail(log)
    for kind, pattern, words in _PATTERNS:
        if found := [line for line in tail if pattern.search(line)]:
            return Cause(kind, f"{words}: {found[-1]}")
    if ending.returncode < 0:
        return _explain_signal(-ending.returncode, oom_kills)
    last = tail[-1] if tail else "it printed nothing"
    return Cause("exit", f"ended with status {ending.returncode} and no result: {last}")


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


def count_oom_kills(vmstat: Path = Path("/proc/vmstat")) -> int:
    """Count the processes that the kernel killed for memory since it started."""
    try:
        found = re.search(r"^oom_kill (\d+)$", vmstat.read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found.group(1)) if found else 0


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
