"""The match's PyTorch side."""

from typing import Any

import torch

from workloads.densenet import augment, match, recipe, torch_data
from workloads.densenet.torch_net import EPSILON_AT, Trainer
from workloads.epoch import Waited
from workloads.fault import Fault


def build(cell, framework, dtype):
    """Build the cell's variant from canonical parameters in ``dtype``.

    Raises:
        Fault: the variant is about a GPU, and this is a CPU.
    """
    variant, parameters = cell["variant"], cell["parameters"]
    if variant == "torch-autotune-on":
        if framework.index is None:
            raise Fault(
                "no-effect",
                "no effect on a CPU: there is no cuDNN to tune, so this is the baseline",
                "skipped",
            )
        torch.backends.cudnn.benchmark = True
    compiled = variant == "torch-compile"
    channels_last = variant == "torch-channels-last"
    how = recipe.choose(parameters, cell["edition"], "torch", epsilon_at=EPSILON_AT)
    trainer = Trainer(framework, parameters, how, dtype, compile_it if compiled else None, channels_last)
    reads = variant != "torch-no-metrics"
    settings = {
        "compiler": "inductor" if compiled else "none",
        "compiled": "forward and backward pass" if compiled else "nothing",
        "layout": "NHWC" if channels_last else "NCHW",
        "inputs": "moved in each step",
        "metrics": "read in each step" if reads else "kept on the device",
        "optimiser": "torch.optim.Adam",
    }
    return match.Match(cell, Side(cell, trainer, reads), how).describe(settings, "hand-written")


def compile_it(function):
    """Compile what computes the loss, and with it its backward pass."""
    return torch.compile(function, fullgraph=True, dynamic=False)


class Side(object):
    """PyTorch's steps and epochs. See ``match.Match`` for what a side has.

    Args:
        cell: the cell, decoded.
        trainer: a ``Trainer``.
        reads: whether loss and accuracy are read in each step, as the article's loop did.
    """

    is_validated_in_article = False
    observe = None
    prepare_as_article = staticmethod(augment.normalise)

    def __init__(self, cell, trainer, reads):
        self.trainer = trainer
        self.reads = 2 if reads else 0
        self.batch = torch_data.draw_batch(cell["parameters"], trainer.dtype)
        self.data = match.open_data(cell)
        self.batches: Any = torch_data.open_batches(cell, self.data, trainer.layout) if self.data else None

    def start(self):
        """Go back to the canonical start."""
        self.trainer.reset()
        if self.batches is not None:
            self.batches.start()

    def step(self):
        """Make one training step on the canonical batch, which is brought to the device first."""
        loss, hits = self.trainer.train(*self.trainer.move(*self.batch))
        if self.reads:
            loss.item()
            hits.item()
        return loss

    def losses(self, value):
        """Return the losses of what ``step`` returned."""
        return [value]

    def train(self):
        """Train on all images of an epoch."""
        self.trainer.net.train()
        return self.go_through(self.batches.train(), self.trainer.train)

    def validate(self):
        """Validate on all images for that."""
        self.trainer.net.eval()
        passed = self.go_through(self.batches.validate(), self.trainer.validate)
        self.trainer.net.train()
        return passed

    def train_and_validate(self):
        """One after the other."""
        return self.train(), self.validate()

    def go_through(self, batches, use):
        """Hand each batch of an epoch to ``use``, and add up what it returns."""
        batches = Waited(batches)
        total, images = 0.0, 0
        right: Any = 0
        loss: Any = None
        for batch in batches:
            count = len(batch[1])
            loss, hits = use(*self.trainer.move(*batch))
            if self.reads:
                total, right = total + loss.item() * count, right + hits.item()
            else:
                total, right = total + loss * count, right + hits
            images += count
        if not images:
            raise Fault("data", "an epoch has no images")
        # As a float: old versions divide whole numbers to whole numbers.
        right = float(right) if self.reads else right.float()
        return match.Passed(total / images, right / images, images, loss, batches.ns / 1e9)

    def augment(self, choices):
        """Return what given choices make of the images, as arrays (n, 32, 32, 3), and their labels."""
        return join(self.batches.make(choices))

    def hand_out(self, split):
        """Return all that an epoch hands out, as arrays."""
        return join(self.batches.train() if split == "train" else self.batches.validate())


def join(batches):
    """Join batches of (n, 3, 32, 32) to arrays (n, 32, 32, 3) and (n,)."""
    images, labels = zip(*batches)
    return torch.cat(images).permute(0, 2, 3, 1).contiguous().numpy(), torch.cat(labels).numpy()
