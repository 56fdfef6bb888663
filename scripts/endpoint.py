"""Where the engine listens that the user's docker command would ask."""

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from scripts.errors import ExitStatus, Refusal

DEFAULT = Path("/var/run/docker.sock")


def find_endpoint(environment: Mapping[str, str]) -> str:
    """Return what DOCKER_HOST, DOCKER_CONTEXT or the user's current context names; else the system's
    socket, or the rootless engine's where only that is there.

    Raises:
        Refusal: there is no such context, or it is no engine of this host.
    """
    endpoint = environment.get("DOCKER_HOST") or _find_in_contexts(environment) or _find_socket(environment)
    if not re.match(r"unix:///.", endpoint):
        raise Refusal(
            f"the container engine at {_without_user(endpoint)} is not asked through a unix socket of this "
            "host, and would not see the sources that are mounted: unset DOCKER_HOST or choose a local "
            "context (`docker context use default`)",
            ExitStatus.HOST_CANNOT,
        )
    return endpoint


def _find_in_contexts(environment: Mapping[str, str]) -> str | None:
    configured = environment.get("DOCKER_CONFIG")
    folder = Path(configured) if configured else _find_home(environment) / ".docker"
    name = environment.get("DOCKER_CONTEXT") or _read_current_context(folder)
    return _read_context(folder, name) if name and name != "default" else None


def _find_socket(environment: Mapping[str, str]) -> str:
    rootless = Path(environment.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}", "docker.sock")
    return f"unix://{rootless if not _is_there(DEFAULT) and _is_there(rootless) else DEFAULT}"


def _read_current_context(folder: Path) -> str | None:
    try:
        content = msgspec.json.decode((folder / "config.json").read_bytes())
        return str(content.get("currentContext") or "") or None
    except (OSError, msgspec.DecodeError, AttributeError):
        # docker itself warns of such a file and goes on.
        return None


def _read_context(folder: Path, name: str) -> str:
    # The folder's name is the hash of the context's: docker's own layout.
    meta = folder / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest() / "meta.json"
    try:
        return str(msgspec.json.decode(meta.read_bytes())["Endpoints"]["docker"]["Host"])
    except (OSError, msgspec.DecodeError, KeyError, TypeError) as error:
        raise Refusal(
            f"{meta}: there is no docker context {name!r} that can be read; see `docker context ls`, and "
            "choose one by DOCKER_CONTEXT or `docker context use`",
            ExitStatus.HOST_CANNOT,
        ) from error


def _find_home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 (raises without a home)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _without_user(endpoint: str) -> str:
    """Leave out a name and a password."""
    return re.sub(r"//.*@", "//", endpoint)
