"""How long collecting takes: ``python benchmarks/collector.py [--files N ...] [--without-pyperf]``.

Writes runs of results of 100 samples each into a temporary folder, then collects them in a fresh
process, and compares as many samples with ``pyperf compare_to``. Ends with 1 where a bound does not hold.
"""

import argparse
import copy
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyperf  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "scripts" / "fixtures"
SAMPLES = 100
BLOCKS = 25
VARIANTS = ("torch-eager", "torch-eager", "torch-script", "torch-compile", "tensorflow-graph")
"""The baseline, its twin in the A/A pair, and the others."""


BOUND_FILES, BOUND_S, BOUND_BYTES = 10_000, 2.0, 300e6
"""So many files in so long and so much; in proportion where there are more."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, nargs="+", default=[2500, 10000], metavar="N")
    parser.add_argument("--without-pyperf", action="store_true")
    options = parser.parse_args()
    held = True
    print(f"{'files':>7} {'samples':>9} {'collect':>9} {'memory':>8}" + " " * 3 + "pyperf compare_to")
    for files in options.files:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            written = write_run(folder / "run", files)
            command = ["-m", "scripts.collect", str(folder / "run"), "--results", str(folder / "merged")]
            seconds, peak_bytes = run(command)
            more = max(1.0, written / BOUND_FILES)
            held = held and seconds <= BOUND_S * more and peak_bytes <= BOUND_BYTES * more
            line = f"{written:>7} {written * SAMPLES:>9} {seconds:>7.2f} s {peak_bytes / 1e6:>5.0f} MB"
            if not options.without_pyperf:
                pair = write_suites(folder, files)
                seconds, peak_bytes = run(["-m", "pyperf", "compare_to", "--table", *map(str, pair)])
                line += f"   {seconds:.2f} s {peak_bytes / 1e6:.0f} MB"
            print(line, flush=True)
    sys.exit(0 if held else 1)


def run(command: list[str]) -> tuple[float, int]:
    """Run Python in a fresh process; return its seconds and its peak resident bytes."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, *command], cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{command} ended with {process.returncode}")
    return seconds, usage.ru_maxrss * 1024


def write_run(folder: Path, files: int) -> int:
    """Write about ``files`` results, proofs among them; return how many there are."""
    (folder / "cells").mkdir(parents=True)
    chance = random.Random(0)
    launch, proof = (json.loads((FIXTURES / name).read_text()) for name in ("mlp.json", "mlp.proof.json"))
    written = 0
    for contest in range(files // (BLOCKS * len(VARIANTS))):
        for place, variant in enumerate(VARIANTS):
            role = ("baseline", "a_a")[place] if place < 2 else "variant"
            cell = launch["cell"] | {"workload": f"mlp-{contest}", "variant": variant, "role": role}
            cell["id"] = f"mlp-{contest}_{variant}_{role}"
            _write(folder, proof | {"cell": cell | {"purpose": "proof"}}, "proof")
            for block in range(BLOCKS):
                made: dict[str, Any] = copy.deepcopy(launch) | {"cell": cell | {"block": block}}
                centre = 0.06 * chance.lognormvariate(0, 0.01) * (1 + 0.1 * max(0, place - 1))
                made["measures"][0]["samples_s"] = [
                    centre * chance.lognormvariate(0, 0.02) for _ in range(SAMPLES)
                ]
                _write(folder, made, str(block))
                written += 1
    return written


def _write(folder: Path, result: dict[str, Any], block: str) -> None:
    # As the ground floor writes it.
    content = json.dumps(result, sort_keys=True, indent=1)
    (folder / "cells" / f"{result['cell']['id']}.{block}.json").write_text(content)


def write_suites(folder: Path, files: int) -> tuple[Path, Path]:
    """Write the same number of samples as two pyperf suites of as many benchmarks."""
    chance = random.Random(0)
    pair = folder / "before.json", folder / "after.json"
    for path in pair:
        benchmarks = [
            pyperf.Benchmark(
                [
                    pyperf.Run(
                        [0.06 * chance.lognormvariate(0, 0.02) for _ in range(SAMPLES)],
                        metadata={"name": f"mlp-{number}"},
                        collect_metadata=False,
                    )
                    for _ in range(BLOCKS)
                ]
            )
            for number in range(files // (2 * BLOCKS))
        ]
        pyperf.BenchmarkSuite(benchmarks).dump(str(path))
    return pair


if __name__ == "__main__":
    main()
