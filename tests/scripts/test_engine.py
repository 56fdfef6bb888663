"""The engine is found where docker finds it, and what is wrong with it is one line with the remedy."""

import contextlib
import hashlib
import json
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import docker
import pytest
import requests

from scripts import endpoint, engine
from scripts.endpoint import find_endpoint
from scripts.engine import connect, explain_error, translated_errors
from scripts.errors import ExitStatus, Refusal
from tests.scripts.fake_engine import INFO, VERSION, make_info, refused, serve


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may enter, with a path short enough for sockets."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def refuse(environment: Mapping[str, str]) -> str:
    with pytest.raises(Refusal) as caught:
        connect(environment)
    assert caught.value.status == ExitStatus.HOST_CANNOT
    assert "\n" not in caught.value.message
    return caught.value.message


def add_context(folder: Path, name: str, host: str) -> None:
    meta = folder / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest()
    meta.mkdir(parents=True)
    (meta / "meta.json").write_text(
        json.dumps({"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": host}}})
    )


@contextlib.contextmanager
def stranger() -> Iterator[None]:
    """Let this process be somebody who may do nothing in particular."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_facts_are_what_the_engine_says(folder: Path) -> None:
    with serve(folder / "s") as at:
        found = connect({"DOCKER_HOST": at})
        found.api.close()
    facts = found.facts
    assert (facts.version, facts.api_version, facts.endpoint) == ("28.3.0", "1.51", at)
    assert (facts.runtimes, facts.memory_bytes, facts.cpus) == (["nvidia", "runc"], 8 << 30, 4)
    assert (facts.is_rootless, facts.has_cdi, facts.cdi_devices, facts.unlimited) == (False, False, [], [])
    assert found.api.api_version == "1.51"
    assert found.describe()["version"] == "28.3.0"
    assert found.describe()["cgroup"] == "2"


def test_devices_by_cdi_and_a_rootless_engine_are_seen(folder: Path) -> None:
    devices = [
        {"Source": "cdi", "ID": "nvidia.com/gpu=0"},
        {"Source": "else", "ID": "x"},
    ]
    info = make_info(
        CDISpecDirs=["/etc/cdi"],
        DiscoveredDevices=devices,
        SecurityOptions=["name=rootless"],
        MemoryLimit=False,
        PidsLimit=False,
    )
    with serve(folder / "s", info=info) as at:
        facts = connect({"DOCKER_HOST": at}).facts
    assert (facts.has_cdi, facts.cdi_devices) == (True, ["nvidia.com/gpu=0"])
    assert (facts.is_rootless, facts.unlimited) == (True, ["memory", "processes"])


def test_an_engine_that_says_little_is_taken_as_it_is(folder: Path) -> None:
    with serve(folder / "s", {"ApiVersion": "1.41"}, {"ServerVersion": "4.9"}) as at:
        facts = connect({"DOCKER_HOST": at}).facts
    assert (facts.version, facts.runtimes, facts.security, facts.memory_bytes) == ("4.9", [], [], 0)


def test_no_engine_names_the_socket_and_how_to_start_one(folder: Path) -> None:
    """C1"""
    message = refuse({"DOCKER_HOST": f"unix://{folder}/s"})
    assert f"{folder}/s is not there" in message
    assert "install Docker" in message
    assert "systemctl start docker" in message


def test_an_engine_that_is_not_running_is_told_from_one_that_is_not_installed(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / "s"))
    message = refuse({"DOCKER_HOST": f"unix://{folder}/s"})
    assert "is not running" in message
    assert "systemctl start docker" in message


def test_no_permission_on_the_socket_names_the_group(folder: Path) -> None:
    with serve(folder / "s") as at:
        (folder / "s").chmod(0)
        with stranger():
            message = refuse({"DOCKER_HOST": at})
    assert "no permission" in message
    assert "usermod -aG docker" in message
    assert "rootless" in message


@pytest.mark.parametrize(
    ("version", "info"),
    [
        (b"<html>no engine</html>", INFO),
        ([], INFO),
        ({}, INFO),
        ({"ApiVersion": "next"}, INFO),
        ({"ApiVersion": None}, INFO),
        (VERSION, b"\xff\xfe"),
        (VERSION, []),
        (VERSION, {}),
        (VERSION, {"ServerVersion": "1", "DiscoveredDevices": [1]}),
        (VERSION, {"ServerVersion": "1", "MemTotal": "much"}),
        (VERSION, {"ServerVersion": "1", "Runtimes": 3}),
    ],
)
def test_what_answers_like_no_engine_is_refused(folder: Path, version: object, info: object) -> None:
    with serve(folder / "s", version, info) as at:
        message = refuse({"DOCKER_HOST": at})
    assert "does not answer as one" in message
    assert len(message) < 600


def test_an_engine_that_says_nothing_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "ANSWER_S", 0.1)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(folder / "s"))
        silent.listen()
        assert "does not answer as one" in refuse({"DOCKER_HOST": f"unix://{folder}/s"})


def test_an_engine_is_not_waited_for_longer_than_a_user_would() -> None:
    assert 2 <= engine.ANSWER_S <= 5


def test_what_is_no_socket_is_refused(folder: Path) -> None:
    (folder / "s").touch()
    assert f"{folder}/s" in refuse({"DOCKER_HOST": f"unix://{folder}/s"})


@pytest.mark.parametrize("api", ["1.18", "1.39"])
def test_an_engine_too_old_for_a_device_request_is_refused(folder: Path, api: str) -> None:
    with serve(folder / "s", {"Version": "18.09.1", "ApiVersion": api}) as at:
        message = refuse({"DOCKER_HOST": at})
    assert "18.09.1" in message
    assert "19.03 or newer" in message


@pytest.mark.parametrize("api", ["1.40", "1.9999", "2.0"])
def test_an_engine_that_is_new_enough_is_taken(folder: Path, api: str) -> None:
    with serve(folder / "s", {**VERSION, "ApiVersion": api}) as at:
        assert connect({"DOCKER_HOST": at}).facts.api_version == api


@pytest.mark.parametrize(
    "host", ["tcp://10.0.0.2:2376", "tcp://127.0.0.1:2375", "ssh://me:word@far", "unix://", "far", "npipe://"]
)
def test_an_engine_elsewhere_is_refused_since_it_does_not_see_the_sources(host: str) -> None:
    message = refuse({"DOCKER_HOST": host})
    assert "unset DOCKER_HOST" in message
    assert "word" not in message
    assert "me:" not in message


def test_docker_host_goes_before_contexts(tmp_path: Path) -> None:
    add_context(tmp_path, "here", "unix:///run/here.sock")
    found = find_endpoint(
        {"DOCKER_HOST": "unix:///a", "DOCKER_CONTEXT": "here", "DOCKER_CONFIG": str(tmp_path)}
    )
    assert found == "unix:///a"


def test_a_context_is_taken_from_the_variable_or_the_configuration(tmp_path: Path) -> None:
    add_context(tmp_path, "here", "unix:///run/here.sock")
    add_context(tmp_path, "there", "unix:///run/there.sock")
    configured = {"DOCKER_CONFIG": str(tmp_path)}
    assert find_endpoint({**configured, "DOCKER_CONTEXT": "here"}) == "unix:///run/here.sock"
    (tmp_path / "config.json").write_text('{"currentContext": "there"}')
    assert find_endpoint(configured) == "unix:///run/there.sock"
    assert find_endpoint({**configured, "DOCKER_CONTEXT": "here"}) == "unix:///run/here.sock"
    assert find_endpoint({**configured, "DOCKER_CONTEXT": "default"}) == f"unix://{endpoint.DEFAULT}"


def test_the_configuration_is_looked_for_at_home(tmp_path: Path) -> None:
    add_context(tmp_path / ".docker", "here", "unix:///run/here.sock")
    (tmp_path / ".docker" / "config.json").write_text('{"currentContext": "here"}')
    assert find_endpoint({"HOME": str(tmp_path)}) == "unix:///run/here.sock"


def test_a_context_of_another_machine_is_refused(tmp_path: Path) -> None:
    add_context(tmp_path, "far", "ssh://far")
    assert "docker context use default" in refuse({"DOCKER_CONFIG": str(tmp_path), "DOCKER_CONTEXT": "far"})


@pytest.mark.parametrize("content", [None, "", "[]", '{"Endpoints": {}}', '{"Endpoints": {"docker": 1}}'])
def test_a_context_that_cannot_be_read_is_named(tmp_path: Path, content: str | None) -> None:
    add_context(tmp_path, "gone", "")
    (meta,) = tmp_path.rglob("meta.json")
    meta.unlink()
    if content is not None:
        meta.write_text(content)
    message = refuse({"DOCKER_CONFIG": str(tmp_path), "DOCKER_CONTEXT": "gone"})
    assert "'gone'" in message
    assert "docker context ls" in message


@pytest.mark.parametrize("content", ["", "[]", "{", '{"currentContext": ""}', '{"auths": {}}'])
def test_a_configuration_that_names_no_context_means_the_default(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    assert find_endpoint({"DOCKER_CONFIG": str(tmp_path)}).startswith("unix:///")


def test_a_rootless_socket_is_taken_where_the_default_is_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "DEFAULT", tmp_path / "default.sock")
    environment = {"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)}
    assert find_endpoint(environment) == f"unix://{tmp_path}/default.sock"
    (tmp_path / "docker.sock").touch()
    assert find_endpoint(environment) == f"unix://{tmp_path}/docker.sock"
    (tmp_path / "default.sock").touch()
    assert find_endpoint(environment) == f"unix://{tmp_path}/default.sock"


def test_an_engine_that_stopped_in_mid_run_is_told_from_one_that_refuses() -> None:
    """C9"""
    lost = explain_error(requests.ConnectionError("Connection aborted."))
    assert "does not answer any more" in lost.message
    assert "systemctl start docker" in lost.message
    late = explain_error(requests.ReadTimeout("Read timed out."))
    assert "does not answer any more" in late.message
    no = explain_error(refused(409, "Conflict.\nThe name is in use"))
    assert no.message == "the container engine refused: Conflict. The name is in use"
    assert no.status == ExitStatus.HOST_CANNOT
    ours = explain_error(docker.errors.InvalidArgument("no such mode"))
    assert "refused: no such mode" in ours.message


def test_what_is_known_of_a_refusal_is_said_instead() -> None:
    """C10"""
    full = explain_error(refused(500, "write /var/lib/docker/tmp/x: no space left on device"))
    assert "no space left" in full.message
    assert "docker image prune" in full.message


def test_errors_of_the_engine_are_translated_and_others_pass() -> None:
    with pytest.raises(Refusal, match="nox -s images"), translated_errors():
        raise refused(404, "No such image: sha256:00")
    with pytest.raises(ZeroDivisionError), translated_errors():
        raise ZeroDivisionError
