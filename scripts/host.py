"""The machine at hand, described by the ground floor, so that both floors describe it alike."""

import subprocess
import sys

import msgspec

from scripts import contract
from scripts.errors import ExitStatus, Refusal
from scripts.runs import ROOT


class _Description(msgspec.Struct):
    machine: contract.Machine


def describe_machine() -> contract.Machine:
    """Describe this machine by running the ground floor's own program.

    Raises:
        Refusal: it did not answer.
    """
    command = [sys.executable, "-m", "workloads", "--describe"]
    try:
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=True)
        return msgspec.json.decode(answer.stdout, type=_Description).machine
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines() or [
            f"exit status {error.returncode}"
        ]
        reason = said[-1]
    except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError) as error:
        reason = str(error)
    raise Refusal(f"python -m workloads --describe: {reason}", ExitStatus.HOST_CANNOT)
