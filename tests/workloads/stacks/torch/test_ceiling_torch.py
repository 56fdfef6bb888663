"""The ceiling's units in PyTorch do the work that is counted."""

import numpy
import pytest
import torch

from tests.workloads.fakes import make_cell
from workloads import ceiling, frameworks
from workloads.ceiling import torch as module


@pytest.fixture
def subject(tmp_path, monkeypatch):
    # Threads between operators can be set once a process.
    monkeypatch.setattr(torch, "set_num_interop_threads", lambda count: None)
    cell = make_cell(
        framework="torch",
        workload="ceiling",
        role="ceiling",
        measures=["matmul_64", "copy"],
        parameters={"copy_bytes": 4096},
        threads={"intra_op": 2, "inter_op": 2},
        cache=str(tmp_path),
    )
    return module.build(cell, frameworks.load(cell), "float32")


def test_the_product_is_the_product(subject):
    a, b = ceiling.canonical(64)
    numpy.testing.assert_allclose(subject.units["matmul_64"]().numpy(), a.dot(b), rtol=1e-3, atol=1e-4)


def test_the_copy_copies(subject):
    copied = subject.units["copy"]()
    assert copied.shape == (1024,)
    assert float(subject.losses(copied)[0]) == 1.0
    assert copied.sum() == 1024
