"""The order of imports in a process that holds PyTorch and TensorFlow: decided here and nowhere else."""

import importlib
import sys

from workloads.fault import Fault

ORDER = ("torch", "torchvision", "tensorflow")
"""TensorFlow 2.21 before torchvision 0.29 aborts the process, or ends it by a segmentation fault."""


def load_in_order(names=ORDER):
    """Import packages in the order that this stack bears.

    Raises:
        Fault: one that has to come later is there already.
        ImportError: one is missing.
    """
    for place, name in enumerate(names):
        early = [later for later in names[place + 1 :] if later in sys.modules]
        if name not in sys.modules and early:
            raise Fault(
                "import",
                "%s was imported before %s, and the process would crash; the order is %s"
                % (early[0], name, ", ".join(names)),
            )
        importlib.import_module(name)


def check_fork():
    """See that this process may fork loader workers.

    Raises:
        Fault: TensorFlow is in it: its threads, and the locks that they hold, do not survive a fork, and the
            workers would hang.
    """
    if "tensorflow" in sys.modules:
        raise Fault(
            "fork", "TensorFlow is in this process, and loader workers forked from it would hang; use none"
        )
