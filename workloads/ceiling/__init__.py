"""What a machine can do at best: matrix products and copies, each through both frameworks."""

import numpy

from workloads import work

SEED = 0
FLOAT32_BYTES = 4


def canonical(size):
    """Draw two standard normal square matrices of ``size``, float32."""
    draw = numpy.random.RandomState(SEED)
    return [draw.standard_normal((size, size)).astype("float32") for _ in range(2)]


def count_work(parameters, measure):
    """Count the work in one unit of ``measure``."""
    if measure == "copy":
        return {"bytes": work.copied_bytes(parameters["copy_bytes"])}
    size = int(measure[len("matmul_") :])
    return {"flop": work.matmul_flop(size, size, size)}
