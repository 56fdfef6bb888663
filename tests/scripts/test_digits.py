import hashlib
from typing import Any

import numpy
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits  # type: ignore[import-untyped]
from sklearn.neighbors import KNeighborsClassifier  # type: ignore[import-untyped]

from scripts import digits, idx
from scripts.datasets import load_datasets
from scripts.prepared import identify


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return digits.generate()


@pytest.fixture(scope="module")
def arrays(files: dict[str, bytes]) -> dict[str, NDArray[Any]]:
    return {name: idx.decode(content) for name, content in files.items()}


def test_the_embedded_originals_are_those_that_scikit_learn_bundles() -> None:
    images, labels = digits.read_embedded()
    known = load_digits()
    assert numpy.array_equal(images, known.images)
    assert numpy.array_equal(labels, known.target)


def test_every_machine_makes_the_bytes_that_are_pinned(files: dict[str, bytes]) -> None:
    found = identify(
        {str(idx.RAW / name): hashlib.sha256(content).hexdigest() for name, content in files.items()}
    )
    assert found == load_datasets()["digits"].sha256


def test_the_files_have_mnists_format_and_size(arrays: dict[str, NDArray[Any]]) -> None:
    shapes = {name: array.shape for name, array in arrays.items()}
    assert shapes == {
        "train-images-idx3-ubyte": (60000, 28, 28),
        "train-labels-idx1-ubyte": (60000,),
        "t10k-images-idx3-ubyte": (10000, 28, 28),
        "t10k-labels-idx1-ubyte": (10000,),
    }
    for name in ("train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"):
        shares = numpy.bincount(arrays[name], minlength=10) / len(arrays[name])
        assert shares.min() > 0.09
        assert shares.max() < 0.11
        # In no order: a half of them is as good as the whole.
        assert (numpy.bincount(arrays[name][: len(arrays[name]) // 2]) > 400).all()


def test_all_images_differ_so_that_each_can_be_told_by_its_bytes(arrays: dict[str, NDArray[Any]]) -> None:
    images = [image.tobytes() for name in idx.FILES if "images" in name for image in arrays[name]]
    assert len(set(images)) == len(images) == 70000


def test_no_test_image_stems_from_an_original_of_the_training_set() -> None:
    _, labels = digits.read_embedded()
    sources = digits.split_sources(labels, numpy.random.RandomState(digits.SEED))
    assert not set(sources["train"]) & set(sources["test"])
    assert len(sources["train"]) + len(sources["test"]) == 1797
    shares = numpy.bincount(labels[sources["test"]]) / numpy.bincount(labels)
    assert shares.min() > 0.13
    assert shares.max() < 0.15


def test_the_digits_can_be_learned(arrays: dict[str, NDArray[Any]]) -> None:
    train = arrays["train-images-idx3-ubyte"][:4000].reshape(4000, -1)
    test = arrays["t10k-images-idx3-ubyte"][:500].reshape(500, -1)
    judge = KNeighborsClassifier(3).fit(train, arrays["train-labels-idx1-ubyte"][:4000])
    assert judge.score(test, arrays["t10k-labels-idx1-ubyte"][:500]) > 0.8
