"""What a newcomer waits for: ``python -m benchmarks.first_run [--profile smoke]``.

Clones this checkout's commit into a temporary folder, runs ``nox -s bench-cpu -- --workload mlp`` there from
nothing (packages may be in uv's cache) and reads the figures that the session prints: seconds until the
environments stand, the whole session against the profile's bound, and the share of the blocks' time in
which no launch ran. Takes as long as the profile does.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from scripts.catalogue import load_catalogue
from scripts.errors import ExitStatus
from scripts.runs import ROOT

ENVIRONMENTS_BOUND_S = 60
IDLE_BOUND_PERCENT = 5.0


def main(arguments: Sequence[str]) -> ExitStatus:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", default="quick", choices=("smoke", "quick"))
    profile = parser.parse_args(arguments).profile
    bound_s = load_catalogue()["mlp"].profiles[profile].bound_s
    if bound_s is None:
        raise SystemExit(f"the profile {profile} has no bound to be held")
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder, "rematch")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        environments_s, total_s, idle_percent, status = watch(clone, profile)
    print(f"session ended with {status}")
    print(f"environments from nothing: {environments_s:.1f} s (at most {ENVIRONMENTS_BOUND_S})")
    print(f"then {total_s - environments_s:.0f} s (at most {bound_s:.0f})")
    print(f"no launch ran in {idle_percent} % of the blocks' time (at most {IDLE_BOUND_PERCENT})")
    holds = (
        status == ExitStatus.MEASURED
        and environments_s <= ENVIRONMENTS_BOUND_S
        and total_s - environments_s <= bound_s
        and idle_percent <= IDLE_BOUND_PERCENT
    )
    return ExitStatus.MEASURED if holds else ExitStatus.PARTLY_MEASURED


def watch(clone: Path, profile: str) -> tuple[float, float, float, int]:
    """Run the session in ``clone``.

    Returns:
        seconds until its run starts, seconds in all, per cent of idle time, exit status.
    """
    command = [
        sys.executable,
        "-m",
        "nox",
        "-s",
        "bench-cpu",
        "--",
        "--workload",
        "mlp",
        "--profile",
        profile,
    ]
    begin = time.monotonic()
    environments_s, idle_percent = float("inf"), float("inf")
    with subprocess.Popen(
        command, cwd=clone, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as session:
        assert session.stdout is not None
        for line in session.stdout:
            print(line, end="")
            if line.startswith("run: "):
                environments_s = time.monotonic() - begin
            elif found := re.search(r"no launch ran in ([\d.]+)%", line):
                idle_percent = float(found.group(1))
    return environments_s, time.monotonic() - begin, idle_percent, session.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
