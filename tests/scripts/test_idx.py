import tempfile
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts import idx
from tests.scripts.small_sets import make_files, write_folder


def test_what_is_encoded_is_decoded_and_has_its_shape(tmp_path: Path) -> None:
    array = numpy.arange(24, dtype=numpy.uint8).reshape(2, 3, 4)
    path = tmp_path / "images"
    path.write_bytes(idx.encode(array))
    assert numpy.array_equal(idx.decode(path.read_bytes()), array)
    assert idx.read_shape(path, 3) == (2, 3, 4)


def test_a_file_cut_or_grown_at_any_byte_is_told(tmp_path: Path) -> None:
    """D2"""
    whole = idx.encode(numpy.zeros((2, 2, 2), numpy.uint8))
    path = tmp_path / "images"
    for content in [whole[:length] for length in range(len(whole))] + [whole + b"x"]:
        path.write_bytes(content)
        assert isinstance(idx.read_shape(path, 3), str)


@given(st.binary(max_size=64))
def test_no_content_is_an_error_and_only_what_fits_has_a_shape(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        shape = idx.read_shape(Path(file.name), 1)
    assert isinstance(shape, str) or content == idx.encode(idx.decode(content))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"train-images-idx3-ubyte": None}, "No such file"),
        ({"train-labels-idx1-ubyte": make_files(39)["train-labels-idx1-ubyte"]}, "40 images and 39 labels"),
        ({"t10k-images-idx3-ubyte": make_files()["t10k-labels-idx1-ubyte"]}, "no IDX file of 3 dimensions"),
        ({"t10k-images-idx3-ubyte": idx.encode(numpy.zeros((10, 32, 28), numpy.uint8))}, "32 x 28"),
    ],
)
def test_files_that_do_not_fit_together_are_told_by_name(
    tmp_path: Path, change: dict[str, bytes | None], words: str
) -> None:
    files = make_files() | change
    write_folder(tmp_path, {name: content for name, content in files.items() if content is not None})
    fault = idx.find_fault(tmp_path, {})
    assert fault is not None
    assert words in fault


def test_another_number_of_images_than_is_known_is_told(tmp_path: Path) -> None:
    write_folder(tmp_path)
    assert idx.find_fault(tmp_path, {"train": 40, "test": 10}) is None
    assert "40 images, where 60000 are wanted" in (idx.find_fault(tmp_path, {"train": 60000}) or "")
