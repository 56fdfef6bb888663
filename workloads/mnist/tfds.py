"""tf.data and tfds, feeding PyTorch: tfds's files, what is made of them in memory, or one's own arrays."""

import tensorflow as tf
import torch

from workloads.clock import Clock
from workloads.data import idx
from workloads.fault import Fault
from workloads.mnist import loader, match, tfds_access
from workloads.mnist.tfds_access import AUTOTUNE

SMALL = 1024
"""Elements of the small shuffle buffer."""


class Recipe(object):
    """How a variant's pipeline is built.

    Attributes:
        source: ``files`` (decoded in each epoch), ``memory`` (the same, decoded once before any timing) or
            ``arrays`` (one's own).
        cache: ``none``, ``decoded`` (before shuffling) or ``batches`` (after all else, so that the order of
            the first epoch stays).
        buffer: elements of the shuffle buffer; all by default.
        parallel: calls of the map.
        prefetch: batches.
        tuned: whether tf.data's tuner runs beside the pipeline. At the end of an epoch its thread is waited
            for, which sleeps for 10, 20, 40 ms and so on: epochs end after some 0.15, 0.31, 0.63 or 1.27 s.
    """

    def __init__(self, source, cache="none", buffer=None, parallel=AUTOTUNE, prefetch=AUTOTUNE, tuned=True):
        self.source = source
        self.cache = cache
        self.buffer = buffer
        self.parallel = parallel
        self.prefetch = prefetch
        self.tuned = tuned


RECIPES = {
    "tfds-article": Recipe("memory", parallel=4, prefetch=5),
    "tfds-untuned": Recipe("memory", parallel=4, prefetch=5, tuned=False),
    "tfds-autotune": Recipe("memory"),
    "tfds-cache": Recipe("files", cache="decoded"),
    "tfds-cache-late": Recipe("files", cache="batches"),
    "tfds-small-shuffle": Recipe("memory", buffer=SMALL),
    "tfds-own-tensors": Recipe("arrays"),
    "tfds-own-builder": Recipe("files"),
}


def build(cell, framework, dtype):
    """Build the cell's variant."""
    return match.build(cell, framework, dtype, open_loader)


def open_loader(cell, framework, order):
    """Open one of ``RECIPES``; with the article's accounting of epochs in its edition."""
    if cell["variant"] not in RECIPES:
        raise Fault("variant", "%s is none of %s" % (cell["variant"], ", ".join(RECIPES)))
    recipe = RECIPES[cell["variant"]]
    kind = ArticleLoader if cell["edition"] == "article" and any(order.shuffled.values()) else PipelineLoader
    return kind(cell["data"], recipe, order)


class PipelineLoader(loader.Loader):
    """A tf.data pipeline by split."""

    def __init__(self, data, recipe, order):
        super().__init__(
            {
                "workers": 0,
                "pinned": order.pinned,
                "transform": "per batch",
                "shuffle": recipe.buffer or "all",
                "cache": recipe.cache,
                "source": recipe.source,
                "tf.data.parallel_calls": name_tuned(recipe.parallel),
                "tf.data.prefetch": name_tuned(recipe.prefetch),
                "tf.data.tuner": recipe.tuned,
            }
        )
        self.order = order
        self.pipelines = {
            split: self.assemble(read(data, recipe.source, split, count), recipe, split, count)
            for split, count in order.images.items()
        }

    def assemble(self, dataset, recipe, split, count):
        """Put the steps of a pipeline together, in the order in which the article has them."""
        if recipe.cache == "decoded":
            dataset = dataset.cache()
        dataset = self.repeat(dataset)
        if self.order.shuffled[split]:
            dataset = dataset.shuffle(
                min(recipe.buffer or count, count), seed=self.order.seed, reshuffle_each_iteration=True
            )
        dataset = dataset.batch(self.order.batch[split], drop_remainder=False)
        dataset = tfds_access.convert(dataset, convert, recipe.parallel)
        if recipe.cache == "batches":
            dataset = dataset.cache()
        return tfds_access.tune(dataset.prefetch(recipe.prefetch), recipe.tuned)

    def repeat(self, dataset):
        """Epochs end with the data set."""
        return dataset

    def epoch(self, split):
        iterator = tfds_access.iterate(self.pipelines[split])
        for batch in hand_out(iterator, self.order.pinned):
            yield batch
        begin_ns = Clock.now_ns()
        # The tuner's thread is waited for.
        del iterator
        self.closing_s = (Clock.now_ns() - begin_ns) / 1e9


class ArticleLoader(PipelineLoader):
    """The article's class: one pipeline over all epochs, whose batches run across their ends. An epoch ends
    once more images were seen than there are, and the last one with what is left."""

    def __init__(self, data, recipe, order):
        super().__init__(data, recipe, order)
        self.iterators = {}
        self.settings["epochs"] = "run on"

    def repeat(self, dataset):
        return dataset.repeat(self.order.epochs)

    def epoch(self, split):
        iterator = self.iterators.get(split)
        if iterator is None:
            iterator = self.iterators[split] = hand_out(
                tfds_access.iterate(self.pipelines[split]), self.order.pinned
            )
        seen = 0
        for batch in iterator:
            yield batch
            seen += len(batch[1])
            if seen > self.order.images[split]:
                return
        # All epochs are over: who asks for another starts anew.
        del self.iterators[split]


def read(data, source, split, count):
    """Return a data set of (image, label), uint8 of (28, 28, 1) and int64, in the order of the files."""
    if source == "arrays":
        images, labels = idx.read_split(data["folder"], split, count)
        return tf.data.Dataset.from_tensor_slices((images[:, :, :, None], labels))
    return tfds_access.read(data, split, count, source == "memory")


def convert(images, labels):
    """Turn a batch of uint8 (n, 28, 28, 1) into float32 (n, 1, 28, 28) in [0, 1]."""
    return tf.transpose(tf.cast(images, tf.float32) / 255.0, [0, 3, 1, 2]), labels


def hand_out(iterator, pinned):
    """Yield tensors of PyTorch's own memory: tfds's arrays are read-only views of TensorFlow's."""
    for images, labels in iterator:
        batch = torch.from_numpy(images.copy()), torch.from_numpy(labels.copy())
        yield tuple(tensor.pin_memory() for tensor in batch) if pinned else batch


def name_tuned(value):
    """Name a number of tf.data's."""
    return "autotune" if value == AUTOTUNE else int(value)
