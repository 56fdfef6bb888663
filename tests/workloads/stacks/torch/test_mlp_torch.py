"""The MLP in PyTorch, against the committed trajectory, whole and with each thing broken that matters."""

import os
import types

import pytest
import torch

from tests.workloads.fakes import make_cell
from tests.workloads.stacks.broken.mlp_torch import BREAKS
from workloads import frameworks, measurement, proof
from workloads.fault import Fault
from workloads.mlp import torch as module

VARIANTS = ("torch-eager", "torch-script", "torch-compile")


def cell(**changes):
    threads = {"intra_op": 2, "inter_op": 2}
    return make_cell(
        **dict(
            {"framework": "torch", "module": "torch", "variant": "torch-eager", "threads": threads}, **changes
        )
    )


def prove(framework, **changes):
    return proof.prove(cell(purpose="proof", **changes), framework)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("edition", "measure"), [("fair", "step"), ("article", "call")])
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_every_variant_does_the_same_work(framework, variant, edition, measure):
    proved = prove(framework, variant=variant, edition=edition, measures=[measure])
    assert max(check["error"] for check in proved["checks"]) < 1e-9
    assert proved["holds"]


@pytest.mark.parametrize("name", sorted(BREAKS))
def test_a_broken_side_fails_its_proof(framework, monkeypatch, name):
    """P3, P5"""
    BREAKS[name](monkeypatch)
    assert not prove(framework)["holds"]


def test_gradients_that_pile_up_fail(framework, monkeypatch):
    monkeypatch.setattr(torch.optim.SGD, "zero_grad", lambda self, set_to_none: None)
    assert not prove(framework)["holds"]


def test_a_measured_launch_reports_what_ran(framework):
    answer = measurement.measure(
        cell(protocol=dict(make_cell()["protocol"], budget_s=0.2, warmup_s=0.1)), framework, 0.0
    )
    assert answer["status"] == "measured"
    assert answer["losses"]["error"] < 1e-6
    assert answer["device"]["observed"] == "cpu"
    assert answer["settings"]["threads_intra_op"] == torch.get_num_threads() == 2
    assert answer["settings"]["compiler"] == "none"
    assert answer["settings"]["torch.float32_matmul_precision"] == "highest"
    assert answer["synchronisation"] == "torch.cpu.synchronize"


def test_eager_moves_its_inputs_in_the_article_only(framework):
    def inputs(variant, edition):
        return module.build(cell(variant=variant, edition=edition), framework, "float32").settings["inputs"]

    assert inputs("torch-eager", "article") == "moved in each step"
    assert inputs("torch-eager", "fair") == "resident"
    assert inputs("torch-compile", "article") == "resident"


def test_a_gpu_that_is_not_there_is_a_clear_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch, "set_num_interop_threads", lambda count: None)
    with pytest.raises(Fault, match="torch sees no CUDA GPU here"):
        frameworks.load(cell(device="cuda:0", cache=str(tmp_path)))


def pretend_gpu(monkeypatch, capability, kernels):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: capability)
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: kernels)
    monkeypatch.setattr(torch, "set_num_interop_threads", lambda count: None)


@pytest.mark.parametrize(
    ("capability", "runs"),
    [
        ((7, 5), True),
        ((8, 9), True),
        ((9, 0), True),
        ((7, 0), False),
        ((10, 0), True),
        ((10, 3), False),
        ((12, 0), False),
    ],
)
def test_a_gpu_that_the_wheel_has_no_code_for_is_seen_before_timing(tmp_path, monkeypatch, capability, runs):
    """C3"""
    pretend_gpu(monkeypatch, capability, ["sm_75", "sm_86", "sm_90", "sm_100a"])
    if runs:
        assert frameworks.load(cell(device="cuda:0", cache=str(tmp_path))).index == 0
    else:
        with pytest.raises(Fault, match="no code for compute capability"):
            frameworks.load(cell(device="cuda:0", cache=str(tmp_path)))


def test_there_is_no_second_gpu(tmp_path, monkeypatch):
    pretend_gpu(monkeypatch, (9, 0), ["sm_90"])
    with pytest.raises(Fault, match="there is no cuda:1; torch sees 1"):
        frameworks.load(cell(device="cuda:1", cache=str(tmp_path)))


def test_waiting_for_a_gpu_names_the_gpu(tmp_path, monkeypatch):
    """T1, T2"""
    pretend_gpu(monkeypatch, (9, 0), ["sm_90"])
    waited = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    on_gpu = frameworks.load(cell(device="cuda:0", cache=str(tmp_path)))
    on_gpu.synchronise()
    assert waited == [0]
    assert on_gpu.synchronisation == "torch.cuda.synchronize"


@pytest.mark.parametrize(
    ("precision", "matmul", "cudnn"), [("fp32", "highest", False), ("tf32", "high", True)]
)
def test_precision_on_a_gpu_is_set_both_ways(tmp_path, monkeypatch, precision, matmul, cudnn):
    """T8: what a library's default would be never decides."""
    pretend_gpu(monkeypatch, (9, 0), ["sm_90"])
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", not cudnn)
    before = torch.get_float32_matmul_precision()
    try:
        frameworks.load(cell(device="cuda:0", precision=precision, cache=str(tmp_path)))
        assert torch.get_float32_matmul_precision() == matmul
        assert torch.backends.cudnn.allow_tf32 is cudnn
    finally:
        torch.set_float32_matmul_precision(before)


def test_tf32_on_a_cpu_is_skipped_with_the_reason(framework):
    with pytest.raises(Fault, match="TF32 is a format of GPUs") as caught:
        type(framework)._set_precision(types.SimpleNamespace(precision="tf32", index=None, torch=torch))
    assert caught.value.status == "skipped"


def test_bfloat16_computes_in_bfloat16(framework, monkeypatch):
    monkeypatch.setattr(framework, "precision", "bf16")
    seen = []
    real = torch.nn.functional.mse_loss

    def watch(prediction, y, reduction):
        seen.append(prediction.grad_fn.name())
        return real(prediction, y, reduction=reduction)

    monkeypatch.setattr(torch.nn.functional, "mse_loss", watch)
    subject = module.build(cell(precision="bf16"), framework, "float32")
    loss = subject.units["step"]()
    assert seen == ["ToCopyBackward0"]
    judged = proof.judge_losses(
        dict(cell(), tolerances=dict(cell()["tolerances"], losses=2e-2)), [float(loss)]
    )
    assert judged["holds"]
    assert judged["error"] > 1e-6


def test_a_step_reads_nothing_from_the_device(framework, monkeypatch):
    """T16"""
    subject = module.build(cell(), framework, "float32")

    def read(*arguments, **named):
        raise AssertionError("a value was read while training")

    for name in ("item", "tolist", "numpy", "cpu", "__float__", "__bool__"):
        monkeypatch.setattr(torch.Tensor, name, read)
    for measure in ("step", "call"):
        subject.units[measure]()
    assert subject.host_reads == {}


def test_the_device_is_read_from_what_was_computed(framework):
    """C2"""
    elsewhere = types.SimpleNamespace(device=torch.device("cuda", 1))
    assert framework.device_of(elsewhere) == "cuda:1"
    assert framework.device_of(torch.ones(1) + 1) == "cpu"


def test_compilers_caches_lie_where_the_cell_says(tmp_path, monkeypatch):
    """T5"""
    pretend_gpu(monkeypatch, (9, 0), ["sm_90"])
    frameworks.load(cell(device="cuda:0", cache=str(tmp_path)))
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "inductor")
    assert os.environ["TRITON_CACHE_DIR"] == str(tmp_path / "triton")


def test_autotuning_and_threads_between_operators_are_set_and_not_left(tmp_path, monkeypatch):
    """T7, T11"""
    pretend_gpu(monkeypatch, (9, 0), ["sm_90"])
    asked = []
    monkeypatch.setattr(torch, "set_num_interop_threads", asked.append)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    frameworks.load(cell(device="cuda:0", cache=str(tmp_path), threads={"intra_op": 2, "inter_op": 7}))
    assert asked == [7]
    assert torch.backends.cudnn.benchmark is False
