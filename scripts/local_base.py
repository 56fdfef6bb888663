"""A base image from Debian's packages, for hosts that reach no image registry."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts import environments, uv
from scripts.engine import Engine, explain_error, translated_errors
from scripts.errors import ExitStatus, Refusal
from scripts.image_inputs import holds_credentials
from scripts.process import Child
from scripts.runs import ROOT

SCRIPT = ROOT / "docker" / "local-base" / "make-rootfs"
SUITE, PYTHON = "bookworm", "3.11"
"""Debian's release, and the Python that it has."""
MIRROR = "REMATCH_DEBIAN_MIRROR"
LABEL = "rematch.local-base"
REPOSITORY = "rematch/local-base"
DEFAULT_MIRROR = "http://deb.debian.org/debian"
PREFIX = "/opt/python"
"""Where a Python that Debian lacks comes to lie."""
LIMIT_S = 1800.0
"""For all of Debian's packages, over a slow line."""


def find_local_base(engine: Engine, python: str) -> str | None:
    """Return the id of the base that is there for ``python`` and up to date, or ``None``."""
    with translated_errors():
        found = engine.api.images(filters={"label": f"{LABEL}={hash_inputs(python)}"})
    # What is built on a base has its labels, but not its name.
    return next((str(image["Id"]) for image in found if _names(image)), None)


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
            "a base from Debian's packages is made as root; run `sudo nox -s images -- --base local`",
            ExitStatus.HOST_CANNOT,
        )
    if shutil.which("debootstrap") is None:
        raise Refusal(
            "debootstrap is not installed; `apt-get install debootstrap debian-archive-keyring`",
            ExitStatus.HOST_CANNOT,
        )
    mirror = find_mirror(os.environ)
    prefix = [str(find_prefix(python))] if python != PYTHON else []
    say(f"base for Python {python}: from Debian {SUITE}'s packages ({mirror}), about 1 minute")
    # Not where temporary files lie, which may be memory, or allow no devices.
    with tempfile.TemporaryDirectory(dir=log.parent, ignore_cleanup_errors=True) as folder:
        archive = Path(folder, "rootfs.tar")
        _make([str(SCRIPT), SUITE, mirror, str(archive), *prefix], Path(folder), log)
        return _import(engine, archive, python)


def _make(command: Sequence[str], folder: Path, log: Path) -> None:
    # All that it leaves behind goes with the folder, however it ends.
    child = Child(command, folder, {**os.environ, "TMPDIR": str(folder)}, log)
    try:
        ending = child.wait(LIMIT_S)
    except BaseException:
        child.end()
        raise
    if not ending.is_clean():
        reason = f"it took longer than {LIMIT_S:.0f} s" if ending.timed_out else _last_line(log)
        raise Refusal(f"the base cannot be made: {reason} (see {log})", ExitStatus.HOST_CANNOT)


def _import(engine: Engine, archive: Path, python: str) -> str:
    digest = hash_inputs(python)
    changes = [
        # Debian's own Python comes first. No link leads to the other: it would not find its library by one.
        f"ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:{PREFIX}/bin LANG=C.UTF-8",
        f"LABEL {LABEL}={digest} rematch.python={python} org.opencontainers.image.title=Rematch-base",
    ]
    with translated_errors():
        answer = engine.api.import_image(
            src=str(archive), repository=REPOSITORY, tag=f"{python}-{digest[:12]}", changes=changes
        )
    found = find_local_base(engine, python)
    if found is None:
        # What goes wrong after its first word, an engine says in an answer that is fine.
        raise explain_error(RuntimeError(_read_error(answer)))
    return found


def _read_error(answer: str) -> str:
    events = [json.loads(line) for line in answer.splitlines() if line.strip()]
    return next((event["error"] for event in events if "error" in event), "it imported nothing")


def remove_older_bases(engine: Engine, python: str, current: str) -> None:
    """Remove bases for ``python`` that nothing is built on any more."""
    from docker.errors import APIError

    with translated_errors():
        found = engine.api.images(filters={"label": [LABEL, f"rematch.python={python}"]})
    for name in [name for image in found if image["Id"] != current for name in _names(image)]:
        # The engine keeps what something still needs.
        with contextlib.suppress(APIError):
            engine.api.remove_image(name)


def _names(image: Mapping[str, Any]) -> list[str]:
    return [tag for tag in image.get("RepoTags") or () if tag.startswith(f"{REPOSITORY}:")]


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
    """Return the mirror of Debian that the user named, else the one that this host uses.

    Raises:
        Refusal: it holds a secret.
    """
    if named := environment.get(MIRROR):
        if holds_credentials(named):
            raise Refusal(f"{MIRROR} holds a user or a password, which the base would keep; name one without")
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
