"""What the host floor costs: ``python -m benchmarks.launch_path``.

Two figures, each over fresh processes: seconds that the launch path takes to import, and seconds a launch
that the host floor spends outside the child, with a child that copies a result that is ready.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scripts.catalogue import load_catalogue
from scripts.host import describe_ground
from scripts.launch import LocalLauncher
from scripts.options import Options
from scripts.plan import make_plan
from scripts.record import find_surroundings
from scripts.runs import ROOT, RunFolder

IMPORTS = 15
LAUNCHES = 100
IMPORT_BOUND_S = 0.3
LAUNCH_BOUND_S = 0.2
_IMPORT = "import time; begin = time.perf_counter(); import scripts.bench; print(time.perf_counter() - begin)"
# Answers with a failure, which the host floor completes and rewrites: the longest way that it has.
_CHILD = """
import json, sys
place = dict(zip(sys.argv[1::2], sys.argv[2::2]))
with open(place["--cell"]) as file:
    cell = json.load(file)
cause = {"kind": "exception", "message": "trivial"}
with open(place["--result"], "w") as file:
    result = {"schema": 1, "cell": cell, "status": "failed", "started": "", "duration_s": 0, "cause": cause}
    json.dump(result, file)
"""


def measure_import() -> list[float]:
    """Seconds to import the launch path, in processes of their own."""
    command = [sys.executable, "-c", _IMPORT]
    return [
        float(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
        for _ in range(IMPORTS)
    ]


def measure_launches() -> list[float]:
    """Seconds a launch outside the child."""
    ground = describe_ground()
    options = Options(runners=("host",), seed=0)
    catalogue = load_catalogue()
    cell = make_plan(options, catalogue, find_surroundings("run", options, catalogue, {}, ground)).cells[0]
    outside_s = []
    with tempfile.TemporaryDirectory() as folder:
        launcher = LocalLauncher(
            RunFolder(Path(folder)), {cell.stack: Path(sys.executable)}, ground.variables, ("-c", _CHILD)
        )
        for _ in range(LAUNCHES):
            begin = time.perf_counter()
            launched = launcher.launch(cell, limit_s=60)
            outside_s.append(time.perf_counter() - begin - launched.seconds)
            assert launched.result.cause is not None
            assert launched.result.cause.message == "trivial", launched.result.cause
        launcher.close()
    return outside_s


def main() -> int:
    missed = 0
    for name, values, bound_s in (
        ("import", measure_import(), IMPORT_BOUND_S),
        ("launch, outside the child", measure_launches(), LAUNCH_BOUND_S),
    ):
        middle_s = statistics.median(values)
        missed += middle_s > bound_s
        print(
            f"{name}: median {middle_s:.4f} s, worst {max(values):.4f} s of {len(values)}; bound {bound_s} s"
        )
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
