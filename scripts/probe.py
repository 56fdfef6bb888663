"""A container of 120 bytes that asks for a GPU, to see whether the engine hands one over."""

from __future__ import annotations

import contextlib
import io
import json
import struct
import tarfile
from typing import TYPE_CHECKING

from scripts.advice import Advice, advise
from scripts.engine import Engine, tell_error, translated_errors
from scripts.owner import name_owner

if TYPE_CHECKING:
    from scripts.access import GpuAccess

PROGRAM = "/exit"
ENDS_S = 30
_LOADED_AT = 0x400000
# push 60; pop rax; xor edi, edi; syscall: the call that ends a process, with status 0.
_EXIT = bytes.fromhex("6a3c5831ff0f05")


def make_program() -> bytes:
    """Make a static program for Linux on x86-64 that ends with status 0."""
    # The code fits where the header's identification is padded.
    identification = (b"\x7fELF" + bytes([2, 1, 1, 0]) + _EXIT).ljust(16, b"\0")
    size = 64 + 56
    header = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, _LOADED_AT + 8, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _LOADED_AT, _LOADED_AT, size, size, 0x1000)
    return identification + header + segment


def pack_root() -> bytes:
    """Pack a root file system with nothing but the program, and a place for the toolkit's linker cache."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        folder = tarfile.TarInfo("etc")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)
        for name, content, mode in (
            (PROGRAM[1:], make_program(), 0o755),
            ("etc/ld.so.conf", b"", 0o644),
        ):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def try_access(engine: Engine, access: GpuAccess, cuda: str) -> Advice | None:
    """Start a container with a GPU; return what is in the way, or ``None``.

    Args:
        cuda: version that the driver must run, by the toolkit's own check.

    Raises:
        Refusal: the engine refuses containers altogether, or is gone.
    """
    from docker.errors import APIError

    from scripts.containers import OWNER

    api = engine.api
    with translated_errors():
        said = api.import_image_from_data(pack_root(), changes=[f'CMD ["{PROGRAM}"]'])
        image = json.loads(said.strip().splitlines()[-1])["status"]
        try:
            created = api.create_container(
                image,
                environment={
                    "NVIDIA_REQUIRE_CUDA": f"cuda>={cuda}",
                    "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
                },
                labels={OWNER: name_owner()},
                host_config=api.create_host_config(
                    network_mode="none",
                    cap_drop=["ALL"],
                    security_opt=["no-new-privileges:true"],
                    device_requests=access.device_requests(),
                ),
            )
            try:
                api.start(created["Id"])
                status = int(api.wait(created["Id"], timeout=ENDS_S)["StatusCode"])
            except APIError as error:
                said = tell_error(error)
                return advise(said) or Advice("unknown", f"the engine did not hand over the GPU: {said}")
            finally:
                # The engine leaves behind what it could not start.
                api.remove_container(created["Id"], v=True, force=True)
        finally:
            # Another process may look at it right now; it holds 120 bytes.
            with contextlib.suppress(APIError):
                api.remove_image(image, force=True)
    if status:
        return Advice("unknown", f"a container that was given the GPU ended with status {status}")
    return None
