"""torchvision's data set under PyTorch's DataLoader."""

from workloads.data import idx
from workloads.frameworks import imports, order_version
from workloads.mnist import loader, match
from workloads.mnist.workers import WorkerLoader, subset

imports.load_in_order(("torch", "torchvision"))
import torch  # noqa: E402
import torchvision  # noqa: E402
from torchvision import datasets, transforms  # noqa: E402

PREFIX = "torchvision-workers-"
READS_IDX = order_version(torchvision.__version__) >= (0, 10)
"""Earlier ones read files of their own, which they make of these when they download them."""


def build(cell, framework, dtype):
    """Build the cell's variant."""
    return match.build(cell, framework, dtype, open_loader)


def open_loader(cell, framework, order):
    """Open the variant: ``torchvision-workers-N``, with ``-persistent`` where workers outlive an epoch."""
    workers = loader.read_count(cell["variant"], PREFIX)
    persistent = cell["variant"].endswith("-persistent")
    folder, open_set = cell["data"]["folder"], open_files if READS_IDX else open_arrays
    sets = {
        split: subset(open_set(folder, split == "train", transforms.ToTensor()), count)
        for split, count in order.images.items()
    }
    return WorkerLoader(sets, order, workers, persistent)


def open_files(folder, train, transform):
    """Open the set's files by torchvision."""
    return datasets.MNIST(folder, train=train, download=False, transform=transform)


class Arrays(datasets.MNIST):
    """torchvision's data set over images that are there, for versions that do not read IDX files: what hands
    them out, which is what is timed, is torchvision's own."""

    def __init__(self, images, labels, train, transform):
        self.transform, self.target_transform, self.train = transform, None, train
        self.data, self.targets = images, labels
        if not hasattr(datasets.MNIST, "train_data"):
            # 0.2 has other names for them.
            names = ("train_data", "train_labels") if train else ("test_data", "test_labels")
            self.__dict__.update(zip(names, (images, labels)))

    def __len__(self):
        return len(self.targets)


def open_arrays(folder, train, transform):
    """Open the set as ``Arrays``, which hold what torchvision's own files would."""
    images, labels = idx.read_split(folder, "train" if train else "test")
    return Arrays(torch.from_numpy(images.copy()), torch.from_numpy(labels), train, transform)
