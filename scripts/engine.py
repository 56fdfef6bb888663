"""The container engine of this host: where it listens, what it offers, and what its refusals mean."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from scripts.advice import advise
from scripts.errors import ExitStatus, Refusal

if TYPE_CHECKING:
    import docker

DEFAULT = "/var/run/docker.sock"
MINIMUM_API = (1, 40)
"""Docker 19.03: the first that hands over GPUs by a device request."""
ANSWER_S = 10.0
"""An engine that takes longer for a word about itself does not answer."""
CALL_S = 120.0
"""For calls that make and remove, on a busy disk. Waits state their own."""
_START = "start it (`systemctl start docker`, `dockerd`, or Docker's rootless service)"


class EngineFacts(msgspec.Struct, frozen=True):
    """What the engine says of itself."""

    endpoint: str
    name: str
    version: str
    api_version: str
    operating_system: str
    kernel: str
    is_rootless: bool
    runtimes: list[str]
    cdi_devices: list[str]
    """As engines of 28.2 and newer list them."""
    has_cdi: bool
    """Whether it reads CDI specifications at all."""
    memory_bytes: int
    cpus: int
    storage_driver: str
    cgroup_version: str
    security: list[str]
    root: str
    """Where images are stored."""


class Engine:
    """A connection to the engine, made by ``connect``."""

    def __init__(self, api: docker.APIClient, facts: EngineFacts) -> None:
        self.api = api
        self.facts = facts

    def describe(self) -> dict[str, str]:
        """What a run's record keeps."""
        facts = self.facts
        return {
            "version": facts.version,
            "api": facts.api_version,
            "rootless": str(facts.is_rootless).lower(),
            "storage": facts.storage_driver,
            "cgroup": facts.cgroup_version,
            "system": facts.operating_system,
        }

    def has_image(self, image: str) -> bool:
        """Tell whether ``image``, an id or a tag, is there."""
        from docker.errors import ImageNotFound

        with translated_errors():
            try:
                self.api.inspect_image(image)
            except ImageNotFound:
                return False
        return True


def connect(environment: Mapping[str, str] = os.environ) -> Engine:
    """Connect to the engine that the user's docker command would use.

    Raises:
        Refusal: there is none, it may not be used, it does not answer, or it is too old or elsewhere.
    """
    import docker
    import requests

    endpoint = find_endpoint(environment)
    if not re.match(r"unix://|(tcp|http)://(localhost|127\.0\.0\.1|\[::1\])(:|/|$)", endpoint):
        raise Refusal(
            f"the container engine at {_without_password(endpoint)} is not this host's own: it would not "
            "see the sources that are mounted; unset DOCKER_HOST or choose a local context",
            ExitStatus.HOST_CANNOT,
        )
    try:
        api = docker.APIClient(endpoint, version="auto", timeout=ANSWER_S)  # type: ignore[arg-type]
        try:
            facts = _read_facts(endpoint, api.info(), api.version())
        except BaseException:
            api.close()
            raise
    except (
        docker.errors.DockerException,
        requests.RequestException,
        ValueError,
        TypeError,
        KeyError,
    ) as error:
        raise _refuse_connection(endpoint, error) from error
    if tuple(int(part) for part in facts.api_version.split(".")) < MINIMUM_API:
        api.close()
        raise Refusal(
            f"the container engine at {endpoint} is {facts.version} (API {facts.api_version}), too old to "
            "hand over a GPU or to confine a launch; install Docker 19.03 or newer",
            ExitStatus.HOST_CANNOT,
        )
    api.timeout = CALL_S  # type: ignore[assignment]
    return Engine(api, facts)


def find_endpoint(environment: Mapping[str, str]) -> str:
    """Return what DOCKER_HOST, DOCKER_CONTEXT or the user's current context names; else the system's
    socket, or the rootless engine's where only that is there.

    Raises:
        Refusal: there is no such context.
    """
    if host := environment.get("DOCKER_HOST"):
        return host
    configured = Path(environment.get("DOCKER_CONFIG") or _home(environment) / ".docker")
    name = environment.get("DOCKER_CONTEXT") or _read_current_context(configured)
    if name and name != "default":
        return _read_context(configured, name)
    rootless = Path(environment.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}", "docker.sock")
    return f"unix://{rootless if not Path(DEFAULT).exists() and _is_there(rootless) else DEFAULT}"


@contextlib.contextmanager
def translated_errors() -> Iterator[None]:
    """Turn an engine's refusal, and its absence, into one line with the remedy.

    Raises:
        Refusal: whatever the engine refused.
    """
    import docker
    import requests

    try:
        yield
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise explain_error(error) from error


def explain_error(error: Exception) -> Refusal:
    """Say in one line what an error of the engine means for the user."""
    said = tell_error(error)
    advice = advise(said)
    if advice is not None:
        return Refusal(advice.message, ExitStatus.HOST_CANNOT)
    if is_gone(error):
        return Refusal(
            f"the container engine does not answer any more ({said}); {_START}", ExitStatus.HOST_CANNOT
        )
    return Refusal(f"the container engine refused: {said}", ExitStatus.HOST_CANNOT)


def is_gone(error: Exception) -> bool:
    """Tell whether the engine itself is not there, rather than that it refused one thing."""
    import docker
    import requests

    if isinstance(error, docker.errors.APIError):
        return False
    return isinstance(error, requests.ConnectionError | docker.errors.DockerException)


def tell_error(error: Exception) -> str:
    """Return what the engine said, in one line."""
    said = getattr(error, "explanation", None) or str(error)
    return " ".join(str(said).split())[:600]


def _read_facts(endpoint: str, info: Mapping[str, Any], version: Mapping[str, Any]) -> EngineFacts:
    security = [str(option) for option in info.get("SecurityOptions") or ()]
    found = [one for one in info.get("DiscoveredDevices") or () if one.get("Source") == "cdi"]
    return EngineFacts(
        endpoint=endpoint,
        name=str(info.get("Name", "")),
        version=str(info["ServerVersion"]),
        api_version=str(version["ApiVersion"]),
        operating_system=str(info.get("OperatingSystem", "")),
        kernel=str(info.get("KernelVersion", "")),
        is_rootless=any("rootless" in option for option in security),
        runtimes=sorted(info.get("Runtimes") or ()),
        cdi_devices=sorted(str(one["ID"]) for one in found),
        has_cdi=bool(info.get("CDISpecDirs")),
        memory_bytes=int(info.get("MemTotal") or 0),
        cpus=int(info.get("NCPU") or 0),
        storage_driver=str(info.get("Driver", "")),
        cgroup_version=str(info.get("CgroupVersion", "")),
        security=security,
        root=str(info.get("DockerRootDir", "")),
    )


def _refuse_connection(endpoint: str, error: Exception) -> Refusal:
    path, number = Path(endpoint.removeprefix("unix://")), _find_errno(error)
    if number in (errno.EACCES, errno.EPERM):
        reason = (
            f"{path}: no permission to use the container engine; join its group (`sudo usermod -aG docker "
            "$USER`, then log in again), or use Docker's rootless mode"
        )
    elif number == errno.ENOENT:
        reason = f"no container engine: {path} is not there; install Docker and {_START}"
    elif number == errno.ECONNREFUSED:
        reason = f"the container engine at {path} is not running; {_START}"
    else:
        reason = (
            f"the container engine at {path} does not answer as one ({tell_error(error)[:200]}); {_START}"
        )
    return Refusal(reason, ExitStatus.HOST_CANNOT)


def _find_errno(error: BaseException | None) -> int | None:
    """Search an exception, what it wraps and what it came from for the system's error."""
    seen: list[BaseException] = []
    left: list[Any] = [error]
    while left:
        one = left.pop()
        if not isinstance(one, BaseException) or one in seen:
            continue
        if isinstance(one, OSError) and one.errno is not None:
            return one.errno
        seen.append(one)
        left += [one.__cause__, one.__context__, *one.args]
    return None


def _read_current_context(folder: Path) -> str | None:
    try:
        content = msgspec.json.decode((folder / "config.json").read_bytes())
        return str(content.get("currentContext") or "") or None
    except (OSError, msgspec.DecodeError, AttributeError):
        return None


def _read_context(folder: Path, name: str) -> str:
    # The folder's name is the hash of the context's: docker's own layout.
    meta = folder / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest() / "meta.json"
    try:
        return str(msgspec.json.decode(meta.read_bytes())["Endpoints"]["docker"]["Host"])
    except (OSError, msgspec.DecodeError, KeyError, TypeError) as error:
        raise Refusal(
            f"{meta}: there is no docker context {name!r} that can be read; see `docker context ls`, or "
            "unset DOCKER_CONTEXT"
        ) from error


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 (raises without a home)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _without_password(endpoint: str) -> str:
    return re.sub(r"//[^/@]*@", "//", endpoint)
