"""The net and what trains it, in Keras on TensorFlow."""

import keras
import numpy
from keras import ops

from workloads import densenet
from workloads.densenet import recipe
from workloads.densenet.keras_model import from_keras, make_model, to_keras


class CorrectedAdam(keras.optimizers.Adam):
    """Adam with L2 as PyTorch's: epsilon is added after the second moment's bias was corrected, and ``decay``
    times the tensor is added to the gradients of the tensors of those layers whose ``kernel`` it is."""

    def __init__(self, decay, **kwargs):
        super().__init__(**kwargs)
        self.decay = decay

    @property
    def epsilon(self):
        """What Keras adds before the correction, for epsilon to be added after it."""
        step = ops.cast(self.iterations + 1, self.kind)
        return self.corrected_epsilon * ops.sqrt(1 - ops.power(ops.cast(self.beta_2, self.kind), step))

    @epsilon.setter
    def epsilon(self, value):
        self.corrected_epsilon = value

    @property
    def kind(self):
        """Name of the parameters' type."""
        return keras.config.floatx()

    def update_step(self, gradient, variable, learning_rate):
        """As Keras's own, of the gradient with its L2."""
        if self._trainable_variables[self._get_variable_index(variable)].name == "kernel":
            gradient = gradient + self.decay * variable
        super().update_step(gradient, variable, learning_rate)


def make_optimiser(parameters, how):
    """Make the optimiser of a recipe. No argument that matters is left to a default."""
    said = {
        "learning_rate": parameters["learning_rate"],
        # As Python's numbers they would become float32 on their way, in a net of float64 too.
        "beta_1": numpy.float64(recipe.BETAS[0]),
        "beta_2": numpy.float64(recipe.BETAS[1]),
        "epsilon": how.adam_epsilon,
        "amsgrad": False,
        "weight_decay": None,
        "clipnorm": None,
        "use_ema": False,
    }
    if how.epsilon_at == "corrected":
        return CorrectedAdam(how.decay, **said)
    return keras.optimizers.Adam(**said)


def make_penalty(how):
    """Make Keras's regulariser of a recipe: of c, it adds c w^2 to the loss and so 2 c w to the gradient."""
    if not how.in_loss:
        return None
    penalty = keras.regularizers.L2(how.decay / 2)
    # As Python's number it would become a float32 on its way, in a net of float64 too.
    penalty.l2 = numpy.float64(penalty.l2)
    return penalty


class Trainer(object):
    """The net at its canonical start, compiled.

    Args:
        framework: the framework's ``Framework``.
        parameters: the cell's.
        how: its ``Recipe``.
        dtype: name of the parameters' type.
        jit: whether XLA compiles the steps.
    """

    def __init__(self, framework, parameters, how, dtype, jit):
        # Also the type of the optimiser's numbers and of the metrics.
        keras.config.set_floatx(dtype)
        self.parameters = parameters
        policy = framework.policy(dtype)
        # Scores are not cast: they are of the policy's type.
        self.model = make_model(keras, parameters, how, make_penalty(how), dtype=policy)
        self.model.compile(
            optimizer=make_optimiser(parameters, how),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
            jit_compile=jit,
            run_eagerly=False,
            steps_per_execution=1,
            auto_scale_loss=False,
        )
        self.optimiser = self.model.optimizer
        self.optimiser.build(self.model.trainable_variables)
        self.start = densenet.canonical(parameters)
        self.reset()

    def reset(self):
        """Go back to the canonical start."""
        for name, variable in self.named():
            variable.assign(to_keras(self.start[name]))
        for name, variable in self.named_statistics():
            variable.assign(numpy.full(variable.shape, float(name.endswith("variance"))))
        for variable in self.optimiser.variables:
            if variable is not self.optimiser._learning_rate:
                variable.assign(numpy.zeros(variable.shape))
        self.set_rate(self.parameters["learning_rate"])

    def set_rate(self, rate):
        """Set the learning rate."""
        self.optimiser.learning_rate = rate

    def rate(self):
        """Read the learning rate back."""
        return float(self.optimiser.learning_rate.numpy())

    def named(self):
        """List the trainable variables with the plan's names."""
        kinds = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}
        return [
            ("%s.%s" % (layer.name, kinds[variable.name]), variable)
            for layer in self.model.layers
            for variable in layer.trainable_variables
        ]

    def named_statistics(self):
        """List the running statistics with the plan's names."""
        kinds = {"moving_mean": "mean", "moving_variance": "variance"}
        return [
            ("%s.%s" % (layer.name, kinds[variable.name]), variable)
            for layer in self.model.layers
            for variable in layer.non_trainable_variables
        ]

    def name_parameters(self):
        """Copy the parameters to the host, by name and in the plan's shapes."""
        return {name: from_keras(variable.numpy()) for name, variable in self.named()}

    def name_applied(self):
        """Copy the gradients of the first step as Adam got them, by name: its first moment holds them."""
        moments = {
            variable.path: moment
            for variable, moment in zip(self.optimiser._trainable_variables, self.optimiser._momentums)
        }
        return {
            name: from_keras(moments[variable.path].numpy()) / (1 - recipe.BETAS[0])
            for name, variable in self.named()
        }

    def name_statistics(self):
        """Copy the running statistics to the host, by name."""
        return {name: variable.numpy() for name, variable in self.named_statistics()}
