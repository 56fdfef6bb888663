"""The linear MLP in PyTorch: eager, script, compile."""

import importlib

import torch

from workloads import mlp
from workloads.frameworks import keep_known, order_version
from workloads.subject import Subject


def script(model):
    """Compile the forward pass by TorchScript."""
    if order_version(torch.__version__) < (1, 2):
        # Until 1.1 there is no call that makes a module of a module.
        return importlib.import_module("workloads.mlp.torch_1").script(model)
    return torch.jit.script(model)


# By variant: the compiler, what it compiles, and how the model and the loss go through it.
COMPILERS = {
    "torch-eager": ("none", "nothing", lambda model: model, lambda loss: loss),
    "torch-script": ("torchscript", "forward pass", script, lambda loss: loss),
    "torch-compile": (
        "inductor",
        "forward and backward pass",
        lambda model: model,
        lambda loss: torch.compile(loss, fullgraph=True, dynamic=False),
    ),
}


class MLP(torch.nn.Module):
    """f(x) = W3 W2 W1 x, each with its bias, no activation."""

    def __init__(self, widths):
        super().__init__()
        self.layer1, self.layer2, self.layer3 = (
            torch.nn.Linear(inputs, outputs) for inputs, outputs in zip(widths, widths[1:])
        )

    def forward(self, x):
        return self.layer3(self.layer2(self.layer1(x)))


def build(cell, framework, dtype):
    """Build the cell's variant from canonical parameters in ``dtype``."""
    parameters = cell["parameters"]
    device = framework.place
    weights, x, y = mlp.canonical(parameters)
    x = torch.tensor(x, dtype=getattr(torch, dtype))
    y = torch.tensor(y, dtype=getattr(torch, dtype))

    plain = MLP(mlp.widths(parameters)).to(getattr(torch, dtype))
    load(plain, weights)
    plain.to(device)
    compiler, compiled, compile_model, compile_loss = COMPILERS[cell["variant"]]
    model = compile_model(plain)
    optimiser = torch.optim.SGD(
        plain.parameters(),
        lr=parameters["learning_rate"],
        momentum=0.0,
        dampening=0.0,
        weight_decay=0.0,
        nesterov=False,
        **keep_known(torch.optim.SGD, maximize=False),
    )
    clear = framework.clear_by(optimiser)

    def compute_loss(x, y):
        with framework.autocast():
            prediction = model(x)
        # Outside autocast, and in y's precision, as Keras's mixed policy is used on the other side.
        return torch.nn.functional.mse_loss(prediction.to(y.dtype), y, reduction="mean")

    compute_loss = compile_loss(compute_loss)

    def differentiate(x, y):
        clear()
        loss = compute_loss(x, y)
        loss.backward()
        return loss.detach()

    def train(x, y):
        loss = differentiate(x, y)
        optimiser.step()
        return loss

    here = x.to(device), y.to(device)

    def step():
        return train(*here)

    # The article's accounting: eager moves the model once a call and the inputs in every step;
    # script, and compile which came later, had their inputs moved before.
    def call_moving():
        plain.to(device)
        return [train(x.to(device), y.to(device)) for _ in range(parameters["steps_per_call"])]

    def call_resident():
        return [train(*here) for _ in range(parameters["steps_per_call"])]

    moving = cell["variant"] == "torch-eager"
    return Subject(
        units={"step": step, "call": call_moving if moving else call_resident},
        losses=lambda value: value if isinstance(value, list) else [value],
        gradients=lambda: (differentiate(*here), name_tensors(plain, lambda tensor: tensor.grad)),
        parameters=lambda: name_tensors(plain, lambda tensor: tensor),
        settings={
            "compiler": compiler,
            "compiled": compiled,
            "inputs": "moved in each step" if moving and cell["edition"] == "article" else "resident",
        },
    )


def load(model, weights):
    """Copy canonical weights, (inputs, outputs), into nn.Linear's (outputs, inputs)."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(weights[canonical_name(name)].T))


def name_tensors(model, pick):
    """Copy a tensor of each parameter to the host, by canonical name and in canonical shape."""
    return {
        canonical_name(name): pick(parameter).detach().cpu().numpy().T.copy()
        for name, parameter in model.named_parameters()
    }


def canonical_name(name):
    """Turn ``layer1.weight`` into ``w1``."""
    layer, kind = name.split(".")
    return kind[0] + layer[len("layer") :]
