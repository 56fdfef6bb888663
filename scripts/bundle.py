"""What a report of a fault needs, in one archive: by a list of what may go in, and scrubbed all the same."""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
import pwd
import socket
import time
import zipfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

import msgspec

from scripts import environments
from scripts.engine import Engine, connect, translated_errors
from scripts.errors import Refusal
from scripts.identity import file_sha256
from scripts.runs import ROOT, RUNS, write_whole
from scripts.scrub import Scrubber
from scripts.stacks import STACKS, load_stacks

TAIL_CHARACTERS = 16384
MOST_LOGS = 400
LABELS = ("rematch.", "org.opencontainers.image.")
"""Beginnings of the labels of images that go in."""


def write_bundle(path: Path | None, doctor: str, runs: Path = RUNS) -> Path:
    """Write the archive ``path``, or one that is named by the time, and return where it is.

    Args:
        doctor: what the doctor says.
        runs: where runs are kept.

    Raises:
        Refusal: it is there already, or cannot be written.
    """
    scrubber = make_scrubber(os.environ)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in gather(doctor, runs):
            scrub = scrubber.scrub_json if name.endswith(".json") else scrubber.scrub
            archive.writestr(scrubber.scrub(name), scrub(text))
    path = path or RUNS / f"rematch-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.zip"
    if path.exists():
        raise Refusal(f"--bundle {path}: it is there already; name a file that is not")
    write_whole(path, packed.getvalue())
    return path


def make_scrubber(environment: Mapping[str, str]) -> Scrubber:
    """Make one that knows this host and this user."""
    home = Path(environment.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 (raises without a home)
    host = socket.gethostname()
    names = [environment.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")]
    # One in a container has no name.
    with contextlib.suppress(KeyError):
        names.append(pwd.getpwuid(os.getuid()).pw_name)
    return Scrubber(
        environment,
        {ROOT: "[project]", home: "~", home.resolve(): "~"},
        # A host's whole name before its first part.
        {**dict.fromkeys(names, "[user]"), host: "[host]", host.partition(".")[0]: "[host]"},
    )


def gather(doctor: str, runs: Path) -> Iterator[tuple[str, str]]:
    """Yield names and contents of all that goes in."""
    yield "doctor.txt", f"{doctor}\n"
    yield "host.json", json.dumps({"python": platform.python_version(), "system": platform.platform()})
    yield "stacks.toml", _read(STACKS)
    yield "locks.json", json.dumps(_hash_locks())
    yield "packages.json", json.dumps(_list_packages(environments.VENVS))
    yield from _gather_engine()
    yield from _gather_logs("builds", environments.VENVS)
    yield from _gather_logs("builds/images", environments.VENVS / "images")
    run = _find_latest(runs)
    if run is not None:
        for name in ("run.json", "comparison.json"):
            if (run / name).is_file():
                yield f"run/{name}", _read(run / name)
        yield from _gather_logs("run/logs", run / "logs")


def _hash_locks() -> dict[str, dict[str, str]]:
    found = {"host": {environments.HOST.locks[0].name: file_sha256(environments.HOST.locks[0])}}
    for stack in load_stacks().values():
        locks = {stack.lock_for("docker"), stack.lock_for("venv")}
        found[stack.name] = {path.name: file_sha256(path) for path in sorted(locks) if path.is_file()}
    return found


def _list_packages(venvs: Path) -> dict[str, dict[str, str]]:
    """List what is really installed, by environment."""
    found = {}
    for folder in sorted(venvs.glob("*/lib/python*/site-packages")):
        packages = {str(one.name): one.version for one in metadata.distributions(path=[str(folder)])}
        name = folder.relative_to(venvs).parts[0]
        found[name] = {"python": folder.parent.name.removeprefix("python"), **dict(sorted(packages.items()))}
    return found


def _gather_engine() -> Iterator[tuple[str, str]]:
    try:
        engine = connect()
    except Refusal as refusal:
        yield "engine.json", json.dumps({"refusal": refusal.message})
        return
    try:
        facts = msgspec.to_builtins(engine.facts)
        yield "engine.json", json.dumps({name: value for name, value in facts.items() if name != "name"})
        yield "images.json", json.dumps(_list_images(engine))
    except Refusal as refusal:
        yield "images.json", json.dumps({"refusal": refusal.message})
    finally:
        engine.api.close()


def _list_images(engine: Engine) -> dict[str, dict[str, object]]:
    """List the images that are made here, by id."""
    found: dict[str, dict[str, object]] = {}
    for kind in ("rematch.stack", "rematch.local-base"):
        with translated_errors():
            images = engine.api.images(filters={"label": kind})
        for image in images:
            labels = {
                name: value for name, value in (image["Labels"] or {}).items() if name.startswith(LABELS)
            }
            found[image["Id"]] = {"names": image["RepoTags"], "size": image["Size"], "labels": labels}
    return found


def _find_latest(runs: Path) -> Path | None:
    found = [path for path in runs.glob("*/run.json") if path.is_file()]
    return max(found, key=lambda path: path.stat().st_mtime).parent if found else None


def _gather_logs(name: str, folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.glob("*.log"))[:MOST_LOGS]:
        # A link leads out of what may go in.
        if path.is_file() and not path.is_symlink():
            yield f"{name}/{path.name}", _read_tail(path)


def _read_tail(path: Path) -> str:
    """Read the last lines of a file, all of them whole: half a secret would not be known as one."""
    content = _read(path)
    tail = content[-TAIL_CHARACTERS:]
    return tail if len(tail) == len(content) else tail.partition("\n")[2]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"cannot be read: {error.strerror}"
