"""Container engines that are not there: what they answer over a real socket, and to a caller."""

import contextlib
import json
import socketserver
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec
import requests
from docker.errors import APIError
from docker.types import HostConfig

from scripts.engine import Engine, EngineFacts

VERSION = {"Version": "28.3.0", "ApiVersion": "1.51"}
INFO = {
    "Name": "a",
    "ServerVersion": "28.3.0",
    "OperatingSystem": "Debian",
    "KernelVersion": "6.1",
    "Runtimes": {"runc": {}, "nvidia": {}},
    "MemTotal": 8 << 30,
    "NCPU": 4,
    "Driver": "overlay2",
    "CgroupVersion": "2",
    "SecurityOptions": ["name=seccomp,profile=builtin", "name=cgroupns"],
    "DockerRootDir": "/var/lib/docker",
    "MemoryLimit": True,
    "PidsLimit": True,
}


@contextlib.contextmanager
def serve(path: Path, version: object = VERSION, info: object = INFO) -> Iterator[str]:
    """Answer as an engine does at the socket ``path``; yield its endpoint. Bytes are sent as they are."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = info if self.path.endswith("/info") else version
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            # Who asked has no address to be logged.
            return

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True

    with Server(str(path), Handler) as server:
        # The server's own pace of looking whether it should end.
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"unix://{path}"
        finally:
            server.shutdown()
            thread.join()


def make_info(**changes: Any) -> Mapping[str, Any]:
    return {**INFO, **changes}


class FakeApi:
    """The SDK's client of an engine that starts containers with GPUs as ``answers`` says: by what was asked
    for (a UUID, a CDI device's name), the text of its refusal, or the status that the container ends with."""

    def __init__(self, answers: Mapping[str, str | int]) -> None:
        self.answers = answers
        self.created: list[dict[str, Any]] = []
        self.there: set[str] = set()
        """Containers and images that were made and not removed."""

    @property
    def asked(self) -> list[str]:
        """What was asked for, in order."""
        requests = [one["host_config"]["DeviceRequests"] for one in self.created]
        return [request["DeviceIDs"][0] for (request,) in requests]

    def import_image_from_data(self, data: bytes, changes: list[str]) -> str:
        self.there.add("sha256:1")
        return '{"status":"sha256:1"}\n'

    def create_host_config(self, **said: Any) -> HostConfig:
        return HostConfig(version="1.41", **said)

    def create_container(self, image: str, **said: Any) -> dict[str, str]:
        self.created.append({"image": image, **said})
        self.there.add(f"container {len(self.created)}")
        return {"Id": f"container {len(self.created)}"}

    def start(self, container: str) -> None:
        answer = self.answers[self.asked[-1]]
        if isinstance(answer, str):
            raise refused(500, answer)

    def wait(self, container: str, timeout: int) -> dict[str, object]:
        return {"StatusCode": self.answers[self.asked[-1]]}

    def remove_container(self, container: str, v: bool, force: bool) -> None:
        self.there.remove(container)

    def remove_image(self, image: str, force: bool) -> None:
        self.there.remove(image)


def refused(status: int, said: str) -> APIError:
    """What the SDK raises when the engine answers ``status`` and ``said``."""
    response = requests.Response()
    response.status_code = status
    return APIError("refused", response=response, explanation=said)


def make_facts(**changes: Any) -> EngineFacts:
    facts = EngineFacts(
        endpoint="unix:///var/run/docker.sock",
        name="a",
        version="28.3.0",
        api_version="1.51",
        operating_system="Debian",
        kernel="6.1",
        is_rootless=False,
        runtimes=["nvidia", "runc"],
        cdi_devices=[],
        has_cdi=False,
        memory_bytes=8 << 30,
        cpus=4,
        storage_driver="overlay2",
        cgroup_version="2",
        security=[],
        root="/var/lib/docker",
    )
    return msgspec.structs.replace(facts, **changes)


def make_engine(answers: Mapping[str, str | int], **facts: Any) -> tuple[Engine, FakeApi]:
    api = FakeApi(answers)
    return Engine(api, make_facts(**facts)), api  # type: ignore[arg-type]
