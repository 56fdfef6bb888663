"""N1, N2: PyTorch and TensorFlow in one process."""

import itertools
import os
import subprocess
import sys
import types

import pytest

from tests.workloads.stacks.programs import run
from workloads.fault import Fault
from workloads.frameworks import imports, torch_tfds

LOAD = """
import importlib, sys
from workloads.fault import Fault
from workloads.frameworks import imports
for name in sys.argv[1:]:
    importlib.import_module(name)
try:
    imports.load_in_order()
except Fault as fault:
    sys.exit("refused: " + fault.message)
import torch, torchvision, tensorflow
print(float(torch.ones(2).sum()) + float(tensorflow.reduce_sum(tensorflow.ones(2)).numpy()))
"""


@pytest.mark.parametrize("early", [("tensorflow",), ("torch", "tensorflow")])
def test_what_was_imported_too_early_is_refused_before_the_process_crashes(early):
    """N1"""
    status, said = run(LOAD, *early)
    assert (status, "refused: tensorflow was imported before torch" in said) == (1, True), said


@pytest.mark.parametrize(
    ("early", "source"),
    [
        ((), "closed"),
        ((), "open"),
        (("torch",), "closed"),
        (("torchvision",), "closed"),
        (("torch", "torchvision"), "closed"),
    ],
)
def test_every_beginning_of_the_right_order_is_gone_on_with(early, source):
    """N1: with standard input closed, and open and waiting, which made some versions hang."""
    read, write = os.pipe()
    try:
        stdin = read if source == "open" else subprocess.DEVNULL
        status, said = run(LOAD, *early, stdin=stdin)
    finally:
        os.close(read)
        os.close(write)
    assert (status, said.splitlines()[-1]) == (0, "4.0"), said


@pytest.mark.parametrize("order", list(itertools.permutations(imports.ORDER)))
def test_all_orders_but_one_are_refused(monkeypatch, order):
    """N1: whatever was imported first, second and third, stopped after each."""
    for count in range(len(order) + 1):
        early = order[:count]
        for name in imports.ORDER:
            monkeypatch.delitem(sys.modules, name, raising=False)
        for name in early:
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        monkeypatch.setattr(imports.importlib, "import_module", lambda name: None)
        # Once all are there, the process has outlived it.
        if set(early) == set(imports.ORDER[:count]):
            imports.load_in_order()
        else:
            with pytest.raises(Fault, match="and the process would crash"):
                imports.load_in_order()


def test_torchvision_is_refused_where_tensorflow_came_without_it(monkeypatch):
    """N1: nothing may bring it in later."""
    monkeypatch.setitem(sys.modules, "tensorflow", types.ModuleType("tensorflow"))
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    with pytest.raises(Fault, match="tensorflow was imported before torchvision"):
        imports.load_in_order(("torch", "torchvision"))


def test_tensorflow_that_keeps_the_gpu_stops_the_cell(make, monkeypatch):
    """N2"""
    import tensorflow as tf
    import torch

    monkeypatch.setattr(torch, "set_num_interop_threads", lambda count: None)
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: ["gpu"])
    with pytest.raises(Fault, match="would not let go of the GPU"):
        torch_tfds.Framework(make("tfds-autotune", "tfds"))


def test_tensorflow_is_hidden_from_the_gpu_and_has_the_cells_threads(framework):
    """N2, T11"""
    import tensorflow as tf

    assert tf.config.get_visible_devices("GPU") == []
    settings = framework.settings()
    assert (settings["tf.threads_intra_op"], settings["tf.threads_inter_op"]) == (2, 2)
    assert (settings["threads_intra_op"], settings["threads_inter_op"]) == (2, 2)
