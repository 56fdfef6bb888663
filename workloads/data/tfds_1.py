"""tfds's own files by tfds 1.3, which knows TFRecord only, shuffles what it writes, and asks the network for
what others know of a data set."""

import os

import tensorflow_datasets as tfds
from tensorflow_datasets.core import hashing

from workloads.data import idx

FORMATS = ("tfrecord",)


class Idx(tfds.core.GeneratorBasedBuilder):
    """As that of ``tfds_4``."""

    VERSION = tfds.core.Version("1.0.0")

    def __init__(self, source=None, **kwargs):
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
        )

    def _split_generators(self, dl_manager):
        return [tfds.core.SplitGenerator(name=split, gen_kwargs={"split": split}) for split in idx.FILES]

    def _generate_examples(self, split):
        images, labels = idx.read_split(self._source, split)
        for key, (image, label) in enumerate(zip(images, labels)):
            yield key, {"image": image[:, :, None], "label": int(label)}


def build(source, folder, kind):
    """Build the files of the IDX files of ``source`` below ``folder``, in the order of those."""
    tfds.disable_progress_bar()
    # Examples are written in the order of their keys' hashes: here, of the keys.
    hashing.Hasher.hash_key = lambda self, key: int(key)
    # It has no network, and nobody there knows this set.
    tfds.core.DatasetInfo.initialize_from_bucket = lambda self: None
    configuration = tfds.download.DownloadConfig(
        try_download_gcs=False,
        # Numbers of examples are among them, without which nothing can be read into memory.
        compute_stats=tfds.download.ComputeStatsMode.FORCE,
    )
    Idx(source, data_dir=folder).download_and_prepare(
        download_dir=os.path.join(folder, "downloads"), download_config=configuration
    )


def open_builder(folder):
    """Open what ``build`` built: it is there, so that nothing is asked of the network."""
    return Idx(data_dir=folder)
