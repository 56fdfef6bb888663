import os

import numpy
import pytest

from tests.workloads.idx_files import encode, write_set
from workloads.data import idx
from workloads.fault import Fault


def test_a_split_is_read_as_it_was_written_and_cut_to_a_count(tmp_path):
    write_set(tmp_path, 20, 10)
    images, labels = idx.read_split(str(tmp_path), "test")
    assert (images.shape, images.dtype, labels.shape, labels.dtype) == ((10, 28, 28), "uint8", (10,), "int64")
    few, _ = idx.read_split(str(tmp_path), "test", 3)
    assert numpy.array_equal(few, images[:3])


def test_a_file_cut_at_any_byte_is_a_fault_that_names_it(tmp_path):
    """D2"""
    whole = encode(numpy.arange(12).reshape(3, 2, 2))
    path = str(tmp_path / "images")
    for length in range(len(whole)):
        with open(path, "wb") as file:
            file.write(whole[:length])
        with pytest.raises(Fault, match="images: "):
            idx.read(path, 3)
    with open(path, "wb") as file:
        file.write(whole + b"x")
    with pytest.raises(Fault, match="13 bytes where its head says 12"):
        idx.read(path, 3)


def test_a_head_that_promises_more_than_any_memory_is_a_fault(tmp_path):
    path = str(tmp_path / "images")
    with open(path, "wb") as file:
        file.write(bytes([0, 0, 8, 3]) + b"\xff" * 12 + b"x")
    with pytest.raises(Fault, match="1 bytes where its head says 79228162458924105385300197375"):
        idx.read(path, 3)


def test_what_is_missing_or_does_not_fit_is_a_fault(tmp_path):
    write_set(tmp_path, 20, 10)
    with pytest.raises(Fault, match="20 images where 21 are asked for"):
        idx.read_split(str(tmp_path), "train", 21)
    labels = tmp_path / "MNIST" / "raw" / "t10k-labels-idx1-ubyte"
    labels.write_bytes(encode(numpy.zeros(9)))
    with pytest.raises(Fault, match="10 images and 9 labels"):
        idx.read_split(str(tmp_path), "test")
    os.unlink(str(labels))
    with pytest.raises(Fault, match="No such file"):
        idx.read_split(str(tmp_path), "test")
