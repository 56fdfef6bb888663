"""The net and what trains it, in the Keras 2 of TensorFlow 1.12 and 2.0."""

import importlib
from typing import Any

import numpy

from workloads import densenet
from workloads.densenet import recipe
from workloads.densenet.keras_model import from_keras, make_model, to_keras

KINDS = {
    "kernel": "weight",
    "gamma": "weight",
    "bias": "bias",
    "beta": "bias",
    "moving_mean": "mean",
    "moving_variance": "variance",
}
"""What the plan calls Keras's tensors."""
SHARES = ("/biased", "/local_step")
"""What Keras 2.1's running statistics are computed from, since they are debiased."""


def order_updates(tf, keras):
    """Return Keras 2.1's Adam with the order that its step needs.

    TensorFlow 1's own optimizers do not use one gradient of an operation before the others are there
    (``gate_gradients`` of ``tf.train.Optimizer``), since those still read the variable. Keras's do: with two
    threads for operators, layers behind a kernel that had changed got their gradients from the changed one.
    """

    own: Any = keras.optimizers.Adam

    class OrderedAdam(own):
        """Changes variables when all gradients are there, and counts the step when they are changed."""

        def get_gradients(self, loss, params):
            """Of a graph, to be had together, once the loss is there."""
            gradients = own.get_gradients(self, loss, params)
            return tf.tuple(gradients, control_inputs=[loss])

        def get_updates(self, loss, params):
            """Of a graph."""
            count, *changes = own.get_updates(self, loss, params)
            # Keras makes it first, and the others read what it changes.
            count.op._add_control_inputs([change.op for change in changes])
            return [count, *changes]

    return OrderedAdam


def make_optimiser(framework, parameters, how):
    """Make the optimiser of a recipe. No argument that matters is left to a default."""
    keras = framework.keras
    backend = keras.backend
    own: Any = order_updates(framework.tf, keras) if framework.is_first else keras.optimizers.Adam

    class CorrectedAdam(own):
        """As ``keras_net.CorrectedAdam``."""

        @property
        def epsilon(self):
            step = backend.cast(self.iterations, backend.floatx()) + 1
            return how.adam_epsilon * backend.sqrt(1 - backend.pow(read(self.beta_2), step))

        @epsilon.setter
        def epsilon(self, value):
            """Keras sets what it was given, which is known."""

        def get_gradients(self, loss, params):
            """Of a graph."""
            return decay(zip(own.get_gradients(self, loss, params), params))

        def apply_gradients(self, grads_and_vars, name=None):
            """Of TensorFlow 2."""
            pairs = list(grads_and_vars)
            return own.apply_gradients(
                self, list(zip(decay(pairs), (variable for _, variable in pairs))), name
            )

    def decay(pairs):
        return [
            gradient + how.decay * variable if name_kind(variable) == "kernel" else gradient
            for gradient, variable in pairs
        ]

    def read(number):
        # TensorFlow 2 keeps a number as a number.
        return backend.cast(number, backend.floatx()) if hasattr(number, "shape") else number

    rate = "lr" if framework.is_first else "learning_rate"
    # As Python's numbers they would become float32 on their way, in a net of float64 too.
    names, values = ("beta_1", "beta_2", rate), [*recipe.BETAS, parameters["learning_rate"]]
    numbers = dict(zip(names, map(numpy.float64, values)))
    kind = CorrectedAdam if how.epsilon_at == "corrected" else own
    return kind(epsilon=how.adam_epsilon, amsgrad=False, **numbers)


def allow_float64():
    """Let Keras 2.1 compute in float64, for a proof.

    It hands convolutions their images as float32, which was all that TensorFlow's took before 1.8, and its
    fused normalisation knows no float64: Keras's own plain arithmetic takes its place.
    """
    tensorflow: Any = importlib.import_module("keras.backend.tensorflow_backend")
    tensorflow._preprocess_conv2d_input = lambda x, data_format: (x, "NHWC")
    tensorflow._fused_normalize_batch_in_training = tensorflow._regular_normalize_batch_in_training


class Trainer(object):
    """The net at its canonical start, compiled. See ``keras_net.Trainer``.

    Args:
        framework: the framework's ``Framework``.
        parameters: the cell's.
        how: its ``Recipe``.
        dtype: name of the parameters' type.
    """

    def __init__(self, framework, parameters, how, dtype):
        self.framework, self.parameters = framework, parameters
        keras = framework.keras
        self.backend = backend = keras.backend
        framework.policy(dtype)
        if framework.is_first and dtype == "float64":
            allow_float64()
        penalty = None
        if how.in_loss:
            penalty = keras.regularizers.l2(how.decay / 2)
            penalty.l2 = numpy.float64(how.decay / 2)
        # TensorFlow's fused normalisation knows no float64.
        of_norms = {"fused": False} if dtype == "float64" and not framework.is_first else None
        self.model = make_model(keras, parameters, how, penalty, of_norms)
        self.optimiser = make_optimiser(framework, parameters, how)

        def compute_loss(labels, scores):
            return backend.sparse_categorical_crossentropy(labels, scores, from_logits=True)

        self.model.compile(
            optimizer=self.optimiser, loss=compute_loss, metrics=[keras.metrics.sparse_categorical_accuracy]
        )
        self.start = densenet.canonical(parameters)
        self.build()
        self.reset()

    def build(self):
        """Make what the optimiser keeps."""
        if self.framework.is_first:
            self.model._make_train_function()
            self.moments = self.optimiser.weights[1:]
            self.shares = [
                variable
                for variable in self.framework.tf.global_variables()
                if variable.op.name.endswith(SHARES)
            ]
        else:
            self.shares = []
            self.optimiser._create_hypers()
            self.optimiser._create_slots(self.model.trainable_weights)
            self.moments = [
                self.optimiser.get_slot(variable, name)
                for name in ("m", "v")
                for variable in self.model.trainable_weights
            ]

    def reset(self):
        """Go back to the canonical start."""
        values = [(variable, to_keras(self.start[name])) for name, variable in self.named()]
        shape_of = self.backend.int_shape
        values.extend(
            (variable, numpy.full(shape_of(variable), float(name.endswith("variance"))))
            for name, variable in self.named_statistics()
        )
        values.extend((variable, numpy.zeros(shape_of(variable))) for variable in self.moments + self.shares)
        values.append((self.optimiser.iterations, 0))
        self.backend.batch_set_value(values)
        self.set_rate(self.parameters["learning_rate"])

    def set_rate(self, rate):
        """Set the learning rate."""
        self.backend.set_value(self.optimiser.lr, rate)

    def rate(self):
        """Read the learning rate back."""
        return float(self.backend.get_value(self.optimiser.lr))

    def name_variables(self, pick):
        """List variables of the layers with the plan's names."""
        return [
            ("%s.%s" % (layer.name, KINDS[name_kind(variable)]), variable)
            for layer in self.model.layers
            for variable in pick(layer)
        ]

    def named(self):
        """List the trainable variables with the plan's names."""
        return self.name_variables(lambda layer: layer.trainable_weights)

    def named_statistics(self):
        """List the running statistics with the plan's names."""
        return self.name_variables(lambda layer: layer.non_trainable_weights)

    def read(self, named):
        """Copy variables to the host, by name and in the plan's shapes."""
        values = self.backend.batch_get_value([variable for _, variable in named])
        return {name: from_keras(value) for (name, _), value in zip(named, values)}

    def name_parameters(self):
        """Copy the parameters to the host, by name."""
        return self.read(self.named())

    def name_applied(self):
        """Copy the gradients of the first step as Adam got them, by name: its first moment holds them."""
        places = {id(variable): place for place, variable in enumerate(self.model.trainable_weights)}
        moments = [(name, self.moments[places[id(variable)]]) for name, variable in self.named()]
        return {name: value / (1 - recipe.BETAS[0]) for name, value in self.read(moments).items()}

    def name_statistics(self):
        """Copy the running statistics to the host, by name."""
        return self.read(self.named_statistics())


def name_kind(variable):
    """Return the last part of a variable's name: ``kernel`` of ``stem.conv/kernel:0``."""
    return variable.name.rpartition("/")[2].partition(":")[0]
