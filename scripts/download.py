"""Downloading archives: mirrors in order, nothing kept that is not the file that is wanted."""

from __future__ import annotations

import gzip
import re
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from scripts.errors import ExitStatus, Refusal

LARGEST_BYTES = 2**30
"""Of an archive, and of what is in it."""
CHUNK_BYTES = 2**16


@dataclass(frozen=True)
class Patience:
    """How long a mirror is waited for, in seconds."""

    connect_s: float = 10
    read_s: float = 20
    """Between two pieces."""
    whole_s: float = 600


class _Refused(Exception):
    """A mirror does not serve the file."""


def fetch(
    archives: Mapping[str, str],
    mirrors: Sequence[str],
    folder: Path,
    unpack: Callable[[Path], None],
    say: Callable[[str], None],
    patience: Patience = Patience(),
) -> None:
    """Download archives into ``folder`` and unpack them there.

    Args:
        archives: sha256 by name.
        mirrors: addresses of folders, asked in this order for each archive.
        unpack: replaces an archive by what it holds.

    Raises:
        Refusal: no mirror serves a file, or it is not as it should be; each mirror's reason is named.
        OSError: the folder cannot be written.
    """
    import pooch  # type: ignore[import-untyped]

    pooch.get_logger().setLevel("CRITICAL")

    def take(url: str, output: str | IO[bytes], _: Any) -> None:
        _download(url, Path(str(output)), patience)

    for name, sha256 in archives.items():
        reasons = []
        for mirror in mirrors:
            url = f"{mirror.rstrip('/')}/{name}"
            try:
                pooch.retrieve(url, known_hash=f"sha256:{sha256}", fname=name, path=folder, downloader=take)
                unpack(folder / name)
                break
            except _Refused as refused:
                reasons.append(_without_user(f"{mirror}: {refused}"))
            except ValueError:
                reasons.append(_without_user(f"{mirror}: another file than is wanted (its checksum differs)"))
            if mirror != mirrors[-1]:
                say(f"{name}: {reasons[-1]}; asking the next mirror")
        else:
            raise Refusal(
                f"{name}: no mirror serves it ({'; '.join(reasons)}); check the network or proxy, give the "
                "files by --data FOLDER, or leave --data out: the default needs none",
                ExitStatus.HOST_CANNOT,
            )


def _download(url: str, output: Path, patience: Patience) -> None:
    import requests
    import urllib3

    end = time.monotonic() + patience.whole_s
    size = 0
    try:
        with (
            requests.get(
                url,
                headers={"Accept-Encoding": "identity"},
                stream=True,
                timeout=(patience.connect_s, patience.read_s),
            ) as response,
            output.open("wb") as file,
        ):
            if response.status_code != 200:
                raise _Refused(f"answers {response.status_code} {response.reason}")
            if "html" in response.headers.get("content-type", ""):
                raise _Refused("answers with a web page")
            # As it arrives: a mirror that sends it by drops must not be waited for in one call. Not decoded:
            # some servers label an archive as a compressed page, and its checksum is that of the archive.
            while chunk := response.raw.read1(CHUNK_BYTES, decode_content=False):
                size += len(chunk)
                file.write(chunk)
                if size > LARGEST_BYTES:
                    raise _Refused("sends more than any data set has")
                if time.monotonic() > end:
                    raise _Refused(f"has not sent it within {patience.whole_s:.0f} s")
    except requests.Timeout as error:
        raise _Refused("does not answer in time") from error
    except requests.exceptions.ProxyError as error:
        # What it says of the connection is true of the proxy, not of the mirror.
        raise _Refused(f"the proxy does not let it through ({_explain(error)})") from error
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise _Refused(_explain(error)) from error


def _explain(error: Exception) -> str:
    text = str(error)
    known = {
        "resolve": "its name is not found",
        "refused": "refuses the connection",
        "CERTIFICATE": "its certificate is not trusted",
        "Read timed out": "does not go on sending",
        "IncompleteRead": "breaks off",
    }
    return next((words for key, words in known.items() if key.lower() in text.lower()), text[:200])


def _without_user(text: str) -> str:
    """Leave out names and passwords of addresses."""
    return re.sub(r"//[^/\s]*@", "//", text)


def unpack(archive: Path) -> None:
    """Unpack an archive beside itself and remove it: the files are what is verified from now on.

    Raises:
        Refusal: it is none, or unpacks to more than any data set has.
        OSError: the folder cannot be written.
    """
    size = 0
    try:
        with gzip.open(archive, "rb") as packed, archive.with_suffix("").open("wb") as file:
            while chunk := packed.read(CHUNK_BYTES):
                size += len(chunk)
                if size > LARGEST_BYTES:
                    raise EOFError
                file.write(chunk)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Refusal(
            f"{archive.name}: no gzipped file of a sensible size, though its checksum is right; mend the "
            "definition"
        ) from error
    archive.unlink()
