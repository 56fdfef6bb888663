"""Opening the files that tfds has of a prepared set."""

import os

from workloads.data import tfds_files
from workloads.fault import Fault


def open_files(data, kind):
    """Open the builder of one format.

    Raises:
        Fault: its files were not built.
    """
    folder = os.path.join(data["folder"], data.get("derived") or "")
    if not data.get("derived") or not os.path.isdir(os.path.join(folder, kind)):
        raise Fault("data", "%s: no %s files of tfds's there; a bench session makes them" % (folder, kind))
    return tfds_files.open_builder(folder, kind)
