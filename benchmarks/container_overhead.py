"""What a container adds to a launch: ``python -m benchmarks.container_overhead``.

The same small program, in turns, by this interpreter and in a container of the torch stack's image: seconds
that the host floor spends on each launch from the call to the return.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from scripts.catalogue import load_catalogue
from scripts.containers import DockerLauncher
from scripts.engine import connect
from scripts.host import describe_ground
from scripts.images import find_image
from scripts.launch import LocalLauncher, RunnerLauncher
from scripts.options import Options
from scripts.plan import make_plan
from scripts.record import find_surroundings
from scripts.runs import RunFolder
from scripts.stacks import load_stacks

LAUNCHES = 40
BOUND_S = 1.0
_CHILD = "pass"


def main() -> int:
    engine, stacks = connect(), load_stacks()
    image = find_image(engine, stacks["torch-2.15"], None)
    if image is None:
        print("torch-2.15 has no image that is up to date: `nox -s images`", file=sys.stderr)
        return 3
    ground, catalogue = describe_ground(), load_catalogue()
    options = Options(runners=("venv", "docker"), seed=0, stacks=("torch-2.15",))
    cells = make_plan(options, catalogue, find_surroundings("run", options, catalogue, stacks, ground)).cells
    pair = {cell.runner: cell for cell in cells}
    seconds: dict[str, list[float]] = {runner: [] for runner in pair}
    with tempfile.TemporaryDirectory() as name:
        folder = RunFolder(Path(name))
        program = ("-c", _CHILD)
        here = LocalLauncher(folder, {"torch-2.15": Path(sys.executable)}, ground.variables, program)
        there = DockerLauncher(folder, engine, {"torch-2.15": image.id}, ground.variables, program=program)
        launcher = RunnerLauncher(folder, {"venv": here, "docker": there})
        for _ in range(LAUNCHES):
            for runner, cell in pair.items():
                begin = time.perf_counter()
                launcher.launch(cell, limit_s=60)
                seconds[runner].append(time.perf_counter() - begin)
        launcher.close()
    added = [inside - outside for inside, outside in zip(seconds["docker"], seconds["venv"], strict=True)]
    for name, values in (*seconds.items(), ("added", added)):
        print(f"{name}: median {statistics.median(values):.3f} s, worst {max(values):.3f} s of {len(values)}")
    return int(statistics.median(added) > BOUND_S)


if __name__ == "__main__":
    sys.exit(main())
