"""What differs between frameworks and not between workloads.

Each module here has a class ``Framework``, made from a cell: it sets the variables that must stand
before the import, imports the framework, configures it and checks what it can be asked for. See
``workloads.frameworks.torch``.
"""

import importlib
import os

from workloads.fault import Fault


def load(cell):
    """Import and configure the cell's framework, and return its ``Framework``.

    Raises:
        Fault: it cannot be imported, or lacks the device or the precision.
    """
    threads = str(cell["threads"]["intra_op"])
    # OpenMP and MKL read these once, when their libraries load.
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = threads
    if cell["device"] == "cpu":
        # Hidden rather than unused: a framework that sees a GPU takes memory and time from it.
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    name = cell["framework"]
    try:
        return importlib.import_module("workloads.frameworks." + name).Framework(cell)
    except ImportError as error:
        raise Fault("import", "%s cannot be imported: %s" % (name, error))


def gpu_index(device):
    """Return N of ``cuda:N``, or ``None`` for ``cpu``.

    Raises:
        Fault: it is neither.
    """
    if device == "cpu":
        return None
    kind, _, index = device.partition(":")
    if kind != "cuda" or not index.isdigit():
        raise Fault("device", "device %r is neither cpu nor cuda:N" % device)
    return int(index)
