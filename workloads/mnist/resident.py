"""The practical limit: the whole set as one tensor on the device, batches taken from it by index."""

import torch

from workloads import mnist
from workloads.data import idx
from workloads.frameworks import order_version
from workloads.mnist import loader, match


def build(cell, framework, dtype):
    """Build ``tensor-resident``."""
    return match.build(cell, framework, dtype, open_loader)


def open_loader(cell, framework, order):
    """Open ``tensor-resident``."""
    return ResidentLoader(cell["data"]["folder"], framework.place, order)


class ResidentLoader(loader.Loader):
    """Images and labels by split, on the device."""

    resident = True

    def __init__(self, folder, place, order):
        super().__init__({"workers": 0, "pinned": False, "transform": "once", "shuffle": "all"})
        self.order = order
        self.sets = {}
        for split, count in order.images.items():
            images, labels = idx.read_split(folder, split, count)
            self.sets[split] = (
                torch.from_numpy(mnist.scale(images)).to(place),
                torch.from_numpy(labels).to(place),
            )
        # 1.0 has generators of the CPU only.
        is_first = order_version(torch.__version__) < (1, 1)
        self.drawn_at = torch.device("cpu") if is_first else place
        self.generator = torch.Generator() if is_first else torch.Generator(device=place)
        self.generator.manual_seed(order.seed)

    def epoch(self, split):
        images, labels = self.sets[split]
        batch = self.order.batch[split]
        if not self.order.shuffled[split]:
            return zip(images.split(batch), labels.split(batch))
        chosen = torch.randperm(len(images), generator=self.generator, device=self.drawn_at).to(images.device)
        return (
            (images.index_select(0, index), labels.index_select(0, index)) for index in chosen.split(batch)
        )
