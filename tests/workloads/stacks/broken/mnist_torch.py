"""The convolutional net of MNIST, which every loader feeds."""

import torch

from workloads.mnist import model


class WithActivation(model.Net):
    def forward(self, x):
        x = torch.relu(self.conv2(torch.relu(self.conv1(x))))
        x = torch.relu(self.fc1(torch.flatten(torch.nn.functional.max_pool2d(x, 2), 1)))
        return torch.log_softmax(self.fc2(x), dim=1)


class WithoutBias(model.Net):
    def forward(self, x):
        x = torch.conv2d(torch.relu(self.conv1(x)), self.conv2.weight) + 0 * self.conv2.bias[:, None, None]
        x = torch.relu(self.fc1(torch.flatten(torch.nn.functional.max_pool2d(x, 2), 1)))
        return torch.log_softmax(self.fc2(x), dim=1)


class WithAveragePool(model.Net):
    def forward(self, x):
        x = torch.nn.functional.avg_pool2d(self.conv2(torch.relu(self.conv1(x))), 2)
        x = torch.relu(self.fc1(torch.flatten(x, 1)))
        return torch.log_softmax(self.fc2(x), dim=1)


def with_optimiser(**changes):
    real = torch.optim.Adadelta
    return lambda parameters, **arguments: real(parameters, **dict(arguments, **changes))


BREAKS = {
    "activation": (model, "Net", WithActivation),
    "bias": (model, "Net", WithoutBias),
    "pool": (model, "Net", WithAveragePool),
    "learning rate": (torch.optim, "Adadelta", with_optimiser(lr=0.999)),
    "epsilon": (torch.optim, "Adadelta", with_optimiser(eps=1e-7)),
    "rho": (torch.optim, "Adadelta", with_optimiser(rho=0.95)),
    "weight decay": (torch.optim, "Adadelta", with_optimiser(weight_decay=1e-5)),
    "another optimiser": (
        torch.optim,
        "Adadelta",
        lambda parameters, lr, **_: torch.optim.SGD(parameters, lr),
    ),
    "reduction": (
        torch.nn.functional,
        "nll_loss",
        lambda scores, labels, reduction: -scores[torch.arange(len(labels)), labels].sum(),
    ),
    "doubled softmax": (
        torch.nn.functional,
        "log_softmax",
        lambda x, dim: torch.log_softmax(torch.softmax(x, dim), dim),
    ),
}
