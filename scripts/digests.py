"""Digests of base images: whether a registry still has them, and what their tags name now."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from scripts.advice import advise
from scripts.engine import Engine, tell_error
from scripts.stacks import STACKS, Stack

_UPGRADE = "`nox -s lock -- --upgrade bases` takes what the tag names now"
_RENAME = "name another tag in docker/stacks.toml"
_LOCAL = "`nox -s images -- --base local` needs no registry"

Ask = Callable[[str], str]
"""Returns the digest that a registry has for an image, by tag or digest.

Raises:
    LookupError: it has none, or it cannot be reached; the text is the registry's."""


def ask_registry(engine: Engine) -> Ask:
    """Ask registries through the engine, which has the user's mirrors and logins."""

    def ask(image: str) -> str:
        from docker.errors import DockerException
        from requests import RequestException

        try:
            answer = engine.api.inspect_distribution(image)  # type: ignore[no-untyped-call]
        except (DockerException, RequestException) as error:
            raise LookupError(tell_error(error)) from error
        return str(answer["Descriptor"]["digest"])

    return ask


def list_bases(stacks: Mapping[str, Stack]) -> list[str]:
    """Return the bases of all stacks, vendors' among them, as ``IMAGE:TAG@DIGEST``, each once."""
    pinned = [f"{stack.base.image}@{stack.base.digest}" for stack in stacks.values()]
    vendors = [stack.base.alternative for stack in stacks.values() if stack.base.alternative]
    return list(dict.fromkeys([*pinned, *vendors]))


def refresh_digests(
    bases: Iterable[str], ask: Ask, upgrade: bool, files: Iterable[Path]
) -> tuple[list[str], bool]:
    """See that registries have the digests; with ``upgrade``, write those that the tags name now.

    Args:
        files: where digests stand: the table of stacks, and each Dockerfile's own default.

    Returns:
        what to tell the user, a line for each base, and whether a registry said that one is gone.
    """
    files, said, is_gone = list(files), [], False
    for base in bases:
        tag, _, digest = base.partition("@")
        try:
            newest = ask(tag if upgrade else base)
        except LookupError as error:
            advice = advise(str(error))
            if advice is not None and advice.kind == "registry-gone":
                is_gone = True
                said.append(f"{base}: gone from the registry; {_RENAME if upgrade else _UPGRADE}; {_LOCAL}")
            else:
                said.append(f"{tag}: its digest was left as it is ({str(error)[:200]})")
            continue
        if newest == digest:
            said.append(f"{base}: the registry has it")
            continue
        for path in files:
            text = path.read_text(encoding="utf-8")
            if digest in text:
                path.write_text(text.replace(digest, newest), encoding="utf-8")
        said.append(f"{tag}: {digest[:19]} is now {newest[:19]}; `nox -s images` builds on it")
    return said, is_gone


def find_files(stacks: Iterable[Stack]) -> list[Path]:
    """Return the files in which digests stand."""
    return [STACKS, *(Path(stack.folder, "Dockerfile") for stack in stacks)]
