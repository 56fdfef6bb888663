"""What an image is made from, and the hash of it that says whether one is up to date."""

import hashlib
import io
import os
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from scripts.environments import BUILD_LOCK, UV_LOCK
from scripts.errors import Refusal
from scripts.runs import ROOT
from scripts.stacks import Stack

BASES = ("pinned", "alternative", "local")
INSTALLER = ROOT / "docker" / "install-stack"
TRUST = ROOT / "docker" / "trust"
TRUST_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
TRUSTED = (
    Path("/etc/ssl/certs/ca-certificates.crt"),
    Path("/etc/pki/tls/certs/ca-bundle.crt"),
)
"""Where Debian and Fedora keep what the whole host trusts."""


@dataclass(frozen=True)
class Inputs:
    """All that decides what is in the image of a stack on a base."""

    stack: Stack
    base: str
    files: Mapping[str, bytes]
    """By path within the project, as a ``docker build`` by hand has them."""
    sha256: str

    @property
    def dockerfile(self) -> str:
        return f"docker/{self.stack.name}/Dockerfile"


def is_base(text: str) -> bool:
    """Tell whether ``text`` names a base: one of ``BASES``, or an image by its digest."""
    return text in BASES or bool(re.fullmatch(r"[\w./:-]+@sha256:[0-9a-f]{64}", text, re.ASCII))


def holds_credentials(address: str) -> bool:
    """Tell whether an address names a user, for which some servers take a secret, or a password."""
    parts = urlsplit(address)
    return bool(parts.username or parts.password)


def list_inputs(stack: Stack, base: str) -> Inputs:
    """Read what the image of ``stack`` on ``base`` is made from.

    Raises:
        Refusal: a file is missing.
    """
    paths = [Path(stack.folder, "Dockerfile"), stack.lock_for("docker"), INSTALLER, UV_LOCK]
    paths += [BUILD_LOCK] if stack.sources else []
    files = {}
    for path in paths:
        try:
            files[str(path.relative_to(ROOT))] = path.read_bytes()
        except OSError as error:
            raise Refusal(f"{path}: {error.strerror}; is this a whole clone?") from error
    digest = hashlib.sha256(f"{base}\n".encode())
    for name, content in sorted(files.items()):
        digest.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
    return Inputs(stack, base, files, digest.hexdigest())


def pack_context(inputs: Inputs, environment: Mapping[str, str] = os.environ) -> io.BytesIO:
    """Pack what the engine needs for a build: the inputs, and what this host trusts.

    The certificates decide which index may be asked and not what is installed, which hashes do: they are no
    part of an image's identity.
    """
    files = dict(inputs.files)
    for path in TRUST.iterdir():
        files[str(path.relative_to(ROOT))] = path.read_bytes()
    bundle = find_trust(environment)
    if bundle is not None:
        files["docker/trust/host.pem"] = bundle.read_bytes()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in sorted(files.items()):
            # Owner, time and mode are part of the engine's cache key: equal on every host.
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o755 if name == str(INSTALLER.relative_to(ROOT)) else 0o644
            archive.addfile(entry, io.BytesIO(content))
    packed.seek(0)
    return packed


def find_trust(environment: Mapping[str, str]) -> Path | None:
    """Return the bundle of certificates that this host trusts."""
    named = [Path(environment[name]) for name in TRUST_VARIABLES if environment.get(name)]
    return next((path for path in (*named, *TRUSTED) if path.is_file()), None)
