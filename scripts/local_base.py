"""A base image from Debian's packages, for hosts that reach no image registry."""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from scripts import environments, uv
from scripts.engine import Engine, translated_errors
from scripts.errors import ExitStatus, Refusal
from scripts.runs import ROOT

SCRIPT = ROOT / "docker" / "local-base" / "make-rootfs"
SUITE, PYTHON = "bookworm", "3.11"
"""Debian's release, and the Python that it has."""
MIRROR = "REMATCH_DEBIAN_MIRROR"
LABEL = "rematch.local-base"
DEFAULT_MIRROR = "http://deb.debian.org/debian"


def find_local_base(engine: Engine, python: str) -> str | None:
    """Return the id of the base that is there for ``python`` and up to date, or ``None``."""
    with translated_errors():
        found = engine.api.images(filters={"label": f"{LABEL}={hash_inputs(python)}"})
    # An image that was built on it has its labels too.
    own = [image for image in found if "rematch.stack" not in (image.get("Labels") or {})]
    return next((str(image["Id"]) for image in own if image.get("RepoTags")), None)


def ensure_local_base(engine: Engine, python: str, say: Callable[[str], None], log: Path) -> str:
    """Return the id of the base for ``python``, made from Debian's packages if it is not there.

    Raises:
        Refusal: this host lacks what that takes, or debootstrap failed.
    """
    found = find_local_base(engine, python)
    if found:
        return found
    if os.geteuid() != 0:
        raise Refusal(
            "a base from Debian's packages is made as root; run `sudo nox -s images -- --base local`"
        )
    if shutil.which("debootstrap") is None:
        raise Refusal(
            "debootstrap is not installed; `apt-get install debootstrap debian-archive-keyring`",
            ExitStatus.HOST_CANNOT,
        )
    command = [str(SCRIPT), SUITE, find_mirror(os.environ)]
    command += [str(find_prefix(python))] if python != PYTHON else []
    say(f"base for Python {python}: from Debian {SUITE}'s packages ({command[2]}), about 1 minute")
    with tempfile.TemporaryDirectory(prefix="rematch-") as folder:
        archive = Path(folder, "rootfs.tar")
        with archive.open("wb") as stream, log.open("wb") as output:
            answer = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=stream, stderr=output, check=False
            )
        if answer.returncode:
            raise Refusal(f"the base cannot be made: {_last_line(log)} (see {log})", ExitStatus.HOST_CANNOT)
        return _import(engine, archive, python)


def _import(engine: Engine, archive: Path, python: str) -> str:
    digest = hash_inputs(python)
    changes = [
        "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8",
        f"LABEL {LABEL}={digest} rematch.python={python} org.opencontainers.image.title=Rematch-base",
    ]
    with translated_errors():
        engine.api.import_image(
            src=str(archive), repository="rematch/local-base", tag=f"{python}-{digest[:12]}", changes=changes
        )
    found = find_local_base(engine, python)
    assert found is not None
    return found


def remove_older_bases(engine: Engine, python: str, current: str) -> None:
    """Remove bases for ``python`` that nothing is built on any more."""
    from docker.errors import APIError

    with translated_errors():
        found = engine.api.images(filters={"label": [LABEL, f"rematch.python={python}"]})
    for image in found:
        if image["Id"] != current and "rematch.stack" not in (image.get("Labels") or {}):
            # The engine keeps what something still needs.
            with contextlib.suppress(APIError):
                engine.api.remove_image(image["Id"])


def hash_inputs(python: str) -> str:
    """Hash what the base is made from, as far as this project decides it; the packages are Debian's."""
    digest = hashlib.sha256(SCRIPT.read_bytes())
    digest.update(f"{SUITE} {python}".encode())
    return digest.hexdigest()


def find_prefix(python: str) -> Path:
    """Return the folder of an installed Python that Debian lacks.

    Raises:
        Refusal: there is none.
    """
    found = uv.find_python(environments.find_uv(), python)
    if found is None:
        raise Refusal(
            f"Python {python} is not installed, and Debian {SUITE} has none; install it by pyenv or uv",
            ExitStatus.HOST_CANNOT,
        )
    command = [str(found), "-c", "import sys; print(sys.base_prefix)"]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


def find_mirror(environment: Mapping[str, str], apt: Path = Path("/etc/apt")) -> str:
    """Return the mirror of Debian that the user named, else the one that this host uses."""
    if named := environment.get(MIRROR):
        return named
    for path in sorted([*apt.glob("sources.list"), *apt.glob("sources.list.d/*")]):
        text = path.read_text(encoding="utf-8", errors="replace")
        for line in text.splitlines():
            found = re.match(r"(?:deb\s+(?:\[[^]]*\]\s+)?|URIs:\s*)(https?://\S+?/debian)/?(?:\s|$)", line)
            if found:
                return found.group(1)
    return DEFAULT_MIRROR


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.removeprefix("E: ") for line in reversed(lines) if line.strip()), "it said nothing")[
        :300
    ]
