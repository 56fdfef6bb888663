"""One launch: a fresh process for one cell, and always a result."""

import contextlib
import os
import random
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec.structs import replace

from scripts.contract import SCHEMA, Cause, Cell, Result
from scripts.decode import LeftOut, decode_result
from scripts.diagnosis import count_oom_kills, diagnose
from scripts.errors import ExitStatus, Refusal
from scripts.process import Child, Ending
from scripts.runs import ROOT, RunFolder, write_whole

GROUND_FLOOR = ("-m", "workloads")
PASSED = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES")


JIT_CACHE = ROOT / ".venvs" / "cuda"
JIT_CACHE_BYTES = 4 * 2**30


@dataclass(frozen=True)
class Launched:
    """A result, which is also in its file, and how long the process lived."""

    result: Result
    seconds: float


class Launcher(Protocol):
    """How a cell's stack is entered."""

    folder: RunFolder

    def launch(self, cell: Cell, limit_s: float) -> Launched:
        """Run ``cell`` to its end and write its result; never longer than ``limit_s`` and a little."""

    def stop(self) -> None:
        """End all launches in flight, from any thread, and refuse further ones."""


class LocalLauncher:
    """Launches by an interpreter on this host: the ``venv`` and ``host`` runners."""

    def __init__(
        self,
        folder: RunFolder,
        pythons: Mapping[str, Path],
        variables: Sequence[str],
        program: Sequence[str] = GROUND_FLOOR,
    ) -> None:
        """
        Args:
            pythons: the interpreters, by stack.
            variables: beginnings of the names of the user's variables that a launch is given, because
                they can change a figure; the ground floor records the same.
            program: what an interpreter runs.
        """
        self.folder = folder
        self._pythons = pythons
        self._variables = tuple(variables)
        self._program = program
        self._children: list[Child] = []
        self._is_stopped = False
        self._private = Path(tempfile.mkdtemp(prefix="rematch-"))

    def launch(self, cell: Cell, limit_s: float) -> Launched:
        """As in ``Launcher``.

        Raises:
            Refusal: the result cannot be written.
        """
        block = None if cell.purpose == "proof" else cell.block
        place, log = self.folder.result(cell.id, block), self.folder.log(cell.id, block)
        private = Path(tempfile.mkdtemp(dir=self._private))
        shared = self._private / f"cache-{cell.stack}"
        cell = replace(cell, cache=str(shared if cell.cache_state == "warm" else private / "cache"))
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        try:
            self._make_folders(cell, private, place, log)
            order = private / "cell.json"
            order.write_bytes(msgspec.json.encode(cell))
            command = [
                *(str(self._pythons[cell.stack]), *self._program),
                *(
                    "--cell",
                    str(order),
                    "--result",
                    str(place.absolute()),
                    "--die-with-parent",
                    str(os.getpid()),
                ),
            ]
            kills = count_oom_kills()
            ending = self._run(command, self._make_environment(cell, private), log, limit_s)
            kills = count_oom_kills() - kills
        except OSError as error:
            where = error.filename or self._private
            raise Refusal(
                f"{where}: {error.strerror}; the launch cannot start", ExitStatus.HOST_CANNOT
            ) from error
        finally:
            shutil.rmtree(private, ignore_errors=True)
        return Launched(self._settle(cell, ending, place, log, started, limit_s, kills), ending.seconds)

    def stop(self) -> None:
        """As in ``Launcher``."""
        self._is_stopped = True
        for child in list(self._children):
            child.end()

    def close(self) -> None:
        """Remove the private folders."""
        shutil.rmtree(self._private, ignore_errors=True)

    def _make_folders(self, cell: Cell, private: Path, place: Path, log: Path) -> None:
        for folder in (private / "home", private / "tmp", Path(cell.cache), place.parent, log.parent):
            folder.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)

    def _make_environment(self, cell: Cell, private: Path) -> dict[str, str]:
        environment = {
            name: value
            for name, value in os.environ.items()
            if name in PASSED or name.startswith(self._variables)
        }
        return environment | {
            "HOME": str(private / "home"),
            "TMPDIR": str(private / "tmp"),
            "XDG_CACHE_HOME": str(private / "home" / ".cache"),
            # Another in each launch, since between launches is where the interval looks, and known.
            "PYTHONHASHSEED": str(
                random.Random(f"{cell.seed}/{cell.block}/{cell.position}").randrange(2**32)
            ),
            # The driver's compilations, which take many minutes for a GPU that a build has no code for.
            # A stack's proofs come first, and are not timed.
            "CUDA_CACHE_PATH": str(JIT_CACHE / cell.stack),
            "CUDA_CACHE_MAXSIZE": str(JIT_CACHE_BYTES),
            "PYTHONNOUSERSITE": "1",
            "PYTHONUNBUFFERED": "1",
        }

    def _run(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path, limit_s: float
    ) -> Ending:
        if self._is_stopped:
            raise KeyboardInterrupt
        child = Child(command, ROOT, environment, log)
        self._children.append(child)
        try:
            # `stop` in another thread may have looked before this child was in the list.
            if self._is_stopped:
                raise KeyboardInterrupt
            ending = child.wait(limit_s)
        except BaseException:
            child.end()
            child.wait(0)
            raise
        finally:
            with contextlib.suppress(ValueError):
                self._children.remove(child)
        if self._is_stopped:
            # Its end says nothing about the cell.
            raise KeyboardInterrupt
        return ending

    def _settle(
        self, cell: Cell, ending: Ending, place: Path, log: Path, started: str, limit_s: float, oom_kills: int
    ) -> Result:
        """Take the result that was written, or write one that says why there is none."""
        log_name = str(log.relative_to(self.folder.path))
        try:
            found = read_result(place, cell)
        except LeftOut as fault:
            if ending.returncode == 0 and not ending.timed_out:
                cause = Cause("result", f"its result cannot be trusted: {fault.reason}")
            else:
                cause = diagnose(ending, log, limit_s, oom_kills)
            found = None
        if found is None:
            result = Result(
                schema=SCHEMA,
                cell=cell,
                status="failed",
                started=started,
                duration_s=ending.seconds,
                cause=cause,
                log=log_name,
            )
        elif found.status == "failed":
            result = replace(found, log=log_name)
        elif ending.returncode != 0:
            end = diagnose(ending, log, limit_s, oom_kills)
            result = replace(
                found, log=log_name, warnings=[*found.warnings, f"after its result: {end.message}"]
            )
        else:
            return found
        write_whole(place, msgspec.json.encode(result))
        return result


def read_result(place: Path, cell: Cell) -> Result:
    """Read the result of ``cell``.

    Raises:
        LeftOut: there is none, or it is not whole, or it answers another cell.
    """
    if not place.exists():
        raise LeftOut(str(place), "there is none")
    result = decode_result(place)
    if result.cell != cell:
        names = (name for name in cell.__struct_fields__ if getattr(cell, name) != getattr(result.cell, name))
        raise LeftOut(str(place), f"of another cell: its {next(names)} differs")
    return result
