"""The MNIST match in containers: without network, on a small set."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scripts.catalogue import load_catalogue
from scripts.cells import Place, Surroundings
from scripts.confinement import limit
from scripts.containers import DockerLauncher
from scripts.contract import Cell, Data
from scripts.engine import Engine
from scripts.host import describe_ground
from scripts.images import find_image
from scripts.options import Options
from scripts.plan import make_plan
from scripts.prepared import write_manifest
from scripts.runs import RunFolder
from scripts.stacks import load_stacks
from tests.scripts.small_sets import make_files, write_folder

STACK = load_stacks()["torch-2.15-tfds-4.9"]
PARAMETERS = {"load_images": 640, "train_images": 384, "validate_images": 100}
Make = Callable[..., DockerLauncher]


@pytest.fixture
def launcher(engine: Engine, folder: RunFolder) -> Iterator[Make]:
    image = find_image(engine, STACK, None)
    assert image is not None
    made: list[DockerLauncher] = []

    def make(**said: Any) -> DockerLauncher:
        made.append(DockerLauncher(folder, engine, {STACK.name: image.id}, [], **said))
        return made[-1]

    yield make
    for one in made:
        one.stop()
        one.close()


@pytest.fixture
def data(tmp_path: Path) -> Data:
    folder = write_folder(tmp_path / "set", make_files(640, 100))
    for path in (tmp_path, folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    made = write_manifest(folder, "small", "a small set")
    return Data("small", made.sha256, str(folder), "a small set", "derived-here")


def make_cell(variant: str, data: Data) -> Cell:
    place = Place(STACK.name, STACK.frameworks, True, "1" * 64, "docker")
    around = Surroundings("run", [place], describe_ground().workloads, None, 2, 1)
    options = Options(workloads=("mnist",), variants=(variant,), editions=("fair",), profile="smoke")
    cells = make_plan(options, load_catalogue(), around).cells
    cell = next(cell for cell in cells if cell.variant == variant and cell.role != "a_a")
    return replace(cell, data=data, parameters={**cell.parameters, **PARAMETERS})


def test_a_container_makes_tfdss_files_and_another_reads_them(launcher: Make, data: Data) -> None:
    """N4: offline, and the data are mounted read-only."""
    cell = make_cell("tfds-own-builder", data)
    made = launcher().derive(replace(cell, purpose="prepare"), 300, Path(data.folder, "derived-here"))
    assert made.result.status == "prepared", made.result.cause
    proved = launcher().launch(replace(cell, purpose="proof"), 300)
    assert proved.result.status == "proved", proved.result.cause
    measured = launcher().launch(cell, 300)
    assert measured.result.status == "measured", measured.result.cause


def test_more_workers_than_shared_memory_serves_are_a_failed_row_with_the_cause(
    launcher: Make, data: Data, engine: Engine
) -> None:
    """C4"""
    limits = limit(engine.facts)
    small = type(limits)(limits.memory_bytes, 1 << 20, limits.scratch_bytes, limits.processes)
    launched = launcher(limits=small).launch(make_cell("torchvision-workers-16", data), 300)
    assert launched.result.status == "failed"
    assert launched.result.cause is not None
    assert launched.result.cause.kind == "shared-memory", launched.result.cause
    assert "need more of /dev/shm" in launched.result.cause.message
    assert "Traceback" not in launched.result.cause.message
