import errno
import json
import os

import pytest

from workloads import result


def test_a_result_is_written_whole(tmp_path):
    path = str(tmp_path / "cell.0.json")
    result.write(path, {"status": "measured", "samples_s": [0.1, 1e-9]})
    with open(path) as file:
        assert json.load(file) == {"status": "measured", "samples_s": [0.1, 1e-9]}
    assert os.listdir(str(tmp_path)) == ["cell.0.json"]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_is_not_finite_is_never_written(tmp_path, bad):
    """R1"""
    with pytest.raises(ValueError, match="JSON compliant"):
        result.write(str(tmp_path / "cell.0.json"), {"samples_s": [bad]})
    assert os.listdir(str(tmp_path)) == []


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    """C10"""
    path = str(tmp_path / "cell.0.json")
    result.write(path, {"status": "measured"})

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        result.write(path, {"status": "failed"})
    with open(path) as file:
        assert json.load(file) == {"status": "measured"}
    assert os.listdir(str(tmp_path)) == ["cell.0.json"]


def test_epochs_are_appended_as_they_end(tmp_path):
    path = tmp_path / "epochs.jsonl"
    for epoch in (1, 2):
        result.append(str(path), {"epoch": epoch, "loss": None})
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"epoch": 1, "loss": None},
        {"epoch": 2, "loss": None},
    ]
    with pytest.raises(ValueError, match="Out of range"):
        result.append(str(path), {"loss": float("nan")})
    assert len(path.read_text().splitlines()) == 2
