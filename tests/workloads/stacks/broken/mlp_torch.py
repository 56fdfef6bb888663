"""The MLP in PyTorch."""

import torch

from workloads.mlp import torch as module


def other_optimiser(**changes):
    real = torch.optim.SGD
    return lambda parameters, **arguments: real(parameters, **dict(arguments, **changes))


class WithActivation(module.MLP):
    def forward(self, x):
        return self.layer3(torch.relu(self.layer2(self.layer1(x))))


class WithoutBias(module.MLP):
    def forward(self, x):
        return self.layer3(
            torch.nn.functional.linear(self.layer1(x), self.layer2.weight) + 0 * self.layer2.bias
        )


BREAKS = {
    "learning rate": lambda patch: patch.setattr(torch.optim, "SGD", other_optimiser(lr=1.001e-4)),
    "momentum": lambda patch: patch.setattr(torch.optim, "SGD", other_optimiser(momentum=0.9)),
    "weight decay": lambda patch: patch.setattr(torch.optim, "SGD", other_optimiser(weight_decay=1e-6)),
    "activation": lambda patch: patch.setattr(module, "MLP", WithActivation),
    "dropped bias": lambda patch: patch.setattr(module, "MLP", WithoutBias),
    "summed loss": lambda patch: patch.setattr(
        torch.nn.functional, "mse_loss", lambda a, b, reduction: ((a - b) ** 2).sum()
    ),
    "broadcast target": lambda patch: patch.setattr(
        torch.nn.functional, "mse_loss", lambda a, b, reduction: ((a - b.view(-1)) ** 2).mean()
    ),
    "own initial values": lambda patch: patch.setattr(module, "load", lambda model, weights: None),
    "no update": lambda patch: patch.setattr(torch.optim.SGD, "step", lambda self: None),
}
