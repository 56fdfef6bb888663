"""One launch: a fresh process for one cell, and always a result."""

import abc
import contextlib
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec.structs import replace

from scripts.contract import Cell, Result
from scripts.epochs import NAME as EPOCHS
from scripts.epochs import count_epochs, keep_epochs
from scripts.errors import ExitStatus, Refusal
from scripts.prepared import locate
from scripts.process import Child, Ending
from scripts.runs import ROOT, RunFolder, copy_plain, write_whole
from scripts.settlement import settle

GROUND_FLOOR = ("-m", "workloads")
JIT_CACHE = ROOT / ".venvs" / "cuda"
JIT_CACHE_BYTES = 4 * 2**30
_PASSED = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES")
"""What an interpreter on this host needs; an image has its own."""


@dataclass(frozen=True)
class Launched:
    """A result, and how long the process lived."""

    result: Result
    seconds: float


class Launcher(Protocol):
    """How a cell's stack is entered."""

    folder: RunFolder

    def launch(self, cell: Cell, limit_s: float) -> Launched:
        """Run ``cell`` to its end and write its result; never longer than ``limit_s`` and a little."""

    def prime(self, cell: Cell, limit_s: float) -> Launched:
        """The same for what it leaves in the driver's cache: its log is kept, its result is not."""

    def derive(self, cell: Cell, limit_s: float, target: Path) -> Launched:
        """The same for what it makes of its data, which becomes the folder ``target``: its log is kept, its
        result is not."""

    def stop(self) -> None:
        """End all launches in flight, from any thread, and refuse further ones."""

    def close(self) -> None:
        """Remove what was kept between launches."""


class RunnerLauncher:
    """Launches each cell by its runner: blocks may mix them."""

    def __init__(self, folder: RunFolder, launchers: Mapping[str, Launcher]) -> None:
        """
        Args:
            launchers: by runner.
        """
        self.folder = folder
        self._launchers = launchers

    def launch(self, cell: Cell, limit_s: float) -> Launched:
        """As in ``Launcher``."""
        return self._launchers[cell.runner].launch(cell, limit_s)

    def prime(self, cell: Cell, limit_s: float) -> Launched:
        """As in ``Launcher``."""
        return self._launchers[cell.runner].prime(cell, limit_s)

    def derive(self, cell: Cell, limit_s: float, target: Path) -> Launched:
        """As in ``Launcher``."""
        return self._launchers[cell.runner].derive(cell, limit_s, target)

    def stop(self) -> None:
        """As in ``Launcher``."""
        for launcher in self._launchers.values():
            launcher.stop()

    def close(self) -> None:
        """As in ``Launcher``."""
        for launcher in self._launchers.values():
            launcher.close()


class FileLauncher(abc.ABC):
    """What launchers share: a cell goes down and its result comes up as files of a private folder."""

    def __init__(
        self, folder: RunFolder, private: Path, variables: Sequence[str], program: Sequence[str]
    ) -> None:
        """
        Args:
            private: folder of this launcher alone, which goes when it is closed.
            variables: beginnings of the names of the user's variables that a launch is given, because
                they can change a figure; the ground floor records the same.
            program: what an interpreter runs.
        """
        self.folder = folder
        self._private = private
        self._variables = tuple(variables)
        self._program = tuple(program)
        self._is_stopped = False

    def launch(self, cell: Cell, limit_s: float) -> Launched:
        """As in ``Launcher``.

        Raises:
            Refusal: the result cannot be written, or this host cannot launch anything.
        """
        block = None if cell.purpose == "proof" else cell.block
        place = self.folder.result(cell.id, block)
        launched = self._launch(cell, self.folder.log(cell.id, block), limit_s)
        write_whole(place, msgspec.json.encode(launched.result))
        return launched

    def prime(self, cell: Cell, limit_s: float) -> Launched:
        """As in ``Launcher``.

        Raises:
            Refusal: this host cannot launch anything.
        """
        log = self.folder.log(cell.id, None if cell.purpose == "proof" else cell.block)
        return self._launch(cell, log.with_suffix(".prime.log"), limit_s)

    def derive(self, cell: Cell, limit_s: float, target: Path) -> Launched:
        """As in ``Launcher``.

        Raises:
            Refusal: this host cannot launch anything, or cannot keep what was made.
        """
        return self._launch(cell, self.folder.log(cell.id, None).with_suffix(".prepare.log"), limit_s, target)

    @abc.abstractmethod
    def stop(self) -> None:
        """As in ``Launcher``."""

    def close(self) -> None:
        """As in ``Launcher``."""
        shutil.rmtree(self._private, ignore_errors=True)

    @abc.abstractmethod
    def _look(self, cell: Cell, private: Path) -> Cell:
        """Return ``cell`` as the launched process sees it, its folders made."""

    @abc.abstractmethod
    def _run(self, cell: Cell, private: Path, log: Path, limit_s: float) -> Ending:
        """Run the process to its end.

        Args:
            cell: as the host knows it.
            private: the launch's own folder; ``exchange`` in it holds ``cell.json``, which is the cell as
                ``_look`` returned it, and gets ``result.json``.

        Raises:
            KeyboardInterrupt: launches are stopped.
            OSError: the process cannot be started.
        """

    def _launch(self, cell: Cell, log: Path, limit_s: float, target: Path | None = None) -> Launched:
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        with self._open_private() as private:
            try:
                log.parent.mkdir(parents=True, exist_ok=True)
                exchange = private / "exchange"
                exchange.mkdir()
                seen = self._look(cell, private)
                (exchange / "cell.json").write_bytes(msgspec.json.encode(seen))
                with keep_epochs(exchange / EPOCHS, log.with_suffix(f".{EPOCHS}")):
                    ending = self._run(cell, private, log, limit_s)
            except OSError as error:
                where = error.filename or self._private
                raise Refusal(
                    f"{where}: {error.strerror}; the launch cannot start", ExitStatus.HOST_CANNOT
                ) from error
            kept = replace(seen, data=cell.data)
            log_name = str(log.relative_to(self.folder.path))
            result = settle(seen, kept, exchange / "result.json", ending, log, log_name, started, limit_s)
            result = self._tell_epochs(result, log.with_suffix(f".{EPOCHS}"))
            if target is not None and result.status == "prepared":
                copy_plain(exchange / "derived", target)
        return Launched(result, ending.seconds)

    def _tell_epochs(self, result: Result, kept: Path) -> Result:
        """Say of a launch that failed how far it came."""
        count = count_epochs(kept)
        if result.status != "failed" or result.cause is None or not count:
            return result
        where = kept.relative_to(self.folder.path)
        message = f"{result.cause.message}; {count} epoch{'s' * (count > 1)} before that are in {where}"
        return replace(result, cause=replace(result.cause, message=message))

    @contextlib.contextmanager
    def _open_private(self) -> Iterator[Path]:
        private = Path(tempfile.mkdtemp(dir=self._private))
        try:
            yield private
        finally:
            shutil.rmtree(private, ignore_errors=True)

    def _find_cache(self, cell: Cell, private: Path) -> Path:
        """Return the host's folder for compilers' caches: proofs of a stack share one."""
        return self._private / f"cache-{cell.stack}" if cell.cache_state == "warm" else private / "cache"

    def _pick_variables(self, cell: Cell) -> dict[str, str]:
        """Variables that are the same whatever enters the stack."""
        picked = {name: value for name, value in os.environ.items() if name.startswith(self._variables)}
        return picked | {
            # Another in each launch, since between launches is where the interval looks, and known.
            "PYTHONHASHSEED": str(
                random.Random(f"{cell.seed}/{cell.block}/{cell.position}").randrange(2**32)
            ),
            # Of the driver's compilations, which take many minutes for a GPU that a build has no code for.
            "CUDA_CACHE_MAXSIZE": str(JIT_CACHE_BYTES),
            # Numbered as nvidia-smi does.
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "PYTHONNOUSERSITE": "1",
            "PYTHONUNBUFFERED": "1",
        }


class LocalLauncher(FileLauncher):
    """Launches by an interpreter on this host: the ``venv`` and ``host`` runners."""

    def __init__(
        self,
        folder: RunFolder,
        pythons: Mapping[str, Path],
        variables: Sequence[str],
        program: Sequence[str] = GROUND_FLOOR,
        gpu_uuid: str | None = None,
    ) -> None:
        """
        Args:
            pythons: the interpreters, by stack.
            variables: as in ``FileLauncher``.
            program: as in ``FileLauncher``.
            gpu_uuid: the one GPU that a cell for a GPU sees; all of them where none.
        """
        super().__init__(folder, Path(tempfile.mkdtemp(prefix="rematch-")), variables, program)
        self._pythons = pythons
        self._gpu_uuid = gpu_uuid
        self._children: list[Child] = []

    def stop(self) -> None:
        """As in ``Launcher``."""
        self._is_stopped = True
        for child in list(self._children):
            child.end()

    def _look(self, cell: Cell, private: Path) -> Cell:
        cache = self._find_cache(cell, private)
        for folder in (private / "home", private / "tmp", cache):
            folder.mkdir(exist_ok=True)
        data = replace(cell.data, folder=str(locate(cell.data.folder))) if cell.data else None
        sees_one = self._gpu_uuid is not None and cell.device.startswith("cuda:")
        return replace(cell, cache=str(cache), data=data, device_index=0 if sees_one else cell.device_index)

    def _make_environment(self, cell: Cell, private: Path) -> dict[str, str]:
        here = {name: os.environ[name] for name in _PASSED if name in os.environ}
        if self._gpu_uuid is not None and cell.device.startswith("cuda:"):
            here["CUDA_VISIBLE_DEVICES"] = self._gpu_uuid
        return (
            self._pick_variables(cell)
            | here
            | {
                "HOME": str(private / "home"),
                "TMPDIR": str(private / "tmp"),
                "XDG_CACHE_HOME": str(private / "home" / ".cache"),
                "CUDA_CACHE_PATH": str(JIT_CACHE / cell.stack),
            }
        )

    def _run(self, cell: Cell, private: Path, log: Path, limit_s: float) -> Ending:
        exchange = private / "exchange"
        command = [
            *(str(self._pythons[cell.stack]), *self._program),
            *("--cell", str(exchange / "cell.json"), "--result", str(exchange / "result.json")),
            *("--die-with-parent", str(os.getpid())),
        ]
        if self._is_stopped:
            raise KeyboardInterrupt
        child = Child(command, ROOT, self._make_environment(cell, private), log)
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
