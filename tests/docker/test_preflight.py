"""The probe in the engine of this host: its program runs, and what the engine says without a toolkit is
known."""

from typing import Any

import pytest

from scripts.access import GpuAccess
from scripts.containers import OWNER
from scripts.engine import Engine
from scripts.errors import ExitStatus, Refusal
from scripts.nvml import open_nvml
from scripts.owner import name_owner
from scripts.preflight import check_gpu_host
from scripts.probe import make_program, try_access
from scripts.stacks import load_stacks


class NoGpu(GpuAccess):
    """Asks for a container like any other."""

    def device_requests(self) -> list[Any]:
        return []


def list_left(engine: Engine) -> list[str]:
    """List containers of this process, and images as small as the probe's."""
    containers = engine.api.containers(all=True, filters={"label": f"{OWNER}={name_owner()}"})
    images = [image for image in engine.api.images(all=True) if image["Size"] == len(make_program())]
    return [one["Id"] for one in [*containers, *images]]


def test_the_program_runs_in_a_container_of_its_own_and_nothing_stays(engine: Engine) -> None:
    assert try_access(engine, NoGpu("request", "none"), "13.0") is None
    assert list_left(engine) == []


@pytest.mark.parametrize(
    ("access", "kinds"),
    [
        # An engine of 28.3 and newer tries CDI for a request where there is no toolkit.
        (GpuAccess("request", "GPU-00000000-none"), ("toolkit", "cdi", "no-such-gpu")),
        (GpuAccess("cdi", "nvidia.com/gpu=none"), ("cdi",)),
    ],
)
def test_a_gpu_that_cannot_be_had_is_refused_with_a_text_that_is_known_and_nothing_stays(
    engine: Engine, access: GpuAccess, kinds: tuple[str, ...]
) -> None:
    """C1"""
    denial = try_access(engine, access, "13.0")
    assert denial is not None
    assert denial.kind in kinds
    assert list_left(engine) == []


def test_a_gpu_that_is_not_there_is_refused_before_anything_is_built(engine: Engine) -> None:
    """C1"""
    with pytest.raises(Refusal) as caught:
        check_gpu_host(engine, 99, list(load_stacks().values()), open_nvml())
    assert caught.value.status == ExitStatus.HOST_CANNOT
    assert "\n" not in caught.value.message
    assert "install" in caught.value.message or "--gpu" in caught.value.message
    assert list_left(engine) == []
