"""Batches for PyTorch: in ``fair`` the arithmetic that both sides share, in ``article`` torchvision's way."""

import torch
import torch.utils.data

from workloads import densenet
from workloads.densenet import augment, plan
from workloads.frameworks import keep_known


def draw_batch(parameters, dtype):
    """Return the canonical batch on the host: images (batch, 3, 32, 32) and labels."""
    images, labels = densenet.draw_batch(parameters)
    return torch.from_numpy(images).permute(0, 3, 1, 2).to(dtype).contiguous(), torch.from_numpy(labels)


def open_batches(cell, data, layout):
    """Open the batches of the cell's edition."""
    if cell["edition"] == "fair":
        return Batches(cell["parameters"], data, layout)
    return ArticleBatches(cell["parameters"], data)


class Batches(object):
    """Whole batches at a time: gathered from padded images, turned to float32 and normalised.

    Args:
        parameters: the cell's.
        data: a ``match.Data``.
        layout: how ``to`` is told in which order images lie in memory.
    """

    def __init__(self, parameters, data, layout):
        self.parameters, self.data, self.layout = parameters, data, layout
        self.pixels = torch.from_numpy(augment.pad(data.train[0])).view(-1, plan.CHANNELS)
        self.labels = torch.from_numpy(data.train[1])
        self.tests = torch.from_numpy(data.validate[0]), torch.from_numpy(data.validate[1])
        self.start()

    def start(self):
        """Begin with the first epoch's choices again."""
        self.choices = self.data.draw()

    def train(self):
        """Yield the batches of an epoch."""
        return self.make(next(self.choices))

    def make(self, choices):
        """Yield the batches of an epoch with these choices."""
        places = torch.arange(plan.SIDE)
        images, rows, columns = (
            torch.from_numpy(chosen) for chosen in (choices.images, choices.rows, choices.columns)
        )
        flipped = torch.from_numpy(choices.flipped.astype("int64"))
        for chosen in torch.arange(len(images)).split(self.parameters["batch"]):
            across = places + flipped[chosen, None] * (plan.SIDE - 1 - 2 * places)
            down = rows[chosen, None] + places
            across = columns[chosen, None] + across
            start = images[chosen] * augment.PADDED**2
            index = start[:, None, None] + down[:, :, None] * augment.PADDED + across[:, None, :]
            pixels = self.pixels.index_select(0, index.view(-1))
            pixels = pixels.view(len(chosen), plan.SIDE, plan.SIDE, plan.CHANNELS)
            yield self.normalise(pixels), self.labels[images[chosen]]

    def validate(self):
        """Yield the batches of the images for validation, in order."""
        size = self.parameters["validation_batch"]
        for images, labels in zip(self.tests[0].split(size), self.tests[1].split(size)):
            yield self.normalise(images), labels

    def normalise(self, images):
        """Turn uint8 (n, 32, 32, 3) into float32 (n, 3, 32, 32) from -1 to 1."""
        images = images.permute(0, 3, 1, 2).to(torch.float32, **self.layout)
        return images.div_(127.5).sub_(1)


class ArticleBatches(object):
    """torchvision's transforms of one image after the other, under a DataLoader without workers or
    pinning."""

    def __init__(self, parameters, data):
        from torchvision import transforms

        # Before 1.6 orders are drawn by PyTorch's own generator.
        torch.manual_seed(data.seed)
        normal = transforms.Normalize((0.5,) * 3, (0.5,) * 3)
        drawn = [transforms.RandomHorizontalFlip(), transforms.RandomCrop(plan.SIDE, padding=augment.PADDING)]
        plain = [transforms.ToTensor(), normal]
        self.loaders = {}
        for split, images, steps, size in (
            ("train", data.train, drawn + plain, parameters["batch"]),
            ("validate", data.validate, plain, parameters["validation_batch"]),
        ):
            self.loaders[split] = torch.utils.data.DataLoader(
                Images(images, transforms.Compose(steps)),
                batch_size=size,
                shuffle=split == "train",
                num_workers=0,
                pin_memory=False,
                drop_last=False,
                **keep_known(torch.utils.data.DataLoader, generator=torch.Generator().manual_seed(data.seed)),
            )

    def start(self):
        """There is nothing to go back to: each epoch is drawn anew."""

    def train(self):
        """Return an iterator over the batches of an epoch."""
        return iter(self.loaders["train"])

    def validate(self):
        """Return an iterator over the batches of the images for validation."""
        return iter(self.loaders["validate"])


class Images(torch.utils.data.Dataset):
    """Images and labels as torchvision's CIFAR10 hands them to its transforms."""

    def __init__(self, arrays, transform):
        self.images, self.labels = arrays
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, place):
        from PIL import Image

        return self.transform(Image.fromarray(self.images[place])), int(self.labels[place])
