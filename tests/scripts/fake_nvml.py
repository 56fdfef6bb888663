"""GPUs that are not there."""

from dataclasses import dataclass, field

from scripts.contract import GpuReading
from scripts.nvml import Counters, Description, NvmlUnavailable, User

GIB = 2**30
UUID = "GPU-11111111-2222-3333-4444-555555555555"


def make_description(
    uuid: str = UUID,
    name: str = "NVIDIA H100 80GB HBM3",
    capability: str = "9.0",
    memory_total: int | None = 80 * GIB,
    memory_free: int | None = 79 * GIB,
    mig: bool = False,
) -> Description:
    return Description(uuid, name, capability, memory_total, memory_free, mig)


@dataclass
class FakeNvml:
    """A driver with GPUs, without a GPU.

    Reads of state, counters and clocks give what is first in their lists and take it away, the last stays.
    """

    gpus: list[Description | None] = field(default_factory=lambda: [make_description()])
    """By index; ``None`` is one that does not say what it is."""
    driver: str = "590.44.01"
    computing: dict[int, list[User]] = field(default_factory=dict)
    drawing: dict[int, list[User]] = field(default_factory=dict)
    states: list[GpuReading] = field(default_factory=lambda: [GpuReading()])
    counters: list[Counters] = field(default_factory=lambda: [Counters(None, {})])
    clocks: list[list[int]] = field(default_factory=lambda: [[]])
    fault: NvmlUnavailable | None = None
    """What everything answers, if anything."""
    asked: list[str] = field(default_factory=list)
    """Names of what was asked, in order."""
    since_us: list[int] = field(default_factory=list)
    """From when on clocks were asked for."""

    def read_driver(self) -> str:
        self._answer("driver")
        return self.driver

    def count_gpus(self) -> int:
        self._answer("count")
        return len(self.gpus)

    def describe(self, index: int) -> Description | None:
        self._answer("describe")
        return self.gpus[index]

    def list_computing(self, index: int) -> list[User]:
        self._answer("computing")
        return self.computing.get(index, [])

    def list_drawing(self, index: int) -> list[User]:
        self._answer("drawing")
        return self.drawing.get(index, [])

    def read_state(self, uuid: str) -> GpuReading:
        self._answer("state", uuid)
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def read_counters(self, uuid: str) -> Counters:
        self._answer("counters", uuid)
        return self.counters.pop(0) if len(self.counters) > 1 else self.counters[0]

    def read_clocks(self, uuid: str, since_us: int) -> list[int]:
        self._answer("clocks", uuid)
        self.since_us.append(since_us)
        return self.clocks.pop(0) if len(self.clocks) > 1 else self.clocks[0]

    def _answer(self, question: str, uuid: str | None = None) -> None:
        self.asked.append(question)
        if self.fault is not None:
            raise self.fault
        if uuid is not None and uuid not in [gpu.uuid for gpu in self.gpus if gpu is not None]:
            raise NvmlUnavailable("unknown", f"NVML does not answer: {uuid} Not Found")
