"""The stacks' images: found by what they are made from, built when missing or stale:
``python -m scripts.images``."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.arguments import Parser
from scripts.build import build
from scripts.catalogue import find_names
from scripts.engine import Engine, connect, translated_errors
from scripts.environments import VENVS
from scripts.errors import ExitStatus, Refusal, run_program
from scripts.image_inputs import BASES, Inputs, is_base, list_inputs
from scripts.interruption import end_with_front_door, interruptible
from scripts.local_base import ensure_local_base, find_local_base, remove_older_bases
from scripts.stacks import Stack, load_stacks

if TYPE_CHECKING:
    from docker.errors import APIError

GIB = 1 << 30
LOGS = VENVS / "images"
ROOM = 1.3
"""Disk that a build takes for a while, as a multiple of the image."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class BuiltImage:
    """An image that is there and up to date."""

    stack: str
    id: str
    base: str
    """As results name it: an image by digest, or ``local@`` and the id of a base made here."""
    input_sha256: str
    size_bytes: int

    @property
    def tag(self) -> str:
        return name_tag(self.stack, self.input_sha256)


def name_tag(stack: str, input_sha256: str) -> str:
    return f"rematch/{stack}:{input_sha256[:12]}"


def find_image(engine: Engine, stack: Stack, base: str | None) -> BuiltImage | None:
    """Return the image of ``stack`` that is there and up to date; without a ``base``, on the pinned one, or
    else on a local one."""
    for kind in [base] if base else ["pinned", "local"]:
        identity = identify_base(engine, stack, kind)
        if identity is not None and (found := _find(engine, list_inputs(stack, identity))):
            return found
    return None


def identify_base(engine: Engine, stack: Stack, base: str) -> str | None:
    """Name a base as results do; ``None`` for a local one that was not made yet.

    Raises:
        Refusal: the stack names no alternative.
    """
    if base == "local":
        found = find_local_base(engine, stack.python)
        return f"local@{found}" if found else None
    if base == "pinned":
        return f"{stack.base.image}@{stack.base.digest}"
    if base == "alternative":
        if stack.base.alternative is None:
            raise Refusal(f"{stack.name} names no alternative base; see docker/stacks.toml")
        return stack.base.alternative
    return base


def ensure_images(
    engine: Engine, stacks: Sequence[Stack], base: str | None, say: Say, is_forced: bool = False
) -> dict[str, BuiltImage]:
    """Return the images of ``stacks`` by name, built where they are missing or stale.

    Raises:
        Refusal: one cannot be built; the message says why and what to do.
    """
    chosen = base or choose_base(engine, stacks)
    found = {stack.name: find_image(engine, stack, chosen) for stack in stacks}
    wanted = [stack for stack in stacks if is_forced or found[stack.name] is None]
    if wanted:
        _announce(engine, wanted, chosen, say)
        with _alone(say):
            for stack in wanted:
                # Another session may have built it while this one waited.
                image = None if is_forced else find_image(engine, stack, chosen)
                found[stack.name] = image or _build(engine, stack, chosen, say, is_forced)
    return {name: image for name, image in found.items() if image is not None}


def choose_base(engine: Engine, stacks: Sequence[Stack]) -> str:
    """Choose the base that most of the images on this host have; the pinned one of equals."""
    counts = {
        kind: sum(find_image(engine, stack, kind) is not None for stack in stacks)
        for kind in ("pinned", "local")
    }
    return "local" if counts["local"] > counts["pinned"] else "pinned"


def remove_superseded(engine: Engine, image: BuiltImage, before: BuiltImage | None, say: Say) -> None:
    """Remove older images of the same stack on the same kind of base that no container uses.

    Args:
        before: the image whose name the new one took.
    """
    from docker.errors import APIError

    kind = image.base.partition("@")[0]
    with translated_errors():
        others = engine.api.images(filters={"label": f"rematch.stack={image.stack}"})
    for other in others:
        if other["Id"] == image.id or other["Labels"].get("rematch.base", "").partition("@")[0] != kind:
            continue
        # What a user builds on an image has its labels, and is the user's.
        names = [tag for tag in other.get("RepoTags") or () if tag.startswith(f"rematch/{image.stack}:")]
        if before is not None and other["Id"] == before.id:
            names = [before.id]
        try:
            for name in names:
                engine.api.remove_image(name)
        except APIError as error:
            _refuse_unless_in_use(error)
        else:
            if names:
                say(f"{image.stack}: removed its older image, {describe_size(other['Size'])}")


def _find(engine: Engine, inputs: Inputs) -> BuiltImage | None:
    with translated_errors():
        found = engine.api.images(
            filters={"label": [f"rematch.input={inputs.sha256}", f"rematch.stack={inputs.stack.name}"]}
        )
    # What somebody builds on an image has its labels too, but not its name.
    tag = name_tag(inputs.stack.name, inputs.sha256)
    named = next((image for image in found if tag in (image.get("RepoTags") or ())), None)
    if named is None:
        return None
    return BuiltImage(inputs.stack.name, str(named["Id"]), inputs.base, inputs.sha256, int(named["Size"]))


def _build(engine: Engine, stack: Stack, base: str, say: Say, is_forced: bool) -> BuiltImage:
    LOGS.mkdir(parents=True, exist_ok=True)
    if base == "local":
        made = ensure_local_base(engine, stack.python, say, LOGS / f"local-base-{stack.python}.log")
        identity = f"local@{made}"
    else:
        identity = str(identify_base(engine, stack, base))
    inputs, begin = list_inputs(stack, identity), time.monotonic()
    before = _find(engine, inputs)
    build(engine, inputs, name_tag(stack.name, inputs.sha256), LOGS / f"{stack.name}.log", say, is_forced)
    image = _find(engine, inputs)
    if image is None:
        raise Refusal(f"{stack.name}: its image is gone right after it was built", ExitStatus.HOST_CANNOT)
    size = describe_size(image.size_bytes)
    say(f"{stack.name}: built in {time.monotonic() - begin:.0f} s, {size}, {image.id[:19]}")
    remove_superseded(engine, image, before, say)
    if base == "local":
        remove_older_bases(engine, stack.python, made)
    return image


def _announce(engine: Engine, stacks: Sequence[Stack], base: str, say: Say) -> None:
    """Say what a build will take, and refuse where it cannot have it."""
    download, disk = (
        sum(getattr(stack.image, name) for stack in stacks) for name in ("download_gib", "disk_gib")
    )
    names = ", ".join(stack.name for stack in stacks)
    takes = f"some {download:.1f} GiB to download, {disk:.0f} GiB of disk"
    say(f"images to build on the {base} base: {names}; {takes}")
    root = Path(engine.facts.root)
    try:
        free = shutil.disk_usage(root).free
    except OSError:
        # The engine's folder is not to be seen from here, as in a virtual machine.
        return
    if free < disk * ROOM * GIB:
        raise Refusal(
            f"{root}: {free / GIB:.0f} GiB free, where the images take {disk * ROOM:.0f} GiB while they are "
            "built; free some (`docker system df` shows what the engine holds), or build one --stack",
            ExitStatus.HOST_CANNOT,
        )


@contextmanager
def _alone(say: Say) -> Iterator[None]:
    """Let no other session of this clone build meanwhile."""
    import filelock

    LOGS.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(LOGS / "build.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        say("images: waiting for another session that builds")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _refuse_unless_in_use(error: APIError) -> None:
    if error.response is None or error.response.status_code not in (404, 409):
        with translated_errors():
            raise error


def describe_size(size_bytes: int) -> str:
    return f"{size_bytes / GIB:.1f} GiB"


def main(arguments: Sequence[str]) -> ExitStatus:
    parser = Parser(prog="nox -s images --", description="Build the images that are missing or stale.")
    parser.add_argument("--base", help=f"{', '.join(BASES)} or IMAGE@sha256:DIGEST (default: pinned)")
    parser.add_argument("--stack", action="append", metavar="NAME[,NAME]", help="default: the current ones")
    parser.add_argument("--force", action="store_true", help="build again what is up to date")
    said = parser.parse_args(arguments)
    if said.base is not None and not is_base(said.base):
        raise Refusal(f"--base {said.base}: none of {', '.join(BASES)} and no IMAGE@sha256:DIGEST")
    stacks = load_stacks()
    wanted = [name.strip() for value in said.stack or () for name in value.split(",")]
    names = find_names("stack", wanted, stacks) or [name for name, one in stacks.items() if one.current]
    wished = [stacks[name] for name in names]
    engine = connect()
    with interruptible():
        end_with_front_door()
        base = said.base or choose_base(engine, wished)
        before = [find_image(engine, stack, base) for stack in wished]
        images = ensure_images(engine, wished, base, _say, said.force)
    for image in images.values():
        state = "up to date" if image in before else "new"
        size = describe_size(image.size_bytes)
        _say(f"{image.stack}: {state}: {image.tag}, {size}, {image.id[:19]}, on {image.base}")
    return ExitStatus.MEASURED


def _say(line: str) -> None:
    print(line, file=sys.stdout, flush=True)


if __name__ == "__main__":
    os.umask(0o022)
    run_program("images", main)
