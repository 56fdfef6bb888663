"""The ceiling in PyTorch."""

import torch

from tests.workloads.fakes import check_ceiling, make_ceiling_cell
from workloads import frameworks
from workloads.ceiling import torch as module


def test_its_units_do_the_work_that_is_counted(tmp_path, monkeypatch):
    # Threads between operators can be set once a process.
    monkeypatch.setattr(torch, "set_num_interop_threads", lambda count: None)
    cell = make_ceiling_cell("torch", str(tmp_path))
    check_ceiling(module.build(cell, frameworks.load(cell), "float32"))
