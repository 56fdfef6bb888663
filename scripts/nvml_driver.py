"""NVML by pynvml, which is imported when it is first asked."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from scripts.contract import GpuReading
from scripts.nvml import REFUSALS, Counters, Description, NvmlUnavailable, User

Value = TypeVar("Value")

SPARING = ("NVMLError_NoPermission",)
"""Errors of ``REFUSALS`` that hold back a single value and let the others be read."""

THROTTLE_REASONS = {
    0x002: "application clocks",
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "thermal limit",
    0x040: "hardware thermal slowdown",
    0x080: "power brake",
    0x100: "display clocks",
    0x200: "board limit",
    0x400: "reliability limit",
}
"""By their bits. That a GPU is idle, the first bit, holds nothing down."""
COUNTED_REASONS = {
    74: "power cap",
    75: "thermal limit",
    76: "sync boost",
    77: "board limit",
    79: "reliability limit",
}
"""Field values that count nanoseconds, by their numbers. 78 counts the time of too little work, which is
nobody's fault, 80 and 81 sum the others, and the numbers of newer ones changed between drivers."""
ENERGY = 83
"""Field value that counts millijoules."""
VALUE_FIELDS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Where a value is, by its type's number."""


class DriverNvml:
    """As ``scripts.nvml.Nvml``."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._loaded: Any = None
        self._handles: dict[str, Any] = {}

    def read_driver(self) -> str:
        nvml = self._load()
        return _demand(lambda: str(nvml.nvmlSystemGetDriverVersion()))

    def count_gpus(self) -> int:
        nvml = self._load()
        return _demand(lambda: int(nvml.nvmlDeviceGetCount()))

    def describe(self, index: int) -> Description | None:
        nvml = self._load()
        try:
            handle = _demand(lambda: nvml.nvmlDeviceGetHandleByIndex(index))
            uuid = _demand(lambda: str(nvml.nvmlDeviceGetUUID(handle)))
            name = _demand(lambda: str(nvml.nvmlDeviceGetName(handle)))
            major, minor = _demand(lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
            memory = _ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
            mig = _ask(lambda: nvml.nvmlDeviceGetMigMode(handle))
        except NvmlUnavailable:
            # The others may be whole.
            return None
        return Description(
            uuid,
            name,
            f"{major}.{minor}",
            int(memory.total) if memory else None,
            int(memory.free) if memory else None,
            bool(mig and mig[0]),
        )

    def list_computing(self, index: int) -> list[User]:
        nvml = self._load()
        return self._list_users(
            index, [nvml.nvmlDeviceGetComputeRunningProcesses, nvml.nvmlDeviceGetMPSComputeRunningProcesses]
        )

    def list_drawing(self, index: int) -> list[User]:
        return self._list_users(index, [self._load().nvmlDeviceGetGraphicsRunningProcesses])

    def read_state(self, uuid: str) -> GpuReading:
        nvml, handle = self._load(), self._find(uuid)
        power = _ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        bits = _ask(lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
        if bits is None:
            # Drivers from before 535 know them by this name.
            bits = _ask(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)) or 0
        return GpuReading(
            sm_clock_mhz=_ask(lambda: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))),
            memory_clock_mhz=_ask(lambda: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM))),
            temperature_c=_ask(
                lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
            ),
            power_w=None if power is None else power / 1000,
            throttle=[words for bit, words in THROTTLE_REASONS.items() if bits & bit],
        )

    def read_counters(self, uuid: str) -> Counters:
        nvml, handle = self._load(), self._find(uuid)
        wanted = [ENERGY, *COUNTED_REASONS]
        answers = _ask(lambda: nvml.nvmlDeviceGetFieldValues(handle, wanted)) or []
        counts = {
            answer.fieldId: _take(answer.value, answer.valueType)
            for answer in answers
            if answer.nvmlReturn == nvml.NVML_SUCCESS
        }
        throttled = {words: counts[number] for number, words in COUNTED_REASONS.items() if number in counts}
        return Counters(counts.get(ENERGY), throttled)

    def read_clocks(self, uuid: str, since_us: int) -> list[int]:
        nvml, handle = self._load(), self._find(uuid)
        answer = _ask(lambda: nvml.nvmlDeviceGetSamples(handle, nvml.NVML_PROCESSOR_CLK_SAMPLES, since_us))
        if answer is None:
            return []
        kind, samples = answer
        return [_take(one.sampleValue, kind) for one in samples if one.timeStamp > since_us]

    def _load(self) -> Any:
        with self._guard:
            if self._loaded is None:
                try:
                    import pynvml  # type: ignore[import-untyped]
                except ImportError as error:
                    raise NvmlUnavailable(
                        "package", "the Python package nvidia-ml-py is not installed beside this program"
                    ) from error
                _demand(pynvml.nvmlInit)
                self._loaded = pynvml
            return self._loaded

    def _find(self, uuid: str) -> Any:
        if uuid not in self._handles:
            nvml = self._load()
            self._handles[uuid] = _demand(lambda: nvml.nvmlDeviceGetHandleByUUID(uuid))
        return self._handles[uuid]

    def _list_users(self, index: int, lists: Sequence[Callable[[Any], list[Any]]]) -> list[User]:
        nvml = self._load()
        handle = _demand(lambda: nvml.nvmlDeviceGetHandleByIndex(index))
        found = [one for ask in lists for one in _ask(lambda ask=ask: ask(handle)) or []]  # type: ignore[misc]
        return [User(one.pid, one.usedGpuMemory) for one in found]


def _demand(question: Callable[[], Value]) -> Value:
    """Return the answer.

    Raises:
        NvmlUnavailable: there is none.
    """
    import pynvml

    try:
        return question()
    except pynvml.NVMLError as error:
        reason, message = REFUSALS.get(type(error).__name__, ("unknown", f"NVML does not answer: {error}"))
        raise NvmlUnavailable(reason, message) from error


def _ask(question: Callable[[], Value]) -> Value | None:
    """Return the answer, or ``None`` where this GPU or this driver has none.

    Raises:
        NvmlUnavailable: nothing more will be answered.
    """
    import pynvml

    try:
        return question()
    except pynvml.NVMLError as error:
        name = type(error).__name__
        if name in REFUSALS and name not in SPARING:
            raise NvmlUnavailable(*REFUSALS[name]) from error
        return None
    except pynvml.NVMLLibraryMismatchError:
        # The driver is older than the question.
        return None


def _take(value: Any, kind: int) -> int:
    return int(getattr(value, VALUE_FIELDS[kind]))
