"""What a run is launched with, with stand-ins for the engine and the driver."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from scripts import images
from scripts.contract import Cell, Run
from scripts.engine import Engine
from scripts.equipment import Equipment, check_resumable, find_images, find_primed
from scripts.errors import ExitStatus, Refusal
from scripts.images import BuiltImage
from scripts.preflight import GpuHost
from scripts.stacks import load_stacks
from tests.scripts.plans import plan

STACKS = load_stacks()
TORCH = STACKS["torch-2.15"]
IMAGE, BASE = "sha256:" + "a" * 64, "local@sha256:" + "b" * 64


def make_cells(*runners: Any) -> list[Cell]:
    cells = plan(runners=runners, workloads=("toy",), variants=("torch-eager",)).cells
    return [replace(cell, stack=TORCH.name) for cell in cells]


def make_engine(*held: str) -> Engine:
    return cast(Engine, SimpleNamespace(has_image=lambda image: image in held, describe=lambda: {"api": "1"}))


def make_gpu(capability: str = "9.0", uuid: str = "GPU-1", driver: str = "580.1") -> GpuHost:
    gpu = SimpleNamespace(uuid=uuid, name="H", driver=driver, capability=capability)
    return GpuHost(cast(Any, gpu), None, [])


def make_run(cells: Sequence[Cell], equipment: Equipment) -> Run:
    record = SimpleNamespace(
        id="run", cells=cells, gpu=equipment.describe_gpu(), engine=equipment.describe_engine()
    )
    return cast(Run, record)


def test_cells_of_containers_are_given_image_and_base_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def ensure(engine: Engine, stacks: Any, base: str | None, say: Any) -> dict[str, BuiltImage]:
        asked.append((base, [stack.name for stack in stacks]))
        return {TORCH.name: BuiltImage(TORCH.name, IMAGE, BASE, "c" * 64, 1)}

    monkeypatch.setattr(images, "ensure_images", ensure)
    cells = find_images(make_cells("venv", "docker"), STACKS, Equipment(make_engine()), "local", print)
    assert asked == [("local", [TORCH.name])]
    assert {(cell.runner, cell.identity.image, cell.identity.base) for cell in cells} == {
        ("docker", IMAGE, BASE),
        ("venv", None, None),
    }


def test_without_containers_no_image_is_looked_for() -> None:
    cells = make_cells("venv")
    assert find_images(cells, STACKS, Equipment(), None, print) == cells


def test_a_run_goes_on_with_the_image_that_it_began_with_or_not_at_all() -> None:
    """C8"""
    cells = [
        replace(cell, identity=replace(cell.identity, image=IMAGE, base=BASE))
        for cell in make_cells("docker")
    ]
    here = Equipment(make_engine(IMAGE))
    check_resumable(make_run(cells, here), here)
    with pytest.raises(Refusal, match=r"image of torch-2\.15 .* was deleted or replaced") as refused:
        check_resumable(make_run(cells, here), Equipment(make_engine()))
    assert refused.value.status == ExitStatus.HOST_CANNOT


@pytest.mark.parametrize(("changed", "named"), [({"uuid": "GPU-2"}, "uuid"), ({"driver": "590"}, "driver")])
def test_a_run_does_not_go_on_with_another_gpu_or_driver(changed: dict[str, str], named: str) -> None:
    """R5"""
    run = make_run(make_cells("venv"), Equipment(None, make_gpu()))
    check_resumable(run, Equipment(None, make_gpu()))
    with pytest.raises(Refusal, match=f"the GPU's {named} was"):
        check_resumable(run, Equipment(None, make_gpu(**changed)))


def test_stacks_whose_code_the_driver_has_to_compile_are_primed() -> None:
    """C3"""
    cells = [replace(cell, stack=name) for cell in make_cells("venv") for name in STACKS]
    assert find_primed(cells, STACKS, Equipment()) == set()
    assert find_primed(cells, STACKS, Equipment(None, make_gpu("8.9"))) == set()
    assert find_primed(cells, STACKS, Equipment(None, make_gpu("9.0"))) == {"tensorflow-2.21"}
