"""Says in one screen what this host can run, and what to do about the rest: ``python -m scripts.doctor``."""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scripts import contract, environments, host, uv
from scripts.environments import EnvironmentRefusal, Recipe
from scripts.errors import ExitStatus, run_program
from scripts.host import BUSY
from scripts.runs import ROOT, RUNS
from scripts.stacks import Stack, load_stacks

GIB = 1 << 30
HOST_BYTES = GIB // 4
"""Disk that the host's own environment takes."""

Verdict = Literal["ok", "note", "NO"]


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, whether it is fit for measuring, and what to do if it is not."""

    subject: str
    verdict: Verdict
    """``NO`` means that ``bench-cpu`` cannot run; ``note`` that something is worth knowing."""
    says: str


def examine() -> Iterator[Finding]:
    """Look at everything that ``bench-cpu`` needs."""
    stacks = [stack for stack in load_stacks().values() if stack.current]
    yield examine_platform(platform.system(), platform.machine())
    ground = host.describe_ground()
    yield from examine_machine(ground.machine)
    yield examine_bfloat16(ground.has_bfloat16)
    yield examine_gpu(ground.nvidia_driver)
    yield examine_compiler(os.environ.get("CXX") or shutil.which("g++"))
    command = uv.find(environments.VENVS / "uv")
    if command:
        version = ".".join(map(str, uv.version(command)))
        yield Finding("uv", "ok", f"{version}, {' '.join(command)}")
    else:
        yield Finding("uv", "note", "not installed; the first session that needs it fetches it")
    for python in sorted({environments.HOST.python, *(stack.python for stack in stacks)}):
        yield examine_python(python, command)
    recipes = [environments.HOST, *map(recipe_of, stacks)]
    for recipe in recipes:
        yield examine_environment(recipe)
    takes = {environments.HOST.name: HOST_BYTES} | {one.name: int(one.disk_gib * GIB) for one in stacks}
    yield examine_disk(takes, shutil.disk_usage(ROOT).free)
    yield examine_results(RUNS)
    yield examine_git()
    yield examine_terminal(sys.stdout.encoding)


def recipe_of(stack: Stack) -> Recipe:
    return Recipe(stack.name, stack.python, (stack.lock_for("venv"),))


def examine_platform(system: str, machine: str) -> Finding:
    if (system, machine) == ("Linux", "x86_64"):
        return Finding("platform", "ok", f"{system} {machine}")
    return Finding("platform", "NO", f"{system} {machine}: the stacks are locked for Linux on x86_64")


def examine_machine(machine: contract.Machine) -> Iterator[Finding]:
    memory = f"{machine.memory_bytes / GIB:.0f} GiB"
    cpus = f"{machine.cpus_usable} of {machine.cpus_online} CPUs usable"
    yield Finding("machine", "ok", f"{machine.cpu_model}, {cpus}, {memory}")
    if machine.load_1m is not None and machine.load_1m > BUSY * machine.cpus_usable:
        yield Finding(
            "load", "note", f"{machine.load_1m:.1f}: other work disturbs the timings; stop it first"
        )
    else:
        yield Finding("load", "ok", "idle" if machine.load_1m is not None else "unknown")
    if machine.governor in (None, "performance"):
        yield Finding("governor", "ok", machine.governor or "not told by this kernel")
    else:
        advice = "steadier with `cpupower frequency-set -g performance`"
        yield Finding("governor", "note", f"{machine.governor}: {advice}")


def examine_bfloat16(has_bfloat16: bool) -> Finding:
    if has_bfloat16:
        return Finding("bf16", "ok", "the CPU computes in bfloat16")
    return Finding("bf16", "note", "the CPU has no bfloat16; --precision bf16 is skipped")


def examine_gpu(driver: str | None) -> Finding:
    if driver is None:
        return Finding("GPU", "note", "no NVIDIA driver is loaded; the CPU is measured")
    return Finding("GPU", "ok", f"NVIDIA driver {driver}")


def examine_compiler(compiler: str | None) -> Finding:
    """torch.compile needs one when it runs; inductor takes the same names in the same order."""
    if compiler is None:
        return Finding("compiler", "note", "no C++ compiler, so torch-compile fails; install g++")
    return Finding("compiler", "ok", compiler)


def examine_python(python: str, command: list[str] | None) -> Finding:
    subject = f"Python {python}"
    found = uv.find_python(command, python) if command else None
    if found:
        return Finding(subject, "ok", str(found))
    advice = "uv tries to fetch it; if that fails, install it from your system's packages or by pyenv"
    return Finding(subject, "note", f"not found; {advice}")


def examine_environment(recipe: Recipe) -> Finding:
    try:
        current = environments.is_current(*recipe)
    except EnvironmentRefusal as refusal:
        return Finding(recipe.name, "NO", refusal.message)
    if current:
        return Finding(recipe.name, "ok", "built")
    state = "stale" if (environments.VENVS / recipe.name).exists() else "not built"
    return Finding(recipe.name, "note", f"{state}; the next bench session builds it")


def examine_disk(takes_bytes: Mapping[str, int], free_bytes: int) -> Finding:
    """``takes_bytes`` are the environments' sizes, by name."""
    needed = sum(size for name, size in takes_bytes.items() if not (environments.VENVS / name).exists())
    says = f"{free_bytes / GIB:.0f} GiB free, {needed / GIB:.1f} GiB to come"
    if free_bytes < needed:
        return Finding("disk", "NO", f"{says}: make room on the disk of {ROOT}")
    return Finding("disk", "ok", says)


def examine_results(runs: Path) -> Finding:
    try:
        runs.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=runs):
            return Finding("results", "ok", f"{os.path.relpath(runs, ROOT)} can be written")
    except OSError as error:
        return Finding("results", "NO", f"{runs}: {error.strerror}; make it writable or use --results")


def examine_git() -> Finding:
    try:
        answer = subprocess.run(["git", "--version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return Finding("git", "note", "absent; results will name no commit")
    return Finding("git", "ok", answer.stdout.strip().removeprefix("git version "))


def examine_terminal(encoding: str) -> Finding:
    if encoding.lower().replace("-", "") == "utf8":
        return Finding("terminal", "ok", encoding)
    return Finding("terminal", "note", f"{encoding}: tables are drawn plainly; set LANG=C.UTF-8 for more")


def main(arguments: Sequence[str]) -> ExitStatus:
    # None so far, and one that is given must not be ignored.
    argparse.ArgumentParser(prog="nox -s doctor", description=__doc__).parse_args(arguments)
    findings = list(examine())
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        print(f"{finding.verdict:4}  {finding.subject:{width}}  {finding.says}")
    if any(finding.verdict == "NO" for finding in findings):
        print("\nbench-cpu cannot run here yet: see the lines with NO.")
        return ExitStatus.HOST_CANNOT
    print("\nbench-cpu can run here.")
    return ExitStatus.MEASURED


if __name__ == "__main__":
    run_program("doctor", main)
