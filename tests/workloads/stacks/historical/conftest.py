"""The articles' own stacks. Each runs the tests of what it has, as docker/stacks.toml tells it, so that what
cannot be imported of that fails."""

import os
import warnings

import pytest
import tomli

from tests.workloads import densenet_cells
from tests.workloads.fakes import make_cell
from workloads import frameworks
from workloads.frameworks import imports

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
NEEDS = {
    "test_densenet_keras.py": "keras",
    "test_densenet_torch.py": "torchvision",
    "test_mnist_tfds.py": "tensorflow-datasets",
    "test_mnist_torchvision.py": "torchvision",
}
"""What a file's tests are about, where a stack may lack it."""
# Operators that run beside each other, as in a bench, show what a graph leaves open.
THREADS = {"intra_op": 2, "inter_op": 3}

# Libraries read them once, when test files import them.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(THREADS["intra_op"])
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"


def read_stack():
    """Return the stack's entry."""
    if "REMATCH_STACK" not in os.environ:
        raise pytest.UsageError("of which stack? run them by `python -m scripts.suites`")
    with open(os.path.join(ROOT, "docker", "stacks.toml"), "rb") as file:
        return tomli.load(file)["stacks"][os.environ["REMATCH_STACK"]]


STACK = read_stack()
# A process that computes eagerly in TensorFlow 1 cannot be Keras's of that time too, which knows graphs only:
# there are launches for the one.
IS_GRAPH = STACK["frameworks"].get("keras", "").startswith("2.1")
if "tensorflow-datasets" in STACK["frameworks"]:
    # Before a test file imports TensorFlow. They use what newer versions of what they stand on warn of.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        imports.load_in_order()
collect_ignore = [name for name, needed in NEEDS.items() if needed not in STACK["frameworks"]]
if IS_GRAPH:
    collect_ignore.append("test_mlp_tensorflow.py")


def pytest_configure(config):
    # Old frameworks use what newer versions of what they stand on warn of.
    config.addinivalue_line("filterwarnings", "ignore")


@pytest.fixture(scope="session")
def stack():
    """The stack's entry in docker/stacks.toml."""
    return STACK


@pytest.fixture(scope="session")
def torch_framework(tmp_path_factory):
    """PyTorch, with TensorFlow beside it where there is tfds: some threads can be set only once."""
    name = "torch_tfds" if "tensorflow-datasets" in STACK["frameworks"] else "torch"
    return frameworks.load(
        make_cell(framework=name, threads=THREADS, cache=str(tmp_path_factory.mktemp("cache")))
    )


@pytest.fixture(scope="session")
def make_densenet(tmp_path_factory):
    """Make a cell of the DenseNet match."""
    folder = tmp_path_factory.mktemp("cifar")

    def make_it(variant, module, framework, **changes):
        return densenet_cells.make(
            folder, variant, module, framework, **dict({"threads": THREADS}, **changes)
        )

    return make_it
