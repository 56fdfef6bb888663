"""A child process in a session of its own, waited for without polling, killed with all it started."""

import contextlib
import os
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.contract import Cause

GRACE_S = 2.0
"""Between the request to end and the kill."""


@dataclass(frozen=True)
class Ending:
    """How a process ended."""

    returncode: int
    """Negative: the signal that killed it."""
    timed_out: bool
    seconds: float
    """From start to end."""
    oom_kills: int = 0
    """Processes that the kernel killed for memory meanwhile: of a container, or anywhere on this host."""
    cause: Cause | None = None
    """Where it is known without its output: the engine did not start it, or lost it."""

    def is_clean(self) -> bool:
        """Tell whether the process ended by itself and found nothing wrong."""
        return self.returncode == 0 and not self.timed_out and self.cause is None


class Child:
    """One running process."""

    def __init__(self, command: Sequence[str], cwd: Path, environment: Mapping[str, str], log: Path) -> None:
        """Start ``command``; what it prints goes to the file ``log``.

        Raises:
            OSError: it cannot be started.
        """
        self._guard = threading.Lock()
        self._is_reaped = False
        self._kills = count_oom_kills()
        self._begin = time.monotonic()
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self, limit_s: float) -> Ending:
        """Wait for the end; after ``limit_s`` seconds, bring it about."""
        timed_out = not self._await_exit(limit_s)
        if timed_out:
            self.end()
        self._reap()
        seconds = time.monotonic() - self._begin
        return Ending(self._process.returncode, timed_out, seconds, count_oom_kills() - self._kills)

    def end(self) -> None:
        """Ask the process and all that it started to end, and kill what does not. Any thread may call."""
        self._signal(signal.SIGTERM)
        self._await_exit(GRACE_S)
        self._signal(signal.SIGKILL)

    def _await_exit(self, limit_s: float) -> bool:
        try:
            descriptor = os.pidfd_open(self._process.pid)
        except ProcessLookupError:
            return True
        except OSError:
            return self._await_by_polling(limit_s)
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            return bool(poll.poll(limit_s * 1000))
        finally:
            os.close(descriptor)

    def _await_by_polling(self, limit_s: float) -> bool:
        """For kernels before 5.3, and sandboxes that know no pidfd."""
        deadline = time.monotonic() + limit_s
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        with contextlib.suppress(ChildProcessError):
            while os.waitid(os.P_PID, self._process.pid, options) is None:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.01)
        return True

    def _reap(self) -> None:
        # While it is not reaped its number names its group and no other.
        self._signal(signal.SIGKILL)
        with self._guard:
            self._process.wait()
            self._is_reaped = True

    def _signal(self, number: signal.Signals) -> None:
        with self._guard:
            if not self._is_reaped:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, number)


def count_oom_kills(vmstat: Path = Path("/proc/vmstat")) -> int:
    """Count the processes that the kernel killed for memory since it started."""
    try:
        found = re.search(r"^oom_kill (\d+)$", vmstat.read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found.group(1)) if found else 0
