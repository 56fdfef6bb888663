"""Cells of the DenseNet match, on the net of the smoke profile."""

from tests.workloads.cifar_files import write_set
from tests.workloads.fakes import make_cell
from workloads import densenet
from workloads.densenet import reference

PARAMETERS = dict(
    reference.SIZES[0],
    validation_batch=8,
    train_images=40,
    validate_images=12,
    epochs=5,
    milestones=[0.5, 0.8],
    **reference.TRAINING,
)
"""40 images in batches of 32, and 12 in batches of 8: the last ones are ragged."""


def make(folder, variant, module, framework, **changes):
    """Make a cell, its data written below ``folder`` if they are not there."""
    data = {"name": "small", "sha256": "2" * 64, "folder": str(folder), "nature": "", "derived": None}
    if not (folder / "cifar-10-batches-bin").exists():
        data = write_set(folder)
    parameters = dict(PARAMETERS, **changes.pop("parameters", {}))
    tolerances = {"gradients": 1e-8, "update": 1e-7, "losses": 1e-3, "dtype": "float64"}
    said = {
        "workload": "densenet",
        "variant": variant,
        "module": module,
        "framework": framework,
        "threads": {"intra_op": 2, "inter_op": 2},
        "parameters": parameters,
        "tolerances": tolerances,
        "baseline": "torch-autotune-off",
        "cache": str(folder / "cache"),
        "data": data,
    }
    return make_cell(**dict(said, **changes))


def break_initial_value(monkeypatch, name):
    """Let the values that one tensor starts from be off by a ten-thousandth."""
    real = densenet.canonical
    monkeypatch.setattr(
        densenet,
        "canonical",
        lambda parameters: dict(real(parameters), **{name: real(parameters)[name] * 1.0001}),
    )
