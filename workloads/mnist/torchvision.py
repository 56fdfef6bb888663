"""torchvision's data set under PyTorch's DataLoader."""

from workloads.frameworks import imports
from workloads.mnist import loader, match
from workloads.mnist.workers import WorkerLoader, subset

imports.load_in_order(("torch", "torchvision"))
from torchvision import datasets, transforms  # noqa: E402

PREFIX = "torchvision-workers-"


def build(cell, framework, dtype):
    """Build the cell's variant."""
    return match.build(cell, framework, dtype, open_loader)


def open_loader(cell, framework, order):
    """Open the variant: ``torchvision-workers-N``, with ``-persistent`` where workers outlive an epoch."""
    workers = loader.read_count(cell["variant"], PREFIX)
    persistent = cell["variant"].endswith("-persistent")
    sets = {
        split: subset(
            datasets.MNIST(
                cell["data"]["folder"],
                train=split == "train",
                download=False,
                transform=transforms.ToTensor(),
            ),
            count,
        )
        for split, count in order.images.items()
    }
    return WorkerLoader(sets, order, workers, persistent)
