"""Container engines that are not there: what they answer over a real socket, and to a caller."""

import contextlib
import json
import socketserver
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

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
