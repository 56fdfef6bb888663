"""The linear MLP in TensorFlow with the Keras that belongs to it: eager, graph, XLA."""

import tensorflow as tf

from workloads import mlp
from workloads.subject import Subject

COMPILERS = {"tensorflow-eager": "none", "tensorflow-graph": "tf.function", "tensorflow-xla": "xla"}


def build(cell, framework, dtype):
    """Build the cell's variant from canonical parameters in ``dtype``."""
    with tf.device(framework.place):
        return build_here(cell, framework, dtype)


def build_here(cell, framework, dtype):
    parameters = cell["parameters"]
    weights, x, y = mlp.canonical(parameters)
    x = tf.constant(x, dtype)
    y = tf.constant(y, dtype)

    policy, layers = framework.policy(dtype), framework.keras.layers
    model = framework.keras.Sequential(
        [layers.Dense(width, activation=None, dtype=policy) for width in mlp.widths(parameters)[1:]]
    )
    model.build(x.shape)
    model.set_weights([weights[name] for name in names(weights)])
    variables = framework.list_variables(model)
    # TensorFlow's own plain SGD, the one of 2018: Keras's, which serves several frameworks, takes four
    # times as long when it runs eagerly. The rate is a tensor, since a number would become a float32.
    optimiser = framework.v1.train.GradientDescentOptimizer(tf.constant(parameters["learning_rate"], dtype))
    compiler = COMPILERS[cell["variant"]]

    def compile_function(function):
        return function if compiler == "none" else framework.trace(function, jit=compiler == "xla")

    def differentiate():
        with tf.GradientTape() as tape:
            prediction = model(x, training=True)
            loss = tf.reduce_mean(tf.math.squared_difference(tf.cast(prediction, dtype), y))
        return loss, tape.gradient(loss, variables)

    def step():
        loss, gradients = differentiate()
        optimiser.apply_gradients(zip(gradients, variables))
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
        parameters=lambda: name_tensors(weights, variables),
        settings={
            "compiler": compiler,
            "compiled": "nothing" if compiler == "none" else "whole step",
            "inputs": "resident",
        },
    )


def names(weights):
    """Return canonical names in Keras's order: a layer's kernel, then its bias."""
    return sorted(weights, key=lambda name: (name[1:], name[0] == "b"))


def name_tensors(weights, tensors):
    """Copy tensors in Keras's order to the host, by canonical name."""
    return {name: tensor.numpy() for name, tensor in zip(names(weights), tensors)}
