"""MNIST through tfds 1.3.2: its files, built and read without a network, and the article's pipeline."""

import json
import os
import socket

import numpy
import pytest

from tests.workloads import mnist_cells
from tests.workloads.idx_files import write_set
from tests.workloads.proofs import list_failing
from tests.workloads.stacks.historical.conftest import THREADS
from tests.workloads.stacks.programs import run
from workloads import measurement, proof
from workloads.data import idx
from workloads.fault import Fault
from workloads.mnist import match, tfds, tfds_access

PREPARE = """
import json, socket, sys

def refuse(*arguments):
    raise SystemExit("the network was asked for")

socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
from workloads.mnist import prepare
prepare.prepare(*json.loads(sys.argv[1]))
"""


@pytest.fixture(scope="module", autouse=True)
def _no_network():
    def refuse(*arguments, **named):
        raise AssertionError("the network was asked for")

    patch = pytest.MonkeyPatch()
    for place, name in ((socket.socket, "connect"), (socket, "getaddrinfo"), (socket, "create_connection")):
        patch.setattr(place, name, refuse)
    yield
    patch.undo()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A small set, and tfds's files of it, built by a process of its own, as the host does it."""
    written = dict(write_set(tmp_path_factory.mktemp("data")), derived="derived-here")
    place = os.path.join(written["folder"], "derived-here")
    status, said = run(PREPARE, json.dumps([{"data": written}, place]))
    assert status == 0, said
    return written


@pytest.fixture(scope="module", autouse=True)
def judge(data):
    with mnist_cells.computed_once(data):
        yield


@pytest.fixture
def make(data):
    return lambda **changes: mnist_cells.make(
        data,
        "tfds-article",
        "tfds",
        "torch_tfds",
        **dict({"threads": THREADS}, **changes),
    )


@pytest.fixture
def prove(make, torch_framework):
    return lambda **changes: proof.prove(make(purpose="proof", **changes), torch_framework)


@pytest.mark.parametrize("edition", ["fair", "article"])
def test_the_articles_loader_hands_out_the_same_bytes_and_trains_the_same_way(prove, edition):
    """T13, D4"""
    proved = prove(edition=edition)
    assert list_failing(proved) == set()
    names = {check["name"] for check in proved["checks"]}
    assert {"count[different bytes of train]", "count[different bytes of test]"} <= names
    assert abs(proved["figures"]["shuffle_rank_correlation"]) < 0.2


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize(("split", "count"), [("train", 640), ("train", 200), ("test", 100)])
def test_images_come_in_the_files_order_and_as_many_as_are_asked_for(data, split, count, in_memory):
    """tfds 1 writes in the order of a hash; here, of the images."""
    found = list(tfds_access.iterate(tfds_access.read(data, split, count, in_memory)))
    images, labels = idx.read_split(data["folder"], split, count)
    assert [int(label) for _, label in found] == labels.tolist()
    assert numpy.array_equal(numpy.array([image[:, :, 0] for image, _ in found]), images)


def test_another_order_of_the_files_fails_the_proof(prove, monkeypatch):
    real = tfds_access.read

    def turn(data, split, count, in_memory):
        dataset = real(data, split, count, in_memory)
        return dataset.skip(1).concatenate(dataset.take(1))

    monkeypatch.setattr(tfds_access, "read", turn)
    failing = list_failing(prove())
    assert {"count[different bytes of train]", "count[different bytes of test]"} <= failing


def test_another_scale_of_pixels_fails_the_proof(prove, monkeypatch):
    real = tfds.convert

    def offset(images, labels):
        images, labels = real(images, labels)
        return images + 1e-4, labels

    monkeypatch.setattr(tfds, "convert", offset)
    assert "count[different bytes of train]" in list_failing(prove())


def test_the_article_ends_an_epoch_once_more_images_were_seen_than_there_are(make, torch_framework):
    cell = make(edition="article")
    order = match.make_order(cell, torch_framework, {"train": 640, "test": 100})
    loader = tfds.open_loader(cell, torch_framework, order)
    batches = [[len(labels) for _, labels in loader.epoch("train")] for _ in range(3)]
    assert batches == [[64] * 11, [64] * 11, [64] * 8]


def test_it_is_measured_with_the_threads_of_both_frameworks(make, torch_framework):
    limits = dict(make()["protocol"], budget_s=0.2, warmup_s=0.1, min_samples=2)
    cell = make(measures=["load_epoch", "train_validate_epoch"], protocol=limits)
    answer = measurement.measure(cell, torch_framework, 0.0)
    assert answer["status"] == "measured"
    settings = answer["settings"]
    assert (settings["threads_intra_op"], settings["threads_inter_op"]) == (2, 3)
    assert (settings["tf.threads_intra_op"], settings["tf.threads_inter_op"]) == (2, 3)
    load, both = answer["measures"]
    assert (load["work"]["images"], both["work"]["images"]) == (640, 548)


def test_a_set_whose_files_were_not_built_is_a_fault_that_says_how(make, torch_framework, data):
    cell = make(data=dict(data, derived=None))
    order = match.make_order(cell, torch_framework, {"train": 640, "test": 100})
    with pytest.raises(Fault, match="a bench session makes them"):
        tfds.open_loader(cell, torch_framework, order)
