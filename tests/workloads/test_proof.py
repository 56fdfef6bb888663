import math

import pytest

from tests.workloads.fakes import FakeFramework, install, make_cell
from workloads import proof
from workloads.fault import Fault


def prove(monkeypatch, measure="step", **breaks):
    install(monkeypatch, **breaks)
    cell = make_cell(purpose="proof", measures=[measure])
    return proof.prove(cell, FakeFramework(cell))


@pytest.mark.parametrize("measure", ["step", "call"])
def test_the_same_work_is_proved(monkeypatch, measure):
    proved = prove(monkeypatch, measure)
    assert proved["holds"]
    names = [check["name"] for check in proved["checks"]]
    assert "gradient[w2].projection[1]" in names
    assert "change[b3].norm" in names
    # The loss before all, then those of six steps or of two calls of ten.
    assert sum(name.startswith("loss[") for name in names) == 1 + (6 if measure == "step" else 20)


def scale(factor):
    return lambda gradients: {name: factor * value for name, value in gradients.items()}


def drop_bias(gradients):
    return dict(gradients, b2=0 * gradients["b2"])


def permute(gradients):
    return dict(gradients, w2=gradients["w2"][::-1])


@pytest.mark.parametrize(
    "break_step",
    [scale(1.0001), scale(1 + 1e-7), drop_bias, permute],
    ids=["rate", "rounding", "bias", "order"],
)
@pytest.mark.parametrize("measure", ["step", "call"])
def test_a_wrong_step_fails_in_its_change(monkeypatch, measure, break_step):
    """A rate off by 1e-7 is found though the parameters themselves move by 1e-11 of their size."""
    proved = prove(monkeypatch, measure, break_step=break_step)
    assert not proved["holds"]
    failed = [check["name"] for check in proved["checks"] if check["error"] > check["tolerance"]]
    assert any(name.startswith("change[") for name in failed)


def test_a_wrong_loss_fails(monkeypatch):
    assert not prove(monkeypatch, break_loss=lambda loss: loss * (1 + 1e-7))["holds"]


def test_a_loss_that_is_not_finite_is_told(monkeypatch):
    with pytest.raises(Fault, match=r"loss.* is nan"):
        prove(monkeypatch, break_loss=lambda loss: math.nan)


def test_parameters_without_a_trajectory_are_told(monkeypatch):
    install(monkeypatch)
    cell = make_cell()
    cell["parameters"]["batch"] = 7
    with pytest.raises(Fault, match="no trajectory is committed"):
        proof.prove(cell, FakeFramework(cell))


def test_the_number_of_trainable_parameters_is_compared(monkeypatch):
    """P8"""
    proved = prove(monkeypatch)
    [count] = [check for check in proved["checks"] if check["name"] == "parameter_count"]
    assert count["expected"] == 250 * 250 * 2 + 250 + 250 + 250 + 1 == proved["parameter_count"]


def test_first_losses_are_judged_in_the_cells_own_precision(monkeypatch):
    cell = make_cell()
    cell["tolerances"]["losses"] = 1e-3
    [first] = proof.judge_losses(cell, [1.0])["expected"]
    assert proof.judge_losses(cell, [first * (1 + 1e-4)])["holds"]
    assert not proof.judge_losses(cell, [first * (1 + 1e-2)])["holds"]
    assert proof.judge_losses(make_cell(role="ceiling"), [1.0]) is None
