import os
import sys
import types

import pytest

from tests.workloads.fakes import make_cell
from workloads import frameworks
from workloads.fault import Fault


@pytest.mark.parametrize(
    ("kernels", "capability"),
    [
        (["sm_75", "sm_80"], (8, 9)),
        (["sm_90"], (9, 0)),
        (["sm_100a"], (10, 0)),
        (["compute_80", "sm_90"], (9, 0)),
    ],
)
def test_a_build_with_code_for_the_gpu_says_nothing(kernels, capability):
    assert frameworks.check_kernels("torch", kernels, capability) == []


@pytest.mark.parametrize(
    ("kernels", "capability"),
    [
        (["sm_75"], (8, 0)),
        (["sm_89"], (8, 0)),
        (["sm_100a"], (10, 3)),
        (["compute_90"], (8, 9)),
        ([], (8, 0)),
    ],
)
def test_a_build_without_it_is_seen_before_timing(kernels, capability):
    """C3"""
    with pytest.raises(Fault, match="no code for compute capability"):
        frameworks.check_kernels("torch", kernels, capability)


def test_a_build_that_the_driver_must_compile_is_a_warning():
    """C3: what a wheel built for compute_90 does on that very GPU."""
    [warning] = frameworks.check_kernels("tensorflow", ["sm_60", "sm_89", "compute_90"], (9, 0))
    assert "compiles this tensorflow for the GPU" in warning


@pytest.mark.parametrize("name", ["NVIDIA_TF32_OVERRIDE", "PYTORCH_JIT", "TF_XLA_FLAGS"])
def test_a_variable_that_turns_a_variant_into_another_is_refused(monkeypatch, name):
    """T8, T9: what is set behind the settings is never recorded as something else."""
    monkeypatch.setenv(name, "1")
    with pytest.raises(Fault, match="%s is set" % name):
        frameworks.load(make_cell())


@pytest.mark.parametrize("device", ["gpu", "cuda", "cuda:x", "tpu:0"])
def test_a_device_that_is_none_is_a_fault(device):
    with pytest.raises(Fault, match="is neither cpu nor cuda:N"):
        frameworks.gpu_index({"device": device})


def test_a_gpu_has_the_index_that_the_host_gave_it_or_else_its_number():
    assert frameworks.gpu_index({"device": "cpu", "device_index": None}) is None
    assert frameworks.gpu_index({"device": "cuda:3"}) == 3
    assert frameworks.gpu_index({"device": "cuda:3", "device_index": 0}) == 0


def test_gpus_are_numbered_as_the_drivers_own_tool_does(monkeypatch):
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    seen = {}
    module = types.ModuleType("workloads.frameworks.fake")
    module.Framework = lambda cell: seen.update(os.environ)
    monkeypatch.setitem(sys.modules, "workloads.frameworks.fake", module)
    frameworks.load(make_cell(device="cuda:1"))
    assert seen["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_thread_variables_stand_before_the_framework_is_imported(monkeypatch):
    """T11: OpenMP and MKL read them once, when they load."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, "64")
    seen = {}
    module = types.ModuleType("workloads.frameworks.fake")
    module.Framework = lambda cell: seen.update(os.environ)
    monkeypatch.setitem(sys.modules, "workloads.frameworks.fake", module)
    frameworks.load(make_cell(threads={"intra_op": 3, "inter_op": 1}))
    assert [seen[name] for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")] == [
        "3"
    ] * 3
    assert seen["CUDA_VISIBLE_DEVICES"] == "-1"
