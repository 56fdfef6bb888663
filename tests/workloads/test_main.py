import importlib.util
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.workloads.fakes import FakeFramework, install, make_cell
from workloads import __main__ as main
from workloads import content, frameworks
from workloads.fault import Fault

ROOT = os.path.dirname(content.GROUND)


def start(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "workloads"] + list(arguments),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        **options,
    )


def run(*arguments):
    process = start(*arguments)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    return process.returncode, out, err


def launch(monkeypatch, framework=FakeFramework, **changes):
    install(monkeypatch)
    monkeypatch.setattr(frameworks, "load", framework)
    cell = make_cell(identity={"workload_sha256": content.sha256("mlp")}, **changes)
    return main.launch(cell, "/nonexistent")


def test_this_machine_and_the_workloads_are_described():
    status, out, _ = run("--describe")
    told = json.loads(out)
    assert status == 0
    assert told["machine"]["cpus_usable"] >= 1
    assert told["workloads"]["mlp"] == content.sha256("mlp")


def test_a_proof_is_a_launch_of_its_own(monkeypatch):
    answer = launch(monkeypatch, purpose="proof")
    assert answer["status"] == "proved"
    assert "measures" not in answer
    assert answer["environment"]["packages"]["numpy"]


def test_a_fault_becomes_a_result(monkeypatch):
    def fault(cell):
        raise Fault("precision", "no bfloat16 here", "skipped")

    answer = launch(monkeypatch, fault)
    assert answer["status"] == "skipped"
    assert answer["cause"] == {"kind": "precision", "message": "no bfloat16 here"}
    assert answer["cell"]["id"] == make_cell()["id"]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MemoryError(), "out-of-memory"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "out-of-memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "out-of-memory"),
        (ValueError("shapes\n  do not\tmatch"), "exception"),
    ],
)
def test_whatever_a_framework_raises_becomes_a_result_of_one_line(monkeypatch, capsys, error, kind):
    def broken(cell):
        raise error

    answer = launch(monkeypatch, broken)
    assert answer["status"] == "failed"
    assert answer["cause"]["kind"] == kind
    assert "\n" not in answer["cause"]["message"]


def test_sources_that_changed_since_the_plan_are_told(monkeypatch):
    """R6"""
    cell = make_cell(identity={"workload_sha256": "0" * 64})
    assert (
        main.launch(cell, "/nonexistent")["cause"]["message"]
        == "the sources of mlp changed since the run was planned"
    )


def test_a_framework_that_fails_to_import_is_a_failed_result(tmp_path):
    cell = make_cell(
        framework="absent", identity={"workload_sha256": content.sha256("mlp")}, cache=str(tmp_path)
    )
    (tmp_path / "cell.json").write_text(json.dumps(cell))
    status, _, _ = run("--cell", str(tmp_path / "cell.json"), "--result", str(tmp_path / "result.json"))
    answer = json.loads((tmp_path / "result.json").read_text())
    assert status == 0
    assert answer["status"] == "failed"
    assert answer["cause"]["kind"] == "import"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a workload and a variant"),
        (["mpl", "torch-eager"], "there is no workload 'mpl'; there are"),
        (["mlp", "torch-eager", "--budget", "nan"], "no sensible positive number"),
        (["mlp", "torch-eager", "--threads", "0"], "no sensible positive number"),
        (["mlp", "torch-eager", "--precision", "fp8"], "invalid choice"),
        (["--cell", "/nonexistent.json", "--result", "x"], "/nonexistent.json: cannot be read as a cell"),
        (["--cell", "x"], "--cell needs --result"),
    ],
)
def test_a_persons_mistake_is_one_line_and_status_2(arguments, message):
    status, _, err = run(*arguments)
    assert status == 2
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mlp", "torch-eagre"], "mlp has no variant 'torch-eagre'; it has torch-eager"),
        (["ceiling", "torch-ceiling", "--prove"], "a ceiling is no contest and has no proof"),
        (
            ["ceiling", "torch-ceiling", "--edition", "article"],
            "ceiling has no edition 'article'; it has fair",
        ),
    ],
)
def test_names_are_looked_up_in_the_table_by_a_python_that_reads_it(arguments, message):
    status, _, err = run(*arguments)
    assert status == 2
    if sys.version_info < (3, 11) and importlib.util.find_spec("pip") is None:
        message = "this Python reads no TOML; use 3.11 or newer, or give the cell by --cell FILE"
    assert message in err


def test_a_cell_of_another_schema_is_refused(tmp_path):
    (tmp_path / "cell.json").write_text('{"schema": 99}')
    status, _, err = run("--cell", str(tmp_path / "cell.json"), "--result", "x")
    assert (status, "not a cell of schema 1" in err) == (2, True)


def test_a_launch_dies_with_its_parent(tmp_path):
    """The host process killed in mid-run leaves no launch behind."""
    child = (
        "import sys, time; sys.path.insert(0, %r); from workloads.__main__ import die_with_parent; "
        "import os; die_with_parent(os.getppid()); print(1, flush=True); time.sleep(60)" % ROOT
    )
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', %r]); time.sleep(60)"
            % child,
        ],
        stdout=subprocess.PIPE,
    )
    assert parent.stdout.readline() == b"1\n"
    parent.send_signal(signal.SIGKILL)
    # The pipe ends only once the launch, which holds its other end, is gone too.
    assert parent.stdout.read() == b""
    parent.wait()
    parent.stdout.close()


class Host:
    """Stands in for the host: a process whose input it holds, and which says that it waits."""

    def __init__(self, program):
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        assert self.process.stdout.readline() == b"waiting\n"

    def close(self):
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.stdout.close()
        return self.process.wait()


WAITING = """
import os, sys, time
from workloads.__main__ import die_with_input
die_with_input()
%s
print("waiting", flush=True)
time.sleep(60)
"""


def test_a_process_whose_host_died_ends_with_its_input():
    """C6"""
    host = Host(WAITING % "")
    time.sleep(0.3)
    assert host.process.poll() is None
    assert host.close() == -signal.SIGKILL


def test_a_loaders_worker_does_not_wait_for_the_input():
    """N3"""
    forked = "child = os.fork()\nif child == 0: os._exit(7)\nassert os.waitpid(child, 0)[1] >> 8 == 7"
    assert Host(WAITING % forked).close() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (
            RuntimeError(
                "Caught OSError in DataLoader worker process 1.\nOriginal Traceback (most recent call last):"
                '\n  File "x.py", line 1\nOSError: no such image\n'
            ),
            "loader-worker",
            "RuntimeError: in a loader's worker: OSError: no such image",
        ),
        (
            RuntimeError("DataLoader worker (pid 7) is killed by signal: Bus error. Out of shared memory?"),
            "shared-memory",
            "loader workers need more of /dev/shm, or must be fewer (RuntimeError: DataLoader worker (pid 7)",
        ),
        (RuntimeError("DataLoader timed out after 60 seconds"), "loader-worker", "timed out after 60"),
    ],
)
def test_what_befell_a_loaders_worker_is_told_in_one_line(monkeypatch, capfd, raised, kind, message):
    """N3, C4"""

    def fail(one, folder):
        raise raised

    monkeypatch.setattr(main, "run", fail)
    cause = launch(monkeypatch)["cause"]
    assert cause["kind"] == kind
    assert message in cause["message"]
    assert "\n" not in cause["message"]


def test_a_signals_handler_that_raises_while_a_failure_is_dealt_with_changes_nothing(monkeypatch, capfd):
    """A worker's death is told by a signal, and may come at any time."""
    real, calls = main.describe, []

    def describe(error):
        calls.append(str(error))
        if len(calls) == 1:
            raise RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed")
        return real(error)

    def fail(one, folder):
        raise ValueError("what the death broke")

    monkeypatch.setattr(main, "run", fail)
    monkeypatch.setattr(main, "describe", describe)
    cause = launch(monkeypatch)["cause"]
    assert calls[0] == "what the death broke"
    assert (cause["kind"], "killed by signal" in cause["message"]) == ("loader-worker", True)


def test_a_data_set_that_was_not_prepared_is_one_line_and_status_2(tmp_path):
    status, _, err = run("mnist", "tensor-resident", "--data", str(tmp_path))
    assert status == 2
    if "reads no TOML" not in err:
        assert "no prepared data set; make one by `nox -s data`" in err


def test_a_measure_that_an_edition_has_not_is_refused():
    status, _, err = run("mlp", "torch-eager", "--measure", "load_epoch")
    assert status == 2
    assert "mlp is measured by step" in err or "reads no TOML" in err


def test_preparing_without_what_it_takes_is_a_failed_result(monkeypatch, tmp_path):
    cell = make_cell(
        workload="mnist", purpose="prepare", identity={"workload_sha256": content.sha256("mnist")}
    )
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    answer = main.launch(cell, str(tmp_path / "derived"))
    assert (answer["status"], answer["cause"]["kind"]) == ("failed", "import")


TABLE = {
    "parameters": {"batch": 1024, "blocks": [6, 12], "rate": 0.5, "epochs": 80},
    "profiles": {"smoke": {"parameters": {"blocks": [1, 1], "epochs": 2}}, "quick": {}},
}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["--profile", "smok"], "there is no profile 'smok'; there are smoke, quick"),
        (["--set", "bach=3"], "there is no parameter 'bach'; there are batch, blocks"),
        (["--set", "batch=many"], "'many' is no value like 1024"),
        (["--set", "batch=1.5"], "'1.5' is no value like 1024"),
        (["--set", "batch=true"], "'true' is no value like 1024"),
        (["--set", "batch"], "'' is no value like 1024"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_in_one_line(said, words):
    with pytest.raises(Fault) as caught:
        main.cell.choose_parameters(TABLE, main.parse(["net", "way"] + said))
    assert words in caught.value.message
    assert "\n" not in caught.value.message


def test_a_person_may_take_a_profiles_parameters_and_change_some():
    said = ["--profile", "smoke", "--set", "batch=8", "--set", "rate=1", "--epochs", "3"]
    found = main.cell.choose_parameters(TABLE, main.parse(["net", "way"] + said))
    assert found == {"batch": 8, "blocks": [1, 1], "rate": 1, "epochs": 3}
    assert main.cell.choose_parameters(TABLE, main.parse(["net", "way"])) == TABLE["parameters"]
