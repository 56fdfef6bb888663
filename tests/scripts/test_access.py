"""A container is given one GPU as the docker command would give it."""

import pytest

from scripts.access import GpuAccess, choose_access, list_accesses
from tests.scripts.fake_engine import make_facts

UUID = "GPU-11111111-2222-3333-4444-555555555555"


def without_empty(request: dict[str, object]) -> dict[str, object]:
    """An engine takes null, an empty list, an empty text and what is missing for the same."""
    return {name: value for name, value in request.items() if value}


def test_a_request_is_what_the_docker_command_sends_for_a_gpu_by_its_uuid() -> None:
    (request,) = GpuAccess("request", UUID).device_requests()
    # Recorded: docker create --gpus device=UUID
    recorded = {"Driver": "", "Count": 0, "DeviceIDs": [UUID], "Capabilities": [["gpu"]], "Options": {}}
    assert without_empty(request) == without_empty(recorded)


def test_a_cdi_device_is_what_the_docker_command_sends_for_a_device() -> None:
    (request,) = GpuAccess("cdi", "nvidia.com/gpu=0").device_requests()
    # Recorded: docker create --device nvidia.com/gpu=0
    recorded = {
        "Driver": "cdi",
        "Count": 0,
        "DeviceIDs": ["nvidia.com/gpu=0"],
        "Capabilities": None,
        "Options": None,
    }
    assert without_empty(request) == without_empty(recorded)


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ([], GpuAccess("request", UUID)),
        (["nvidia.com/gpu=0", "nvidia.com/gpu=1"], GpuAccess("cdi", "nvidia.com/gpu=1")),
        (["nvidia.com/gpu=1", f"nvidia.com/gpu={UUID}"], GpuAccess("cdi", f"nvidia.com/gpu={UUID}")),
        (["nvidia.com/gpu=10", "nvidia.com/gpu=all"], GpuAccess("request", UUID)),
        (["intel.com/gpu=1"], GpuAccess("request", UUID)),
    ],
)
def test_cdi_is_chosen_where_the_engine_lists_this_very_gpu(devices: list[str], expected: GpuAccess) -> None:
    assert choose_access(make_facts(cdi_devices=devices), UUID, 1) == expected


def test_all_gpus_are_asked_for_where_none_is_known() -> None:
    assert choose_access(make_facts()) == GpuAccess("request", "all")
    listed = make_facts(cdi_devices=["nvidia.com/gpu=all"])
    assert choose_access(listed) == GpuAccess("cdi", "nvidia.com/gpu=all")


def test_an_engine_that_reads_cdi_and_lists_nothing_is_asked_both_ways() -> None:
    request = GpuAccess("request", UUID)
    assert list_accesses(make_facts(), UUID, 1) == [request]
    assert list_accesses(make_facts(has_cdi=True), UUID, 1) == [request, GpuAccess("cdi", "nvidia.com/gpu=1")]
    assert list_accesses(make_facts(has_cdi=True)) == [
        GpuAccess("request", "all"),
        GpuAccess("cdi", "nvidia.com/gpu=all"),
    ]
    listed = make_facts(has_cdi=True, cdi_devices=["nvidia.com/gpu=1"])
    assert list_accesses(listed, UUID, 1) == [GpuAccess("cdi", "nvidia.com/gpu=1")]
