"""The engine of this host, an image with Python, and launches of programs in it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from scripts.confinement import Limits, limit
from scripts.containers import DockerLauncher
from scripts.contract import Cell, Result
from scripts.engine import Engine, connect
from scripts.runs import RunFolder
from tests.scripts.fake_ground import answer
from tests.scripts.plans import folder_in, plan

CELL = plan(workloads=("toy",), runners=("docker",)).cells[0]
ANSWERS = {
    purpose: answer(msgspec.to_builtins(replace(CELL, purpose=purpose))) for purpose in ("measure", "proof")
}
GIB, MIB = 1 << 30, 1 << 20

PRELUDE = """
import ctypes, json, os, signal, socket, subprocess, sys, time
from pathlib import Path
arguments = dict(zip(sys.argv[2::2], sys.argv[3::2]))
cell = json.loads(Path(arguments["--cell"]).read_text())
result = Path(arguments["--result"])
def answer():
    result.write_text(json.dumps(dict(json.loads(sys.argv[1])[cell["purpose"]], cell=cell)))
def tell(**facts):
    print("TOLD " + json.dumps(facts))
def attempt(action):
    try:
        return str(action())
    except OSError as error:
        return error.strerror
"""


class Ended(NamedTuple):
    """A launch that came to its end."""

    result: Result
    log: str
    seconds: float

    @property
    def told(self) -> dict[str, Any]:
        """What the program told."""
        lines = [line for line in self.log.splitlines() if line.startswith("TOLD ")]
        assert lines, self.log
        return dict(json.loads(lines[-1].removeprefix("TOLD ")))

    @property
    def cause(self) -> tuple[str, str]:
        """Kind and message."""
        assert self.result.cause is not None, self.log
        return self.result.cause.kind, self.result.cause.message


Make = Callable[..., DockerLauncher]
Enter = Callable[..., Ended]


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    connected = connect()
    yield connected
    connected.api.close()


@pytest.fixture(scope="session")
def small_image(engine: Engine) -> str:
    """An image with Python: a local base, or else a stack's."""
    for label in ("rematch.local-base", "rematch.stack"):
        if found := engine.api.images(filters={"label": label}):
            return str(min(found, key=lambda image: image["Size"])["Id"])
    pytest.fail("no image with Python: make one by `nox -s images -- --base local`")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return folder_in(tmp_path)


@pytest.fixture
def limits(engine: Engine) -> Limits:
    """So that a program which takes all it can get leaves the host alone."""
    return Limits(GIB, 64 * MIB, 32 * MIB, limit(engine.facts).processes)


@pytest.fixture
def make(folder: RunFolder, engine: Engine, small_image: str, limits: Limits) -> Iterator[Make]:
    """Make launchers of programs in containers."""
    made: list[DockerLauncher] = []

    def launcher(code: str, **said: Any) -> DockerLauncher:
        program = ("-c", PRELUDE + code, json.dumps(ANSWERS))
        said = {"limits": limits, "images": {CELL.stack: small_image}, **said}
        images = said.pop("images")
        made.append(DockerLauncher(folder, engine, images, ["OMP_", "TORCH_"], program=program, **said))
        return made[-1]

    yield launcher
    for one in made:
        one.stop()
        one.close()


@pytest.fixture
def enter(make: Make, folder: RunFolder) -> Enter:
    """Launch a program and wait for its end."""

    def run(code: str, cell: Cell = CELL, limit_s: float = 60, **said: Any) -> Ended:
        launched = make(code, **said).launch(cell, limit_s)
        log = folder.log(cell.id, None if cell.purpose == "proof" else cell.block)
        return Ended(launched.result, log.read_text(), launched.seconds)

    return run
