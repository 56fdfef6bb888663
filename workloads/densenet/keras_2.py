"""The match's Keras side in Keras 2: by ``fit_generator`` and ``evaluate_generator``, as it was done then."""

from typing import Any

import numpy

from workloads.densenet import augment, keras_2_data, match, recipe
from workloads.densenet.keras_2_net import Trainer

ACCURACY = "sparse_categorical_accuracy"


def build(cell, framework, dtype):
    """Build the cell's variant from canonical parameters in ``dtype``."""
    parameters = cell["parameters"]
    # Its normalisation is Keras's own until it is TensorFlow's.
    variance = "keras-2" if framework.is_first else None
    how = recipe.choose(parameters, cell["edition"], "keras", variance=variance)
    if dtype == "float32":
        # Fused, normalisation hands on a variance that is divided by n - 1 already. Nothing that trains reads
        # it, and a proof, in float64, does not see it.
        how.variance = "unbiased, then keras-2" if framework.is_first else "unbiased"
    trainer = Trainer(framework, parameters, how, dtype)
    settings = {
        "compiler": "session" if framework.is_first else "tf.function",
        "compiled": "whole step",
        "layout": "NHWC",
        "inputs": "moved in each step",
        "metrics": "read in each step",
        "optimiser": type(trainer.optimiser).__name__,
    }
    return match.Match(cell, Side(cell, trainer, dtype), how).describe(settings, "fit")


class Side(object):
    """Keras's steps and epochs. See ``match.Match`` for what a side has."""

    is_validated_in_article = True
    # Loss and accuracy, which ``train_on_batch`` returns.
    reads = 2
    prepare_as_article = staticmethod(augment.standardise)

    def __init__(self, cell, trainer, dtype):
        self.trainer, self.model = trainer, trainer.model
        self.batch = keras_2_data.draw_batch(cell["parameters"], dtype)
        self.data = match.open_data(cell)
        self.batches: Any = keras_2_data.open_batches(cell, self.data) if self.data else None
        self.step = Step(self)

    def start(self):
        """Go back to the canonical start."""
        self.trainer.reset()
        if self.batches is not None:
            self.batches.start()

    def observe(self):
        """Return a tensor that the steps computed."""
        return self.trainer.backend.get_value(self.model.trainable_weights[0]).ravel()[0]

    def losses(self, value):
        """Return the losses of what a step returned, which are numbers already."""
        return [value]

    def train(self):
        """Train on all images of an epoch."""
        return self.fit(False)[0]

    def train_and_validate(self):
        """Train on all images of an epoch, then validate, in Keras's own way to do both."""
        return self.fit(True)

    def fit(self, validates):
        """Call ``fit_generator`` for one epoch."""
        batches = self.batches
        batches.draw()
        begin = batches.ns, batches.images
        validation = {}
        if validates:
            validation = {
                "validation_data": batches.epoch("validate"),
                "validation_steps": batches.count("validate"),
            }
        history = self.model.fit_generator(
            batches.epoch("train"),
            steps_per_epoch=batches.count("train"),
            epochs=1,
            verbose=0,
            shuffle=False,
            **batches.ahead,
            **validation,
        ).history
        found = {name: float(values[-1]) for name, values in history.items()}
        counts = [len(self.data.train[1]), len(self.data.validate[1]) if validates else 0]
        # All that were handed out, less those for validation.
        trained = batches.images - begin[1] - counts[1]
        waiting_s = self.tell_waiting(begin[0])
        passed = self.describe(found["loss"], found[ACCURACY], trained, waiting_s)
        if not validates:
            return passed, None
        rest_s = None if waiting_s is None else 0.0
        return passed, self.describe(found["val_loss"], found["val_" + ACCURACY], counts[1], rest_s)

    def validate(self):
        """Validate on all images for that."""
        batches = self.batches
        begin = batches.ns, batches.images
        loss, accuracy = self.model.evaluate_generator(
            batches.epoch("validate"), steps=batches.count("validate"), **batches.ahead
        )
        images = batches.images - begin[1]
        return self.describe(float(loss), float(accuracy), images, self.tell_waiting(begin[0]))

    def tell_waiting(self, begin_ns):
        """Return the seconds in which Keras waited for batches, where it has them made when it needs them."""
        return None if self.batches.ahead["workers"] else (self.batches.ns - begin_ns) / 1e9

    def describe(self, loss, accuracy, images, waiting_s):
        """Say what an epoch came to."""
        return match.Passed(loss, accuracy, images, self.observe(), waiting_s)

    def augment(self, choices):
        """Return what given choices make of the images, as arrays, and their labels."""
        self.batches.choose(choices)
        return join(self.batches.epoch("train"))

    def hand_out(self, split):
        """Return all that an epoch hands out, as arrays."""
        self.batches.draw()
        return join(self.batches.epoch(split))


class Step(object):
    """Steps on the canonical batch."""

    def __init__(self, side):
        self.side = side

    def __call__(self):
        return self.many(1)

    def many(self, count):
        """Make ``count`` steps in one call of ``fit_generator``; return the mean of their losses."""
        side = self.side
        history = side.model.fit_generator(
            side.batch, steps_per_epoch=count, epochs=1, verbose=0, shuffle=False, workers=0
        )
        return float(history.history["loss"][-1])


def join(batches):
    """Join batches to arrays (n, 32, 32, 3) and (n,)."""
    images, labels = zip(*batches)
    return numpy.concatenate(images), numpy.concatenate(labels)
