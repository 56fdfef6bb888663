"""Reading results, which are untrusted: typed, finite, consistent, or left out with a reason."""

import os
import re
import stat
from pathlib import Path

import msgspec

from scripts.contract import SCHEMA, Losses, Measure, Proof, Result, Tolerances

LARGEST_BYTES = 256 * 2**20
"""No launch writes so much; a foreign file may."""
SHORTEST_S = 1e-9
"""One tick of ``perf_counter_ns``: no sample is shorter."""
LONGEST_S = 1e9
LARGEST_WORK = 1e30
"""Beyond these, rates and ratios would leave the range of doubles."""


COUNT_TOLERANCE = 0.5
"""Counts are whole."""


class LeftOut(Exception):
    """A file is in no figure, and why."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file}: {reason}")
        self.file = file
        self.reason = reason


class _Head(msgspec.Struct):
    schema: int | None = None


_DECODER = msgspec.json.Decoder(Result)
_HEAD_DECODER = msgspec.json.Decoder(_Head)


def decode_result(path: str | Path) -> Result:
    """Read one result.

    Raises:
        LeftOut: it cannot be read or be trusted.
    """
    file = str(path)
    content = read_bytes(file)
    try:
        result = _DECODER.decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise LeftOut(file, explain(content, error)) from error
    fault = _find_fault(result)
    if fault:
        raise LeftOut(file, fault)
    return result


def read_bytes(file: str) -> bytes:
    """Read a regular file of a sensible size.

    Raises:
        LeftOut: it is something else or cannot be read.
    """
    try:
        # A pipe would otherwise wait for a writer.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise LeftOut(file, "not a regular file")
            if found.st_size > LARGEST_BYTES:
                raise LeftOut(file, f"{found.st_size:,} bytes, larger than any result")
            with open(descriptor, "rb", buffering=0, closefd=False) as source:
                return source.read()
        finally:
            os.close(descriptor)
    except OSError as error:
        raise LeftOut(file, f"cannot be read ({error.strerror})") from error


def explain(content: bytes, error: Exception) -> str:
    """Say in words why ``content`` could not be decoded."""
    if not content.strip():
        return "empty"
    if isinstance(error, msgspec.ValidationError):
        return _explain_version(content) or _explain_value(str(error))
    return _explain_malformed(content, error)


def _explain_version(content: bytes) -> str | None:
    try:
        return check_version(_HEAD_DECODER.decode(content).schema)
    except msgspec.ValidationError:
        return "not a result: no object with a whole schema version"
    except (msgspec.DecodeError, RecursionError) as error:
        return _explain_malformed(content, error)


def _explain_malformed(content: bytes, error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "not a result: nested too deeply"
    text = str(error)
    found = re.search(r"\(byte (\d+)\)", text)
    place = int(found.group(1)) if found else 0
    if content[place:].startswith((b"NaN", b"Infinity")):
        return f"holds NaN or Infinity at byte {place}, which are no figures"
    if "truncated" in text or place >= len(content):
        return f"truncated: its JSON breaks off within {len(content)} bytes"
    return f"not JSON: {text.removeprefix('JSON is malformed: ').lower()}"


def check_version(version: int | None) -> str | None:
    """Say what is wrong with a schema version, if anything is. Older ones, once there are any, are
    brought up to date before they are checked."""
    if version is None:
        return "not a result: it has no schema version"
    if version > SCHEMA:
        return f"schema {version} is newer than {SCHEMA}, the newest that this program reads: update it"
    if version < SCHEMA:
        return f"there never was a schema {version}"
    return None


def _explain_value(text: str) -> str:
    found = re.match(r"(?s)(.*) - at `([^`]*)`$", text)
    words, path = found.groups() if found else (text, "$")
    if words == "Number out of range":
        return f"not finite: a number at {path} is beyond the range of doubles"
    return f"wrong value at {path}: {words[0].lower()}{words[1:].replace('`', '')}"


def _find_fault(result: Result) -> str | None:
    cell = result.cell
    fault = check_version(result.schema) or check_version(cell.schema)
    if fault:
        return fault
    if result.losses and (fault := _find_losses_fault(result.losses, cell.tolerances.losses)):
        return fault
    if result.proof and (fault := _find_proof_fault(result.proof, cell.tolerances)):
        return fault
    if result.status in ("failed", "skipped"):
        return None if result.cause else f"status is {result.status} and no cause is given"
    if result.status == "measured":
        return _find_measured_fault(result)
    if (result.status == "prepared") != (cell.purpose == "prepare"):
        return f"status is {result.status} and the cell asks to {cell.purpose}"
    if result.status == "prepared":
        return None
    if cell.purpose != "proof" or result.proof is None:
        return "status is proved and there is no proof in it"
    return None if result.proof.holds else "status is proved and its proof does not hold"


def _find_measured_fault(result: Result) -> str | None:
    cell = result.cell
    names = [measure.name for measure in result.measures]
    if cell.purpose != "measure" or not names:
        return "status is measured and nothing was measured"
    if sorted(names) != sorted(cell.measures):
        return f"measures {', '.join(names)} where the cell asks for {', '.join(cell.measures)}"
    if len(set(names)) < len(names):
        return "holds a measure twice"
    if not (result.synchronisation or "").strip():
        return "measured without synchronisation with the device: its times may leave out work"
    if result.environment is None or result.device is None:
        return "does not say on which machine and device it was measured"
    seen_as = cell.device if cell.device_index is None else f"cuda:{cell.device_index}"
    if (result.device.asked, result.device.observed) != (cell.device, seen_as):
        return f"asked for {cell.device} and computed on {result.device.observed}"
    return next((fault for measure in result.measures if (fault := _find_range_fault(measure))), None)


def _find_range_fault(measure: Measure) -> str | None:
    shortest, longest = (
        min(measure.samples_s) * measure.repeats,
        max(*measure.samples_s, measure.first_call_s),
    )
    if shortest < SHORTEST_S:
        return f"{measure.name}: a sample of {shortest:g} s, shorter than the clock's tick"
    if longest > LONGEST_S:
        return f"{measure.name}: a sample of {longest:g} s, longer than any launch"
    if any(amount > LARGEST_WORK for amount in measure.work.values()):
        return f"{measure.name}: more work than any machine does"
    return None


def _find_losses_fault(losses: Losses, tolerance: float) -> str | None:
    if len(losses.values) != len(losses.expected) or not losses.values:
        return f"compares {len(losses.values)} losses with {len(losses.expected)}"
    if losses.tolerance != tolerance:
        return f"losses are judged by {losses.tolerance:g} where the cell says {tolerance:g}"
    error = max(
        abs(value - expected) / (abs(expected) or 1.0)
        for value, expected in zip(losses.values, losses.expected, strict=True)
    )
    if losses.holds != (error <= tolerance):
        words = "hold" if losses.holds else "do not hold"
        return f"says that its losses {words}, and they are off by {error:.1e}, allowed {tolerance:.0e}"
    return None


def _find_proof_fault(proof: Proof, allowed: Tolerances) -> str | None:
    """See that a proof is one by what its cell asks for, and not by its own word."""
    if proof.dtype != allowed.dtype:
        return f"proved in {proof.dtype} where the cell asks for {allowed.dtype}"
    for check in proof.checks:
        bound = COUNT_TOLERANCE if "count" in check.name else max(allowed.gradients, allowed.update)
        if check.tolerance > bound:
            return f"{check.name}: judged by {check.tolerance:g} where the cell allows {bound:g}"
        if (check.error == 0) != (check.value == check.expected):
            pair = f"{check.value:.9g} beside {check.expected:.9g}"
            return f"{check.name}: {pair} is said to be off by {check.error:g}"
    if proof.holds == all(check.error <= check.tolerance for check in proof.checks):
        return None
    worst = max(proof.checks, key=lambda check: check.error / check.tolerance)
    return (
        f"says that its proof {'holds' if proof.holds else 'does not hold'}, and {worst.name} is off by "
        f"{worst.error:.1e}, allowed {worst.tolerance:.0e}"
    )
