"""Images built by the engine of this host, of a stack with one small package."""

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from scripts import image_inputs, images
from scripts.engine import Engine
from scripts.errors import ExitStatus, Refusal
from scripts.image_inputs import list_inputs
from scripts.images import BuiltImage, ensure_images, find_image
from scripts.local_base import find_local_base
from scripts.runs import ROOT
from scripts.stacks import Stack, load_stacks
from tests.docker.programs import run_python

NAME = "tests-small"
MODEL = load_stacks()["tensorflow-2.21"]
LOCK = "six==1.16.0 --hash=sha256:8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254\n"
SEEN = """
import hashlib, json
from importlib import metadata
from pathlib import Path
files = [Path(file.locate()) for one in metadata.distributions() for file in one.files]
found = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.suffix != ".pyc"}
print(json.dumps([found, Path("/usr/local/share/rematch/packages.txt").read_text()]))
"""


@pytest.fixture
def base(engine: Engine) -> str:
    """A kind of base that this host has."""
    return "local" if find_local_base(engine, MODEL.python) else "pinned"


@pytest.fixture
def small(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """A stack in a project of its own."""
    for name in ("docker/trust", "docker/tensorflow-2.21"):
        shutil.copytree(ROOT / name, tmp_path / name.replace(MODEL.name, NAME))
    (tmp_path / "scripts").mkdir()
    for name in ("docker/install-stack", "scripts/uv-requirements.lock", ".dockerignore"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name, path in (("ROOT", "."), ("TRUST", "docker/trust"), ("INSTALLER", "docker/install-stack")):
        monkeypatch.setattr(image_inputs, name, tmp_path / path)
    monkeypatch.setattr(image_inputs, "UV_LOCK", tmp_path / "scripts" / "uv-requirements.lock")
    monkeypatch.setattr(images, "LOGS", tmp_path / "logs")
    folder = tmp_path / "docker" / NAME
    (folder / "requirements.lock").write_text(LOCK)
    text = (folder / "Dockerfile").read_text()
    (folder / "Dockerfile").write_text(text.replace(MODEL.name, NAME))
    yield replace(MODEL, name=NAME, folder=str(folder))
    for image in engine.api.images(filters={"label": f"rematch.stack={NAME}"}):
        engine.api.remove_image(image["Id"], force=True)


def list_left(engine: Engine) -> list[str]:
    """List containers and nameless images that a build of this stack left. Others may build meanwhile."""
    containers = [one["Id"] for one in engine.api.containers(all=True) if NAME in one["Command"]]
    nameless = [one["Id"] for one in engine.api.images(filters={"dangling": True})]
    layers = [one for one in nameless if NAME in str(engine.api.history(one))]
    return [*containers, *layers]


def build(engine: Engine, stack: Stack, base: str, is_forced: bool = False) -> tuple[BuiltImage, list[str]]:
    """Return the image and what was said."""
    said: list[str] = []
    return ensure_images(engine, [stack], base, said.append, is_forced)[stack.name], said


def test_an_image_is_built_once_again_when_its_files_change_and_with_the_same_packages(
    engine: Engine, small: Stack, base: str, tmp_path: Path
) -> None:
    """C8"""
    first, said = build(engine, small, base)
    assert any("RUN" in line for line in said)
    content = run_python(engine, first.id, SEEN)
    assert "six==1.16.0" in content[1]
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / "edited.py").write_text("")
    assert build(engine, small, base) == (first, [])

    with Path(small.folder, "requirements.lock").open("a") as file:
        file.write("# edited\n")
    assert find_image(engine, small, base) is None
    second, said = build(engine, small, base)
    assert second.id != first.id
    assert run_python(engine, second.id, SEEN) == content
    assert "removed its older image" in said[-1]
    assert not engine.has_image(first.id)

    third, said = build(engine, small, base, is_forced=True)
    assert (third.id != second.id, third.tag) == (True, second.tag)
    assert run_python(engine, third.id, SEEN) == content
    assert not engine.has_image(second.id)
    assert list_left(engine) == []


@pytest.mark.parametrize("is_late", [False, True])
def test_of_a_build_that_is_interrupted_nothing_stays(
    engine: Engine, small: Stack, base: str, is_late: bool
) -> None:
    """C6"""
    first = f"RUN echo {NAME} >/one\n" if is_late else ""
    text = f"ARG BASE\nFROM ${{BASE}}\n{first}RUN echo {NAME}; sleep 60\n"
    Path(small.folder, "Dockerfile").write_text(text)
    timers = []

    def say(line: str) -> None:
        if "sleep" in line:
            timers.append(threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)))
            timers[-1].start()

    with pytest.raises(KeyboardInterrupt):
        ensure_images(engine, [small], base, say)
    assert len(timers) == 1
    assert list_left(engine) == []


def test_of_a_build_that_fails_nothing_stays_but_its_log(
    engine: Engine, small: Stack, base: str, tmp_path: Path
) -> None:
    Path(small.folder, "Dockerfile").write_text(
        f"ARG BASE\nFROM ${{BASE}}\nRUN echo {NAME} >/one\nRUN echo '{NAME}: cannot go on' >&2; exit 7\n"
    )
    with pytest.raises(Refusal, match=r"cannot go on \(see .*tests-small\.log\)$") as refused:
        build(engine, small, base)
    assert refused.value.status == ExitStatus.HOST_CANNOT
    assert "returned a non-zero code: 7" in (tmp_path / "logs" / f"{NAME}.log").read_text()
    assert list_left(engine) == []


def test_a_lock_that_the_index_does_not_match_is_refused_by_its_name(
    engine: Engine, small: Stack, base: str
) -> None:
    lock = Path(small.folder, "requirements.lock")
    lock.write_text(LOCK.replace("sha256:8abb", "sha256:0000"))
    with pytest.raises(Refusal, match=r"requirements\.lock: the hash of six is not that") as refused:
        build(engine, small, base)
    assert "\n" not in refused.value.message
    assert list_left(engine) == []


def test_a_base_that_cannot_be_had_is_named_with_the_remedies(engine: Engine, small: Stack) -> None:
    """C7"""
    # A registry of this host, where none listens.
    absent = f"localhost:1/none@sha256:{'0' * 64}"
    with pytest.raises(Refusal) as refused:
        build(engine, small, absent)
    assert refused.value.status == ExitStatus.HOST_CANNOT
    assert f"its base {absent} cannot be pulled" in refused.value.message
    assert "--base local" in refused.value.message


def test_a_build_by_hand_finds_all_that_it_copies(
    engine: Engine, small: Stack, base: str, tmp_path: Path
) -> None:
    """As by ``docker build -f docker/STACK/Dockerfile .``, which reads .dockerignore."""
    dockerfile = Path(small.folder, "Dockerfile")
    text = dockerfile.read_text().partition("RUN /usr/local/share/rematch/install-stack")[0]
    dockerfile.write_text(f'{text}\nLABEL rematch.stack="{NAME}"\n')
    identity = str(images.identify_base(engine, small, base))
    events = engine.api.build(
        path=str(tmp_path),
        dockerfile=f"docker/{NAME}/Dockerfile",
        buildargs={"BASE": identity.removeprefix("local@")},
        rm=True,
        decode=True,
    )
    assert [event["error"] for event in events if "error" in event] == []
    (built,) = engine.api.images(filters={"label": f"rematch.stack={NAME}"})
    code = "import json, os; print(json.dumps(sorted(os.listdir('/usr/local/share/rematch'))))"
    names = run_python(engine, built["Id"], code, program="python3")
    copied = {Path(path).name for path in list_inputs(small, identity).files}
    assert set(names) == (copied - {"Dockerfile"}) | {"trust"}
