"""The net, its optimiser and its passes, in PyTorch: the same for every loader."""

import torch
from torch.nn import functional

from workloads import mnist
from workloads.frameworks import keep_known


class Net(torch.nn.Module):
    """The net of the article, without dropout."""

    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, mnist.FILTERS[0], mnist.KERNEL)
        self.conv2 = torch.nn.Conv2d(mnist.FILTERS[0], mnist.FILTERS[1], mnist.KERNEL)
        self.fc1 = torch.nn.Linear(mnist.FLAT, mnist.HIDDEN)
        self.fc2 = torch.nn.Linear(mnist.HIDDEN, mnist.CLASSES)

    def forward(self, x):
        """Return log-probabilities (n, 10) of images (n, 1, 28, 28)."""
        x = functional.relu(self.conv1(x))
        x = functional.max_pool2d(self.conv2(x), 2)
        x = functional.relu(self.fc1(torch.flatten(x, 1)))
        return functional.log_softmax(self.fc2(x), dim=1)


class Trainer(object):
    """The net at its canonical start, with what trains and validates it.

    Args:
        framework: the framework's ``Framework``.
        parameters: the cell's.
        dtype: name of the parameters' type.
    """

    def __init__(self, framework, parameters, dtype):
        self.framework = framework
        self.dtype = getattr(torch, dtype)
        self.net = Net().to(self.dtype)
        weights = mnist.canonical()
        with torch.no_grad():
            for name, parameter in self.net.named_parameters():
                parameter.copy_(torch.from_numpy(weights[name]))
        self.net.to(framework.place)
        self.optimiser = torch.optim.Adadelta(
            self.net.parameters(),
            lr=parameters["learning_rate"],
            rho=parameters["rho"],
            eps=parameters["epsilon"],
            weight_decay=0,
            **keep_known(
                torch.optim.Adadelta,
                # As PyTorch chooses by itself: one kernel for all tensors where that pays.
                foreach=framework.index is not None,
                maximize=False,
                capturable=False,
                differentiable=False,
            ),
        )
        self.clear = framework.clear_by(self.optimiser)

    def differentiate(self, images, labels):
        """Compute the loss of a batch on the device and its gradients; return the loss."""
        self.clear()
        with self.framework.autocast():
            scores = self.net(images)
        loss = functional.nll_loss(scores.to(self.dtype), labels, reduction="mean")
        loss.backward()
        return loss.detach()

    def train(self, images, labels):
        """Make one training step; return the loss before it."""
        loss = self.differentiate(images, labels)
        self.optimiser.step()
        return loss

    def validate(self, images, labels):
        """Return the summed loss of a batch, and how many of it are right."""
        with torch.no_grad():
            with self.framework.autocast():
                scores = self.net(images)
            loss = functional.nll_loss(scores.to(self.dtype), labels, reduction="sum")
            return loss, scores.argmax(dim=1).eq(labels).sum()

    def name_tensors(self, pick):
        """Copy a tensor of each parameter to the host, by name."""
        return {
            name: pick(tensor).detach().cpu().numpy().copy() for name, tensor in self.net.named_parameters()
        }
