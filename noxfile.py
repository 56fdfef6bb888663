# /// script
# requires-python = ">=3.9"
# dependencies = ["nox>=2025.2.9"]
# ///
"""The front door: a session for each thing that a user may want. Wiring only.

Options after ``--`` go to the program that a session runs: ``nox -s bench-cpu -- --help``.
"""

import os
import re
import sys
from pathlib import Path

import nox

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scripts.environments import HOST, TESTS, Recipe, prepare
from scripts.errors import Refusal

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "none"
nox.options.sessions = ["doctor"]

# What would let the user's own packages into an environment that is made from a lock.
CLEAN = {"PYTHONPATH": None, "PYTHONHOME": None, "PYTHONSAFEPATH": None}


@nox.session(name="bench-cpu", python=False)
def bench_cpu(session: nox.Session) -> None:
    """Measure all workloads on the CPU, each framework in an environment of its own."""
    run_program(session, "scripts.bench", "--device", "cpu", "--runner", "venv", "--profile", "quick")


@nox.session(name="bench-gpu", python=False)
def bench_gpu(session: nox.Session) -> None:
    """Measure all workloads on one GPU, each framework in a container; check the host first."""
    run_program(session, "scripts.bench", "--device", "cuda:0", "--runner", "docker", "--profile", "standard")


@nox.session(name="bench-docker", python=False)
def bench_docker(session: nox.Session) -> None:
    """Measure all workloads on the CPU, each framework in a container."""
    run_program(session, "scripts.bench", "--device", "cpu", "--runner", "docker", "--profile", "quick")


@nox.session(python=False)
def published(session: nox.Session) -> None:
    """Measure what the articles measured, on their versions and on today's, and judge their claims again."""
    run_program(
        session,
        "scripts.bench",
        *("--articles", "--device", "cpu", "--runner", "venv", "--profile", "published"),
    )


@nox.session(python=False)
def images(session: nox.Session) -> None:
    """Build the images that are missing or stale."""
    run_program(session, "scripts.images")


@nox.session(python=False)
def data(session: nox.Session) -> None:
    """Prepare data sets and verify them."""
    run_program(session, "scripts.data")


@nox.session(python=False)
def collect(session: nox.Session) -> None:
    """Merge runs into one comparison."""
    run_program(session, "scripts.collect")


@nox.session(python=False)
def doctor(session: nox.Session) -> None:
    """Say what this host can run, and what to do about the rest."""
    run_program(session, "scripts.doctor")


@nox.session(python=False)
def lock(session: nox.Session) -> None:
    """Refresh the lock files; with --check, only compare them with their inputs."""
    run_program(session, "scripts.lock")


@nox.session(python=False)
def tests(session: nox.Session) -> None:
    """Run the tests of both floors, under each Python and in each stack."""
    run(session, TESTS, "scripts.suites")


@nox.session(python=False)
def lint(session: nox.Session) -> None:
    """Check style, the floors' oldest Pythons, and that locks and schemas are up to date."""
    run(session, TESTS, "scripts.lint")


@nox.session(python=False)
def types(session: nox.Session) -> None:
    """Check types strictly."""
    run(session, TESTS, "mypy")


def run_program(session: nox.Session, module: str, *defaults: str) -> None:
    """Run a program of the host floor and end with its exit status, of which nox would make 1."""
    try:
        run(session, HOST, module, *defaults)
    except nox.command.CommandFailed as failure:
        # "Returned code 3": older nox has it in words only.
        found = re.search(r"-?\d+$", failure.reason or "")
        status = int(found.group()) if found else 1
        sys.exit(status if status >= 0 else 128 - status)


def run(session: nox.Session, recipe: Recipe, module: str, *defaults: str) -> None:
    """Run a module with the user's options after the defaults, so that the user's win."""
    try:
        python = prepare(*recipe)
    except Refusal as refusal:
        print(f"{session.name}: {refusal.message}", file=sys.stderr)
        sys.exit(refusal.status)
    session.run(
        *(str(python), "-m", module, *defaults, *session.posargs),
        # A program ends with nox, even when nox is told to end and has no time to pass it on.
        env={**CLEAN, "REMATCH_ENDS_WITH": str(os.getpid())},
        external=True,
        log=False,
        # An interrupted run removes what it started before it ends; by default nox kills it within
        # half a second.
        interrupt_timeout=30,
        terminate_timeout=10,
    )


if __name__ == "__main__":
    nox.main()
