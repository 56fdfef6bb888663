"""The match's Keras side."""

from typing import Any

import keras
import tensorflow as tf

from workloads.densenet import augment, keras_data, match, recipe
from workloads.densenet.keras_net import Trainer
from workloads.epoch import Waited


def build(cell, framework, dtype):
    """Build the cell's variant from canonical parameters in ``dtype``.

    Steps run where TensorFlow places them by itself, as for everybody under ``fit``: on the cell's GPU, which
    is the only one that it sees, with the variables, and on the CPU where it sees none.
    """
    parameters, variant = cell["parameters"], cell["variant"]
    how = recipe.choose(parameters, cell["edition"], "keras")
    jit = variant == "keras-xla"
    with tf.device(framework.place):
        trainer = Trainer(framework, parameters, how, dtype, jit)
    settings = {
        "compiler": "xla" if jit else "tf.function",
        "compiled": "whole step",
        "layout": "NHWC",
        "inputs": "moved in each step",
        "metrics": "read in each step",
        "optimiser": type(trainer.optimiser).__name__,
        "keras.jit_compile": bool(trainer.model.jit_compile),
        "keras.image_data_format": keras.config.image_data_format(),
    }
    by_hand = variant == "keras-loop"
    side = (LoopSide if by_hand else FitSide)(cell, trainer, dtype)
    return match.Match(cell, side, how).describe(settings, "hand-written" if by_hand else "fit")


class FitSide(object):
    """Keras's steps and epochs by ``fit`` and ``evaluate``. See ``match.Match`` for what a side has."""

    is_validated_in_article = True
    # ``fit`` has each step's loss and accuracy read by a thread beside it, for whichever callbacks there are.
    reads = 2
    prepare_as_article = staticmethod(augment.standardise)

    def __init__(self, cell, trainer, dtype):
        self.trainer, self.dtype = trainer, dtype
        self.model = trainer.model
        self.batch = keras_data.draw_batch(cell["parameters"], dtype)
        self.data = match.open_data(cell)
        self.batches: Any = keras_data.open_batches(cell, self.data) if self.data else None
        self.step: Any = FitStep(self)

    def start(self):
        """Go back to the canonical start."""
        self.trainer.reset()
        if self.batches is not None:
            self.batches.start()

    def observe(self):
        """Return a tensor that the steps computed."""
        return self.model.trainable_variables[0].value

    def losses(self, value):
        """Return the losses of what a step returned, which are numbers already."""
        return [tf.constant(value, self.dtype)]

    def train(self):
        """Train on all images of an epoch."""
        return self.fit(None)[0]

    def train_and_validate(self):
        """Train on all images of an epoch, then validate."""
        return self.fit(self.batches.validate)

    def fit(self, validation):
        """Call ``fit`` for one epoch."""
        self.batches.draw()
        seen = Seen(self.batches)
        history = self.model.fit(
            self.batches.train, epochs=1, verbose=0, shuffle=None, validation_data=validation
        ).history
        found = {name: values[-1] for name, values in history.items()}
        waiting_s, handed = seen.read()
        count = 0 if validation is None else len(self.data.validate[1])
        images = len(self.data.train[1]) if handed is None else handed - count
        trained = self.describe(found["loss"], found["accuracy"], images, waiting_s)
        if validation is None:
            return trained, None
        # Of both the host waited for so long together.
        rest_s = None if waiting_s is None else 0.0
        return trained, self.describe(found["val_loss"], found["val_accuracy"], count, rest_s)

    def validate(self):
        """Validate on all images for that."""
        seen = Seen(self.batches)
        found = self.model.evaluate(self.batches.validate, verbose=0, return_dict=True)
        waiting_s, handed = seen.read()
        images = len(self.data.validate[1]) if handed is None else handed
        return self.describe(found["loss"], found["accuracy"], images, waiting_s)

    def describe(self, loss, accuracy, images, waiting_s):
        """Say what an epoch came to."""
        return match.Passed(loss, accuracy, images, self.observe(), waiting_s)

    def augment(self, choices):
        """Return what given choices make of the images, as arrays, and their labels."""
        self.batches.choose(choices)
        return join(self.batches.train)

    def hand_out(self, split):
        """Return all that an epoch hands out, as arrays."""
        self.batches.draw()
        return join(self.batches.train if split == "train" else self.batches.validate)


class FitStep(object):
    """Steps on the canonical batch by ``fit``."""

    def __init__(self, side):
        self.side = side

    def __call__(self):
        return self.many(1)

    def many(self, count):
        """Make ``count`` steps in one call of ``fit``; return the mean of their losses."""
        side = self.side
        history = side.model.fit(side.batch, epochs=1, steps_per_epoch=count, verbose=0, shuffle=None)
        return history.history["loss"][-1]


class Seen(object):
    """Reads how long batches took to be made, and how many images were in them, from now on."""

    def __init__(self, batches):
        self.variable = batches.seen
        self.begin = None if self.variable is None else self.variable.numpy()

    def read(self):
        """Return seconds and images, each ``None`` where they cannot be seen."""
        if self.variable is None:
            return None, None
        seconds, images = self.variable.numpy() - self.begin
        return float(seconds), int(images)


class LoopSide(FitSide):
    """Keras's model and optimiser in a loop written by hand, its steps traced by ``tf.function``."""

    def __init__(self, cell, trainer, dtype):
        super().__init__(cell, trainer, dtype)
        self.endless = iter(self.batch)
        self.step = self.step_by_hand
        model, compute, optimiser = trainer.model, trainer.model.loss, trainer.optimiser

        # Of an open number of images: the last batch of an epoch is not traced anew.
        shapes = [tf.TensorSpec(one.shape, one.dtype) for one in self.batch.element_spec]

        @tf.function(jit_compile=False, input_signature=shapes)
        def train(images, labels):
            with tf.GradientTape() as tape:
                scores = tf.cast(model(images, training=True), dtype)
                loss = compute(labels, scores)
            variables = model.trainable_variables
            optimiser.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss, count_hits(scores, labels)

        @tf.function(jit_compile=False, input_signature=shapes)
        def test(images, labels):
            scores = tf.cast(model(images, training=False), dtype)
            return compute(labels, scores), count_hits(scores, labels)

        self.train_step, self.test_step = train, test

    def step_by_hand(self):
        """Make one step on the canonical batch."""
        loss, hits = self.train_step(*next(self.endless))
        loss.numpy()
        hits.numpy()
        return loss

    def losses(self, value):
        """Return the losses of what a step returned."""
        return [value]

    def train(self):
        """Train on all images of an epoch."""
        self.batches.draw()
        return self.go_through(self.batches.train, self.train_step)

    def validate(self):
        """Validate on all images for that."""
        return self.go_through(self.batches.validate, self.test_step)

    def train_and_validate(self):
        """One after the other."""
        return self.train(), self.validate()

    def go_through(self, batches, use):
        """Hand each batch of an epoch to ``use``, and add up what it returns."""
        batches = Waited(batches)
        total, right, images, loss = 0.0, 0, 0, None
        for batch in batches:
            loss, hits = use(*batch)
            count = int(batch[1].shape[0])
            total, right = total + float(loss.numpy()) * count, right + int(hits.numpy())
            images += count
        return match.Passed(total / images, right / float(images), images, loss, batches.ns / 1e9)


def count_hits(scores, labels):
    """Count the images of a batch that are right."""
    return tf.reduce_sum(tf.cast(tf.equal(tf.argmax(scores, axis=1), labels), tf.int64))


def join(batches):
    """Join a data set's batches to arrays (n, 32, 32, 3) and (n,)."""
    images, labels = zip(*batches)
    return tf.concat(images, 0).numpy(), tf.concat(labels, 0).numpy()
