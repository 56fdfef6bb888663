"""The ground floor's own account of this machine and of itself, so that both floors tell one story."""

import subprocess
import sys

import msgspec

from scripts.contract import Machine, Sha256
from scripts.errors import ExitStatus, Refusal
from scripts.runs import ROOT

BUSY = 0.25
"""Load for each usable CPU above which other work disturbs the timings."""


class GroundFloor(msgspec.Struct, frozen=True):
    """What ``python -m workloads --describe`` answers."""

    machine: Machine
    has_bfloat16: bool
    """Whether the CPU computes in it rather than emulates it."""
    nvidia_driver: str | None
    """Version of the driver that is loaded."""
    workloads: dict[str, Sha256]
    """Content hashes, by workload: what each launch computes again before it runs."""
    variables: list[str]
    """Beginnings of the names of environment variables that can change a figure."""


def describe_ground() -> GroundFloor:
    """Ask the ground floor what it stands on.

    Raises:
        Refusal: it did not answer.
    """
    command = [sys.executable, "-m", "workloads", "--describe"]
    try:
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=True)
        return msgspec.json.decode(answer.stdout, type=GroundFloor)
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines() or [
            f"exit status {error.returncode}"
        ]
        reason = said[-1]
    except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError) as error:
        reason = str(error)
    raise Refusal(f"python -m workloads --describe: {reason}", ExitStatus.HOST_CANNOT)
