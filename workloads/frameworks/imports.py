"""The order of imports in a process that holds PyTorch and TensorFlow: decided here and nowhere else."""

import importlib
import sys

from workloads.fault import Fault

ORDER = ("torch", "torchvision", "tensorflow")
"""TensorFlow 2.21 before torchvision 0.29 aborts the process, or ends it by a segmentation fault: torchvision
brings in triton, whose LLVM does not bear that TensorFlow's came first. PyTorch's optimisers bring it in as
well, later, so that a process which only computes must have torchvision before TensorFlow too."""


def load_in_order(wanted=ORDER):
    """Import packages in the order that the stack bears.

    Args:
        wanted: those of ``ORDER`` that are needed.

    Raises:
        Fault: one that has to come later is there already.
        ImportError: one is missing.
    """
    for place, name in enumerate(ORDER):
        if name not in wanted or name in sys.modules:
            continue
        early = [later for later in ORDER[place + 1 :] if later in sys.modules]
        if early:
            raise Fault(
                "import",
                "%s was imported before %s, and the process would crash; the order is %s"
                % (early[0], name, ", ".join(ORDER)),
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
