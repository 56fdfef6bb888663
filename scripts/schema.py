"""Generates ``results/schema/*.json`` from the types: ``python -m scripts.schema [--check]``."""

import argparse
import sys
from typing import Any

import msgspec

from scripts import comparison, contract
from scripts.errors import ExitStatus, Refusal
from scripts.runs import ROOT, write_whole

FOLDER = ROOT / "results" / "schema"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def generate() -> dict[str, bytes]:
    """Make every schema, by file name."""
    return {
        "cell.json": _describe(contract.Cell, contract.SCHEMA, "One launch to be made"),
        "result.json": _describe(contract.Result, contract.SCHEMA, "What one launch answers"),
        "comparison.json": _describe(comparison.Comparison, comparison.SCHEMA, "What merging runs says"),
    }


def find_stale() -> list[str]:
    """Name the committed schemas that differ from the types."""
    return [name for name, content in generate().items() if not _holds(name, content)]


def _holds(name: str, content: bytes) -> bool:
    path = FOLDER / name
    return path.is_file() and path.read_bytes() == content


def _describe(kind: type[msgspec.Struct], version: int, title: str) -> bytes:
    schema: dict[str, Any] = msgspec.json.schema(kind)
    for definition in schema["$defs"].values():
        definition.pop("title")
        if "schema" in definition["properties"]:
            definition["properties"]["schema"] = {"const": version}
    head = {"$schema": DIALECT, "title": f"{title}, schema {version}"}
    return msgspec.json.format(msgspec.json.encode(head | schema), indent=1) + b"\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.schema", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is stale")
    options = parser.parse_args(arguments)
    try:
        if options.check:
            if stale := find_stale():
                raise Refusal(f"{', '.join(stale)} in {FOLDER}: stale; run python -m scripts.schema")
        else:
            for name, content in generate().items():
                write_whole(FOLDER / name, content)
    except Refusal as refusal:
        print(f"schema: {refusal.message}", file=sys.stderr)
        return refusal.status
    return ExitStatus.MEASURED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
