"""What pynvml says, in plain values; the C library is where the fake begins."""

import sys
from collections.abc import Callable
from typing import Any

import pynvml  # type: ignore[import-untyped]
import pytest

from scripts.nvml import Counters, Description, Nvml, NvmlUnavailable, User, open_nvml

UUID = b"GPU-11111111-2222-3333-4444-555555555555"
NAME = b"NVIDIA H100 80GB HBM3"
Answer = Callable[..., int]


class Library:
    """Functions of libnvidia-ml.so.1 that write where their pointers point, and return a status."""

    def __init__(self, **answers: Answer | int) -> None:
        self.answers: dict[str, Answer | int] = {"nvmlInitWithFlags": 0, **answers}

    def __getattr__(self, name: str) -> Answer:
        try:
            answer = self.answers[name]
        except KeyError:
            raise AttributeError(name) from None
        return (lambda *arguments: answer) if isinstance(answer, int) else answer


def give(value: float) -> Answer:
    """Answer with one number, through the last pointer."""

    def answer(*arguments: Any) -> int:
        arguments[-1]._obj.value = value
        return 0

    return answer


def say(value: bytes) -> Answer:
    """Answer with text, through the buffer before its length."""

    def answer(*arguments: Any) -> int:
        arguments[-2].value = value
        return 0

    return answer


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Nvml]:
    def install(**answers: Answer | int) -> Nvml:
        monkeypatch.setattr(pynvml, "nvmlLib", Library(**answers))
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
        return open_nvml()

    return install


def give_capability(handle: Any, major: Any, minor: Any) -> int:
    major._obj.value, minor._obj.value = 9, 0
    return 0


def give_memory(handle: Any, memory: Any) -> int:
    memory._obj.total, memory._obj.free, memory._obj.used = 80, 78, 2
    return 0


def give_mig(handle: Any, current: Any, pending: Any) -> int:
    current._obj.value, pending._obj.value = 1, 0
    return 0


WHOLE: dict[str, Answer | int] = {
    "nvmlSystemGetDriverVersion": say(b"590.44.01"),
    "nvmlDeviceGetCount_v2": give(2),
    "nvmlDeviceGetHandleByIndex_v2": 0,
    "nvmlDeviceGetHandleByUUID": 0,
    "nvmlDeviceGetUUID": say(UUID),
    "nvmlDeviceGetName": say(NAME),
    "nvmlDeviceGetCudaComputeCapability": give_capability,
    "nvmlDeviceGetMemoryInfo": give_memory,
    "nvmlDeviceGetMigMode": give_mig,
}


def test_a_gpu_is_described_in_plain_values(install: Callable[..., Nvml]) -> None:
    nvml = install(**WHOLE)
    assert (nvml.read_driver(), nvml.count_gpus()) == ("590.44.01", 2)
    assert nvml.describe(0) == Description(UUID.decode(), NAME.decode(), "9.0", 80, 78, True)


@pytest.mark.parametrize(
    "status",
    [pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_NO_PERMISSION, pynvml.NVML_ERROR_UNKNOWN],
)
def test_what_a_gpu_does_not_tell_is_none(install: Callable[..., Nvml], status: int) -> None:
    nvml = install(**WHOLE | {"nvmlDeviceGetMemoryInfo": status, "nvmlDeviceGetMigMode": status})
    assert nvml.describe(0) == Description(UUID.decode(), NAME.decode(), "9.0", None, None, False)
    state = nvml.read_state(UUID.decode())
    assert (state.sm_clock_mhz, state.temperature_c, state.power_w, state.throttle) == (None, None, None, [])
    assert nvml.read_counters(UUID.decode()) == Counters(None, {})
    assert nvml.read_clocks(UUID.decode(), 0) == []
    assert nvml.list_computing(0) == nvml.list_drawing(0) == []


@pytest.mark.parametrize("status", [pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_NO_PERMISSION])
def test_a_gpu_that_does_not_even_say_what_it_is_is_none(install: Callable[..., Nvml], status: int) -> None:
    assert install(**WHOLE | {"nvmlDeviceGetHandleByIndex_v2": status}).describe(1) is None


@pytest.mark.parametrize(
    ("status", "reason", "remedy"),
    [
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "driver", "modprobe nvidia"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "permission", "/dev/nvidiactl"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "mismatch", "restart this machine"),
        (pynvml.NVML_ERROR_UNKNOWN, "unknown", "Unknown Error"),
    ],
)
def test_a_driver_that_does_not_answer_is_one_line_with_its_remedy(
    install: Callable[..., Nvml], status: int, reason: str, remedy: str
) -> None:
    """C1"""
    nvml = install(nvmlInitWithFlags=status)
    with pytest.raises(NvmlUnavailable, match=remedy) as caught:
        nvml.read_driver()
    assert caught.value.reason == reason
    assert "\n" not in caught.value.message


def test_a_host_without_a_driver_is_told_to_install_one(
    install: Callable[..., Nvml], monkeypatch: pytest.MonkeyPatch
) -> None:
    """C1"""

    def refuse(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    nvml = install()
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "CDLL", refuse)
    with pytest.raises(NvmlUnavailable, match="install it") as caught:
        nvml.count_gpus()
    assert caught.value.reason == "library"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NvmlUnavailable, match="nvidia-ml-py") as caught:
        open_nvml().read_driver()
    assert caught.value.reason == "package"


def test_a_gpu_that_is_lost_ends_every_read(install: Callable[..., Nvml]) -> None:
    """C9"""
    nvml = install(**WHOLE | {"nvmlDeviceGetPowerUsage": pynvml.NVML_ERROR_GPU_IS_LOST})
    with pytest.raises(NvmlUnavailable, match="fell off its bus") as caught:
        nvml.read_state(UUID.decode())
    assert caught.value.reason == "lost"


def test_power_is_in_watts_and_throttling_in_words(install: Callable[..., Nvml]) -> None:
    def give_clock(handle: Any, kind: Any, clock: Any) -> int:
        clock._obj.value = {pynvml.NVML_CLOCK_SM: 1755, pynvml.NVML_CLOCK_MEM: 2619}[kind.value]
        return 0

    answers: dict[str, Answer | int] = {
        "nvmlDeviceGetPowerUsage": give(412_500),
        "nvmlDeviceGetClockInfo": give_clock,
        "nvmlDeviceGetTemperature": give(61),
        "nvmlDeviceGetCurrentClocksEventReasons": give(0x1 | 0x4 | 0x20),
    }
    state = install(**WHOLE | answers).read_state(UUID.decode())
    assert (state.sm_clock_mhz, state.memory_clock_mhz) == (1755, 2619)
    assert (state.temperature_c, state.power_w) == (61.0, 412.5)
    assert state.throttle == ["power cap", "thermal limit"]


def test_an_old_driver_gives_the_reasons_by_their_old_name(install: Callable[..., Nvml]) -> None:
    old: dict[str, Answer | int] = {"nvmlDeviceGetCurrentClocksThrottleReasons": give(0x8)}
    assert install(**WHOLE | old).read_state(UUID.decode()).throttle == ["hardware slowdown"]


def test_counters_are_those_that_the_gpu_has(install: Callable[..., Nvml]) -> None:
    def give_fields(handle: Any, count: Any, values: Any) -> int:
        for one in values._obj:
            known = {83: 5_000_000_000_000, 74: 12_000_000_000, 75: 0}
            one.nvmlReturn = 0 if one.fieldId in known else pynvml.NVML_ERROR_NOT_SUPPORTED
            one.valueType = pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
            one.value.ullVal = known.get(one.fieldId, 77)
        return 0

    nvml = install(**WHOLE | {"nvmlDeviceGetFieldValues": give_fields})
    expected = Counters(5_000_000_000_000, {"power cap": 12_000_000_000, "thermal limit": 0})
    assert nvml.read_counters(UUID.decode()) == expected


def test_clock_samples_are_those_since_then(install: Callable[..., Nvml]) -> None:
    kept = [(100, 345), (200, 1755), (300, 1740)]

    def give_samples(handle: Any, kind: Any, since: Any, type_: Any, count: Any, samples: Any) -> int:
        assert kind.value == pynvml.NVML_PROCESSOR_CLK_SAMPLES
        count._obj.value = len(kept)
        type_._obj.value = pynvml.NVML_VALUE_TYPE_UNSIGNED_INT
        for place, (time_us, clock) in enumerate(kept if samples else []):
            samples[place].timeStamp, samples[place].sampleValue.uiVal = time_us, clock
        return 0

    nvml = install(**WHOLE | {"nvmlDeviceGetSamples": give_samples})
    assert nvml.read_clocks(UUID.decode(), 100) == [1755, 1740]


def test_processes_come_with_their_memory_where_it_is_told(install: Callable[..., Nvml]) -> None:
    def give_processes(handle: Any, count: Any, processes: Any) -> int:
        if processes is None:
            count._obj.value = 2
            return int(pynvml.NVML_ERROR_INSUFFICIENT_SIZE)
        count._obj.value = 2
        processes[0].pid, processes[0].usedGpuMemory = 41, 2**30
        processes[1].pid, processes[1].usedGpuMemory = 42, 2**64 - 1
        return 0

    nvml = install(**WHOLE | {"nvmlDeviceGetComputeRunningProcesses_v3": give_processes})
    assert nvml.list_computing(0) == [User(41, 2**30), User(42, None)]
    assert nvml.list_drawing(0) == []
