"""Which process a container belongs to, and whether that process still lives."""

import os
from pathlib import Path
from typing import Literal

Life = Literal["alive", "gone", "unknown"]
_PROC = Path("/proc")
_START = 19
"""Of the fields of ``/proc/PID/stat`` after the name: when the process started, in ticks since boot."""


def name_owner(pid: int | None = None) -> str:
    """Name a living process, this one by default, so that no other is taken for it: its number within its
    namespace, its start, and the boot of the kernel that numbers it."""
    number = os.getpid() if pid is None else pid
    started = _read_start(number)
    return f"{number}-{started}-{_read_space()}"


def find_life(owner: str) -> Life:
    """Tell whether the process that ``name_owner`` named still lives; ``unknown`` for one of another
    machine, boot or namespace, which cannot be seen from here."""
    number, _, rest = owner.partition("-")
    started, _, space = rest.partition("-")
    if not number.isdigit() or space != _read_space():
        return "unknown"
    return "alive" if _read_start(int(number)) == started else "gone"


def _read_start(pid: int) -> str | None:
    try:
        content = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name, in parentheses, may hold anything.
    return content.rpartition(")")[2].split()[_START]


def _read_space() -> str:
    boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}-{(_PROC / 'self/ns/pid').stat().st_ino}"
