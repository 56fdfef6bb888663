"""tfds's own files, built offline from IDX files: TFRecord for tf.data, array_record for random access.

A builder has to live in a module of a package, and never in ``__main__``.
"""

import importlib
import multiprocessing
import os

import tensorflow_datasets as tfds

from workloads.fault import Fault
from workloads.frameworks import order_version

IS_FIRST = order_version(tfds.__version__) < (4, 0)
builders = importlib.import_module("workloads.data.tfds_1" if IS_FIRST else "workloads.data.tfds_4")


def write(source, target):
    """Build all formats below ``target`` from the IDX files of ``source``, side by side.

    Raises:
        Fault: one could not be built; why, was printed.
    """
    # Forked before TensorFlow is there, or before it did anything: tfds 4 loads it when it builds.
    context = multiprocessing.get_context("fork")
    jobs = [
        context.Process(target=builders.build, args=(source, os.path.join(target, kind), kind))
        for kind in builders.FORMATS
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    failed = [kind for kind, job in zip(builders.FORMATS, jobs) if job.exitcode]
    if failed:
        raise Fault("data", "tfds could not build its %s files" % " and ".join(failed))


def open_files(data, kind):
    """Open the builder of one format that ``write`` built of a prepared set, without network.

    Raises:
        Fault: its files were not built.
    """
    folder = os.path.join(data["folder"], data.get("derived") or "")
    if not data.get("derived") or not os.path.isdir(os.path.join(folder, kind)):
        raise Fault("data", "%s: no %s files of tfds's there; a bench session makes them" % (folder, kind))
    return builders.open_builder(os.path.join(folder, kind))
