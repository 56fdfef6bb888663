"""Data sets under PyTorch's DataLoader."""

import warnings

import torch
import torch.utils.data

from workloads.frameworks import imports, keep_known
from workloads.mnist import loader

# That there are more workers than CPUs is what some variants are about.
warnings.filterwarnings("ignore", "This DataLoader will create")


def subset(dataset, count):
    """Keep the first ``count`` of a data set."""
    return dataset if count == len(dataset) else torch.utils.data.Subset(dataset, range(count))


class WorkerLoader(loader.Loader):
    """Data sets by split under a DataLoader each."""

    def __init__(self, sets, order, workers, persistent):
        super().__init__(
            {
                "workers": workers,
                "persistent_workers": persistent,
                "pinned": order.pinned,
                "transform": "per image",
                "shuffle": "all",
            }
        )
        self.workers = workers
        self.loaders = {
            split: make(dataset, split, order, workers, persistent) for split, dataset in sets.items()
        }

    def epoch(self, split):
        if self.workers:
            imports.check_fork()
        return iter(self.loaders[split])

    def close(self):
        # Persistent workers end with their iterator.
        self.loaders.clear()


def make(dataset, split, order, workers, persistent):
    """Make a DataLoader in which no argument that matters is left to a default."""
    loader_class = torch.utils.data.DataLoader
    # Before 1.6 orders are drawn by PyTorch's own generator, and before 1.7 two batches a worker are made
    # ahead and workers end with the epoch, always.
    torch.manual_seed(order.seed)
    options = keep_known(
        loader_class,
        generator=torch.Generator().manual_seed(order.seed),
        persistent_workers=persistent and workers > 0,
    )
    if workers:
        options.update(keep_known(loader_class, timeout=loader.WAIT_S, prefetch_factor=2))
    return loader_class(
        dataset,
        batch_size=order.batch[split],
        shuffle=order.shuffled[split],
        num_workers=workers,
        pin_memory=order.pinned,
        drop_last=False,
        **options,
    )
