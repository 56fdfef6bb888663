"""No container outlives its run."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from scripts.containers import OWNER, RUN, remove_leftovers
from scripts.engine import Engine
from scripts.owner import name_owner
from scripts.runs import ROOT, RunFolder
from tests.docker.conftest import CELL, Enter, Make

STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(600)\n"
HOST = """
import sys
from pathlib import Path
from scripts.confinement import Limits
from scripts.containers import DockerLauncher
from scripts.engine import connect
from scripts.runs import RunFolder
from tests.docker.conftest import CELL, PRELUDE
code = PRELUDE + "from workloads.__main__ import die_with_input\\ndie_with_input()\\ntime.sleep(600)"
limits = Limits(2**30, 2**26, 2**25, 1024)
folder, images = RunFolder(Path(sys.argv[1])), {CELL.stack: sys.argv[2]}
launcher = DockerLauncher(folder, connect(), images, [], program=("-c", code, "{}"), limits=limits)
launcher.launch(CELL, 600)
"""


def list_containers(engine: Engine, run: str) -> list[str]:
    found = engine.api.containers(all=True, filters={"label": f"{RUN}={run}"})
    return [one["Id"] for one in found]


def await_running(engine: Engine, run: str) -> str:
    deadline = time.monotonic() + 60
    while True:
        found = engine.api.containers(filters={"label": f"{RUN}={run}"})
        if found:
            return str(found[0]["Id"])
        assert time.monotonic() < deadline, "no container runs"
        time.sleep(0.02)


def await_no_running(engine: Engine, run: str, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while engine.api.containers(filters={"label": f"{RUN}={run}"}):
        assert time.monotonic() < deadline, "a container runs on"
        time.sleep(0.05)


def test_a_launch_that_takes_too_long_is_ended_though_it_ignores_the_request(
    enter: Enter, engine: Engine, folder: RunFolder
) -> None:
    """C6"""
    ended = enter(STUBBORN, limit_s=3)
    assert ended.cause == ("time-limit", "no end within 3 s; it was killed")
    assert "up" in ended.log
    assert not list_containers(engine, folder.path.name)


def test_stopping_from_another_thread_removes_the_container_and_refuses_further_ones(
    make: Make, engine: Engine, folder: RunFolder
) -> None:
    """C6"""
    launcher = make(STUBBORN)
    ended: list[BaseException] = []

    def launch() -> None:
        try:
            launcher.launch(CELL, 600)
        except KeyboardInterrupt as interruption:
            ended.append(interruption)

    thread = threading.Thread(target=launch)
    thread.start()
    await_running(engine, folder.path.name)
    launcher.stop()
    assert not list_containers(engine, folder.path.name)
    thread.join(30)
    assert len(ended) == 1
    with pytest.raises(KeyboardInterrupt):
        launcher.launch(CELL, 600)
    assert not list_containers(engine, folder.path.name)


def test_a_killed_host_takes_its_container_with_it_and_the_next_start_removes_what_is_left(
    engine: Engine, folder: RunFolder, small_image: str
) -> None:
    """C6: and a container of a living run is left alone."""
    command = [sys.executable, "-c", HOST, str(folder.path), small_image]
    host = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        container = await_running(engine, folder.path.name)
        # So that its program has begun to wait.
        time.sleep(2)
        remove_leftovers(engine)
        assert engine.api.inspect_container(container)["State"]["Running"]
    finally:
        host.send_signal(signal.SIGKILL)
        host.wait()
    await_no_running(engine, folder.path.name, within_s=5)
    remove_leftovers(engine)
    assert not list_containers(engine, folder.path.name)


def test_a_container_that_was_never_started_is_removed_too(engine: Engine, small_image: str) -> None:
    dead = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    labels = {RUN: "dead-run", OWNER: name_owner(dead.pid)}
    dead.kill()
    dead.wait()
    container = engine.api.create_container(small_image, ["true"], labels=labels)["Id"]
    remove_leftovers(engine)
    assert container not in list_containers(engine, "dead-run")


def test_a_segmentation_fault_and_a_foreign_signal_are_told_apart(enter: Enter) -> None:
    for number, words in ((signal.SIGSEGV, "SIGSEGV"), (signal.SIGKILL, "SIGKILL")):
        ended = enter(f"os.kill(os.getpid(), {int(number)})")
        kind, message = ended.cause
        assert kind == "signal"
        assert words in message


def test_an_image_that_was_deleted_in_mid_run_is_a_failed_row_with_the_remedy(enter: Enter) -> None:
    ended = enter("answer()", images={CELL.stack: "sha256:" + "0" * 64})
    kind, message = ended.cause
    assert kind == "image"
    assert "nox -s images" in message


def test_what_a_launch_answers_is_the_callers_and_its_proof_too(enter: Enter, folder: RunFolder) -> None:
    """C5"""
    for cell in (CELL, replace(CELL, purpose="proof")):
        assert enter("answer()", cell).result.cause is None
        place = folder.result(cell.id, None if cell.purpose == "proof" else cell.block)
        assert place.stat().st_uid == os.getuid()
        assert not [path for path in Path(folder.path).rglob("*") if path.stat().st_uid != os.getuid()]
