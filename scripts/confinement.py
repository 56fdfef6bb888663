"""What a container may do and see: its user, its limits, its mounts. Nothing that is not named here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.errors import ExitStatus, Refusal

if TYPE_CHECKING:
    import docker

    from scripts.access import GpuAccess
    from scripts.engine import EngineFacts

INSIDE = "/rematch"
SOURCES, EXCHANGE, DATA, HOME, CACHE, JIT = (
    f"{INSIDE}/{name}" for name in ("workloads", "exchange", "data", "home", "cache", "cuda")
)
SCRATCH = "/tmp"  # noqa: S108 (the container's own)
FILES = ("--cell", f"{EXCHANGE}/cell.json", "--result", f"{EXCHANGE}/result.json")
"""Arguments of the program inside."""
VARIABLES = {
    "HOME": HOME,
    "TMPDIR": SCRATCH,
    "XDG_CACHE_HOME": f"{HOME}/.cache",
    # The image does not know the user, whom frameworks ask for by name.
    "USER": "rematch",
    "LOGNAME": "rematch",
}
NOBODY = 65532
"""Whom containers run as where the caller is root: a number that no system gives to anybody."""
LOG_BYTES = 8 * 2**20
_READABLE_FILE, _READABLE_FOLDER = 0o004, 0o005


@dataclass(frozen=True)
class Limits:
    """What a launch may use up."""

    memory_bytes: int
    """Of all its processes, files in memory included. There is no swap beyond it."""
    shared_memory_bytes: int
    """Of ``/dev/shm``, which loader workers hand their batches over in."""
    scratch_bytes: int
    """Of each of HOME, the temporary folder and the fresh cache."""
    processes: int
    """Threads too: frameworks start several for each CPU, and so does each worker."""


def limit(facts: EngineFacts) -> Limits:
    """Choose limits that keep the host alive and let every workload run."""
    memory = facts.memory_bytes - facts.memory_bytes // 8
    return Limits(
        memory_bytes=memory,
        # As much as a host without containers has by default.
        shared_memory_bytes=facts.memory_bytes // 2,
        scratch_bytes=facts.memory_bytes // 4,
        processes=min(1024 + 256 * facts.cpus, 16384),
    )


@dataclass(frozen=True)
class User:
    """Whom a container's processes run as."""

    uid: int
    gid: int
    owns_by_host: bool
    """Whether the caller and this user are one on the host too; else the host gives its files away."""

    def take(self, folder: Path) -> None:
        """Make ``folder`` and all in it this user's, so that a container can write it.

        Raises:
            OSError: it cannot be given away.
        """
        if self.owns_by_host:
            return
        for path in (folder, *folder.rglob("*")):
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def check_readable(self, folder: Path) -> None:
        """See that a container can read ``folder``.

        Raises:
            Refusal: it cannot.
        """
        if self.owns_by_host:
            return
        for path in _walk(folder):
            needed = _READABLE_FOLDER if path.is_dir() else _READABLE_FILE
            if path.stat().st_mode & needed != needed:
                raise Refusal(
                    f"{path} is root's alone, and containers of root run as user {self.uid}: "
                    f"`chmod -R o+rX {folder}`, or start this as another user",
                    ExitStatus.HOST_CANNOT,
                )


def choose_user(facts: EngineFacts) -> User:
    """Choose the caller, whose files a container reads and writes.

    A rootless engine's root is the caller, without any right of root's, and its other users are nobody on
    this host: they could not read what is the caller's alone, nor could the caller remove what they leave.
    """
    if facts.is_rootless:
        return User(0, 0, owns_by_host=True)
    if os.getuid() == 0:
        return User(NOBODY, NOBODY, owns_by_host=False)
    return User(os.getuid(), os.getgid(), owns_by_host=True)


@dataclass(frozen=True)
class Mounts:
    """Folders of the host that a container sees."""

    sources: Path
    exchange: Path
    cache: Path | None = None
    """Of compilers, where it outlives the launch."""
    data: Path | None = None
    jit: Path | None = None
    """Of the CUDA driver's compilations."""

    def for_engine(self) -> list[docker.types.Mount]:
        """Describe them so that a source which is missing is an error, and not an empty folder."""
        import docker

        found = (
            (SOURCES, self.sources, True),
            (EXCHANGE, self.exchange, False),
            (CACHE, self.cache, False),
            (DATA, self.data, True),
            (JIT, self.jit, False),
        )
        return [
            docker.types.Mount(target, str(source.resolve()), type="bind", read_only=read_only)
            for target, source, read_only in found
            if source is not None
        ]


def confine(
    api: docker.APIClient,
    facts: EngineFacts,
    user: User,
    limits: Limits,
    mounts: Mounts,
    gpu: GpuAccess | None,
) -> Any:
    """Make the engine's host configuration of a container."""
    from docker.types import LogConfig, Ulimit

    options = "rw,exec,nosuid,nodev"
    owned = f"mode=0700,uid={user.uid},gid={user.gid},size={limits.scratch_bytes}"
    # Compilers run what they make there.
    private = [HOME, SCRATCH] if mounts.cache else [HOME, SCRATCH, CACHE]
    return api.create_host_config(
        network_mode="none",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=list(_list_security(facts)),
        # Only an engine that gives all containers foreign users knows the word.
        userns_mode="host" if "name=userns" in facts.security else None,
        pids_limit=limits.processes,
        mem_limit=limits.memory_bytes,
        memswap_limit=limits.memory_bytes,
        shm_size=limits.shared_memory_bytes,
        ulimits=[Ulimit(name="core", soft=0, hard=0)],
        ipc_mode="private",
        init=True,
        cpuset_cpus=_narrow_cpus(facts),
        tmpfs=dict.fromkeys(private, f"{options},{owned}"),
        mounts=mounts.for_engine(),
        log_config=LogConfig(type=LogConfig.types.JSON, config={"max-size": str(LOG_BYTES), "max-file": "1"}),
        device_requests=gpu.device_requests() if gpu else None,
    )


def _list_security(facts: EngineFacts) -> Iterator[str]:
    yield "no-new-privileges:true"
    if "name=selinux" in facts.security:
        # It would bar the mounts, unless the user's own folders were given other labels.
        yield "label=disable"


def _narrow_cpus(facts: EngineFacts) -> str | None:
    """Name the CPUs that this process was confined to, which a container would otherwise leave."""
    usable = sorted(os.sched_getaffinity(0))
    return ",".join(map(str, usable)) if len(usable) < facts.cpus else None


def _walk(folder: Path) -> Iterator[Path]:
    yield folder
    for path in folder.iterdir():
        if path.name == "__pycache__":
            continue
        if path.is_dir():
            yield from _walk(path)
        else:
            yield path
