"""Runs one cell: ``python -m workloads --cell FILE --result FILE``, or, for a person,
``python -m workloads mlp torch-eager``."""

import argparse
import atexit
import ctypes
import importlib
import json
import os
import re
import shutil
import signal
import sys
import threading
import time
import traceback

from workloads import SCHEMA, cell, clock, content, environment, machine, result, summary
from workloads.fault import Fault

SIGNAL_S = 2
EPOCHS = "epochs.jsonl"
PR_SET_PDEATHSIG = 1  # from linux/prctl.h


def main(arguments):
    options = parse(arguments)
    if options.describe:
        workloads = {name: content.sha256(name) for name in content.names()}
        told = {
            "machine": machine.describe(),
            "has_bfloat16": machine.has_bfloat16(),
            "nvidia_driver": machine.nvidia_driver(),
            "workloads": workloads,
            "variables": environment.PREFIXES,
        }
        print(json.dumps(told))
        return 0
    if options.die_with_parent:
        die_with_parent(options.die_with_parent)
    if options.die_with_input:
        die_with_input()
    try:
        one = cell.read(options.cell) if options.cell else cell.from_arguments(options)
    except Fault as fault:
        print("workloads: %s" % fault.message, file=sys.stderr)
        return 2
    folder = os.path.dirname(os.path.abspath(options.result)) if options.result else None
    answer = launch(one, folder)
    if options.cell is None:
        shutil.rmtree(one["cache"], ignore_errors=True)
        print(summary.describe(answer))
    if options.result:
        try:
            result.write(options.result, answer)
        except (OSError, ValueError) as error:
            print("workloads: %s: not written: %s" % (options.result, error), file=sys.stderr)
            return 2
    # The host reads the status from the result; a person who gave no file reads it here.
    return 0 if options.cell or answer["status"] in ("measured", "proved") else 1


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m workloads", description=__doc__)
    parser.add_argument("--cell", help="a cell as the host writes it, instead of a workload and a variant")
    parser.add_argument("--result", metavar="FILE", help="where the result goes, as JSON")
    parser.add_argument("--describe", action="store_true", help="print what this machine is, as JSON")
    parser.add_argument("--die-with-parent", type=int, metavar="PID", help=argparse.SUPPRESS)
    parser.add_argument("--die-with-input", action="store_true", help=argparse.SUPPRESS)
    cell.add_arguments(parser)
    options = parser.parse_args(arguments)
    if options.cell and not options.result:
        parser.error("--cell needs --result")
    if not (options.cell or options.describe or (options.workload and options.variant)):
        parser.error("name a workload and a variant, such as: mlp torch-eager")
    return options


def launch(one, folder):
    """Prove, measure or prepare for a cell; whatever happens to it becomes a result.

    Args:
        one: the cell, decoded.
        folder: where the result goes, and beside it what preparing makes and what is known of each epoch;
            ``None`` for a person, who reads that here.
    """
    started, begin = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), clock.Clock().now_ns()
    # Before the framework's own threads are there to be counted as load.
    surroundings = environment.describe()
    try:
        answer = attempt(one, folder)
    except Exception as error:  # noqa: BLE001
        # A loader's worker that dies is told by a signal, whose handler raises wherever this process is:
        # while it deals with what the death broke, too.
        answer = describe(error)
    surroundings["variables"] = environment.variables(os.environ)
    answer.update(
        schema=SCHEMA,
        cell=one,
        started=started,
        duration_s=(clock.Clock().now_ns() - begin) / 1e9,
        environment=surroundings,
    )
    return answer


def attempt(one, folder):
    try:
        if content.sha256(one["workload"]) != one["identity"]["workload_sha256"]:
            raise Fault("identity", "the sources of %s changed since the run was planned" % one["workload"])
        return (
            prepare(one, os.path.join(folder, "derived")) if one["purpose"] == "prepare" else run(one, folder)
        )
    except Fault as fault:
        return fail(fault.status, fault.kind, fault.message)
    except clock.ClockError as error:
        return fail("failed", "clock", str(error))
    except MemoryError as error:
        return fail("failed", "out-of-memory", str(error) or "the host's memory is used up")
    except (ConnectionError, EOFError) as error:
        # What a dead worker left behind; the signal that says so may be on its way.
        time.sleep(SIGNAL_S)
        return describe(error)
    except Exception as error:  # noqa: BLE001
        return describe(error)


def describe(error):
    """Whatever a framework may raise: the log has its whole story, the table one line of it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    traceback.print_exception(type(error), error, error.__traceback__)
    kind, message = name_exception(error), "%s: %s" % (type(error).__name__, one_line(error))
    if kind == "shared-memory":
        message = "loader workers need more of /dev/shm, or must be fewer (%s)" % message
    return fail("failed", kind, message)


def prepare(one, folder):
    module = importlib.import_module("workloads.%s.prepare" % one["workload"])
    try:
        module.prepare(one, folder)
    except ImportError as error:
        raise Fault("import", "the data cannot be prepared: %s" % error)
    return {"status": "prepared"}


def run(one, folder):
    from workloads import frameworks, measurement, proof

    timer = clock.Clock()
    begin = timer.now_ns()
    framework = frameworks.load(one)
    import_s = (timer.now_ns() - begin) / 1e9
    if one["purpose"] == "measure":
        keep = (
            print_epoch
            if folder is None
            else lambda found: result.append(os.path.join(folder, EPOCHS), found)
        )
        return measurement.measure(one, framework, import_s, keep=keep)
    proved = proof.prove(one, framework)
    if proved["holds"]:
        return {"status": "proved", "proof": proved}
    worst = max(proved["checks"], key=lambda check: check["error"] / check["tolerance"])
    answer = fail(
        "failed",
        "proof",
        "%s is %.9g where %.9g was expected" % (worst["name"], worst["value"], worst["expected"]),
    )
    return dict(answer, proof=proved)


def print_epoch(found):
    """Tell a person of an epoch as it ends."""
    named = ("%s %.4g" % (name, value) for name, value in sorted(found.items()) if isinstance(value, float))
    print("  %s, epoch %d: %s" % (found["measure"], found["epoch"], ", ".join(named)), flush=True)


def fail(status, kind, message):
    return {"status": status, "cause": {"kind": kind, "message": message}}


def name_exception(error):
    if type(error).__name__ == "InvalidCxxCompiler" or "InvalidCxxCompiler" in str(error):
        return "compiler"
    if re.search("shared memory|Bus error", str(error)):
        return "shared-memory"
    if "DataLoader worker" in str(error) or "DataLoader timed out" in str(error):
        return "loader-worker"
    text = "%s %s" % (type(error).__name__, error)
    return (
        "out-of-memory"
        if re.search("out ?of ?memory|OOM|can't allocate memory|ResourceExhausted", text, re.I)
        else "exception"
    )


def one_line(error):
    text = str(error).strip()
    if "Original Traceback" in text:
        # Of a loader's worker: what it raised comes last.
        text = "in a loader's worker: " + text.splitlines()[-1]
    return " ".join(text.split())[:300]


def die_with_parent(parent):
    """Ask the kernel to end this process when the host's, ``parent``, dies, however it dies."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # It may have died before it was asked.
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def die_with_input():
    """End this process when its input ends, which the host holds open for as long as it lives.

    A container outlives whoever asked for it, and no parent's death reaches into it. The thread waits in the
    kernel and costs nothing.
    """

    def wait():
        try:
            while os.read(0, 4096):
                pass
        finally:
            os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, name="input", daemon=True).start()


def end(status):
    """End this process without taking two frameworks' modules apart, which takes a second in some."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    end(main(sys.argv[1:]))
