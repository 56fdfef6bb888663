import contextlib
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scripts.download import Patience, fetch, unpack
from scripts.errors import ExitStatus, Refusal
from tests.scripts.small_sets import make_files, pack, serve

FILES = make_files()
ARCHIVES = pack(FILES)
PINS = {name: hashlib.sha256(content).hexdigest() for name, content in ARCHIVES.items()}
QUICK = Patience(connect_s=2, read_s=0.5, whole_s=1)
NOWHERE = "http://127.0.0.1:9/"


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("403", "answers 403 Forbidden"),
        ("503", "answers 503"),
        ("with a web page", "answers with a web page"),
        ("with other bytes", "its checksum differs"),
        ("half", "breaks off"),
        ("not at all", "does not"),
        ("by drops", "has not sent it within 1 s"),
    ],
)
def test_a_mirror_that_fails_is_told_and_the_next_one_asked(tmp_path: Path, how: str, words: str) -> None:
    """D1"""
    said: list[str] = []
    with serve(ARCHIVES, how) as bad, serve(ARCHIVES) as good:
        fetch(PINS, [bad, good], tmp_path, unpack, said.append, QUICK)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == FILES
    # Labels, a hundred bytes of them, may arrive by drops too.
    assert len(said) == 4 or (how == "by drops" and len(said) >= 2)
    assert all(words in line and "asking the next mirror" in line for line in said)


def test_where_no_mirror_serves_each_ones_reason_and_the_remedy_are_told(tmp_path: Path) -> None:
    """D1"""
    with serve(ARCHIVES, "403") as bad, pytest.raises(Refusal) as refused:
        fetch(PINS, [NOWHERE, bad], tmp_path, unpack, lambda line: None, QUICK)
    message = refused.value.message
    assert refused.value.status == ExitStatus.HOST_CANNOT
    for words in ("refuses the connection", "403 Forbidden", "leave --data out", "--data FOLDER"):
        assert words in message
    assert "\n" not in message
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_nobody_knows_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"its name is not found|proxy"):
        fetch(PINS, ["http://no-such-host.invalid/"], tmp_path, unpack, lambda line: None, QUICK)


def test_an_archive_that_is_none_though_its_checksum_is_right_is_refused(tmp_path: Path) -> None:
    """D2"""
    archive = tmp_path / "images.gz"
    for content in (b"no gzip at all", ARCHIVES["train-images-idx3-ubyte.gz"][:-9]):
        archive.write_bytes(content)
        with pytest.raises(Refusal, match="no gzipped file"):
            unpack(archive)


def test_an_archive_that_unpacks_to_more_than_any_set_has_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scripts.download.LARGEST_BYTES", 1000)
    archive = tmp_path / "images.gz"
    archive.write_bytes(ARCHIVES["train-images-idx3-ubyte.gz"])
    with pytest.raises(Refusal, match="sensible size"):
        unpack(archive)


@contextlib.contextmanager
def serve_as_compressed_pages(encoding: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = ARCHIVES[self.path.rpartition("/")[2]]
            self.send_response(200)
            self.send_header("Content-Encoding", encoding)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip"])
def test_an_archive_that_a_mirror_labels_as_a_compressed_page_is_kept_as_it_is(
    tmp_path: Path, encoding: str
) -> None:
    """D1"""
    with serve_as_compressed_pages(encoding) as mirror:
        fetch(PINS, [mirror], tmp_path, unpack, lambda line: None, QUICK)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == FILES


def test_a_proxy_that_fails_is_blamed_and_not_the_mirror(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D1"""
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, NOWHERE)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(Refusal, match=r"the proxy does not let it through \(refuses the connection\)"):
        fetch(PINS, ["http://mirror.invalid/"], tmp_path, unpack, lambda line: None, QUICK)


@pytest.mark.parametrize("address", [NOWHERE, "http://127.0.0.1:99999/"])
def test_a_mirrors_user_and_password_are_not_told(tmp_path: Path, address: str) -> None:
    said: list[str] = []
    private = address.replace("//", "//user:hunter2@")
    with pytest.raises(Refusal) as refused:
        fetch(PINS, [private, f"{private}other/"], tmp_path, unpack, said.append, QUICK)
    assert address in refused.value.message
    assert said
    for text in (refused.value.message, *said):
        assert "hunter2" not in text
        assert "user" not in text
