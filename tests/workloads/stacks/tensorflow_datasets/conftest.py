import json
import os

import pytest

from tests.workloads import mnist_cells
from tests.workloads.idx_files import write_manifest, write_set
from tests.workloads.stacks.programs import run
from workloads import frameworks
from workloads.frameworks import imports

# Before tfds loads TensorFlow, and this process is ended by it.
imports.load_in_order()


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A small set, and tfds's files of it."""
    folder = tmp_path_factory.mktemp("data")
    written = dict(write_set(folder), derived="derived-here")
    write_manifest(folder, written)
    # By a process of its own, as the host does it: the frameworks here must find TensorFlow untouched.
    program = (
        "import json, sys; from workloads.mnist import prepare; prepare.prepare(*json.loads(sys.argv[1]))"
    )
    status, said = run(
        program, json.dumps([{"data": written}, os.path.join(written["folder"], "derived-here")])
    )
    assert status == 0, said
    return written


@pytest.fixture(scope="session")
def framework(make):
    """One for all: some threads can be set only once in a process."""
    return frameworks.load(make("tfds-autotune", "tfds"))


@pytest.fixture(scope="session")
def make(data, tmp_path_factory):
    """Make a cell of the match."""
    cache = str(tmp_path_factory.mktemp("cache"))

    def make_it(variant, module, framework="torch_tfds", **changes):
        return mnist_cells.make(data, variant, module, framework, **dict({"cache": cache}, **changes))

    return make_it
