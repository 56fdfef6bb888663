"""The ceiling in TensorFlow."""

from tests.workloads.fakes import check_ceiling, make_ceiling_cell
from workloads import frameworks
from workloads.ceiling import tensorflow as module


def test_its_units_do_the_work_that_is_counted(tmp_path):
    cell = make_ceiling_cell("tensorflow", str(tmp_path))
    check_ceiling(module.build(cell, frameworks.load(cell), "float32"))
