"""The committed schemas are those of the types, and the fixtures conform to them."""

import json
from pathlib import Path

import jsonschema
import pytest

from scripts import schema
from tests.scripts import made_runs

RESULTS = ("mlp", "mlp.proof", "mnist", "densenet", "failed", "skipped", "ceiling")


def read(name: str) -> jsonschema.Draft202012Validator:
    content = json.loads((schema.FOLDER / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(content)
    return jsonschema.Draft202012Validator(content)


def test_committed_schemas_are_those_of_the_types() -> None:
    assert schema.main(["--check"]) == 0


def test_a_stale_schema_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(schema, "FOLDER", tmp_path)
    assert schema.main([]) == 0
    assert schema.main(["--check"]) == 0
    (tmp_path / "cell.json").write_text("{}")
    (tmp_path / "result.json").unlink()
    assert schema.main(["--check"]) == 2
    said = capsys.readouterr().err
    assert "cell.json" in said
    assert "result.json" in said
    assert "comparison.json" not in said


@pytest.mark.parametrize("name", RESULTS)
def test_every_fixture_conforms_to_the_result_schema(name: str) -> None:
    read("result").validate(made_runs.load(name))


@pytest.mark.parametrize("name", RESULTS)
def test_the_cell_of_every_fixture_conforms_to_the_cell_schema(name: str) -> None:
    read("cell").validate(made_runs.load(name)["cell"])


@pytest.mark.parametrize(
    ("field", "value"), [("schema", 2), ("status", "done"), ("duration_s", -1.0), ("warnings", "none")]
)
def test_the_schema_refuses_what_the_types_refuse(field: str, value: object) -> None:
    broken = made_runs.load("mlp") | {field: value}
    assert [list(error.absolute_path) for error in read("result").iter_errors(broken)] == [[field]]
