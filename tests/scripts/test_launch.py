"""Launches of a real process, with a stand-in for the ground floor."""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from scripts.contract import Cell, Data, Result
from scripts.diagnosis import diagnose
from scripts.errors import Refusal
from scripts.launch import Launched, LocalLauncher
from scripts.process import Ending
from scripts.runs import ROOT, RunFolder
from tests.scripts import fake_ground
from tests.scripts.plans import folder_in, plan

CELL = plan(workloads=("toy",)).cells[0]
Launch = Callable[..., Launched]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return folder_in(tmp_path)


@pytest.fixture
def launcher(folder: RunFolder) -> Iterator[LocalLauncher]:
    program = (fake_ground.__file__, str(folder.path.parent / "scenario.json"))
    made = LocalLauncher(folder, {CELL.stack: Path(sys.executable)}, ["OMP_", "TF_ENABLE_"], program)
    yield made
    made.close()


@pytest.fixture
def launch(launcher: LocalLauncher, tmp_path: Path) -> Launch:
    def run(behaviour: str, cell: Cell = CELL, limit_s: float = 60) -> Launched:
        (tmp_path / "scenario.json").write_text(json.dumps({"*": behaviour}))
        return launcher.launch(cell, limit_s)

    return run


def read(folder: RunFolder) -> Result:
    return msgspec.json.decode(folder.result(CELL.id, 0).read_bytes(), type=Result)


def test_a_launch_answers_its_cell_and_leaves_the_result_in_its_place(
    launch: Launch, folder: RunFolder
) -> None:
    launched = launch("answer")
    assert launched.result.status == "measured"
    assert replace(launched.result.cell, cache="") == CELL
    assert read(folder) == launched.result
    assert launched.seconds > 0


def test_a_proof_has_a_file_of_its_own(launch: Launch, folder: RunFolder) -> None:
    assert launch("answer", replace(CELL, purpose="proof")).result.status == "proved"
    assert sorted(path.name for path in folder.cells.iterdir()) == [f"{CELL.id}.proof.json"]


@pytest.mark.parametrize(
    ("behaviour", "kind", "words"),
    [
        ("die SIGKILL", "signal", "killed by SIGKILL (out of memory, or by hand)"),
        ("die SIGSEGV", "signal", "killed by SIGSEGV (segmentation fault)"),
        ("die SIGBUS", "shared-memory", "SIGBUS"),
        ("exit 3", "exit", "status 3"),
        ("exit 0", "result", "there is none"),
        ("answer half", "result", "truncated"),
        ("answer another cell", "result", "seed differs"),
        ("print No module named 'torch'", "exit", "No module named 'torch'"),
        ("print RuntimeError: CUDA out of memory. Tried to allocate", "out-of-memory", "CUDA out of memory"),
        ("print DefaultCPUAllocator: can't allocate memory: you tried", "out-of-memory", "can't allocate"),
        ("print MemoryError", "out-of-memory", "MemoryError"),
        (
            "print It is possible that dataloader's workers are out of shared memory (shm)",
            "shared-memory",
            "(shm)",
        ),
    ],
)
def test_a_launch_that_dies_is_a_failed_result_with_its_cause_and_log(
    launch: Launch, folder: RunFolder, behaviour: str, kind: str, words: str
) -> None:
    """C4"""
    result = launch(behaviour).result
    assert result.status == "failed"
    assert result.cause is not None
    assert result.cause.kind == kind
    assert words in result.cause.message
    assert result.log is not None
    assert (folder.path / result.log).is_file()
    assert read(folder) == result


def test_a_launch_that_dies_does_not_leave_an_older_result_of_its_cell(launch: Launch) -> None:
    assert launch("answer").result.status == "measured"
    assert launch("die SIGKILL").result.status == "failed"


def test_epochs_that_a_launch_told_before_it_died_are_kept_and_said_to_be(
    launch: Launch, folder: RunFolder, tmp_path: Path
) -> None:
    (tmp_path / "epochs").write_text('{"epoch": 1}\n{"epoch": 2}\n')
    result = launch("die SIGKILL").result
    assert result.cause is not None
    kept = f"logs/{CELL.id}.0.epochs.jsonl"
    assert result.cause.message.endswith(f"; 2 epochs before that are in {kept}")
    assert (folder.path / kept).read_text() == (tmp_path / "epochs").read_text()
    assert launch("answer").result.cause is None


def test_each_launch_is_a_process_of_its_own(launch: Launch, tmp_path: Path) -> None:
    """T15"""
    launch("answer")
    launch("answer")
    pids = [line.split()[0] for line in (tmp_path / "starts").read_text().splitlines()]
    assert len(set(pids)) == 2
    assert str(os.getpid()) not in pids


def test_a_hang_is_a_failed_result_and_nothing_of_it_lives_on(launch: Launch, tmp_path: Path) -> None:
    """N3: even what ignores the request to end, and a child of its own."""
    result = launch("hang with a child", limit_s=1).result
    assert result.cause is not None
    assert result.cause.kind == "time-limit"
    assert "within 1 s" in result.cause.message
    grandchild = int((tmp_path / "grandchild").read_text())
    await_death(grandchild)


def test_a_failure_that_the_ground_floor_explained_gets_its_log(launch: Launch, folder: RunFolder) -> None:
    result = launch("fail").result
    assert result.cause is not None
    assert (result.cause.message, result.log) == ("no such device", f"logs/{CELL.id}.0.log")
    assert read(folder) == result


def test_a_whole_result_counts_though_the_process_crashed_afterwards(
    launch: Launch, folder: RunFolder
) -> None:
    result = launch("answer, then die").result
    assert result.status == "measured"
    assert result.warnings == ["after its result: killed by SIGSEGV (segmentation fault)"]
    assert read(folder) == result


def test_an_older_result_in_the_same_place_is_not_taken_for_the_launchs_own(launch: Launch) -> None:
    launch("answer")
    assert launch("exit 3").result.status == "failed"


def test_a_launch_sees_only_what_it_is_meant_to(
    launch: Launch, tmp_path: Path, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONDONTWRITEBYTECODE",
        "SECRET_TOKEN",
        "TF_VAR_secret",
        "HTTP_PROXY",
    ):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("OMP_SCHEDULE", "static")
    launch("tell surroundings")
    seen = json.loads((tmp_path / "surroundings").read_text())
    variables = seen["variables"]
    assert seen["folder"] == str(ROOT)
    assert seen["cache"] is True
    assert not {"PYTHONPATH", "PYTHONHOME", "SECRET_TOKEN", "TF_VAR_secret", "HTTP_PROXY"} & variables.keys()
    assert "PYTHONDONTWRITEBYTECODE" not in variables
    assert (variables["OMP_SCHEDULE"], variables["PATH"]) == ("static", os.environ["PATH"])
    assert variables["PYTHONNOUSERSITE"] == "1"
    assert 0 <= int(variables["PYTHONHASHSEED"]) < 2**32
    assert CELL.stack in variables["CUDA_CACHE_PATH"]
    assert variables["HOME"] != os.environ.get("HOME")
    assert not Path(variables["HOME"]).exists(), "private folders go when the launch ends"
    assert seen["input"] == ""


def test_measured_launches_have_fresh_caches_and_proofs_of_a_stack_share_a_warm_one(launch: Launch) -> None:
    """T5"""
    first, second = (Path(launch("answer").result.cell.cache) for _ in range(2))
    assert first != second
    assert not first.exists()
    proof = replace(CELL, purpose="proof", cache_state="warm")
    warm, again = (Path(launch("answer", proof).result.cell.cache) for _ in range(2))
    assert warm == again
    assert warm.is_dir()


def test_a_launch_finds_its_data_and_its_result_says_no_place_of_this_machine(launch: Launch) -> None:
    data = Data("digits", "0" * 64, ".data/digits", "handwriting")
    launched = launch("answer", replace(CELL, data=data))
    assert launched.result.status == "measured"
    assert launched.result.cell.data == data


def test_what_a_launch_prepares_becomes_a_folder_and_leaves_no_result(
    launch: Launch, launcher: LocalLauncher, folder: RunFolder, tmp_path: Path
) -> None:
    launch("answer")
    before = sorted(folder.cells.iterdir())
    launched = launcher.derive(replace(CELL, purpose="prepare"), 60, tmp_path / "made")
    assert launched.result.status == "prepared"
    assert (tmp_path / "made" / "made").read_text() == "of the data"
    assert sorted(folder.cells.iterdir()) == before


def test_of_a_preparation_that_fails_nothing_is_kept(
    launch: Launch, launcher: LocalLauncher, tmp_path: Path
) -> None:
    launch("answer")
    (tmp_path / "scenario.json").write_text(json.dumps({"*": "die SIGKILL"}))
    launched = launcher.derive(replace(CELL, purpose="prepare"), 60, tmp_path / "made")
    assert launched.result.status == "failed"
    assert not (tmp_path / "made").exists()


def test_a_launched_process_is_told_the_whole_path_of_its_data(
    launcher: LocalLauncher, tmp_path: Path
) -> None:
    data = Data("digits", "0" * 64, ".data/digits", "handwriting")
    seen = launcher._look(replace(CELL, data=data), tmp_path)
    assert seen.data is not None
    assert seen.data.folder == str(ROOT / ".data" / "digits")
    elsewhere = launcher._look(replace(CELL, data=replace(data, folder=str(tmp_path))), tmp_path)
    assert elsewhere.data is not None
    assert elsewhere.data.folder == str(tmp_path)


def test_closing_leaves_no_private_folder(launch: Launch, launcher: LocalLauncher) -> None:
    cache = Path(launch("answer", replace(CELL, cache_state="warm")).result.cell.cache)
    launcher.close()
    assert not cache.parent.exists()


def test_stopping_ends_launches_in_flight_writes_nothing_of_them_and_refuses_more(
    launch: Launch, launcher: LocalLauncher, tmp_path: Path, folder: RunFolder
) -> None:
    caught: list[BaseException] = []

    def hang() -> None:
        try:
            launch("hang")
        except KeyboardInterrupt as interrupted:
            caught.append(interrupted)

    thread = threading.Thread(target=hang)
    thread.start()
    await_file(tmp_path / "starts")
    launcher.stop()
    thread.join(timeout=30)
    assert len(caught) == 1
    assert not list(folder.cells.glob("*"))
    await_death(int((tmp_path / "starts").read_text().split()[0]))
    with pytest.raises(KeyboardInterrupt):
        launch("answer")


def test_an_interpreter_that_cannot_be_started_is_refused_by_name(folder: RunFolder, tmp_path: Path) -> None:
    launcher = LocalLauncher(folder, {CELL.stack: tmp_path / "no-python"}, [])
    with pytest.raises(Refusal, match="no-python"):
        launcher.launch(CELL, 10)
    launcher.close()


def test_a_kill_while_the_kernel_was_out_of_memory_is_called_by_its_name(tmp_path: Path) -> None:
    cause = diagnose(Ending(-signal.SIGKILL, False, 1.0, oom_kills=1), tmp_path / "no.log", 60)
    assert cause.kind == "out-of-memory"


def await_file(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < deadline, f"{path} does not come"
        time.sleep(0.01)


def await_death(pid: int) -> None:
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < deadline, f"process {pid} lives on"
        time.sleep(0.01)
