"""tfds's own files, built offline from IDX files: TFRecord for tf.data, array_record for random access.

A builder has to live in a module of a package, and never in ``__main__``.
"""

import multiprocessing
import os

import tensorflow_datasets as tfds

from workloads.data import idx
from workloads.fault import Fault

FORMATS = ("tfrecord", "array_record")
"""``as_dataset`` reads the one, ``as_data_source`` the other, neither both."""


class Idx(tfds.core.GeneratorBasedBuilder):
    """Images and labels as tfds's own MNIST has them, in the order of the IDX files."""

    VERSION = tfds.core.Version("1.0.0")

    def __init__(self, source, **kwargs):
        self._source = source
        super().__init__(**kwargs)

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self,
            features=tfds.features.FeaturesDict(
                {
                    "image": tfds.features.Image(shape=(28, 28, 1)),
                    "label": tfds.features.ClassLabel(num_classes=10),
                }
            ),
            supervised_keys=("image", "label"),
            # So that every loader has the same order to start from.
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager):
        return {split: self._generate_examples(split) for split in idx.FILES}

    def _generate_examples(self, split):
        images, labels = idx.read_split(self._source, split)
        for key, (image, label) in enumerate(zip(images, labels)):
            yield key, {"image": image[:, :, None], "label": int(label)}


def write(source, target):
    """Build both formats below ``target`` from the IDX files of ``source``, side by side.

    Raises:
        Fault: one could not be built; why, was printed.
    """
    # Forked before TensorFlow is there: tfds loads it when it builds.
    context = multiprocessing.get_context("fork")
    jobs = [
        context.Process(target=_build, args=(source, os.path.join(target, kind), kind)) for kind in FORMATS
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    failed = [kind for kind, job in zip(FORMATS, jobs) if job.exitcode]
    if failed:
        raise Fault("data", "tfds could not build its %s files" % " and ".join(failed))


def _build(source, target, kind):
    tfds.disable_progress_bar()
    Idx(source, data_dir=target, file_format=kind).download_and_prepare()


def open_builder(target, kind):
    """Open what ``write`` built, without network."""
    return tfds.builder_from_directory(os.path.join(target, kind, "idx", "1.0.0"))
