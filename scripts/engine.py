"""The container engine of this host: where it listens, what it offers, and what its refusals mean."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from scripts.advice import advise
from scripts.endpoint import find_endpoint
from scripts.errors import ExitStatus, Refusal

if TYPE_CHECKING:
    import docker

MINIMUM_API = "1.40"
"""Docker 19.03: the first that hands over GPUs by a device request."""
ANSWER_S = 5.0
"""An engine that takes longer for a word about itself does not answer."""
CALL_S = 120.0
"""For calls that make and remove, on a busy disk. Waits state their own."""
_LIMITS = {"MemoryLimit": "memory", "PidsLimit": "processes"}
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
    unlimited: list[str] = []
    """What it cannot limit, of ``memory`` and ``processes``."""


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
                self.api.inspect_image(image)  # type: ignore[no-untyped-call]
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
    _knock(Path(endpoint.removeprefix("unix://")))
    try:
        # Told the version, the SDK asks nothing by itself, so that all can be closed that is opened.
        with contextlib.closing(_open(endpoint, MINIMUM_API, ANSWER_S)) as first:
            version = first.version(api_version=False)
        api_version = str(version["ApiVersion"])
        if _order(api_version) < _order(MINIMUM_API):
            raise Refusal(
                f"the container engine at {endpoint} is {version.get('Version')} (API {api_version}), too "
                "old to hand over a GPU or to confine a launch; install Docker 19.03 or newer",
                ExitStatus.HOST_CANNOT,
            )
        with contextlib.closing(_open(endpoint, api_version, ANSWER_S)) as second:
            facts = _read_facts(endpoint, api_version, second.info())
    except (
        docker.errors.DockerException,
        requests.RequestException,
        # What answers there is no engine, or none that is known.
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
    ) as error:
        raise Refusal(
            f"the container engine at {endpoint} does not answer as one ({tell_error(error)[:200]}); "
            f"{_START}",
            ExitStatus.HOST_CANNOT,
        ) from error
    return Engine(_open(endpoint, api_version, CALL_S), facts)


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
    import docker
    import requests

    said = tell_error(error)
    advice = advise(said)
    if advice is not None:
        return Refusal(advice.message, ExitStatus.HOST_CANNOT)
    # What the engine itself answered is one of requests' errors too.
    if isinstance(error, requests.RequestException) and not isinstance(error, docker.errors.APIError):
        return Refusal(
            f"the container engine does not answer any more ({said}); {_START}", ExitStatus.HOST_CANNOT
        )
    return Refusal(f"the container engine refused: {said}", ExitStatus.HOST_CANNOT)


def tell_error(error: Exception) -> str:
    """Return what the engine said, in one line."""
    said = getattr(error, "explanation", None) or str(error)
    return " ".join(str(said).split())[:600]


def _open(endpoint: str, api_version: str, timeout_s: float) -> docker.APIClient:
    import docker

    return docker.APIClient(endpoint, version=api_version, timeout=timeout_s)  # type: ignore[arg-type]


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _read_facts(endpoint: str, api_version: str, info: Mapping[str, Any]) -> EngineFacts:
    security = [str(option) for option in info.get("SecurityOptions") or ()]
    found = [one for one in info.get("DiscoveredDevices") or () if one.get("Source") == "cdi"]
    return EngineFacts(
        endpoint=endpoint,
        name=str(info.get("Name", "")),
        version=str(info["ServerVersion"]),
        api_version=api_version,
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
        unlimited=[words for name, words in _LIMITS.items() if info.get(name) is False],
    )


def _knock(path: Path) -> None:
    """See that somebody listens, and to whom: the SDK tells that less clearly.

    Raises:
        Refusal: nobody does, or not to this user.
    """
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(ANSWER_S)
            client.connect(str(path))
    except PermissionError as error:
        reason = (
            f"{path}: no permission to use the container engine; join its group (`sudo usermod -aG docker "
            "$USER`, then log in again), or use Docker's rootless mode"
        )
        raise Refusal(reason, ExitStatus.HOST_CANNOT) from error
    except FileNotFoundError as error:
        reason = f"no container engine: {path} is not there; install Docker and {_START}"
        raise Refusal(reason, ExitStatus.HOST_CANNOT) from error
    except OSError as error:
        reason = f"the container engine at {path} is not running ({error.strerror or error}); {_START}"
        raise Refusal(reason, ExitStatus.HOST_CANNOT) from error
