"""tfds's own files by tfds 4."""

import os

import tensorflow_datasets as tfds

from workloads.data import idx

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


def build(source, folder, kind):
    """Build the files of one format below ``folder`` from the IDX files of ``source``."""
    tfds.disable_progress_bar()
    Idx(source, data_dir=folder, file_format=kind).download_and_prepare()


def open_builder(folder):
    """Open what ``build`` built."""
    return tfds.builder_from_directory(os.path.join(folder, "idx", "1.0.0"))
