"""How work is counted: the one place where operations and bytes get their numbers.

A multiplication and an addition are two operations, as hardware makers count a matrix product's
``2 m n k``. Additions of biases, activations and the optimiser's arithmetic are left out: they are
below 1 % here and differ in how frameworks fuse them.
"""


def matmul_flop(rows, inner, columns):
    """Operations of a product of ``(rows, inner)`` and ``(inner, columns)``."""
    return 2.0 * rows * inner * columns


def dense_training_flop(batch, widths):
    """Operations of one training step of dense layers of ``widths``, input first, on ``batch`` rows.

    Forward one product a layer; backward two, by the weights and by the layer's input, of which the
    first layer needs the former only, since nobody asks for the gradient of the data.
    """
    layers = [matmul_flop(batch, inputs, outputs) for inputs, outputs in zip(widths, widths[1:])]
    return 3 * sum(layers) - layers[0]


def copied_bytes(size):
    """Bytes moved by a copy of ``size`` bytes: read once and written once, as STREAM counts them.

    McCalpin, J. D.: Memory Bandwidth and Machine Balance in Current High Performance Computers,
    IEEE TCCA Newsletter, 1995.
    """
    return 2.0 * size
