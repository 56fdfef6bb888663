"""One build of an image by the engine, told line by line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scripts.advice import advise
from scripts.engine import Engine, translated_errors
from scripts.errors import ExitStatus, Refusal
from scripts.image_inputs import Inputs, pack_context
from scripts.uv import INDEX

PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
SILENCE_S = 3600.0
"""A step that says nothing for so long hangs."""


def build(
    engine: Engine, inputs: Inputs, tag: str, log: Path, say: Callable[[str], None], is_forced: bool
) -> None:
    """Build an image and name it ``tag``; all that the engine says is in ``log``.

    The network is the host's: what this host reaches, by its tunnel or by a proxy of its own, the build
    reaches. Launches have none.

    Raises:
        Refusal: the base cannot be had, or a step failed.
    """
    arguments = collect_arguments(inputs, os.environ)
    labels = {
        "rematch.stack": inputs.stack.name,
        "rematch.input": inputs.sha256,
        "rematch.base": inputs.base,
        "org.opencontainers.image.base.name": inputs.base,
    }
    with translated_errors():
        events = engine.api.build(
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
        )
        _follow(events, inputs, log, say)


def collect_arguments(inputs: Inputs, environment: Mapping[str, str]) -> dict[str, str]:
    """Collect a build's arguments. Proxies are among those that an engine keeps out of an image's history.

    Raises:
        Refusal: the mirror's address has a password, which the history would keep.
    """
    base = inputs.base
    arguments = {"BASE": base.removeprefix("local@")}
    for name in PROXIES:
        for spelt in (name, name.upper()):
            if environment.get(spelt):
                arguments[spelt] = environment[spelt]
    if index := environment.get(INDEX):
        if urlsplit(index).password:
            raise Refusal(f"{INDEX} holds a password, which an image's history would keep; name one without")
        arguments[INDEX] = index
    return arguments


def _follow(
    events: Iterable[Mapping[str, Any]], inputs: Inputs, log: Path, say: Callable[[str], None]
) -> None:
    name = inputs.stack.name
    last: list[str] = []
    with log.open("w", encoding="utf-8") as file:
        for event in events:
            text = str(event.get("stream") or event.get("status") or "")
            file.write(text if text.endswith("\n") or not text else f"{text}\n")
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            last = [*last, *lines][-20:]
            for line in lines:
                if re.match(r"Step \d+/\d+ : (FROM|RUN|COPY)", line):
                    say(f"{name}: {line[:100]}")
            if "error" in event:
                file.write(f"{event['error']}\n")
                raise _explain(str(event["error"]), last, inputs, log)


def _explain(error: str, last: list[str], inputs: Inputs, log: Path) -> Refusal:
    advice = advise(" ".join([error, *last[-3:]]))
    if advice is not None and advice.kind.startswith("registry"):
        return Refusal(
            f"{inputs.stack.name}: its base {inputs.base} cannot be pulled: {advice.message}",
            ExitStatus.HOST_CANNOT,
        )
    if advice is not None:
        return Refusal(f"{inputs.stack.name}: {advice.message} (see {log})", ExitStatus.HOST_CANNOT)
    said = [line for line in last if re.search(r"error|failed|cannot|unable", line, re.IGNORECASE)]
    reason = " ".join((said or last or [error])[-1].split())[:300]
    return Refusal(
        f"{inputs.stack.name}: the image was not built: {reason} (see {log})", ExitStatus.HOST_CANNOT
    )
