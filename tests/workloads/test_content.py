import os
import shutil

import pytest

from workloads import content


@pytest.fixture
def ground(tmp_path, monkeypatch):
    copy = str(tmp_path / "workloads")
    shutil.copytree(content.GROUND, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(content, "GROUND", copy)
    return copy


def change(ground, *name):
    with open(os.path.join(ground, *name), "a") as file:
        file.write("\n")


def test_workloads_are_found():
    assert content.names() == sorted(content.names())
    assert {"mlp", "ceiling"} <= set(content.names())


@pytest.mark.parametrize(
    "name",
    [
        ("mlp", "torch.py"),
        ("mlp", "trajectories.json"),
        ("mlp", "workload.toml"),
        ("protocol.py",),
        ("frameworks", "torch.py"),
    ],
)
def test_a_change_that_can_change_a_figure_changes_the_hash(ground, name):
    """R6"""
    before = content.sha256("mlp")
    change(ground, *name)
    assert content.sha256("mlp") != before


def test_another_workload_does_not_change_the_hash(ground):
    before = content.sha256("mlp")
    change(ground, "ceiling", "torch.py")
    assert content.sha256("mlp") == before


def test_byte_code_does_not_change_the_hash(ground):
    before = content.sha256("mlp")
    os.makedirs(os.path.join(ground, "mlp", "__pycache__"))
    with open(os.path.join(ground, "mlp", "__pycache__", "torch.cpython-311.pyc"), "wb") as file:
        file.write(b"0")
    assert content.sha256("mlp") == before


def test_a_renamed_file_changes_the_hash(ground):
    before = content.sha256("mlp")
    os.rename(os.path.join(ground, "mlp", "torch.py"), os.path.join(ground, "mlp", "torch2.py"))
    assert content.sha256("mlp") != before
