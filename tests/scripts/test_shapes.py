import hashlib
from typing import Any

import numpy
import pytest
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier  # type: ignore[import-untyped]

from scripts import cifar, shapes
from scripts.datasets import load_datasets
from scripts.prepared import identify


@pytest.fixture(scope="module")
def batches() -> dict[str, tuple[bytes, bytes]]:
    return shapes.generate()


@pytest.fixture(scope="module")
def test_images(batches: dict[str, tuple[bytes, bytes]]) -> NDArray[Any]:
    return numpy.frombuffer(batches["test_batch"][0], numpy.uint8).reshape(-1, 3, 32, 32)


def test_every_machine_makes_the_bytes_that_are_pinned(batches: dict[str, tuple[bytes, bytes]]) -> None:
    found = identify(
        {
            str(cifar.RAW / f"{name}.bin"): hashlib.sha256(cifar.join(*batch)).hexdigest()
            for name, batch in batches.items()
        }
    )
    assert found == load_datasets()["shapes"].sha256


def test_the_set_has_cifar_10s_size_and_as_many_of_each_class(
    batches: dict[str, tuple[bytes, bytes]],
) -> None:
    assert list(batches) == [
        "data_batch_1",
        "data_batch_2",
        "data_batch_3",
        "data_batch_4",
        "data_batch_5",
        "test_batch",
    ]
    for pixels, labels in batches.values():
        assert len(pixels) == 10000 * 3072
        assert numpy.bincount(numpy.frombuffer(labels, numpy.uint8)).tolist() == [1000] * 10
        # In no order: any part of a batch is as good as another.
        assert numpy.bincount(numpy.frombuffer(labels[:1000], numpy.uint8)).min() > 60


def test_all_images_differ(batches: dict[str, tuple[bytes, bytes]]) -> None:
    found = {pixels[at : at + 3072] for pixels, _ in batches.values() for at in range(0, len(pixels), 3072)}
    assert len(found) == 60000


def test_a_class_is_told_neither_by_colour_nor_by_single_pixels(
    batches: dict[str, tuple[bytes, bytes]],
) -> None:
    """What a net learns here is shapes: means of the channels, or the nearest image, do not do."""
    images, labels = batches["data_batch_1"]
    flat = numpy.frombuffer(images, numpy.uint8).reshape(-1, 3072)[:3000]
    known = numpy.frombuffer(labels, numpy.uint8)[:3000]
    colours = flat.reshape(-1, 3, 1024).mean(axis=2)
    for features in (colours, flat):
        model = KNeighborsClassifier(5).fit(features[:2500], known[:2500])
        assert model.score(features[2500:], known[2500:]) < 0.35


def test_a_class_looks_the_same_in_a_mirror() -> None:
    """Flips are part of the training."""
    radius = numpy.full((1, 1, 1), 10)
    places = numpy.arange(-15, 16)
    for shape in shapes._shapes(places[None, :, None], places[None, None, :], radius):
        assert numpy.array_equal(shape, shape[:, :, ::-1])
