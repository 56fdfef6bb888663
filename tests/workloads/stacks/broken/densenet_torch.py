"""The DenseNet in PyTorch."""

import torch

from workloads.densenet import torch_net


def with_adam(**changes):
    real = torch.optim.Adam

    def make_adam(groups, **arguments):
        for name in [name for name in changes if name == "weight_decay"]:
            groups = [dict(group, weight_decay=changes[name](group["weight_decay"])) for group in groups]
        return real(groups, **dict(arguments, **{k: v for k, v in changes.items() if k != "weight_decay"}))

    return make_adam


def with_norm(**changes):
    class Other(torch.nn.BatchNorm2d):
        def __init__(self, channels, **arguments):
            super().__init__(channels, **dict(arguments, **changes))

    return Other


class WithoutActivation(torch_net.DenseLayer):
    def forward(self, x):
        new = self.conv1(torch.relu(self.norm1(x)))
        return torch.cat([x, self.conv2(self.norm2(new))], 1)


class WithActivation(torch_net.DenseLayer):
    def forward(self, x):
        new = self.conv1(torch.relu(self.norm1(x)))
        return torch.cat([x, torch.relu(self.conv2(torch.relu(self.norm2(new))))], 1)


class OtherPadding(torch_net.DenseLayer):
    """P4: zeros on two sides only, as "same" has them where a stride leaves no choice."""

    def forward(self, x):
        new = torch.relu(self.norm2(self.conv1(torch.relu(self.norm1(x)))))
        new = torch.nn.functional.pad(new, (0, 2, 0, 2))
        return torch.cat([x, torch.conv2d(new, self.conv2.weight, self.conv2.bias)], 1)


class MaximumPool(torch_net.Transition):
    def forward(self, x):
        return torch.nn.functional.max_pool2d(self.conv(torch.relu(self.norm(x))), 2)


def doubled_softmax(scores, labels, reduction):
    return torch.nn.functional.nll_loss(torch.log_softmax(torch.softmax(scores, 1), 1), labels)


BREAKS = {
    "P1 momentum is the complement": (torch.nn, "BatchNorm2d", with_norm(momentum=0.9)),
    "P1 epsilon of the other framework": (torch.nn, "BatchNorm2d", with_norm(eps=1e-3)),
    "P2 L2 twice": (torch.optim, "Adam", with_adam(weight_decay=lambda decay: 2 * decay)),
    "P2 L2 on everything": (torch.optim, "Adam", with_adam(weight_decay=lambda decay: 2e-4)),
    "P2 no L2": (torch.optim, "Adam", with_adam(weight_decay=lambda decay: 0.0)),
    "P3 learning rate": (
        torch_net.Trainer,
        "set_rate",
        lambda self, rate: [group.update(lr=1.001 * rate) for group in self.optimiser.param_groups],
    ),
    "P3 betas": (torch.optim, "Adam", with_adam(betas=(0.9, 0.99))),
    "P3 decoupled": (torch.optim, "Adam", lambda groups, **said: torch.optim.AdamW(groups, **said)),
    "P9 epsilon": (torch.optim, "Adam", with_adam(eps=1e-7)),
    # Ten thousand million times smaller than a gradient, and found.
    "P9 epsilon's other place": (torch.optim, "Adam", with_adam(eps=1e-8 / (1 - 0.999) ** 0.5)),
    "amsgrad": (torch.optim, "Adam", with_adam(amsgrad=True, betas=(0.9, 0.5))),
    "P4 padding": (torch_net, "DenseLayer", OtherPadding),
    "activation dropped": (torch_net, "DenseLayer", WithoutActivation),
    "activation added": (torch_net, "DenseLayer", WithActivation),
    "another pool": (torch_net, "Transition", MaximumPool),
    "doubled softmax": (torch.nn.functional, "cross_entropy", doubled_softmax),
    "summed loss": (
        torch.nn.functional,
        "cross_entropy",
        lambda scores, labels, reduction: torch.nn.functional.nll_loss(
            torch.log_softmax(scores, 1), labels, reduction="sum"
        ),
    ),
}
