"""What the doctor tells of containers and GPUs, on hosts that are not there."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scripts import doctor_containers
from scripts.doctor_containers import (
    examine_containers,
    examine_engine,
    examine_gpus,
    examine_image,
    examine_image_disk,
    examine_local_base,
    examine_toolkit,
)
from scripts.errors import Refusal
from scripts.finding import CONTAINERS
from scripts.gpu import list_gpus
from scripts.image_inputs import list_inputs
from scripts.images import name_tag
from scripts.nvml import REFUSALS, NvmlUnavailable
from scripts.stacks import load_stacks
from tests.scripts.fake_engine import make_engine
from tests.scripts.fake_nvml import GIB, UUID, FakeNvml, make_description

STACKS = [stack for stack in load_stacks().values() if stack.current]
TORCH = load_stacks()["torch-2.15"]
NO_TOOLKIT = 'could not select device driver "" with capabilities: [[gpu]]'
NO_DRIVER = NvmlUnavailable(*REFUSALS["NVMLError_LibraryNotFound"])


def test_an_engine_is_told_and_what_it_cannot_limit() -> None:
    engine, _ = make_engine({})
    assert examine_engine(engine).verdict == "ok"
    assert "Docker 28.3.0" in examine_engine(engine).says
    engine, _ = make_engine({}, unlimited=["memory", "processes"], is_rootless=True)
    found = examine_engine(engine)
    assert (found.verdict, found.stops) == ("note", ())
    assert "rootless" in found.says
    assert "memory and processes" in found.says
    assert "Delegate=yes" in found.says


def test_the_toolkit_is_tried_and_its_absence_told_with_the_remedy() -> None:
    """C1"""
    gpus = list_gpus(FakeNvml())
    engine, api = make_engine({UUID: 0})
    assert examine_toolkit(engine, gpus, STACKS).says.endswith("by the NVIDIA Container Toolkit")
    engine, _ = make_engine({"nvidia.com/gpu=0": 0}, cdi_devices=["nvidia.com/gpu=0"])
    assert examine_toolkit(engine, gpus, STACKS).says.endswith("by CDI")
    engine, api = make_engine({"all": NO_TOOLKIT})
    found = examine_toolkit(engine, [], STACKS)
    assert (found.verdict, found.stops) == ("NO", ("bench-gpu",))
    assert "nvidia-ctk runtime configure" in found.says
    assert api.there == set()


def test_a_gpu_is_told_with_its_driver_and_capability() -> None:
    fit, (found,) = examine_gpus([TORCH], FakeNvml())
    assert (len(fit), found.subject, found.verdict) == (1, "GPU 0", "ok")
    assert found.says == "NVIDIA H100 80GB HBM3, driver 590.44.01, compute capability 9.0"


def test_what_the_driver_will_compile_is_noted() -> None:
    """C3"""
    _, (found,) = examine_gpus(STACKS, FakeNvml())
    assert found.verdict == "note"
    assert "many minutes" in found.says


def test_no_driver_and_no_gpu_stop_bench_gpu_only() -> None:
    """C1"""
    fit, (found,) = examine_gpus(STACKS, FakeNvml(fault=NO_DRIVER))
    assert (fit, found.stops, found.says) == ([], ("bench-gpu",), NO_DRIVER.message)
    fit, (found,) = examine_gpus(STACKS, FakeNvml(gpus=[]))
    assert (fit, found.stops) == ([], ("bench-gpu",))
    assert "finds none" in found.says


def test_a_gpu_that_cannot_be_measured_stops_nothing_where_another_can() -> None:
    taken, free = make_description("GPU-a", memory_free=0), make_description("GPU-b")
    fit, found = examine_gpus([TORCH], FakeNvml(gpus=[taken, free]))
    assert [gpu.index for gpu in fit] == [1]
    assert [one.verdict for one in found] == ["note", "ok"]
    assert "choose another --gpu" in found[0].says
    assert found[1].says.endswith("choose it by --gpu 1")
    fit, found = examine_gpus([TORCH], FakeNvml(gpus=[taken]))
    assert (fit, found[0].stops) == ([], ("bench-gpu",))


class Images:
    """The SDK's client of an engine that has images."""

    def __init__(self, *labels: dict[str, str]) -> None:
        self.found: list[dict[str, Any]] = [
            {
                "Id": f"sha256:{number}",
                "Created": number,
                "Size": 6 * GIB,
                "Labels": one,
                "RepoTags": [name_tag(one["rematch.stack"], one["rematch.input"])],
            }
            for number, one in enumerate(labels)
        ]

    def images(self, filters: dict[str, Any]) -> list[dict[str, Any]]:
        wanted = filters["label"]
        wanted = {wanted} if isinstance(wanted, str) else set(wanted)
        return [image for image in self.found if wanted <= spell(image["Labels"])]


def spell(labels: dict[str, str]) -> set[str]:
    """Spell labels as filters do, with values and without."""
    return {*labels, *(f"{name}={value}" for name, value in labels.items())}


def test_an_image_is_built_or_stale_or_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """C8"""
    engine, _ = make_engine({})
    base = f"{TORCH.base.image}@{TORCH.base.digest}"
    current = {"rematch.stack": TORCH.name, "rematch.input": list_inputs(TORCH, base).sha256}
    for labels, verdict, says in (
        ([current], "ok", f"built on the base {TORCH.base.image}, 6.0 GiB"),
        ([{**current, "rematch.input": "0"}], "note", "stale; `nox -s images` builds it"),
        ([], "note", "not built; `nox -s images` builds it"),
    ):
        monkeypatch.setattr(engine, "api", Images(*labels))
        found = examine_image(engine, TORCH)
        assert (found.subject, found.verdict, found.stops) == ("torch-2.15", verdict, ())
        assert found.says.startswith(says)


def test_the_engines_disk_must_hold_the_images_to_come(tmp_path: Path) -> None:
    """C10"""
    engine, _ = make_engine({}, root=str(tmp_path))
    huge = replace(TORCH, image=replace(TORCH.image, disk_gib=1e9))
    found = examine_image_disk(engine, [huge])
    assert (found.verdict, found.stops) == ("NO", CONTAINERS)
    assert f"make room on the disk of {tmp_path}" in found.says
    assert examine_image_disk(engine, []).verdict == "ok"
    engine, _ = make_engine({}, root=str(tmp_path / "elsewhere"))
    assert examine_image_disk(engine, [huge]).verdict == "note"


@pytest.mark.parametrize(
    ("debootstrap", "is_root", "verdict", "remedy"),
    [
        ("/usr/sbin/debootstrap", True, "ok", "can be made"),
        ("/usr/sbin/debootstrap", False, "note", "sudo nox"),
        (None, True, "note", "apt-get install debootstrap"),
    ],
)
def test_what_a_local_base_needs_is_told(
    debootstrap: str | None, is_root: bool, verdict: str, remedy: str
) -> None:
    found = examine_local_base(debootstrap, is_root)
    assert (found.verdict, found.stops) == (verdict, ())
    assert remedy in found.says


def test_without_an_engine_the_gpu_is_told_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    monkeypatch.setattr(doctor_containers, "open_nvml", FakeNvml)
    found = list(examine_containers([TORCH]))
    assert [one.subject for one in found] == ["engine", "GPU 0"]
    assert found[0].stops == CONTAINERS


def test_an_engine_that_goes_away_meanwhile_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, _ = make_engine({UUID: 0})
    monkeypatch.setattr(engine.api, "close", lambda: None, raising=False)

    def lose(*_: object) -> None:
        raise Refusal("the container engine does not answer any more")

    monkeypatch.setattr(doctor_containers, "connect", lambda: engine)
    monkeypatch.setattr(doctor_containers, "open_nvml", FakeNvml)
    monkeypatch.setattr(doctor_containers, "find_image", lose)
    found = list(examine_containers([TORCH]))
    assert found[-1].says == "the container engine does not answer any more"
    assert found[-1].stops == CONTAINERS
