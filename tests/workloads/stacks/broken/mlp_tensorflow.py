"""The MLP in TensorFlow, whichever Keras and whichever place of the old optimisers it has."""

import tensorflow as tf


def make_breaks(keras, optimisers):
    """Return what breaks, by name: each is given pytest's ``monkeypatch``."""

    def other_rate(factor):
        real = optimisers.GradientDescentOptimizer
        return lambda rate: real(rate * factor)

    def without_dtype(real):
        def constant(value, dtype=None):
            return tf.cast(real(value, "float32"), dtype) if isinstance(value, float) else real(value, dtype)

        return constant

    def with_momentum(rate):
        return optimisers.MomentumOptimizer(rate, 0.9)

    def other_layer(**changes):
        real = keras.layers.Dense
        return lambda width, **arguments: real(width, **dict(arguments, **changes))

    class NoBias(keras.layers.Dense):
        def call(self, x):
            return tf.matmul(x, self.kernel) + 0 * self.bias

    return {
        "learning rate": lambda patch: patch.setattr(
            optimisers, "GradientDescentOptimizer", other_rate(1.001)
        ),
        "rate in float32": lambda patch: patch.setattr(tf, "constant", without_dtype(tf.constant)),
        "momentum": lambda patch: patch.setattr(optimisers, "GradientDescentOptimizer", with_momentum),
        "activation": lambda patch: patch.setattr(keras.layers, "Dense", other_layer(activation="relu")),
        "dropped bias": lambda patch: patch.setattr(keras.layers, "Dense", NoBias),
        "summed loss": lambda patch: patch.setattr(tf, "reduce_mean", tf.reduce_sum),
        "absolute loss": lambda patch: patch.setattr(
            tf.math, "squared_difference", lambda a, b: tf.abs(a - b)
        ),
        "own initial values": lambda patch: patch.setattr(
            keras.Sequential, "set_weights", lambda self, weights: None
        ),
        "no update": lambda patch: patch.setattr(
            optimisers.GradientDescentOptimizer, "apply_gradients", lambda self, pairs: None
        ),
    }
