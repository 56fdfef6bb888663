"""One build of an image by the engine, told line by line."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from scripts import uv
from scripts.advice import advise
from scripts.engine import Engine, translated_errors
from scripts.errors import ExitStatus, Refusal
from scripts.image_inputs import Inputs, holds_credentials, pack_context
from scripts.uv import INDEX

PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
SILENCE_S = 3600.0
"""A step that says nothing for so long hangs."""
PATIENCE_S = 10.0
"""For an engine to end the step of a build that nobody follows any more."""

COLOUR = re.compile(r"\x1b\[[0-9;]*m")

Say = Callable[[str], None]


class BuildError(Exception):
    """What the engine says of a build that failed."""


@dataclass
class Trail:
    """What a build has made so far."""

    base: str | None = None
    layers: list[str] = field(default_factory=list)
    container: str | None = None
    """Of the step that runs."""

    def note(self, line: str) -> None:
        """Take from a line what it says was made."""
        found = re.match(r" ---> (Running in )?([0-9a-f]{12,})$", line)
        if found is None:
            return
        if found.group(1):
            self.container = found.group(2)
        elif self.base is None:
            self.base = found.group(2)
        else:
            self.layers.append(found.group(2))
            self.container = None


def build(engine: Engine, inputs: Inputs, tag: str, log: Path, say: Say, is_forced: bool) -> None:
    """Build an image and name it ``tag``; all that the engine says is in ``log``.

    The network is the host's: what this host reaches, by its tunnel or by a proxy of its own, the build
    reaches. Launches have none. Of a build that fails or is interrupted nothing stays.

    Raises:
        Refusal: the base cannot be had, or a step failed.
    """
    arguments = collect_arguments(inputs, os.environ)
    name, _, digest = inputs.base.partition("@")
    labels = {
        "rematch.stack": inputs.stack.name,
        "rematch.input": inputs.sha256,
        "rematch.base": inputs.base,
        "org.opencontainers.image.base.name": name,
        "org.opencontainers.image.base.digest": digest,
    }
    with translated_errors():
        before = _list_unnamed(engine)
        events = cast(
            Generator[Mapping[str, Any]],
            engine.api.build(
                fileobj=pack_context(inputs),
                custom_context=True,
                dockerfile=inputs.dockerfile,
                tag=tag,
                buildargs=arguments,
                labels=labels,
                network_mode="host",
                nocache=is_forced,
                rm=True,
                forcerm=True,
                decode=True,
                timeout=int(SILENCE_S),
            ),
        )
    trail = Trail()
    try:
        with translated_errors():
            _follow(events, inputs, log, say, trail)
    except BaseException:
        # The engine ends what nobody listens to.
        events.close()
        _remove_made(engine, trail, before)
        raise


def collect_arguments(inputs: Inputs, environment: Mapping[str, str]) -> dict[str, str]:
    """Collect a build's arguments. Proxies are among those that an engine keeps out of an image's history.

    Raises:
        Refusal: the mirror's address has a user or a password, which the history would keep.
    """
    base = inputs.base
    arguments = {"BASE": base.removeprefix("local@")}
    for name in PROXIES:
        for spelt in (name, name.upper()):
            if environment.get(spelt):
                arguments[spelt] = environment[spelt]
    if index := environment.get(INDEX):
        if holds_credentials(index):
            raise Refusal(
                f"{INDEX} holds a user or a password, which an image's history would keep; name one without"
            )
        arguments[INDEX] = index
    return arguments


def _follow(events: Iterable[Mapping[str, Any]], inputs: Inputs, log: Path, say: Say, trail: Trail) -> None:
    last: list[str] = []
    with log.open("w", encoding="utf-8") as file:
        try:
            for line in read_lines(events):
                file.write(f"{line}\n")
                trail.note(line)
                if not line.startswith((" --->", "Removing intermediate container")):
                    last = [*last, *filter(None, [line.strip()])][-20:]
                if line.startswith("Step "):
                    last = []
                if re.match(r"Step \d+/\d+ : (FROM|RUN|COPY)", line):
                    say(f"{inputs.stack.name}: {line[:100].strip()}")
        except BuildError as error:
            file.write(f"{error}\n")
            raise _explain(str(error), last, inputs, log, trail.base is None) from error


def read_lines(events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what an engine says of a build, in whole lines without colours.

    Raises:
        BuildError: it says that the build failed.
    """
    rest = ""
    for event in events:
        if "error" in event:
            yield from [rest] if rest else []
            raise BuildError(str(event["error"]))
        # Of a download only its beginning and its end.
        if event.get("status") and not event.get("progressDetail"):
            rest += f"{event.get('id', '')} {event['status']}\n".lstrip()
        # What a step prints comes in pieces.
        rest += COLOUR.sub("", str(event.get("stream") or ""))
        *lines, rest = rest.split("\n")
        yield from lines
    yield from [rest] if rest else []


def _explain(error: str, last: list[str], inputs: Inputs, log: Path, is_pull: bool) -> Refusal:
    name, advice = inputs.stack.name, advise(" ".join([error, *last[-3:]]))
    if is_pull and (advice is None or advice.kind.startswith(("registry", "image"))):
        reason = advice.message if advice and advice.kind != "image" else _shorten(error)
        return Refusal(
            f"{name}: its base {inputs.base} cannot be pulled: {reason}"
            + (
                "" if "--base local" in reason else "; refresh it (`nox -s lock`), or build on `--base local`"
            ),
            ExitStatus.HOST_CANNOT,
        )
    if advice is not None:
        return Refusal(f"{name}: {advice.message} (see {log})", ExitStatus.HOST_CANNOT)
    said = "\n".join(last)
    if re.search(r"^(?:error|Caused by|cause): ", said, re.MULTILINE):
        _, reason = uv.explain(said, [inputs.stack.lock_for("docker")])
    else:
        worst = [line for line in last if re.search(r"error|failed|cannot|unable", line, re.IGNORECASE)]
        reason = (worst or last or [error])[-1]
    return Refusal(f"{name}: the image was not built: {_shorten(reason)} (see {log})", ExitStatus.HOST_CANNOT)


def _shorten(text: str) -> str:
    return " ".join(text.split())[:300]


def _list_unnamed(engine: Engine) -> set[str]:
    return {str(image["Id"]) for image in engine.api.images(filters={"dangling": True})}


def _remove_made(engine: Engine, trail: Trail, before: set[str]) -> None:
    """Remove the container and the layers of a build that came to no end, but for what others are made of.

    Args:
        before: layers without a name that were there before it.
    """
    from docker.errors import DockerException
    from requests import RequestException

    # Why it came to no end is what the user must learn.
    with contextlib.suppress(DockerException, RequestException):
        if trail.container:
            _remove_container(engine, trail.container)
        parents = tuple(f"sha256:{one}" for one in (trail.base, *trail.layers) if one)
        # Also the layer that the engine was about to name. Parents without a name go with it.
        for image in _list_unnamed(engine) - before:
            parent = engine.api.inspect_image(image)["Parent"]  # type: ignore[no-untyped-call]
            if parents and str(parent).startswith(parents):
                with contextlib.suppress(DockerException):
                    engine.api.remove_image(image)
        for layer in reversed(trail.layers):
            with contextlib.suppress(DockerException):
                engine.api.remove_image(layer)


def _remove_container(engine: Engine, container: str) -> None:
    """Wait until the engine has removed a build's container; remove it if it does not."""
    from docker.errors import DockerException, NotFound

    deadline = time.monotonic() + PATIENCE_S
    with contextlib.suppress(NotFound):
        while time.monotonic() < deadline:
            engine.api.inspect_container(container)
            time.sleep(0.1)
        with contextlib.suppress(DockerException):
            engine.api.remove_container(container, force=True)
