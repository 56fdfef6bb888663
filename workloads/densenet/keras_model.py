"""The net in Keras, whichever its version."""

from workloads.densenet import plan


def make_model(keras, parameters, how, penalty, of_norms=None, **of_layers):
    """Build the net from the plan, as a functional model: images of (n, 32, 32, 3) to scores of (n, 10).

    Its layers have the plan's names.

    Args:
        keras: the package.
        parameters: the cell's.
        how: its ``Recipe``.
        penalty: regulariser of the tensors that L2 touches by the loss, if any.
        of_norms: what each normalisation is told besides.
        of_layers: what each layer is told besides.
    """
    layers, laid = keras.layers, plan.make(parameters)
    of_norms = dict(of_layers, **(of_norms or {}))

    def activate(name, x):
        x = layers.BatchNormalization(
            momentum=how.norm_momentum, epsilon=how.norm_epsilon, name=name, **of_norms
        )(x)
        return layers.Activation("relu", **of_layers)(x)

    def convolve(name, x, filters, size, stride=1):
        if stride > 1:
            # "same" with a stride would put its zeros on one side only.
            x = layers.ZeroPadding2D(size // 2, **of_layers)(x)
        return layers.Conv2D(
            filters,
            size,
            strides=stride,
            padding="same" if stride == 1 else "valid",
            use_bias=True,
            kernel_regularizer=penalty,
            name=name,
            **of_layers,
        )(x)

    images = layers.Input((plan.SIDE, plan.SIDE, plan.CHANNELS), dtype=keras.backend.floatx())
    x = convolve("stem.conv", images, laid.stem, plan.KERNEL, parameters["stem_stride"])
    for block, inputs in enumerate(laid.blocks):
        if block:
            name = plan.name_transition(block)
            x = convolve(name + ".conv", activate(name + ".norm", x), laid.transitions[block - 1][1], 1)
            x = layers.AveragePooling2D(2, **of_layers)(x)
        for layer in range(len(inputs)):
            name = plan.name_layer(block, layer)
            new = convolve(name + ".conv1", activate(name + ".norm1", x), parameters["bottleneck"], 1)
            new = convolve(
                name + ".conv2", activate(name + ".norm2", new), parameters["growth_rate"], plan.KERNEL
            )
            x = layers.Concatenate(**of_layers)([x, new])
    x = layers.GlobalAveragePooling2D(**of_layers)(activate("norm", x))
    dense = layers.Dense(plan.CLASSES, kernel_regularizer=penalty, name="classifier", **of_layers)
    return keras.models.Model(images, dense(x))


def to_keras(array):
    """Turn the plan's shape into Keras's: (rows, columns, inputs, outputs) and (inputs, outputs)."""
    return array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T


def from_keras(array):
    """Turn Keras's shape into the plan's."""
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T
