"""Cells: read from the host's file, or made from a person's words."""

import argparse
import json
import os
import sys
import tempfile
import time

from workloads import SCHEMA, content, machine
from workloads.fault import Fault


def read(path):
    """Read a cell from the host.

    Raises:
        Fault: it cannot be read, or is of another schema.
    """
    try:
        with open(path) as file:
            cell = json.load(file)
    except (OSError, ValueError) as error:
        raise Fault("cell", "%s: cannot be read as a cell: %s" % (path, error))
    if not isinstance(cell, dict) or cell.get("schema") != SCHEMA:
        raise Fault("cell", "%s: not a cell of schema %d" % (path, SCHEMA))
    return cell


def add_arguments(parser):
    """Declare what a person may say instead of a cell file."""
    parser.add_argument("workload", nargs="?", help="such as mlp")
    parser.add_argument("variant", nargs="?", help="such as torch-eager")
    parser.add_argument("--edition", default="fair", choices=("article", "fair"))
    parser.add_argument("--device", default="cpu", help="cpu or cuda:N (default: cpu)")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "tf32", "bf16"))
    parser.add_argument("--threads", type=_positive(int), default=machine.usable_cpus(), metavar="N")
    parser.add_argument(
        "--budget", type=_positive(float), default=5.0, metavar="SECONDS", help="to sample for"
    )
    parser.add_argument(
        "--data", metavar="FOLDER", help="a prepared data set (default: the workload's own, below .data)"
    )
    parser.add_argument(
        "--measure", action="append", metavar="NAME", help="of the edition's (default: all of them)"
    )
    parser.add_argument("--epochs", type=_positive(int), metavar="N", help="where a measure takes epochs")
    parser.add_argument(
        "--profile", metavar="NAME", help="whose parameters are taken (default: the workload's own)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="give a parameter another value"
    )
    parser.add_argument("--prove", action="store_true", help="prove the same work instead of measuring")


def from_arguments(arguments):
    """Make a cell from a person's words and the workload's table.

    Raises:
        Fault: a name is unknown, or this Python cannot read the table.
    """
    name = arguments.workload
    if name not in content.names():
        raise Fault("cell", "there is no workload %r; there are %s" % (name, ", ".join(content.names())))
    table = _read_table(os.path.join(content.GROUND, name, "workload.toml"))
    if arguments.variant not in table["variants"]:
        raise Fault(
            "cell",
            "%s has no variant %r; it has %s" % (name, arguments.variant, ", ".join(table["variants"])),
        )
    variant = table["variants"][arguments.variant]
    if arguments.edition not in table["editions"]:
        raise Fault(
            "cell",
            "%s has no edition %r; it has %s" % (name, arguments.edition, ", ".join(table["editions"])),
        )
    known = table["editions"][arguments.edition]["measures"]
    measures = arguments.measure or known
    if not set(measures) <= set(known):
        raise Fault("cell", "%s is measured by %s" % (name, ", ".join(known)))
    parameters = choose_parameters(table, arguments)
    is_ceiling = table.get("ceiling", False)
    if arguments.prove and is_ceiling:
        raise Fault("cell", "a ceiling is no contest and has no proof")
    words = (
        name,
        arguments.edition,
        arguments.variant,
        "host",
        "host",
        arguments.device,
        arguments.precision,
    )
    return {
        "schema": SCHEMA,
        "id": "_".join(words).replace(":", "-"),
        "run": time.strftime("%Y%m%dT%H%M%SZ-by-hand", time.gmtime()),
        "purpose": "proof" if arguments.prove else "measure",
        "role": "ceiling"
        if is_ceiling
        else "baseline"
        if arguments.variant == table["baseline"]
        else "variant",
        "workload": name,
        "edition": arguments.edition,
        "variant": arguments.variant,
        "framework": variant["framework"],
        "module": variant.get("module", variant["framework"]),
        "stack": "host",
        "runner": "host",
        "device": arguments.device,
        "precision": arguments.precision,
        "parameters": parameters,
        "measures": measures,
        "seed": 0,
        "block": 0,
        "position": 0,
        "threads": {"intra_op": arguments.threads, "inter_op": arguments.threads},
        "protocol": {
            "budget_s": arguments.budget / len(measures),
            "warmup_s": arguments.budget / len(measures),
            "sample_s": 0.05,
            "min_samples": 5,
            "max_samples": 1000,
            "relative_width": 0.005,
        },
        "tolerances": dict(
            table["tolerances"],
            losses=table["tolerances"]["losses"][arguments.precision],
            dtype=table["tolerances"].get("dtype", "float64"),
        ),
        "identity": {
            "workload_sha256": content.sha256(name),
            "lock_sha256": None,
            "image": None,
            "base": None,
            "git": None,
        },
        "cache": tempfile.mkdtemp(prefix="rematch-cache-"),
        "cache_state": "fresh",
        "baseline": None if is_ceiling else table["baseline"],
        "data": find_data(table, arguments.data),
    }


def choose_parameters(table, arguments):
    """Return the workload's parameters, changed as a person asks.

    Raises:
        Fault: a profile or a parameter is unknown, or a value is none.
    """
    parameters = dict(table["parameters"])
    if arguments.profile is not None:
        if arguments.profile not in table["profiles"]:
            known = ", ".join(table["profiles"])
            raise Fault("cell", "there is no profile %r; there are %s" % (arguments.profile, known))
        parameters.update(table["profiles"][arguments.profile].get("parameters", {}))
    for change in arguments.set:
        name, _, text = change.partition("=")
        if name not in parameters:
            raise Fault("cell", "there is no parameter %r; there are %s" % (name, ", ".join(parameters)))
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        # A whole number may stand for any number, and nothing else for something else.
        alike = type(parameters[name]), int if isinstance(parameters[name], float) else type(parameters[name])
        if type(value) not in alike:
            raise Fault("cell", "--set %s: %r is no value like %s" % (change, text, parameters[name]))
        parameters[name] = value
    if arguments.epochs:
        parameters["epochs"] = arguments.epochs
    return parameters


def find_data(table, folder):
    """Return the contract's ``Data`` of a prepared set, as its manifest has it; ``None`` where the workload
    reads none.

    Raises:
        Fault: it was not prepared.
    """
    if "data" not in table:
        return None
    root = os.environ.get("REMATCH_DATA") or os.path.join(os.path.dirname(content.GROUND), ".data")
    folder = os.path.abspath(folder or os.path.join(root, table["data"][0]))
    path = os.path.join(folder, "manifest.json")
    try:
        with open(path) as file:
            manifest = json.load(file)
        found = {name: manifest[name] for name in ("name", "sha256", "nature")}
    except (OSError, ValueError, KeyError, TypeError):
        raise Fault("cell", "%s: no prepared data set; make one by `nox -s data`" % folder)
    derived = sorted(name for name in os.listdir(folder) if name.startswith("derived-"))
    return dict(found, folder=folder, derived=derived[-1] if derived else None)


def _positive(kind):
    def convert(text):
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value < 1e6:
            raise argparse.ArgumentTypeError("%r is no sensible positive number" % text)
        return value

    return convert


def _read_table(path):
    if sys.version_info < (3, 11):
        # pip, which most environments have, brings the same reader for older Pythons.
        try:
            from pip._vendor import tomli as reader
        except ImportError:
            raise Fault(
                "cell", "this Python reads no TOML; use 3.11 or newer, or give the cell by --cell FILE"
            )
    else:
        import tomllib as reader  # novm
    with open(path, "rb") as file:
        return reader.load(file)
