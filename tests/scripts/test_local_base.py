"""Bases from Debian's packages, as far as that goes without making one."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from scripts import local_base
from scripts.engine import Engine
from scripts.errors import ExitStatus, Refusal
from scripts.local_base import (
    DEFAULT_MIRROR,
    ensure_local_base,
    find_local_base,
    find_mirror,
    hash_inputs,
    remove_older_bases,
)

NONE = cast(Engine, SimpleNamespace(api=SimpleNamespace(images=lambda filters: [])))


@pytest.mark.parametrize(
    ("name", "text", "mirror"),
    [
        ("sources.list", "deb http://mirror.example/debian bookworm main\n", "http://mirror.example/debian"),
        (
            "sources.list",
            "# deb http://old/debian x\ndeb [signed-by=/k] https://m/debian/ bookworm main\n",
            "https://m/debian",
        ),
        ("sources.list.d/debian.sources", "Types: deb\nURIs: http://s/debian\n", "http://s/debian"),
        ("sources.list", "deb http://archive.example/ubuntu noble main\n", DEFAULT_MIRROR),
        ("sources.list", "deb http://s/debian-security bookworm-security main\n", DEFAULT_MIRROR),
    ],
)
def test_the_mirror_is_the_one_that_this_host_uses(tmp_path: Path, name: str, text: str, mirror: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert find_mirror({}, tmp_path) == mirror
    assert find_mirror({"REMATCH_DEBIAN_MIRROR": "http://named/debian"}, tmp_path) == "http://named/debian"


def test_what_the_host_lacks_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(Refusal, match="sudo nox -s images") as refused:
        ensure_local_base(NONE, "3.11", print, tmp_path / "log")
    assert refused.value.status == ExitStatus.HOST_CANNOT
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(Refusal, match="apt-get install debootstrap") as refused:
        ensure_local_base(NONE, "3.11", print, tmp_path / "log")
    assert refused.value.status == ExitStatus.HOST_CANNOT


@pytest.mark.parametrize("secret", ["user:secret@", "token@"])
def test_a_mirror_with_a_secret_is_refused_since_the_base_would_keep_it(secret: str) -> None:
    with pytest.raises(Refusal, match="holds a user or a password") as refused:
        find_mirror({"REMATCH_DEBIAN_MIRROR": f"https://{secret}mirror/debian"})
    assert secret not in refused.value.message


def test_what_debootstrap_said_last_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "make"
    script.write_text("#!/bin/sh\necho 'E: No keyring installed' >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setattr(local_base, "SCRIPT", script)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: "/usr/sbin/debootstrap")
    with pytest.raises(Refusal, match="No keyring installed") as refused:
        ensure_local_base(NONE, "3.11", lambda line: None, tmp_path / "log")
    assert refused.value.status == ExitStatus.HOST_CANNOT
    assert {path.name for path in tmp_path.iterdir()} == {"make", "log"}


def test_an_engine_that_has_no_room_for_the_base_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C10: it says it within an answer that begins well."""
    script = tmp_path / "make"
    script.write_text('#!/bin/sh\necho tar >"$3"\n')
    script.chmod(0o755)
    monkeypatch.setattr(local_base, "SCRIPT", script)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: "/usr/sbin/debootstrap")
    told = '{"status":"Importing"}\r\n{"error":"write /var/lib/docker/a: no space left on device"}\r\n'
    api = SimpleNamespace(images=lambda filters: [], import_image=lambda **said: told)
    with pytest.raises(Refusal, match="no space left on the disk"):
        ensure_local_base(cast(Engine, SimpleNamespace(api=api)), "3.11", lambda line: None, tmp_path / "log")
    assert {path.name for path in tmp_path.iterdir()} == {"make", "log"}


def test_older_bases_are_removed_and_what_the_user_built_on_one_is_not() -> None:
    held = [
        {"Id": "now", "RepoTags": ["rematch/local-base:3.11-now"]},
        {"Id": "old", "RepoTags": ["rematch/local-base:3.11-old", "mine:base"]},
        {"Id": "built", "RepoTags": ["mine:latest"]},
    ]
    removed: list[str] = []
    api = SimpleNamespace(images=lambda filters: held, remove_image=removed.append)
    remove_older_bases(cast(Engine, SimpleNamespace(api=api)), "3.11", "now")
    assert removed == ["rematch/local-base:3.11-old"]


def test_a_base_that_is_there_is_kept_and_what_is_built_on_it_is_none() -> None:
    held = [
        {"Id": "child", "RepoTags": ["a:b"], "Labels": {"rematch.stack": "torch"}},
        {"Id": "layer", "RepoTags": None, "Labels": {}},
        {"Id": "base", "RepoTags": ["rematch/local-base:x"], "Labels": {}},
    ]
    engine = cast(Engine, SimpleNamespace(api=SimpleNamespace(images=lambda filters: held)))
    assert find_local_base(engine, "3.11") == "base"


def test_another_python_or_another_recipe_is_another_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = hash_inputs("3.11")
    assert hash_inputs("3.7") != before
    script = tmp_path / "make"
    script.write_text("changed")
    monkeypatch.setattr(local_base, "SCRIPT", script)
    assert hash_inputs("3.11") != before
