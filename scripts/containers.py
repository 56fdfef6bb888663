"""Launches in containers, of which none is left behind."""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from scripts import confinement
from scripts.container import Container, explain_failure
from scripts.contract import Cell
from scripts.engine import Engine, translated_errors
from scripts.errors import Refusal
from scripts.launch import GROUND_FLOOR, JIT_CACHE, FileLauncher
from scripts.owner import find_life, name_owner
from scripts.prepared import locate
from scripts.process import Ending
from scripts.runs import ROOT, RunFolder

if TYPE_CHECKING:
    from scripts.access import GpuAccess

PRIVATE = ROOT / ".venvs" / "launches"
"""Beside the sources, which an engine has to see; temporary folders may be hidden from it."""
RUN, CELL, OWNER = "rematch.run", "rematch.cell", "rematch.owner"
AT_ONCE = 64
"""Far more launches than a run makes at the same time."""
ORPHAN_S = 86400.0
"""Age from which what is left is removed though its owner cannot be seen from here."""
_PLACES = ("_DIR", "_PATH", "_HOME", "CUDA_VISIBLE_DEVICES")
"""Ends of the names of variables that mean something on the host only."""


class DockerLauncher(FileLauncher):
    """Launches in containers: the ``docker`` runner."""

    def __init__(
        self,
        folder: RunFolder,
        engine: Engine,
        images: Mapping[str, str],
        variables: Sequence[str],
        gpu: GpuAccess | None = None,
        program: Sequence[str] = GROUND_FLOOR,
        limits: confinement.Limits | None = None,
    ) -> None:
        """
        Args:
            images: ids, by stack.
            variables: as in ``FileLauncher``.
            gpu: the one GPU that a cell for a GPU is given.
            program: as in ``FileLauncher``.

        Raises:
            Refusal: containers could not read the sources.
        """
        self._user = confinement.choose_user(engine.facts)
        self._user.check_readable(ROOT / "workloads")
        self._owner = name_owner()
        PRIVATE.mkdir(parents=True, exist_ok=True)
        private = Path(tempfile.mkdtemp(dir=PRIVATE, prefix=f"{self._owner}-"))
        super().__init__(folder, private, variables, program)
        self._engine = engine
        self._images = images
        self._gpu = gpu
        self._taken: set[Path] = set()
        self._limits = limits or confinement.limit(engine.facts)
        # An interrupt reaches only the main thread: so that none falls between a container's creation and
        # the knowledge of its name, containers are handled in others.
        self._threads = ThreadPoolExecutor(AT_ONCE)

    def stop(self) -> None:
        """As in ``Launcher``: all containers of this run are removed by force, found by label.

        An engine that cannot do so keeps nobody from ending: a container ends when its input does.
        """
        from docker.errors import DockerException
        from requests import RequestException

        self._is_stopped = True
        labels = [f"{RUN}={self.folder.path.name}", f"{OWNER}={self._owner}"]
        with contextlib.suppress(DockerException, RequestException):
            for found in self._engine.api.containers(all=True, filters={"label": labels}):
                with contextlib.suppress(Refusal, DockerException, RequestException):
                    Container(self._engine, found["Id"]).remove()

    def close(self) -> None:
        """As in ``Launcher``."""
        self._threads.shutdown()
        super().close()

    def _look(self, cell: Cell, private: Path) -> Cell:
        data = replace(cell.data, folder=confinement.DATA) if cell.data else None
        index = 0 if self._is_on_gpu(cell) else cell.device_index
        return replace(cell, cache=confinement.CACHE, data=data, device_index=index)

    def _run(self, cell: Cell, private: Path, log: Path, limit_s: float) -> Ending:
        future = self._threads.submit(self._live, cell, private, log, limit_s)
        try:
            return future.result()
        except KeyboardInterrupt:
            self.stop()
            wait([future])
            raise

    def _live(self, cell: Cell, private: Path, log: Path, limit_s: float) -> Ending:
        """See a container from its creation to its removal."""
        from docker.errors import DockerException
        from requests import RequestException

        container, ending = None, None
        try:
            if not self._is_stopped:
                container = self._create(cell, private, log)
            # `stop` may have looked before this container was there.
            if container is not None and not self._is_stopped:
                ending = container.run(log, limit_s)
        except (DockerException, RequestException) as error:
            # Once stopped, it was looked for in vain.
            if not self._is_stopped:
                ending = explain_failure(error, log)
        finally:
            if container is not None:
                container.remove()
        if ending is None or self._is_stopped:
            # Its end says nothing about the cell.
            raise KeyboardInterrupt
        return ending

    def _create(self, cell: Cell, private: Path, log: Path) -> Container:
        api = self._engine.api
        mounts = self._prepare_mounts(cell, private)
        gpu = self._gpu if self._is_on_gpu(cell) else None
        created = api.create_container(
            self._images[cell.stack],
            [*self._program, *confinement.FILES, "--die-with-input"],
            entrypoint=["python3"],
            hostname=socket.gethostname(),
            user=f"{self._user.uid}:{self._user.gid}",
            environment=self._make_environment(cell),
            working_dir=confinement.INSIDE,
            labels={RUN: self.folder.path.name, CELL: log.stem, OWNER: self._owner},
            stdin_open=True,
            host_config=confinement.confine(api, self._engine.facts, self._user, self._limits, mounts, gpu),
        )
        return Container(self._engine, created["Id"])

    def _prepare_mounts(self, cell: Cell, private: Path) -> confinement.Mounts:
        cache = self._find_cache(cell, private) if cell.cache_state == "warm" else None
        data = locate(cell.data.folder) if cell.data else None
        jit = JIT_CACHE / cell.stack if self._is_on_gpu(cell) else None
        exchange = private / "exchange"
        self._user.take(exchange)
        for kept in (cache, jit):
            if kept is not None and kept not in self._taken:
                kept.mkdir(parents=True, exist_ok=True)
                self._user.take(kept)
                self._taken.add(kept)
        if data is not None:
            self._user.check_readable(data)
        return confinement.Mounts(ROOT / "workloads", exchange, cache, data, jit)

    def _make_environment(self, cell: Cell) -> dict[str, str]:
        picked = self._pick_variables(cell)
        return {name: value for name, value in picked.items() if not name.endswith(_PLACES)} | {
            **confinement.VARIABLES,
            "CUDA_CACHE_PATH": confinement.JIT,
        }

    def _is_on_gpu(self, cell: Cell) -> bool:
        return cell.device.startswith("cuda:")


def remove_leftovers(engine: Engine) -> None:
    """Remove containers, and folders, of runs whose process died without doing so itself.

    Raises:
        Refusal: the engine does not do it.
    """
    with translated_errors():
        for found in engine.api.containers(all=True, filters={"label": OWNER}):
            life = find_life(found["Labels"][OWNER])
            is_old = found["State"] != "running" and time.time() - found["Created"] > ORPHAN_S
            if life == "gone" or (life == "unknown" and is_old):
                Container(engine, found["Id"]).remove()
    for path in PRIVATE.glob("*"):
        life = find_life(path.name.rpartition("-")[0])
        is_old = time.time() - path.stat().st_mtime > ORPHAN_S
        if life == "gone" or (life == "unknown" and is_old):
            shutil.rmtree(path, ignore_errors=True)
