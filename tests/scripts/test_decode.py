"""Results are untrusted: each bad one is left out with a reason that names what is wrong."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scripts.contract import Result
from scripts.decode import LeftOut, decode_result
from tests.scripts import made_runs


def decode(path: Path, content: bytes) -> Result:
    path.write_bytes(content)
    return decode_result(path)


def reason(path: Path, content: bytes) -> str:
    with pytest.raises(LeftOut) as caught:
        decode(path, content)
    assert caught.value.file == str(path)
    return caught.value.reason


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cell.0.json"


@pytest.mark.parametrize("name", ["mlp", "mlp.proof", "mnist", "densenet", "failed", "skipped", "ceiling"])
def test_every_fixture_is_read_with_all_its_samples(name: str) -> None:
    """S1"""
    result = decode_result(made_runs.FIXTURES / f"{name}.json")
    written = made_runs.load(name).get("measures", [])
    assert [measure.samples_s for measure in result.measures] == [one["samples_s"] for one in written]
    assert [measure.series for measure in result.measures] == [one["series"] for one in written]
    assert [measure.figures for measure in result.measures] == [one["figures"] for one in written]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + "0" * 400])
@pytest.mark.parametrize("field", ["samples_s", "duration_s", "flop"])
def test_a_number_that_is_not_finite_is_refused(file: Path, number: str, field: str) -> None:
    """R1"""
    text = (made_runs.FIXTURES / "mlp.json").read_text()
    text, count = re.subn(rf'("{field}": \[?\s*)[\d.e+]+', rf"\g<1>{number}", text, count=1)
    assert count == 1
    said = reason(file, text.encode())
    assert "NaN or Infinity" in said or "not finite" in said or "wrong value at $" in said


def test_a_number_beyond_doubles_is_named_by_its_path(file: Path) -> None:
    """R1"""
    content = json.dumps(made_runs.load("mlp")).replace('"duration_s": ', '"duration_s": 1e999, "x": ', 1)
    assert (
        reason(file, content.encode())
        == "not finite: a number at $.duration_s is beyond the range of doubles"
    )


@pytest.mark.parametrize("name", ["mlp", "failed"])
def test_a_result_cut_at_any_byte_is_left_out(file: Path, name: str) -> None:
    """R2"""
    content = (made_runs.FIXTURES / f"{name}.json").read_bytes().rstrip()
    for length in range(len(content)):
        said = reason(file, content[:length])
        assert said == ("empty" if length == 0 else f"truncated: its JSON breaks off within {length} bytes")


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (2, "schema 2 is newer than 1, the newest that this program reads: update it"),
        (0, "there never was a schema 0"),
        (None, "not a result: it has no schema version"),
        ("1", "not a result: no object with a whole schema version"),
    ],
)
def test_a_newer_or_absent_schema_is_refused_with_words(file: Path, version: object, words: str) -> None:
    """R4"""
    made = made_runs.load("mlp") | {"schema": version}
    assert reason(file, json.dumps(made).encode()) == words
    del made["schema"]
    assert reason(file, json.dumps(made).encode()) == "not a result: it has no schema version"


def test_a_newer_schema_is_named_before_what_else_it_changed(file: Path) -> None:
    """R4"""
    made = {"schema": 7, "launch": {}, "timings": []}
    assert "schema 7 is newer" in reason(file, json.dumps(made).encode())


@pytest.mark.parametrize("content", [b"[1, 2]", b"3", b'"text"', b'{"name": "another tool"}', b"null"])
def test_a_foreign_document_is_not_a_result(file: Path, content: bytes) -> None:
    assert reason(file, content).startswith("not a result: ")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b'{"x": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"cell": 3, "x": ' + b"[" * 100_000, "not a result"),
        (b"PK\x03\x04", "not JSON"),
        (b'{"schema": 1, "started": "\xff"}', "utf-8"),
        (b"\xef\xbb\xbf{}", "not JSON"),
    ],
)
def test_what_is_no_json_is_said_to_be_none(file: Path, content: bytes, words: str) -> None:
    assert words in reason(file, content)


def test_a_wrong_type_is_named_by_its_path(file: Path) -> None:
    made = made_runs.load("mlp")
    made["measures"][0]["samples_s"][3] = "0.06"
    said = reason(file, json.dumps(made).encode())
    assert said == "wrong value at $.measures[0].samples_s[3]: expected float, got str"


def test_what_cannot_be_opened_is_left_out(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(LeftOut):
            decode_result(path)
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    with pytest.raises(LeftOut, match="cannot be read"):
        decode_result(loop)


def test_a_pipe_is_left_out_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(LeftOut, match="not a regular file"):
        decode_result(tmp_path / "pipe.json")


def set_samples(value: float) -> Callable[[dict[str, Any]], None]:
    return lambda made: made["measures"][0]["samples_s"].__setitem__(0, value)


def break_losses(made: dict[str, Any]) -> None:
    made["losses"]["values"][2] *= 1.01


def widen_losses(made: dict[str, Any]) -> None:
    break_losses(made)
    made["losses"]["tolerance"] = 1.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda made: made.pop("synchronisation"), "without synchronisation"),
        (lambda made: made.update(synchronisation=" "), "without synchronisation"),
        (set_samples(0.0), r"wrong value at $.measures[0].samples_s[0]"),
        (set_samples(-0.06), r"wrong value at $.measures[0].samples_s[0]"),
        (set_samples(1e-12), "shorter than the clock's tick"),
        (set_samples(1e300), "longer than any launch"),
        (lambda made: made["measures"][0].update(samples_s=[]), "wrong value at $.measures[0].samples_s"),
        (lambda made: made["measures"][0].update(first_call_s=1e300), "longer than any launch"),
        (lambda made: made["measures"][0]["work"].update(flop=1e300), "more work than any machine"),
        (lambda made: made.update(measures=[]), "nothing was measured"),
        (lambda made: made["measures"][0].update(name="call"), "measures call where the cell asks for step"),
        (lambda made: made["cell"].update(purpose="proof"), "nothing was measured"),
        (lambda made: made["cell"].update(schema=2), "schema 2 is newer"),
        (lambda made: made["device"].update(observed="cuda:0"), "asked for cpu and computed on cuda:0"),
        (lambda made: made["cell"].update(device="cuda:0"), "asked for cuda:0 and computed on cpu"),
        (lambda made: made.pop("device"), "does not say on which machine and device"),
        (lambda made: made.pop("environment"), "does not say on which machine and device"),
        (break_losses, "says that its losses hold, and they are off by"),
        (widen_losses, "losses are judged by 1 where the cell says 1e-05"),
        (lambda made: made["losses"].update(values=[], expected=[]), "compares 0 losses with 0"),
        (lambda made: made["losses"]["values"].pop(), "compares 4 losses with 5"),
        (lambda made: made.update(status="failed"), "no cause is given"),
        (lambda made: made.update(status="proved"), "there is no proof in it"),
    ],
)
def test_what_contradicts_itself_is_refused(
    file: Path, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    """T1, T2, C2: an unsynchronised, unlikely or misplaced measurement is none."""
    made = made_runs.load("mlp")
    change(made)
    assert words in reason(file, json.dumps(made).encode())


def test_a_measure_stated_twice_is_refused(file: Path) -> None:
    made = made_runs.load("mlp")
    made["measures"] *= 2
    made["cell"]["measures"] *= 2
    assert reason(file, json.dumps(made).encode()) == "holds a measure twice"


def test_a_proof_is_judged_by_its_checks_and_not_by_its_word(file: Path) -> None:
    made = made_runs.load("mlp.proof")
    check = made["proof"]["checks"][4]
    check.update(value=check["expected"] * 2, error=1.0)
    said = reason(file, json.dumps(made).encode())
    assert said.startswith(f"says that its proof holds, and {check['name']} is off by 1.0e+00")
    check["error"] = 0.0
    assert "is said to be off by 0" in reason(file, json.dumps(made).encode())


def test_a_proof_that_says_it_fails_and_does_not_is_refused(file: Path) -> None:
    made = made_runs.load("mlp.proof")
    made["proof"]["holds"] = False
    assert "says that its proof does not hold" in reason(file, json.dumps(made).encode())


FIXTURES = [
    (made_runs.FIXTURES / f"{name}.json").read_bytes() for name in ("mlp", "mlp.proof", "mnist", "failed")
]


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(FIXTURES), st.data())
def test_damage_is_a_reason_or_a_result_that_can_be_used(
    file: Path, content: bytes, data: st.DataObject
) -> None:
    """R1, R2: bytes changed, dropped or doubled anywhere are no traceback and no figure out of range."""
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        length = data.draw(st.integers(0, 20))
        content = content[:place] + data.draw(st.binary(max_size=8)) + content[place + length :]
    try:
        result = decode(file, content)
    except LeftOut:
        return
    assert result.status != "measured" or result.synchronisation
    for measure in result.measures:
        assert all(0 < sample < float("inf") for sample in measure.samples_s)
