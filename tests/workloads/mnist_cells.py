"""Cells of the MNIST match, on a small data set."""

import contextlib

import pytest

from tests.workloads.fakes import make_cell
from workloads.mnist import reference

PARAMETERS = {
    "load_images": 640,
    "train_images": 448,
    "validate_images": 100,
    "batch": 64,
    "test_batch": 30,
    "article_tfds_test_batch": 32,
    "epochs": 3,
    "learning_rate": 1.0,
    "rho": 0.9,
    "epsilon": 1e-6,
}


def make(prepared, variant, module, framework, **changes):
    """Make a cell of a prepared set, unless ``data`` is among the changes."""
    said = {
        "workload": "mnist",
        "variant": variant,
        "module": module,
        "framework": framework,
        "data": prepared,
        "parameters": PARAMETERS,
        "measures": ["load_epoch"],
        "tolerances": {"gradients": 1e-8, "update": 1e-7, "losses": 1e-4, "dtype": "float64"},
        "threads": {"intra_op": 2, "inter_op": 2},
    }
    return make_cell(**dict(said, **changes))


@contextlib.contextmanager
def computed_once(data):
    """Judge by the trajectory of the small set ``data``, computed once."""
    computed = reference.compute(data["folder"], data["sha256"])
    patch = pytest.MonkeyPatch()
    patch.setattr(reference, "compute", lambda folder, sha256: computed)
    yield
    patch.undo()
