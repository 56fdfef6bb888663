"""Images by what they are made from, with a stand-in for the engine."""

import shutil
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from docker.errors import NotFound
from filelock import FileLock
from msgspec.structs import replace

from scripts import image_inputs, images
from scripts.build import build, collect_arguments
from scripts.engine import Engine
from scripts.errors import ExitStatus, Refusal
from scripts.image_inputs import INSTALLER, is_base, list_inputs, pack_context
from scripts.images import choose_base, ensure_images, find_image, identify_base, name_tag
from scripts.preflight import find_required_cuda
from scripts.runs import ROOT
from scripts.stacks import load_stacks
from tests.scripts.fake_engine import refused

TORCH, TENSORFLOW = load_stacks()["torch-2.15"], load_stacks()["tensorflow-2.21"]
PINNED = f"{TORCH.base.image}@{TORCH.base.digest}"


class FakeApi:
    """Holds images and builds what it is told to."""

    def __init__(self) -> None:
        self.held: list[dict[str, Any]] = []
        self.builds: list[dict[str, Any]] = []
        self.removed: list[str] = []
        self.used: set[str] = set()
        self.events: list[dict[str, Any]] = [{"stream": "Step 1/9 : FROM base\n"}]

    def images(self, filters: dict[str, Any]) -> list[dict[str, Any]]:
        if filters.get("dangling"):
            return [image for image in self.held if not image["RepoTags"]]
        labels = filters["label"] if isinstance(filters["label"], list) else [filters["label"]]
        return [
            image
            for image in self.held
            if all(
                image["Labels"].get(label.partition("=")[0]) == label.partition("=")[2] for label in labels
            )
        ]

    def hold(self, tag: str, labels: dict[str, str]) -> str:
        number = f"sha256:{len(self.held):064x}"
        self.held.append({"Id": number, "RepoTags": [tag], "Labels": labels, "Size": 1 << 30, "Created": 0})
        return number

    def build(self, **said: Any) -> Iterator[dict[str, Any]]:
        self.builds.append(said)
        yield from self.events
        if not any("error" in event for event in self.events):
            self.hold(said["tag"], said["labels"])

    def remove_image(self, name: str) -> None:
        if name in self.used:
            raise refused(409, "conflict: unable to remove repository reference: container 1 is using it")
        self.removed.append(name)

    def inspect_container(self, container: str) -> None:
        raise NotFound("gone")


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def engine(api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setattr(images, "LOGS", tmp_path)
    return cast(Engine, SimpleNamespace(api=api, facts=SimpleNamespace(root=str(tmp_path))))


@pytest.fixture
def said() -> list[str]:
    return []


def hold(api: FakeApi, stack: Any, base: str = PINNED) -> str:
    inputs = list_inputs(stack, base)
    labels = {"rematch.stack": stack.name, "rematch.input": inputs.sha256, "rematch.base": base}
    return api.hold(name_tag(stack.name, inputs.sha256), labels)


def test_an_image_that_is_up_to_date_is_taken_and_nothing_is_built(
    engine: Engine, api: FakeApi, said: list[str]
) -> None:
    number = hold(api, TORCH)
    found = ensure_images(engine, [TORCH], None, said.append)
    assert (found[TORCH.name].id, found[TORCH.name].base) == (number, PINNED)
    assert not api.builds
    assert not said


def test_download_and_disk_are_told_before_what_is_missing_is_built(
    engine: Engine, api: FakeApi, said: list[str]
) -> None:
    found = ensure_images(engine, [TORCH, TENSORFLOW], "pinned", said.append)
    assert "6.4 GiB to download, 13 GiB of disk" in said[0]
    assert [build["dockerfile"] for build in api.builds] == [
        "docker/torch-2.15/Dockerfile",
        "docker/tensorflow-2.21/Dockerfile",
    ]
    assert set(found) == {TORCH.name, TENSORFLOW.name}
    assert api.builds[0]["labels"]["rematch.input"] == found[TORCH.name].input_sha256


def test_an_image_of_other_files_or_of_another_base_is_stale(engine: Engine, api: FakeApi) -> None:
    """C8"""
    hold(api, TORCH, "other@sha256:" + "0" * 64)
    assert find_image(engine, TORCH, "pinned") is None
    api.held[0]["Labels"]["rematch.base"] = PINNED
    assert find_image(engine, TORCH, "pinned") is None


def test_what_is_built_on_an_image_is_not_taken_for_it(engine: Engine, api: FakeApi) -> None:
    hold(api, TORCH)
    api.held[0]["RepoTags"] = ["mine:latest"]
    assert find_image(engine, TORCH, None) is None


def test_a_change_of_dockerfile_lock_installer_or_base_changes_the_hash_and_one_of_a_workload_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C8"""
    for name in ("docker/torch-2.15", "docker/trust", "scripts", "workloads/mlp"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(INSTALLER, tmp_path / "docker")
    monkeypatch.setattr(image_inputs, "ROOT", tmp_path)
    monkeypatch.setattr(image_inputs, "INSTALLER", tmp_path / "docker" / "install-stack")
    monkeypatch.setattr(image_inputs, "UV_LOCK", tmp_path / "scripts" / "uv-requirements.lock")
    stack = replace(TORCH, folder=str(tmp_path / "docker" / "torch-2.15"))
    hashes = [list_inputs(stack, PINNED).sha256, list_inputs(stack, "other").sha256]
    for name in (
        "docker/torch-2.15/Dockerfile",
        "docker/torch-2.15/requirements.lock",
        "docker/install-stack",
        "scripts/uv-requirements.lock",
    ):
        with (tmp_path / name).open("a") as file:
            file.write("\n# changed\n")
        hashes.append(list_inputs(stack, PINNED).sha256)
    assert len(set(hashes)) == len(hashes)
    (tmp_path / "workloads" / "mlp" / "torch.py").write_text("changed")
    assert list_inputs(stack, PINNED).sha256 == hashes[-1]


def test_a_missing_lock_is_named(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="Dockerfile: No such file"):
        list_inputs(replace(TORCH, folder=str(tmp_path)), PINNED)


def test_the_default_base_of_each_dockerfile_is_the_pinned_one() -> None:
    for stack in load_stacks().values():
        text = Path(stack.folder, "Dockerfile").read_text()
        assert f"ARG BASE={stack.base.image}@{stack.base.digest}\n" in text
        assert f'NVIDIA_REQUIRE_CUDA="cuda>={find_required_cuda([stack])}"' in text
        assert f"install-stack {' '.join([stack.python, *stack.sources])}\n" in text
        assert ("docker/build-requirements.lock" in text) == bool(stack.sources)
        assert f'rematch.stack="{stack.name}"' in text


def test_the_context_is_the_same_on_every_host_but_for_what_the_host_trusts(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.crt"
    bundle.write_text("certificate")
    inputs = list_inputs(TORCH, PINNED)
    packed = pack_context(inputs, {"SSL_CERT_FILE": str(bundle)})
    with tarfile.open(fileobj=packed) as archive:
        names = archive.getnames()
        assert archive.extractfile("docker/trust/host.pem").read() == b"certificate"  # type: ignore[union-attr]
        assert {(entry.uid, entry.mtime) for entry in archive} == {(0, 0)}
        assert archive.getmember("docker/install-stack").mode == 0o755
    assert {"docker/torch-2.15/Dockerfile", "docker/torch-2.15/requirements.lock"} <= set(names)
    assert not any(name.startswith("workloads") for name in names)


def test_every_file_that_a_dockerfile_copies_is_in_the_context() -> None:
    for stack in load_stacks().values():
        inputs = list_inputs(stack, PINNED)
        with tarfile.open(fileobj=pack_context(inputs, {})) as archive:
            names = archive.getnames()
        text = inputs.files[inputs.dockerfile].decode()
        for line in text.splitlines():
            if line.startswith("COPY "):
                for source in line.split()[1:-1]:
                    assert any(name == source or name.startswith(source) for name in names), source


def test_proxies_and_the_mirror_travel_and_a_password_in_the_mirror_does_not() -> None:
    inputs = list_inputs(TORCH, "local@sha256:" + "1" * 64)
    variables = {"https_proxy": "http://p", "HOME": "/h", "REMATCH_INDEX_URL": "https://mirror/simple"}
    assert collect_arguments(inputs, variables) == {
        "BASE": "sha256:" + "1" * 64,
        "https_proxy": "http://p",
        "REMATCH_INDEX_URL": "https://mirror/simple",
    }
    for secret in ("user:secret@", "token@"):
        with pytest.raises(Refusal, match="holds a user or a password") as refusal:
            collect_arguments(inputs, {"REMATCH_INDEX_URL": f"https://{secret}mirror/simple"})
        assert secret not in refusal.value.message


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (f"manifest for {PINNED} not found: manifest unknown: manifest unknown", "has this image no more"),
        ("toomanyrequests: You have reached your pull rate limit", "rate limit"),
        (
            'Get "https://registry/v2/": dial tcp: lookup registry on 1.1.1.1:53: no such host',
            "no image registry can be reached",
        ),
        ("Get https://registry/v2/: Forbidden by the proxy", "Forbidden by the proxy; refresh it"),
    ],
)
def test_a_base_that_cannot_be_pulled_is_named_with_the_remedy(
    engine: Engine, api: FakeApi, said: list[str], error: str, words: str
) -> None:
    """C7"""
    api.events = [{"stream": "Step 1/9 : FROM base\n"}, {"error": error}]
    with pytest.raises(Refusal, match=words) as refused:
        ensure_images(engine, [TORCH], "pinned", said.append)
    assert refused.value.status == ExitStatus.HOST_CANNOT
    assert PINNED in refused.value.message
    assert "--base local" in refused.value.message
    assert "\n" not in refused.value.message


def test_a_changed_package_key_and_a_full_disk_are_told_apart(
    engine: Engine, api: FakeApi, said: list[str]
) -> None:
    """C7, C10"""
    failed = {"error": "The command '/bin/sh -c set --' returned a non-zero code: 100"}
    base = {"stream": f" ---> {'b' * 12}\n"}
    for line, words in (
        ("W: GPG error: bookworm InRelease: NO_PUBKEY 0E98404D386FA1D9", "key of a package repository"),
        ("write /opt/stack/lib/a.so: no space left on device", "no space left on the disk"),
    ):
        api.events = [base, {"stream": f"{line}\n"}, failed]
        with pytest.raises(Refusal, match=words):
            ensure_images(engine, [TORCH], "pinned", said.append)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            [
                "error: Failed to download `torch==2.15.0`\n",
                "  Caused by: Hash mismatch for `torch==2.15.0`\n",
            ],
            "the hash of torch is not that of the file which the index serves",
        ),
        (
            # As an engine passes on what a step prints: in pieces, each with its colour.
            ["\x1b[91merror: Failed to fetch:\x1b[0m", "\x1b[91m `https://index/six/`\n\x1b[0m"],
            "packages could not be fetched",
        ),
        (["ERROR: No matching distribution found for uv\n", "WARNING: old\n"], "No matching distribution"),
        ([], "returned a non-zero code: 1"),
    ],
)
def test_a_step_that_fails_is_told_by_its_own_reason(
    engine: Engine, api: FakeApi, tmp_path: Path, said: list[str], told: str
) -> None:
    api.events = [
        {"stream": f" ---> {'b' * 12}\n"},
        *({"stream": text} for text in said),
        {"error": "The command '/bin/sh -c install-stack' returned a non-zero code: 1"},
    ]
    log = tmp_path / "log"
    with pytest.raises(Refusal, match=told) as refused:
        build(engine, list_inputs(TORCH, PINNED), "t", log, print, is_forced=False)
    assert str(log) in refused.value.message
    assert "\n" not in refused.value.message
    assert "\x1b" not in log.read_text()
    assert "returned a non-zero code: 1" in log.read_text()


def test_a_download_is_logged_by_its_beginning_and_its_end(
    engine: Engine, api: FakeApi, tmp_path: Path
) -> None:
    api.events = [
        {"status": "Pulling fs layer", "progressDetail": {}, "id": "a1"},
        {"status": "Downloading", "progressDetail": {"current": 1, "total": 2}, "id": "a1"},
        {"status": "Pull complete", "progressDetail": {}, "id": "a1"},
        {"aux": {"ID": "sha256:0"}},
        {"stream": "Successfully built"},
    ]
    build(engine, list_inputs(TORCH, PINNED), "t", tmp_path / "log", print, is_forced=False)
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines == ["a1 Pulling fs layer", "a1 Pull complete", "Successfully built"]


def test_what_a_failed_build_made_is_removed_and_its_base_is_not(
    engine: Engine, api: FakeApi, tmp_path: Path
) -> None:
    base, layer, container = "b" * 12, "1" * 12, "c" * 12
    api.events = [
        {"stream": f"Step 2/3 : FROM ${{BASE}}\n ---> {base}\n"},
        {"stream": f"Step 3/3 : RUN a\n ---> Running in {container}\n"},
        {"stream": f" ---> {layer}\n"},
        {"error": "The command returned a non-zero code: 1"},
    ]
    with pytest.raises(Refusal):
        build(engine, list_inputs(TORCH, PINNED), "t", tmp_path / "log", print, is_forced=False)
    assert api.removed == [layer]


def test_too_little_room_is_told_before_anything_is_built(
    engine: Engine, api: FakeApi, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1 << 30))
    with pytest.raises(Refusal, match="1 GiB free, where the images take 8 GiB"):
        ensure_images(engine, [TORCH], "pinned", said.append)
    assert not api.builds


def test_without_a_word_the_base_is_that_of_the_images_that_are_there(
    engine: Engine, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = "sha256:" + "b" * 64
    monkeypatch.setattr(images, "find_local_base", lambda engine, python: base)
    assert choose_base(engine, [TORCH, TENSORFLOW]) == "pinned"
    hold(api, TORCH, f"local@{base}")
    assert choose_base(engine, [TORCH, TENSORFLOW]) == "local"
    hold(api, TORCH)
    assert choose_base(engine, [TORCH, TENSORFLOW]) == "pinned"


def test_the_image_that_a_new_one_takes_the_place_of_is_removed_and_no_other(
    engine: Engine, api: FakeApi, said: list[str]
) -> None:
    labels = {"rematch.stack": TORCH.name, "rematch.base": PINNED}
    hold(api, TENSORFLOW)
    hold(api, TORCH, "local@sha256:" + "2" * 64)
    api.hold("rematch/torch-2.15:old", labels)
    # Built by the user on ours, and so with its labels.
    api.hold("mine:latest", labels)
    api.hold("<none>:<none>", labels)
    ensure_images(engine, [TORCH], "pinned", said.append)
    assert api.removed == ["rematch/torch-2.15:old"]
    assert said[-1] == "torch-2.15: removed its older image, 1.0 GiB"


def test_an_older_image_that_a_container_uses_stays(engine: Engine, api: FakeApi, said: list[str]) -> None:
    api.hold("rematch/torch-2.15:old", {"rematch.stack": TORCH.name, "rematch.base": PINNED})
    api.used.add("rematch/torch-2.15:old")
    assert set(ensure_images(engine, [TORCH], "pinned", said.append)) == {TORCH.name}
    assert not api.removed
    assert "removed" not in said[-1]


def test_an_image_that_lost_its_name_to_a_new_one_of_the_same_files_is_removed(
    engine: Engine, api: FakeApi, said: list[str]
) -> None:
    number = hold(api, TORCH)
    build_again = api.build

    def build(**told: Any) -> Iterator[dict[str, Any]]:
        api.held[0]["RepoTags"] = ["<none>:<none>"]
        yield from build_again(**told)

    api.build = build  # type: ignore[method-assign]
    found = ensure_images(engine, [TORCH], "pinned", said.append, is_forced=True)
    assert found[TORCH.name].id != number
    assert api.builds[0]["nocache"] is True
    assert api.removed == [number]


def test_the_program_tells_what_is_up_to_date_and_what_is_new(
    engine: Engine, api: FakeApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(images, "connect", lambda: engine)
    hold(api, TORCH)
    assert images.main([]) == ExitStatus.MEASURED
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3].startswith("torch-2.15: up to date: rematch/torch-2.15:")
    assert lines[-2].startswith("tensorflow-2.21: new: rematch/tensorflow-2.21:")
    assert lines[-1].startswith("torch-2.15-tfds-4.9: new: rematch/torch-2.15-tfds-4.9:")
    assert lines[-1].endswith(f", on {PINNED}")


def test_an_alternative_base_is_the_vendors_and_one_by_digest_is_taken_as_it_is(engine: Engine) -> None:
    assert identify_base(engine, TORCH, "alternative") == TORCH.base.alternative
    with pytest.raises(Refusal, match="names no alternative"):
        identify_base(engine, replace(TORCH, base=replace(TORCH.base, alternative=None)), "alternative")
    own = f"mine@sha256:{'a' * 64}"
    assert identify_base(engine, TORCH, own) == own


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("pinned", True),
        ("local", True),
        (f"debian:12@sha256:{'a' * 64}", True),
        ("debian:12", False),
        (f"debian:12@sha256:{'a' * 63}", False),
        ("", False),
    ],
)
def test_a_base_is_named_by_a_word_or_by_its_digest(text: str, is_one: bool) -> None:
    assert is_base(text) is is_one


def test_bad_options_end_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    for words, told in (
        (["--base", "debian"], "no IMAGE@sha256"),
        (["--stack", "torch-2.16"], "did you mean torch-2.15"),
        (["--bse", "local"], "--bse"),
    ):
        with pytest.raises(Refusal, match=told):
            images.main(words)


def test_the_table_of_stacks_tells_what_an_image_takes() -> None:
    assert all(stack.image.disk_gib >= stack.image.download_gib for stack in load_stacks().values())
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"download_gib": 0, "disk_gib": 1}, type(TORCH.image))


def test_a_second_session_waits_and_takes_what_the_first_has_built(
    engine: Engine, api: FakeApi, said: list[str], tmp_path: Path
) -> None:
    first = FileLock(tmp_path / "build.lock")
    with first:
        second = threading.Thread(target=ensure_images, args=(engine, [TORCH], "pinned", said.append))
        second.start()
        deadline = time.monotonic() + 10
        while not any("waiting for another session" in line for line in said):
            assert time.monotonic() < deadline, said
            time.sleep(0.01)
        hold(api, TORCH)
    second.join(10)
    assert not second.is_alive()
    assert not api.builds
