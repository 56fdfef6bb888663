"""What a stack is: its versions, the orders of its imports, its threads, and what it cannot do."""

import importlib
import json

import pytest

from tests.workloads.fakes import make_cell
from tests.workloads.stacks.programs import run
from workloads import frameworks
from workloads.fault import Fault

MODULES = {"tensorflow-datasets": "tensorflow_datasets"}
COMPUTE = """
import importlib, sys, warnings
warnings.simplefilter("ignore")
for name in sys.argv[1:]:
    importlib.import_module(name)
import torch
import tensorflow as tf
torch.nn.Conv2d(1, 2, 3)(torch.ones(1, 1, 8, 8)).sum().backward()
product = tf.matmul(tf.ones((64, 64)), tf.ones((64, 64)))
total = tf.reduce_sum(product)
print(float(torch.ones(64, 64).mm(torch.ones(64, 64)).sum()),
      float(tf.Session().run(total) if hasattr(tf, "Session") else total.numpy()))
"""
COUNT = """
import json, os, sys
from workloads import frameworks
framework = frameworks.load(json.loads(sys.argv[1]))
if framework.name == "torch":
    torch = framework.torch
    torch.ones(600, 600).mm(torch.ones(600, 600))
else:
    tf = framework.tf
    tf.matmul(tf.ones((600, 600)), tf.ones((600, 600)))
settings = framework.settings()
print(json.dumps([len(os.listdir("/proc/self/task")), settings["threads_intra_op"],
                  settings["threads_inter_op"]]))
"""


def test_the_stack_has_the_frameworks_that_it_says(stack):
    for name, version in stack["frameworks"].items():
        if name == "keras" and stack["frameworks"]["tensorflow"].startswith("2."):
            # Within TensorFlow.
            found = importlib.import_module("tensorflow").keras.__version__
        else:
            found = importlib.import_module(MODULES.get(name, name)).__version__
        assert found.split("+")[0].split("-")[0].split(".post")[0] == version, name


@pytest.mark.parametrize("is_torch_first", [True, False])
def test_both_orders_of_imports_work_in_one_process(stack, is_torch_first):
    """N1: today's stack bears one only."""
    of_torch = [name for name in ("torch", "torchvision") if name in stack["frameworks"]]
    order = of_torch + ["tensorflow"] if is_torch_first else ["tensorflow"] + of_torch
    status, said = run(COMPUTE, *order)
    assert (status, said.splitlines()[-1]) == (0, "262144.0 262144.0"), said


@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_threads_are_applied_and_read_back(tmp_path, stack, framework):
    """T11: not only read back, but there."""
    counts = []
    for intra_op in (1, 4):
        cell = make_cell(
            framework=framework,
            module=framework,
            threads={"intra_op": intra_op, "inter_op": 1},
            cache=str(tmp_path),
        )
        status, said = run(COUNT, json.dumps(cell))
        assert status == 0, said
        count, read, between = json.loads(said.splitlines()[-1])
        counts.append(count)
        assert read == intra_op
        has_none = framework == "torch" and stack["frameworks"]["torch"].startswith("1.0")
        assert between == (None if has_none else 1)
    assert counts[1] > counts[0]


def test_a_gpu_is_skipped_by_tensorflow_with_the_reason(tmp_path):
    cell = make_cell(framework="tensorflow", device="cuda:0", device_index=0, cache=str(tmp_path))
    with pytest.raises(Fault, match="is measured on a CPU only: its GPU build needs a CUDA") as caught:
        frameworks.load(cell)
    assert (caught.value.status, caught.value.kind) == ("skipped", "device")


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_other_precisions_are_skipped_with_the_reason(tmp_path, framework, precision):
    program = """
import json, sys
from workloads import frameworks
from workloads.fault import Fault
try:
    frameworks.load(json.loads(sys.argv[1]))
except Fault as fault:
    print("%s: %s" % (fault.status, fault.message))
"""
    cell = make_cell(framework=framework, precision=precision, cache=str(tmp_path))
    status, said = run(program, json.dumps(cell))
    assert (status, said.splitlines()[-1].partition(":")[0]) == (0, "skipped"), said
