"""Data sets for Keras: in ``fair`` the arithmetic of both sides, in ``article`` TensorFlow's own way."""

import numpy
import tensorflow as tf

from workloads import densenet
from workloads.densenet import augment, plan


def draw_batch(parameters, dtype):
    """Return a data set that hands out the canonical batch without end."""
    images, labels = densenet.draw_batch(parameters)
    # Of an open number of images, as every other data set here: a step is not traced twice.
    shapes = ([None, plan.SIDE, plan.SIDE, plan.CHANNELS], [None])
    with tf.device("/CPU:0"):
        batch = tf.constant(images, dtype), tf.constant(labels)
        batches = tf.data.Dataset.from_tensors(batch).repeat()

    def open_up(*batch):
        return tuple(
            tf.raw_ops.PlaceholderWithDefault(input=one, shape=shape) for one, shape in zip(batch, shapes)
        )

    return plainly(batches.map(open_up))


def plainly(batches):
    """Leave a data set as it is written: its batches are made when they are asked for, as on the other side,
    and the end of an epoch does not wait for a tuner's thread."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.inject_prefetch = False
    return batches.with_options(options)


def open_batches(cell, data):
    """Open the data sets of the cell's edition."""
    return (Batches if cell["edition"] == "fair" else ArticleBatches)(cell["parameters"], data)


class Batches(object):
    """Whole batches at a time: gathered from padded images, turned to float32 and normalised.

    Args:
        parameters: the cell's.
        data: a ``match.Data``.

    Attributes:
        train, validate: data sets of an epoch's batches.
        seen: a variable, to which are added the seconds that making batches took, and their images.
    """

    def __init__(self, parameters, data):
        self.data, self.batch = data, parameters["batch"]
        with tf.device("/CPU:0"):
            self.count = len(data.train[1])
            self.pixels = tf.constant(augment.pad(data.train[0]).reshape(-1, plan.CHANNELS))
            self.labels = tf.constant(data.train[1])
            self.chosen = tf.Variable(tf.zeros((4, self.count), tf.int64))
            self.seen = tf.Variable(tf.zeros(2, tf.float64))
            steps = tf.data.Dataset.range(-(-self.count // self.batch))
            self.train = plainly(steps.map(self.timed(self.make)))
            tests = tf.data.Dataset.from_tensor_slices(data.validate).batch(parameters["validation_batch"])
            self.validate = plainly(tests.map(self.timed(lambda images, labels: (normalise(images), labels))))
        self.start()

    def start(self):
        """Begin with the first epoch's choices again."""
        self.choices = self.data.draw()

    def draw(self):
        """Draw the choices of the epoch that begins."""
        self.choose(next(self.choices))

    def choose(self, choices):
        """Have the next epoch made with these choices."""
        found = [choices.images, choices.rows, choices.columns, choices.flipped]
        self.chosen.assign(numpy.array(found, dtype="int64"))

    def timed(self, make):
        """Add to ``seen`` what making a batch takes: nobody can see that from outside of ``fit``."""

        def make_timed(*args):
            begin_s = tf.timestamp()
            with tf.control_dependencies([begin_s]):
                batch = make(*map(tf.identity, args))
            with tf.control_dependencies(list(batch)):
                count = tf.cast(tf.shape(batch[1])[0], tf.float64)
                added = self.seen.assign_add(tf.stack([tf.timestamp() - begin_s, count]))
            with tf.control_dependencies([added]):
                return tuple(map(tf.identity, batch))

        return make_timed

    def make(self, step):
        """Make the training batch of a step."""
        end = tf.minimum((step + 1) * self.batch, self.count)
        images, rows, columns, flipped = tf.unstack(self.chosen[:, step * self.batch : end])
        places = tf.range(plan.SIDE, dtype=tf.int64)
        across = tf.where(flipped[:, None] == 1, plan.SIDE - 1 - places, places)
        down, across = rows[:, None] + places, columns[:, None] + across
        start = images * augment.PADDED**2
        index = start[:, None, None] + down[:, :, None] * augment.PADDED + across[:, None, :]
        pixels = tf.ensure_shape(tf.gather(self.pixels, index), [None, plan.SIDE, plan.SIDE, plan.CHANNELS])
        return normalise(pixels), tf.gather(self.labels, images)


def normalise(images):
    """Turn uint8 (n, 32, 32, 3) into float32 from -1 to 1."""
    return tf.cast(images, tf.float32) / 127.5 - 1.0


class ArticleBatches(object):
    """tf.data over one image after the other, tuned by itself and made ahead, each image standardised by its
    own mean and deviation."""

    seen = None

    def __init__(self, parameters, data):
        with tf.device("/CPU:0"):
            train = tf.data.Dataset.from_tensor_slices(data.train)
            train = train.shuffle(len(data.train[1]), seed=data.seed, reshuffle_each_iteration=True)
            train = train.map(make_randomly, num_parallel_calls=tf.data.AUTOTUNE)
            self.train = train.batch(parameters["batch"]).prefetch(tf.data.AUTOTUNE)
            tests = tf.data.Dataset.from_tensor_slices(data.validate)
            tests = tests.map(make_plainly, num_parallel_calls=tf.data.AUTOTUNE)
            self.validate = tests.batch(parameters["validation_batch"]).prefetch(tf.data.AUTOTUNE)

    def start(self):
        """There is nothing to go back to: each epoch is drawn anew."""

    def draw(self):
        """An epoch is drawn by its data set."""


def make_randomly(image, label):
    """Turn, crop and standardise an image."""
    image = tf.image.resize_with_crop_or_pad(image, augment.PADDED, augment.PADDED)
    image = tf.image.random_crop(image, [plan.SIDE, plan.SIDE, plan.CHANNELS])
    return tf.image.per_image_standardization(tf.image.random_flip_left_right(image)), label


def make_plainly(image, label):
    """Standardise an image."""
    return tf.image.per_image_standardization(image), label
