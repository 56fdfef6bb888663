"""MNIST through the torchvision of then, and the net in the PyTorch of then, whole and broken."""

import pytest

from tests.workloads import mnist_cells
from tests.workloads.idx_files import write_set
from tests.workloads.proofs import list_failing
from tests.workloads.stacks.broken.mnist_torch import BREAKS
from tests.workloads.stacks.historical.conftest import THREADS
from tests.workloads.stacks.programs import measure
from workloads import proof
from workloads.mnist import resident


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dict(write_set(tmp_path_factory.mktemp("data")), derived=None)


@pytest.fixture(scope="module", autouse=True)
def judge(data):
    with mnist_cells.computed_once(data):
        yield


@pytest.fixture
def make(data):
    return lambda variant, module="torchvision", **changes: mnist_cells.make(
        data, variant, module, "torch", threads=THREADS, **changes
    )


@pytest.fixture
def prove(make, torch_framework):
    return lambda variant, module="torchvision": proof.prove(
        make(variant, module, purpose="proof"), torch_framework
    )


@pytest.mark.parametrize(
    ("variant", "module"), [("torchvision-workers-0", "torchvision"), ("tensor-resident", "resident")]
)
def test_every_loader_hands_out_the_same_bytes_and_trains_the_same_way(prove, variant, module):
    """T13"""
    proved = prove(variant, module)
    assert list_failing(proved) == set()
    assert abs(proved["figures"]["shuffle_rank_correlation"]) < 0.2


@pytest.mark.parametrize("broken", sorted(BREAKS))
def test_a_broken_net_or_step_fails_the_proof(prove, monkeypatch, broken):
    monkeypatch.setattr(*BREAKS[broken])
    assert list_failing(prove("tensor-resident", "resident"))


def test_another_order_of_the_images_is_found(prove, monkeypatch):
    real = resident.idx.read_split

    def read(folder, split, count=None):
        images, labels = real(folder, split, count)
        images = images.copy()
        images[[0, 1]] = images[[1, 0]]
        return images, labels

    monkeypatch.setattr(resident, "idx", type("idx", (), {"read_split": staticmethod(read)}))
    assert "count[different bytes of train]" in list_failing(prove("tensor-resident", "resident"))


def test_loaders_with_workers_do_the_same_work_and_are_measured(make, tmp_path):
    """In a process of their own: TensorFlow may be in this one, and workers are forked."""
    cell = make("torchvision-workers-1")
    proved = measure(dict(cell, purpose="proof"), tmp_path)
    assert proved["status"] == "proved", proved.get("cause")
    answer = measure(dict(cell, measures=["load_epoch", "train_validate_epoch"]), tmp_path)
    assert answer["status"] == "measured", answer.get("cause")
    load, both = answer["measures"]
    assert (load["work"]["images"], both["work"]["images"]) == (640, 548)
    assert both["series"]["loss"][0] > both["series"]["loss"][-1]
