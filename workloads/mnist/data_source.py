"""tfds's random access under PyTorch's DataLoader, without TensorFlow."""

import torch

from workloads.data import tfds_files
from workloads.mnist import match
from workloads.mnist.workers import WorkerLoader, subset

WORKERS = 4
"""As many as the baseline has."""


def build(cell, framework, dtype):
    """Build ``data-source``."""
    return match.build(cell, framework, dtype, open_loader)


def open_loader(cell, framework, order):
    """Open tfds's array_record files by split."""
    builder = tfds_files.open_files(cell["data"], "array_record")
    sets = {
        split: subset(Records(builder.as_data_source(split=split)), count)
        for split, count in order.images.items()
    }
    return WorkerLoader(sets, order, WORKERS, persistent=False)


class Records(torch.utils.data.Dataset):
    """Records as the pairs that a DataLoader collates, fetched by the batch."""

    def __init__(self, source):
        self.source = source

    def __len__(self):
        return len(self.source)

    def __getitem__(self, index):
        return self.__getitems__([index])[0]

    def __getitems__(self, indices):
        return [(convert(record["image"]), record["label"]) for record in self.source.__getitems__(indices)]


def convert(image):
    """Turn uint8 (28, 28, 1) into float32 (1, 28, 28) in [0, 1], as torchvision's ToTensor does."""
    return torch.from_numpy(image).permute(2, 0, 1).contiguous().to(torch.float32).div(255)
