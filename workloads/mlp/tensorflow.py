"""The linear MLP in TensorFlow 2 with Keras 3: eager, graph, XLA."""

import keras
import tensorflow as tf

from workloads import mlp
from workloads.subject import Subject

COMPILERS = {
    "tensorflow-eager": ("none", lambda function: function),
    "tensorflow-graph": ("tf.function", lambda function: tf.function(function, jit_compile=False)),
    "tensorflow-xla": ("xla", lambda function: tf.function(function, jit_compile=True)),
}


def build(cell, framework, dtype):
    """Build the cell's variant from canonical parameters in ``dtype``."""
    with tf.device(framework.place):
        return build_here(cell, framework, dtype)


def build_here(cell, framework, dtype):
    parameters = cell["parameters"]
    weights, x, y = mlp.canonical(parameters)
    # The learning rate is a variable of this type: in float32 it would be 6e-8 off.
    keras.config.set_floatx(dtype)
    x = tf.constant(x, dtype)
    y = tf.constant(y, dtype)

    policy = framework.policy(dtype)
    model = keras.Sequential(
        [keras.layers.Dense(width, activation=None, dtype=policy) for width in mlp.widths(parameters)[1:]]
    )
    model.build(x.shape)
    model.set_weights([weights[name] for name in names(weights)])
    optimiser = keras.optimizers.SGD(
        learning_rate=parameters["learning_rate"], momentum=0.0, nesterov=False, weight_decay=None
    )
    optimiser.build(model.trainable_variables)
    compiler, compile_function = COMPILERS[cell["variant"]]

    def differentiate():
        with tf.GradientTape() as tape:
            prediction = model(x, training=True)
            loss = tf.reduce_mean(tf.math.squared_difference(tf.cast(prediction, dtype), y))
        return loss, tape.gradient(loss, model.trainable_variables)

    def step():
        loss, gradients = differentiate()
        optimiser.apply(gradients, model.trainable_variables)
        return loss

    # Under tf.function the loop runs while tracing: one graph of ten steps, as the article had it.
    def call():
        return [step() for _ in range(parameters["steps_per_call"])]

    differentiate_compiled = compile_function(differentiate)

    def gradients():
        loss, values = differentiate_compiled()
        return loss, name_tensors(weights, values)

    return Subject(
        units={"step": compile_function(step), "call": compile_function(call)},
        losses=lambda value: value if isinstance(value, list) else [value],
        gradients=gradients,
        parameters=lambda: name_tensors(weights, model.trainable_variables),
        settings={"compiler": compiler, "inputs": "resident"},
    )


def names(weights):
    """Return canonical names in Keras's order: a layer's kernel, then its bias."""
    return sorted(weights, key=lambda name: (name[1:], name[0] == "b"))


def name_tensors(weights, tensors):
    """Copy tensors in Keras's order to the host, by canonical name."""
    return {name: tensor.numpy() for name, tensor in zip(names(weights), tensors)}
