"""What a stack makes of MNIST's files before anything is timed."""

import os


def prepare(cell, folder):
    """Build tfds's files of the cell's data set below ``folder``, which is made.

    Raises:
        ImportError: the stack has no tfds.
    """
    # It encodes images, and has no use for a GPU.
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    from workloads.data import tfds_files

    os.makedirs(folder)
    tfds_files.write(cell["data"]["folder"], folder)
