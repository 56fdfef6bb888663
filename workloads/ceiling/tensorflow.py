"""Matrix product and copy in TensorFlow."""

import tensorflow as tf

from workloads import ceiling
from workloads.subject import Subject


def build(cell, framework, dtype):
    """Build one unit for each measure of the cell."""
    kind = "bfloat16" if cell["precision"] == "bf16" else dtype

    def matmul(size):
        a, b = (tf.cast(tf.constant(matrix), kind) for matrix in ceiling.canonical(size))
        return lambda: tf.linalg.matmul(a, b)

    def copy():
        source = tf.ones(cell["parameters"]["copy_bytes"] // ceiling.FLOAT32_BYTES)
        target = tf.Variable(tf.zeros_like(source))
        # Into memory that is there already: tf.identity hands the same memory on, and an operator with
        # a new result spends its time on fresh pages.
        return lambda: target[:].assign(source)

    with tf.device(framework.place):
        units = {name: copy() if name == "copy" else matmul(int(name[7:])) for name in cell["measures"]}
    return Subject(units, losses=lambda tensor: [tf.reshape(tensor, [-1])[0]], settings={"compiler": "none"})
