"""The MLP in PyTorch 1, against the trajectory that judges today's, whole and broken."""

import pytest
import torch

from tests.workloads.fakes import make_cell
from tests.workloads.proofs import list_failing
from tests.workloads.stacks.broken.mlp_torch import BREAKS
from tests.workloads.stacks.historical.conftest import THREADS
from workloads import measurement, proof


def cell(variant="torch-eager", **changes):
    said = {"framework": "torch", "module": "torch", "variant": variant, "threads": THREADS}
    return make_cell(**dict(said, **changes))


@pytest.mark.parametrize("variant", ["torch-eager", "torch-script"])
@pytest.mark.parametrize(("edition", "measure"), [("fair", "step"), ("article", "call")])
def test_every_variant_does_the_same_work(torch_framework, variant, edition, measure):
    proved = proof.prove(cell(variant, purpose="proof", edition=edition, measures=[measure]), torch_framework)
    assert list_failing(proved) == set()
    assert max(check["error"] for check in proved["checks"]) < 1e-9


@pytest.mark.parametrize("name", sorted(BREAKS))
def test_a_broken_side_fails_its_proof(torch_framework, monkeypatch, name):
    BREAKS[name](monkeypatch)
    assert not proof.prove(cell(purpose="proof"), torch_framework)["holds"]


def test_gradients_that_pile_up_fail(torch_framework, monkeypatch):
    monkeypatch.setattr(torch.optim.SGD, "zero_grad", lambda self: None)
    assert not proof.prove(cell(purpose="proof"), torch_framework)["holds"]


@pytest.mark.parametrize("variant", ["torch-eager", "torch-script"])
def test_a_measured_launch_reports_what_ran(torch_framework, variant):
    limits = dict(make_cell()["protocol"], budget_s=0.2, warmup_s=0.1)
    answer = measurement.measure(cell(variant, protocol=limits), torch_framework, 0.0)
    assert answer["status"] == "measured"
    assert answer["losses"]["error"] < 1e-5
    assert answer["device"]["observed"] == "cpu"
    assert answer["settings"]["compiler"] == {"torch-eager": "none", "torch-script": "torchscript"}[variant]
    assert answer["settings"]["threads_intra_op"] == 2
    # Before 1.2 operators never run beside each other.
    is_first = torch.__version__.startswith("1.0")
    assert answer["settings"]["threads_inter_op"] == (None if is_first else 3)
    assert answer["synchronisation"].startswith("none:")


def test_the_scripted_forward_pass_is_a_graph_of_the_same_parameters():
    from workloads.mlp import torch as module

    plain = module.MLP([3, 4, 4, 1])
    scripted = module.script(plain)
    assert isinstance(scripted, torch.jit.ScriptModule)
    x = torch.ones(2, 3)
    before = scripted(x)
    assert torch.equal(before, plain(x))
    with torch.no_grad():
        plain.layer3.bias.add_(1.0)
    assert torch.allclose(scripted(x), before + 1)
