"""Digests of base images: whether a registry still has them, and what their tags name now."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from scripts.advice import advise
from scripts.engine import Engine, tell_error
from scripts.stacks import STACKS, Base, Stack

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


def list_bases(stacks: Mapping[str, Stack]) -> list[Base]:
    """Return the bases of all stacks, each once."""
    return list({stack.base.digest: stack.base for stack in stacks.values()}.values())


def refresh_digests(bases: Iterable[Base], ask: Ask, upgrade: bool, files: Iterable[Path]) -> list[str]:
    """See that registries have the digests; with ``upgrade``, write those that the tags name now.

    Args:
        files: where digests stand: the table of stacks, and each Dockerfile's own default.

    Returns:
        what to tell the user, a line for each base.
    """
    files, said = list(files), []
    for base in bases:
        pinned = f"{base.image}@{base.digest}"
        try:
            newest = ask(base.image if upgrade else pinned)
        except LookupError as error:
            said.append(_explain(base, str(error)))
            continue
        if newest == base.digest:
            said.append(f"{pinned}: the registry has it")
            continue
        for path in files:
            text = path.read_text(encoding="utf-8")
            if base.digest in text:
                path.write_text(text.replace(base.digest, newest), encoding="utf-8")
        said.append(f"{base.image}: {base.digest[:19]} is now {newest[:19]}; `nox -s images` builds on it")
    return said


def find_files(stacks: Iterable[Stack]) -> list[Path]:
    """Return the files in which digests stand."""
    return [STACKS, *(Path(stack.folder, "Dockerfile") for stack in stacks)]


def _explain(base: Base, error: str) -> str:
    advice = advise(error)
    if advice is not None and advice.kind == "registry-gone":
        return (
            f"{base.image}@{base.digest}: gone from the registry; `nox -s lock -- --upgrade bases` takes "
            "what the tag names now, `nox -s images -- --base local` needs no registry"
        )
    return f"{base.image}: its digest was left as it is, no registry answers ({error[:200]})"
