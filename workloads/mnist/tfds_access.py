"""Pipelines of tf.data's over tfds's files, whichever version has which name for them."""

import tensorflow as tf
import tensorflow_datasets

from workloads.data import tfds_files
from workloads.frameworks import keep_known

AUTOTUNE = tf.data.AUTOTUNE if hasattr(tf.data, "AUTOTUNE") else tf.data.experimental.AUTOTUNE


def read(data, split, count, in_memory):
    """Return a data set of the first ``count`` (image, label), uint8 of (28, 28, 1) and int64, in the order
    of the files.

    Args:
        in_memory: whether all is decoded now, as the article's ``in_memory`` did, which tfds 4 lacks.
    """
    builder = tfds_files.open_files(data, "tfrecord")
    options = {"split": split, "as_supervised": True, "shuffle_files": False}
    if tfds_files.IS_FIRST:
        dataset = builder.as_dataset(in_memory=in_memory, **options)
        return dataset if count == builder.info.splits[split].num_examples else dataset.take(count)
    dataset = builder.as_dataset(
        # tfds would keep a small set in memory, unasked, and decode nothing after the first epoch.
        read_config=tensorflow_datasets.ReadConfig(try_autocache=False),
        **options,
    )
    dataset = dataset.take(count)
    if not in_memory:
        return dataset
    ((images, labels),) = iterate(dataset.batch(count))
    return tf.data.Dataset.from_tensor_slices((images, labels))


def iterate(dataset):
    """Return an iterator over a data set's batches as numpy arrays."""
    if hasattr(dataset, "as_numpy_iterator"):
        return dataset.as_numpy_iterator()
    return iter(tensorflow_datasets.as_numpy(dataset))


def convert(dataset, function, calls):
    """Map a data set in order, by so many calls at once."""
    # Before 2.2 a map keeps the order always.
    ordered = keep_known(dataset.map, deterministic=True)
    return dataset.map(function, num_parallel_calls=calls, **ordered)


def tune(dataset, tuned):
    """Let tf.data's tuner run beside a pipeline, as it does by itself, or not."""
    if tuned:
        return dataset
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
