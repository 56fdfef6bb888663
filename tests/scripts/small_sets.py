"""Small data sets in MNIST's and in CIFAR-10's format, and a web server that serves them well or badly."""

import contextlib
import gzip
import hashlib
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy

from scripts import cifar, idx

TRAIN, TEST = 40, 10


def make_files(train: int = TRAIN, test: int = TEST, seed: int = 0) -> dict[str, bytes]:
    draw = numpy.random.RandomState(seed)
    files = {}
    for count, (images, labels) in zip((train, test), idx.SPLITS.values(), strict=True):
        files[images] = idx.encode(draw.randint(0, 256, (count, idx.SIDE, idx.SIDE)).astype(numpy.uint8))
        files[labels] = idx.encode(draw.randint(0, 10, count).astype(numpy.uint8))
    return files


def write_folder(folder: Path, files: Mapping[str, bytes] | None = None) -> Path:
    raw = folder / idx.RAW
    raw.mkdir(parents=True)
    for name, content in (make_files() if files is None else files).items():
        (raw / name).write_bytes(content)
    return folder


def make_batches(count: int = 20, seed: int = 0) -> dict[str, tuple[bytes, bytes]]:
    """Make pixels and labels of each batch of CIFAR-10's archive, ``count`` images in each."""
    draw = numpy.random.RandomState(seed)
    return {
        name: (draw.bytes(count * cifar.PIXELS), bytes(draw.randint(0, 10, count).tolist()))
        for name in cifar.BATCHES
    }


def write_cifar(folder: Path, count: int = 20, seed: int = 0) -> Path:
    """Write a folder that holds CIFAR-10's archive."""
    folder.mkdir(parents=True)
    cifar.pack(make_batches(count, seed), folder / cifar.ARCHIVE)
    return folder


def pack(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {f"{name}.gz": gzip.compress(content, mtime=0) for name, content in files.items()}


def define(
    path: Path, archives: Mapping[str, bytes], mirrors: list[str], name: str = "small", form: str = "mnist"
) -> Path:
    """Write a definition of these archives."""
    lines = [f"[{name}]", 'nature = "a small set"', f"mirrors = {mirrors}", f'format = "{form}"']
    lines += [f"[{name}.archives]"]
    lines += [f'"{file}" = "{hashlib.sha256(content).hexdigest()}"' for file, content in archives.items()]
    path.write_text("\n".join(lines))
    return path


@contextlib.contextmanager
def serve(archives: Mapping[str, bytes], how: str = "well") -> Iterator[str]:
    """Serve archives on this host, and give the folder's address."""
    stopping = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = archives.get(self.path.rpartition("/")[2])
            if how.isdigit() or content is None:
                self.send_error(int(how) if how.isdigit() else 404)
                return
            page = how == "with a web page"
            content = {
                "with a web page": b"<html>Please log in</html>",
                "with other bytes": content[:-1] + bytes([content[-1] ^ 1]),
            }.get(how, content)
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if page else "application/gzip")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            # Whoever asked has often gone before the end.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.send(content)

        def send(self, content: bytes) -> None:
            if how == "half":
                content = content[: len(content) // 2]
            if how == "not at all":
                stopping.wait(30)
            elif how == "by drops":
                for place in range(0, len(content), 4):
                    if stopping.is_set():
                        break
                    self.wfile.write(content[place : place + 4])
                    time.sleep(0.05)
            else:
                self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/sets/"
    finally:
        stopping.set()
        server.shutdown()
        server.server_close()
