"""Starts a bench session whose only stack is this interpreter and whose ground floor is the stand-in.

``python -m tests.scripts.drive_bench SCENARIO [options]``
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from scripts import bench, equipment, exclusion
from scripts.contract import Cell
from scripts.runners import HOST, Entrances, Needs
from tests.scripts import fake_ground


def enter(cells: Sequence[Cell], needs: Needs) -> Entrances:
    return Entrances({HOST: Path(sys.executable)})


if __name__ == "__main__":
    setattr(equipment, "enter_host", enter)  # noqa: B010 (a name that the module imports)
    # Not where a real run holds this machine's CPU, which would bar a test, or be barred by it.
    exclusion.SHARED = Path(sys.argv[1]).parent
    sys.exit(bench.main(["--runner", "host", *sys.argv[2:]], (fake_ground.__file__, sys.argv[1])))
