"""The same work through every loader, whole and with each thing broken that matters."""

import types

import numpy
import pytest
import tensorflow as tf
import torch

from tests.workloads import mnist_cells
from tests.workloads.proofs import list_failing
from tests.workloads.stacks.broken.mnist_torch import BREAKS
from workloads import proof
from workloads.fault import Fault
from workloads.mnist import match, model, resident, tfds, tfds_access, torchvision

# Those that fork workers have a process of their own: test_mnist_workers.py.
VARIANTS = [("torchvision-workers-0", "torchvision"), ("tensor-resident", "resident")]
VARIANTS += [(name, "tfds") for name in tfds.RECIPES]


@pytest.fixture(scope="module", autouse=True)
def judge(data):
    with mnist_cells.computed_once(data):
        yield


@pytest.fixture
def prove(make, framework):
    def prove_it(variant, module, **changes):
        return proof.prove(make(variant, module, purpose="proof", **changes), framework)

    return prove_it


@pytest.mark.parametrize(("variant", "module"), VARIANTS)
def test_every_loader_hands_out_the_same_bytes_and_trains_the_same_way(prove, variant, module):
    """T13, D4: with shuffling off, byte by byte; and the same trajectory from the canonical start."""
    proved = prove(variant, module)
    assert list_failing(proved) == set()
    assert max(check["error"] for check in proved["checks"]) < 1e-9
    names = {check["name"] for check in proved["checks"]}
    assert {"count[different bytes of train]", "count[different bytes of test]"} <= names
    assert {"count[images_repeated]", "count[images_missed]"} <= names


def test_a_small_buffer_is_told_by_how_little_it_shuffles(prove, monkeypatch):
    monkeypatch.setitem(tfds.RECIPES, "tfds-small-shuffle", tfds.Recipe("memory", buffer=16))
    whole, small = prove("tfds-autotune", "tfds"), prove("tfds-small-shuffle", "tfds")
    assert abs(whole["figures"]["shuffle_rank_correlation"]) < 0.2
    assert small["figures"]["shuffle_rank_correlation"] > 0.99


def test_a_cache_behind_the_shuffling_is_told_by_epochs_of_one_order(prove):
    """D6"""
    early, late = prove("tfds-cache", "tfds"), prove("tfds-cache-late", "tfds")
    assert abs(early["figures"]["reshuffle_rank_correlation"]) < 0.2
    assert late["figures"]["reshuffle_rank_correlation"] == pytest.approx(1.0)
    assert abs(late["figures"]["shuffle_rank_correlation"]) < 0.2


def test_the_articles_repeating_before_shuffling_is_told_by_images_that_an_epoch_misses(prove):
    figures = prove("tfds-article", "tfds", edition="article")["figures"]
    assert figures["images_repeated"] > figures["images_missed"] > 0


@pytest.mark.parametrize("broken", BREAKS)
def test_a_broken_net_or_step_fails_the_proof(prove, monkeypatch, broken):
    """P3"""
    monkeypatch.setattr(*BREAKS[broken])
    assert list_failing(prove("tensor-resident", "resident"))


def test_a_broken_initial_value_fails_the_proof(prove, monkeypatch):
    """P5"""
    real = model.mnist.canonical
    monkeypatch.setattr(
        model.mnist, "canonical", lambda: dict(real(), **{"fc1.bias": real()["fc1.bias"] + 1e-6})
    )
    assert list_failing(prove("tensor-resident", "resident"))


def test_another_scale_or_type_or_layout_of_pixels_is_found(prove, monkeypatch):
    """T13"""
    scales = {
        "offset": lambda images: tf.transpose(tf.cast(images, tf.float32) / 255.0 + 1e-4, [0, 3, 1, 2]),
        "rounding": lambda images: tf.transpose(
            tf.cast(images, tf.float32) * tf.constant(1 / 255.0), [0, 3, 1, 2]
        ),
    }
    for convert in scales.values():
        monkeypatch.setattr(tfds, "convert", lambda images, labels, by=convert: (by(images), labels))
        # Near enough to know the images by, and not the same.
        assert "count[different bytes of train]" in list_failing(prove("tfds-own-tensors", "tfds"))
    wrong = {
        "float64": lambda images: tf.transpose(tf.cast(images, tf.float64) / 255.0, [0, 3, 1, 2]),
        "28, 28, 1": lambda images: tf.cast(images, tf.float32) / 255.0,
    }
    for words, convert in wrong.items():
        monkeypatch.setattr(tfds, "convert", lambda images, labels, by=convert: (by(images), labels))
        with pytest.raises(Fault, match=words):
            prove("tfds-own-tensors", "tfds")


def test_images_that_are_missed_swapped_or_mislabelled_are_found(prove, monkeypatch):
    real = resident.idx.read_split

    def change(how):
        def read(folder, split, count=None):
            images, labels = real(folder, split, count)
            return how(images.copy(), labels.copy())

        return lambda: monkeypatch.setattr(
            resident, "idx", type("idx", (), {"read_split": staticmethod(read)})
        )

    def swap(images, labels):
        images[[0, 1]] = images[[1, 0]]
        return images, labels

    def mislabel(images, labels):
        labels[5] = (labels[5] + 1) % 10
        return images, labels

    cases = {
        "count[different bytes of train]": swap,
        "count[different bytes of test]": mislabel,
        "count[images_missed]": lambda images, labels: (numpy.repeat(images[::2], 2, axis=0), labels),
    }
    for name, how in cases.items():
        change(how)()
        assert name in list_failing(prove("tensor-resident", "resident"))
    change(lambda images, labels: (images[:-1], labels[:-1]))()
    assert "count[train images]" in list_failing(prove("tensor-resident", "resident"))


def test_tfdss_arrays_are_copied_into_writable_memory_of_pytorchs_own(make, framework, recwarn):
    """D5: no warning, no aliasing of what is cached."""
    loader = tfds.open_loader(make("tfds-cache-late", "tfds"), framework, order())
    first = [(images.clone(), labels.clone()) for images, labels in loader.epoch("train")]
    for images, labels in loader.epoch("train"):
        images.zero_()
        labels.zero_()
    again = list(loader.epoch("train"))
    assert all(torch.equal(one[0], other[0]) for one, other in zip(first, again))
    assert not [warning for warning in recwarn if "writable" in str(warning.message)]


def test_tfds_decodes_its_files_in_each_epoch_where_a_variant_says_so(make, framework, monkeypatch):
    """tfds keeps a small set in memory unless it is told not to."""
    seen = []
    real = tfds_access.tensorflow_datasets.ReadConfig
    monkeypatch.setattr(
        tfds_access.tensorflow_datasets,
        "ReadConfig",
        lambda **options: seen.append(options) or real(**options),
    )
    tfds.open_loader(make("tfds-own-builder", "tfds"), framework, order())
    assert seen == [{"try_autocache": False}] * 2


def test_the_article_ends_an_epoch_once_more_images_were_seen_than_there_are(make, framework):
    """938 batches of 60,000 images, and what is left in the last epoch: here 11, 11 and 8 of 640."""
    cell = make("tfds-article", "tfds", edition="article")
    loader = tfds.open_loader(cell, framework, order(train=640, test=100, batch=64, test_batch=32))
    batches = [[len(labels) for _, labels in loader.epoch("train")] for _ in range(3)]
    assert batches == [[64] * 11, [64] * 11, [64] * 8]
    tests = [[len(labels) for _, labels in loader.epoch("test")] for _ in range(3)]
    assert tests == [[32] * 4, [32] * 4, [32, 12]]
    # Whoever asks for more, as the reading of memory does, starts anew.
    assert len(next(loader.epoch("train"))[1]) == 64


def order(train=640, test=100, batch=64, test_batch=30):
    from workloads.mnist.loader import Order

    return Order(
        {"train": train, "test": test},
        {"train": batch, "test": test_batch},
        {"train": True, "test": False},
        3,
        1,
        False,
    )


def test_a_set_whose_files_were_not_built_is_a_fault_that_says_how(make, framework, data):
    for missing in (dict(data, derived=None), dict(data, derived="derived-elsewhere")):
        with pytest.raises(Fault, match="a bench session makes them"):
            tfds.open_loader(make("tfds-autotune", "tfds", data=missing), framework, order())


def test_no_worker_is_forked_from_a_process_that_holds_tensorflow(make, framework):
    """N3: a failed row, not a hang."""
    pipeline = tfds.open_loader(make("tfds-autotune", "tfds"), framework, order())
    assert len(list(pipeline.epoch("train"))) == 10
    workers = torchvision.open_loader(make("torchvision-workers-2", "torchvision"), framework, order())
    with pytest.raises(Fault, match="workers forked from it would hang") as raised:
        workers.epoch("train")
    assert raised.value.kind == "fork"


def test_an_unknown_variant_is_a_fault(make, framework):
    with pytest.raises(Fault, match="none of tfds-article"):
        tfds.open_loader(make("tfds-nothing", "tfds"), framework, order())
    with pytest.raises(Fault, match="no number of workers"):
        torchvision.open_loader(make("torchvision-workers-many", "torchvision"), framework, order())


class Batch(object):
    """Stands for a tensor: no GPU is here to move one to."""

    def __init__(self):
        self.moved = []

    def to(self, place, non_blocking):
        self.moved.append((place, non_blocking))
        return self

    def pin_memory(self):
        self.moved.append("pinned")
        return self


def test_batches_are_pinned_and_moved_for_a_gpu_on_every_side_of_the_fair_edition(make):
    """T13: the transfer is in both regions."""
    place = types.SimpleNamespace(type="cuda")
    gpu = types.SimpleNamespace(place=place, index=0)
    for variant in ("torchvision-workers-4", "tfds-article"):
        fair = match.make_order(make(variant, "tfds"), gpu, {"train": 64})
        assert fair.pinned
        assert not fair.fixed().pinned
    article = {
        variant: match.make_order(make(variant, "tfds", edition="article"), gpu, {"train": 64}).pinned
        for variant in ("torchvision-workers-4", "tfds-article")
    }
    assert article == {"torchvision-workers-4": True, "tfds-article": False}
    images, labels = Batch(), Batch()
    played = types.SimpleNamespace(framework=gpu)
    assert list(match.Match.move(played, [(images, labels)])) == [(images, labels)]
    assert images.moved == labels.moved == [(place, True)]


def test_tfdss_batches_are_copied_and_then_pinned(monkeypatch):
    pinned = Batch()
    monkeypatch.setattr(tfds.torch, "from_numpy", lambda array: pinned)
    arrays = [(numpy.zeros(2), numpy.zeros(2))]
    assert list(tfds.hand_out(iter(arrays), pinned=True)) == [(pinned, pinned)]
    assert pinned.moved == ["pinned", "pinned"]


def test_a_cpu_has_nothing_pinned_or_moved(make, framework):
    assert not match.make_order(make("tfds-article", "tfds"), framework, {"train": 64}).pinned
    batches = iter([])
    assert match.Match.move(types.SimpleNamespace(framework=framework), batches) is batches
