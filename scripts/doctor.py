"""Says in one screen what this host can run, and what to do about the rest: ``python -m scripts.doctor``."""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from scripts import contract, environments, host, uv
from scripts.arguments import Parser
from scripts.bundle import write_bundle
from scripts.catalogue import order_version
from scripts.doctor_containers import examine_containers
from scripts.environments import EnvironmentRefusal, Recipe
from scripts.errors import ExitStatus, run_program
from scripts.finding import SESSIONS, Finding, Session, gather, note
from scripts.host import BUSY
from scripts.runs import ROOT, RUNS
from scripts.stacks import Stack, load_stacks

GIB = 1 << 30
HOST_BYTES = GIB // 4
"""Disk that the host's own environment takes."""
VENVS: tuple[Session, ...] = ("bench-cpu",)
"""Sessions of the ``venv`` runner."""


def examine() -> Iterator[Finding]:
    """Look at everything that the sessions need."""
    every = load_stacks().values()
    stacks = [stack for stack in every if stack.current]
    # Only if there is anything to say about it.
    yield from filter(is_telling, [examine_platform(platform.system(), platform.machine())])
    ground = host.describe_ground()
    yield from examine_machine(ground.machine)
    yield examine_bfloat16(ground.has_bfloat16)
    yield examine_compiler(os.environ.get("CXX") or shutil.which("g++"))
    command = uv.find(environments.VENVS / "uv")
    if command:
        version = ".".join(map(str, uv.version(command)))
        yield Finding("uv", f"{version}, {' '.join(command)}")
    else:
        yield note("uv", "not installed; the first session that needs it fetches it")
    for python in sorted({environments.HOST.python, *(stack.python for stack in stacks)}):
        yield examine_python(python, command)
    recipes = [environments.HOST, *map(recipe_of, stacks)]
    yield from gather("environments", map(examine_environment, recipes))
    yield from examine_historical([stack for stack in every if not stack.current], command)
    takes = {environments.HOST.name: HOST_BYTES} | {one.name: int(one.disk_gib * GIB) for one in stacks}
    yield examine_disk(takes, shutil.disk_usage(ROOT).free)
    yield examine_results(RUNS)
    yield examine_git()
    yield from filter(is_telling, [examine_terminal(sys.stdout.encoding)])
    yield from examine_containers(stacks)


def is_telling(finding: Finding) -> bool:
    return finding.verdict != "ok"


def examine_historical(stacks: Sequence[Stack], command: list[str] | None) -> Iterator[Finding]:
    """Tell for the stacks that join a plan when they are asked for whether their Python is here."""
    for python in sorted({stack.python for stack in stacks}, key=order_version):
        names = ", ".join(stack.name for stack in stacks if stack.python == python)
        found = examine_python(python, command)
        says = f"{found.subject}, {found.says}; `nox -s published` takes {names}"
        if is_telling(found):
            says = f"{found.subject} {found.says}; `nox -s published` skips {names} till then"
        yield replace(found, subject="historical", says=says)


def recipe_of(stack: Stack) -> Recipe:
    return Recipe(stack.name, stack.python, (stack.lock_for("venv"),), stack.sources)


def examine_platform(system: str, machine: str) -> Finding:
    if (system, machine) == ("Linux", "x86_64"):
        return Finding("platform", f"{system} {machine}")
    return Finding("platform", f"{system} {machine}: the stacks are locked for Linux on x86_64", SESSIONS)


def examine_machine(machine: contract.Machine) -> Iterator[Finding]:
    memory = f"{machine.memory_bytes / GIB:.0f} GiB"
    cpus = f"{machine.cpus_usable} of {machine.cpus_online} CPUs usable"
    yield Finding("machine", f"{machine.cpu_model}, {cpus}, {memory}")
    if machine.load_1m is not None and machine.load_1m > BUSY * machine.cpus_usable:
        yield note("load", f"{machine.load_1m:.1f}: other work disturbs the timings; stop it first")
    else:
        yield Finding("load", "idle" if machine.load_1m is not None else "unknown")
    if machine.governor in (None, "performance"):
        yield Finding("governor", machine.governor or "not told by this kernel")
    else:
        advice = "steadier with `cpupower frequency-set -g performance`"
        yield note("governor", f"{machine.governor}: {advice}")


def examine_bfloat16(has_bfloat16: bool) -> Finding:
    if has_bfloat16:
        return Finding("bf16", "the CPU computes in bfloat16")
    return note("bf16", "the CPU has no bfloat16; --precision bf16 is skipped")


def examine_compiler(compiler: str | None) -> Finding:
    """torch.compile needs one when it runs; inductor takes the same names in the same order."""
    if compiler is None:
        return note("compiler", "no C++ compiler, so torch-compile fails; install g++")
    return Finding("compiler", compiler)


def examine_python(python: str, command: list[str] | None) -> Finding:
    subject = f"Python {python}"
    found = uv.find_python(command, python) if command else None
    if found:
        return Finding(subject, str(found))
    advice = "uv tries to fetch it; if that fails, install it from your system's packages or by pyenv"
    return note(subject, f"not found; {advice}")


def examine_environment(recipe: Recipe) -> Finding:
    stops = SESSIONS if recipe == environments.HOST else VENVS
    try:
        current = environments.is_current(*recipe)
    except EnvironmentRefusal as refusal:
        return Finding(recipe.name, refusal.message, stops)
    if current:
        return Finding(recipe.name, "built")
    state = "stale" if (environments.VENVS / recipe.name).exists() else "not built"
    return note(recipe.name, f"{state}; the next bench session builds it")


def examine_disk(takes_bytes: Mapping[str, int], free_bytes: int) -> Finding:
    """``takes_bytes`` are the environments' sizes, by name."""
    needed = sum(size for name, size in takes_bytes.items() if not (environments.VENVS / name).exists())
    says = f"{free_bytes / GIB:.0f} GiB free, {needed / GIB:.1f} GiB to come"
    if free_bytes < needed:
        return Finding("disk", f"{says}: make room on the disk of {ROOT}", VENVS)
    return Finding("disk", says)


def examine_results(runs: Path) -> Finding:
    try:
        runs.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=runs):
            return Finding("results", f"{os.path.relpath(runs, ROOT)} can be written")
    except OSError as error:
        return Finding("results", f"{runs}: {error.strerror}; make it writable or use --results", SESSIONS)


def examine_git() -> Finding:
    try:
        answer = subprocess.run(["git", "--version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return note("git", "absent; results will name no commit")
    return Finding("git", answer.stdout.strip().removeprefix("git version "))


def examine_terminal(encoding: str) -> Finding:
    if encoding.lower().replace("-", "") == "utf8":
        return Finding("terminal", encoding)
    return note("terminal", f"{encoding}: tables are drawn plainly; set LANG=C.UTF-8 for more")


def describe(findings: Sequence[Finding]) -> list[str]:
    """Return the screen: a line a finding, and a line a session."""
    width = max(len(finding.subject) for finding in findings)
    lines = [f"{finding.verdict:4}  {finding.subject:{width}}  {finding.says}" for finding in findings]
    return [*lines, "", *(describe_session(session, findings) for session in SESSIONS)]


def describe_session(session: Session, findings: Sequence[Finding]) -> str:
    reasons = list(dict.fromkeys(one.subject for one in findings if session in one.stops))
    if reasons:
        return f"{session} cannot run here yet: see {', '.join(reasons)}."
    return f"{session} can run here."


def main(arguments: Sequence[str]) -> ExitStatus:
    parser = Parser(prog="nox -s doctor --", description=__doc__)
    parser.add_argument(
        "--bundle",
        nargs="?",
        const="",
        metavar="FILE",
        help="write what a bug report needs into a .zip, without secrets",
    )
    said = parser.parse_args(arguments)
    findings = list(examine())
    lines = describe(findings)
    print("\n".join(lines), flush=True)
    if said.bundle is not None:
        path = write_bundle(Path(said.bundle) if said.bundle else None, "\n".join(lines))
        print(f"\n{path}: no secrets as far as they are known; look into it before you send it")
    cannot = any("bench-cpu" in finding.stops for finding in findings)
    return ExitStatus.HOST_CANNOT if cannot else ExitStatus.MEASURED


if __name__ == "__main__":
    run_program("doctor", main)
