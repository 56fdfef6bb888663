import gzip
import io
import os
import pickle
import pickletools
import tarfile
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts import cifar
from scripts.errors import Refusal
from tests.scripts.small_sets import make_batches, write_cifar

BATCHES = make_batches(3)
PIXELS, LABELS = BATCHES["test_batch"]
PICKLED = cifar.encode_batch(PIXELS, LABELS, "test_batch")


def write_archive(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as packed:
        for name, content in members.items():
            member = tarfile.TarInfo(f"{cifar.FOLDER}/{name}")
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return path


def encode_all() -> dict[str, bytes]:
    return {name: cifar.encode_batch(*batch, name) for name, batch in BATCHES.items()}


def test_a_batch_is_pickled_as_python_2_did_and_read_by_any_pickler() -> None:
    """The set's own archive holds such: protocol 2, strings of bytes, numpy 1's names."""
    batch = pickle.loads(PICKLED, encoding="bytes")
    assert batch[b"data"].shape == (3, cifar.PIXELS)
    assert batch[b"data"].dtype == numpy.uint8
    assert batch[b"data"].tobytes() == PIXELS
    assert bytes(batch[b"labels"]) == LABELS
    assert batch[b"batch_label"] == b"test_batch"
    codes = {code.name for code, _, _ in pickletools.genops(PICKLED)}
    assert {"BINSTRING", "SHORT_BINSTRING", "GLOBAL", "REDUCE", "BUILD"} <= codes
    assert not any(code.endswith(("UNICODE", "BINBYTES", "FRAME")) for code in codes)


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_a_batch_that_python_3_pickled_is_read_too(protocol: int) -> None:
    array = numpy.frombuffer(PIXELS, numpy.uint8).reshape(3, -1)
    # Protocol 2 has no bytes: they come by a call of a codec, which is not on the list of what is known.
    content = pickle.dumps({b"data": array, b"labels": list(LABELS)}, protocol)
    if protocol == 2:
        with pytest.raises(Refusal, match="a foreign pickle"):
            cifar.decode_batch(content, "here")
    else:
        assert cifar.decode_batch(content, "here") == cifar.decode_batch(PICKLED, "here")


def test_the_binary_version_has_each_label_before_its_pixels() -> None:
    records = cifar.decode_batch(PICKLED, "here")
    assert len(records) == 3 * 3073
    assert records[::3073] == LABELS
    assert records[3074 : 2 * 3073] == PIXELS[3072 : 2 * 3072]


class Evil:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, self.arguments


@pytest.mark.parametrize(
    ("foreign", "named"),
    [
        (Evil(os.system, "touch {mark}"), "posix.system"),
        (Evil(eval, "open('{mark}', 'w')"), "builtins.eval"),
        (Evil(numpy.fromfile, "/etc/passwd"), "numpy.fromfile"),
        (Evil(getattr, numpy, "load"), "builtins.getattr"),
    ],
)
def test_a_foreign_pickle_is_named_and_nothing_of_it_is_run(
    tmp_path: Path, foreign: Evil, named: str
) -> None:
    mark = tmp_path / "mark"
    foreign.arguments = tuple(
        argument.format(mark=mark) if isinstance(argument, str) else str(argument)
        for argument in foreign.arguments
    )
    members = encode_all() | {"data_batch_3": pickle.dumps({b"data": foreign, b"labels": []})}
    archive = write_archive(tmp_path / cifar.ARCHIVE, members)
    with pytest.raises(Refusal, match=f"data_batch_3: a foreign pickle, which names {named}"):
        list(cifar.read_batches(archive))
    assert not mark.exists()


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps([1, 2]),
        pickle.dumps({b"data": b"", b"labels": [0]}),
        pickle.dumps({b"data": numpy.zeros((1, 5), numpy.uint8), b"labels": [0]}),
        pickle.dumps({b"data": numpy.zeros((1, 3072), numpy.float32), b"labels": [0]}),
        pickle.dumps({b"data": numpy.zeros((2, 3072), numpy.uint8), b"labels": [0]}),
        pickle.dumps({b"data": numpy.zeros((1, 3072), numpy.uint8), b"labels": [300]}),
        pickle.dumps({b"data": numpy.zeros((1, 3072), numpy.uint8), b"labels": "0"}),
        pickle.dumps({b"data": numpy.asfortranarray(numpy.zeros((2, 3072), numpy.uint8)), b"labels": [0, 0]}),
        # A memo of a thousand million entries, asked for in six bytes.
        b"\x80\x02Nr\xff\xff\xff\x3f.",
        b"\x80\x02" + b"(" * 100000,
    ],
)
def test_what_is_no_batch_is_refused_in_one_line(content: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        cifar.decode_batch(content, "x: data_batch_1")
    assert refused.value.message.startswith("x: data_batch_1: ")
    assert "\n" not in refused.value.message


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_batch_altered_at_any_byte_is_read_or_refused(data: st.DataObject) -> None:
    head = len(PICKLED) - len(PIXELS)
    place = data.draw(st.one_of(st.integers(0, 250), st.integers(len(PICKLED) - 80, len(PICKLED) - 1)))
    byte = data.draw(st.integers(0, 255))
    altered = PICKLED[:place] + bytes([byte]) + PICKLED[place + 1 :]
    assert head > 0
    try:
        records = cifar.decode_batch(altered, "here")
    except Refusal:
        return
    assert len(records) % 3073 == 0


def test_an_archive_cut_anywhere_is_refused(tmp_path: Path) -> None:
    """D2"""
    whole = (write_cifar(tmp_path / "whole", 2) / cifar.ARCHIVE).read_bytes()
    cut = tmp_path / cifar.ARCHIVE
    for share in (0.0, 0.01, 0.3, 0.7, 0.98):
        cut.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(Refusal, match=r"cifar-10-python\.tar\.gz"):
            list(cifar.read_batches(cut))


def test_an_archive_altered_inside_is_refused(tmp_path: Path) -> None:
    """D2: by gzip's own checksum, whatever was altered."""
    archive = write_cifar(tmp_path / "whole", 2) / cifar.ARCHIVE
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 1
    archive.write_bytes(bytes(content))
    with pytest.raises(Refusal):
        list(cifar.read_batches(archive))


@pytest.mark.parametrize("name", ["data_batch_5", "test_batch"])
def test_an_archive_that_lacks_a_batch_is_refused_and_the_batch_named(tmp_path: Path, name: str) -> None:
    members = encode_all()
    del members[name]
    archive = write_archive(tmp_path / cifar.ARCHIVE, members)
    with pytest.raises(Refusal, match=f"{name} is not in it"):
        list(cifar.read_batches(archive))


def test_links_and_devices_in_an_archive_are_no_batches(tmp_path: Path) -> None:
    archive = tmp_path / cifar.ARCHIVE
    with tarfile.open(archive, "w") as packed:
        member = tarfile.TarInfo(f"{cifar.FOLDER}/data_batch_1")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(member)
    with pytest.raises(Refusal, match="data_batch_1 is no file of a sensible size"):
        list(cifar.read_batches(archive))


def test_other_members_are_left_alone_and_nothing_is_written_for_them(tmp_path: Path) -> None:
    members = encode_all() | {"batches.meta": b"anything", "../../evil": b"x", "readme.html": b"<html>"}
    archive = write_archive(tmp_path / "raw.tar.gz", members)
    cifar.unpack(archive)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(cifar.FILES)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no images for train"),
        (b"\x00" * 3072, "no whole number of images"),
        (b"\x0a" + b"\x00" * 3072, "labels up to 10, where 9 is the largest"),
        (None, "No such file"),
    ],
)
def test_files_of_a_prepared_set_are_looked_through(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    raw = tmp_path / cifar.RAW
    raw.mkdir()
    for name in cifar.FILES:
        (raw / name).write_bytes(b"\x01" + b"\x00" * 3072)
    assert cifar.find_fault(tmp_path, {}) is None
    assert cifar.find_fault(tmp_path, {"train": 5, "test": 1}) is None
    assert "5 images for train, where 6" in str(cifar.find_fault(tmp_path, {"train": 6}))
    for name in cifar.FILES[:5]:
        if content is None:
            (raw / name).unlink()
        else:
            (raw / name).write_bytes(content)
    assert words in str(cifar.find_fault(tmp_path, {}))


def test_a_plain_tar_and_a_packed_one_hold_the_same(tmp_path: Path) -> None:
    found = []
    for name in ("a.tar", "a.tar.gz"):
        cifar.pack(BATCHES, tmp_path / name)
        found.append(dict(cifar.read_batches(tmp_path / name)))
    assert found[0] == found[1]
    assert (
        gzip.decompress((tmp_path / "a.tar.gz").read_bytes())[:20] == (tmp_path / "a.tar").read_bytes()[:20]
    )
