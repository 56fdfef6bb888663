"""The match, whichever the framework: units of work to measure, and something to prove."""

import numpy

from workloads import densenet
from workloads.data import cifar
from workloads.densenet import augment, plan, reference
from workloads.epoch import Epoch
from workloads.fault import Fault
from workloads.subject import Subject

AUDITED = 512
"""Images at the start of the data set that a proof looks at."""


class Passed(object):
    """What going through an epoch's batches came to.

    Attributes:
        loss, accuracy: their means over the epoch, as numbers or as tensors on the device.
        images: how many were handed out.
        tensor: something that was computed last.
        waiting_s: seconds in which the host waited for data, where that can be seen.
    """

    def __init__(self, loss, accuracy, images, tensor, waiting_s=None):
        self.loss, self.accuracy, self.images, self.tensor = loss, accuracy, images, tensor
        self.waiting_s = waiting_s


class Data(object):
    """The cell's images, as far as it uses them."""

    def __init__(self, cell, train_images=None, validate_images=None):
        parameters, folder = cell["parameters"], cell["data"]["folder"]
        self.train = cifar.read_split(folder, "train", train_images or parameters["train_images"])
        self.validate = cifar.read_split(folder, "test", validate_images or parameters["validate_images"])
        # Another order in each launch, and the same on both sides of a block.
        self.seed = (cell["seed"] + cell["block"]) % 2**32

    def draw(self):
        """Draw the choices of epoch after epoch, from the first."""
        return augment.draw(len(self.train[1]), self.seed)


def open_data(cell):
    """Read what the cell's measures need, or its proof; ``None`` where that is nothing."""
    if cell["purpose"] == "proof":
        parameters = cell["parameters"]
        counts = (min(AUDITED, parameters[name]) for name in ("train_images", "validate_images"))
        return Data(cell, *counts)
    return Data(cell) if any(name != "step" for name in cell["measures"]) else None


class Match(object):
    """One side of the match.

    Args:
        cell: the cell, decoded.
        side: its framework's ``Side``.
        how: its ``Recipe``.
    """

    def __init__(self, cell, side, how):
        self.cell, self.side, self.how = cell, side, how
        self.rates = densenet.find_rates(cell["parameters"])
        self.epoch = 0

    def describe(self, settings, loop):
        """Return the ``Subject``.

        Args:
            settings: of the variant.
            loop: who drives the steps.
        """
        side, trainer = self.side, self.side.trainer
        is_proof = self.cell["purpose"] == "proof"
        return Subject(
            units={
                "step": side.step,
                "train_epoch": self.train,
                "validate_epoch": self.validate,
                "train_validate_epoch": self.train_and_validate,
                "article_epoch": self.train_as_printed,
            },
            losses=side.losses,
            observe=side.observe,
            parameters=trainer.name_parameters,
            settings=dict(settings, **self.tell_accounting()),
            loop=loop,
            host_reads=self.count_reads(),
            start=self.start,
            recipe=self.how.name,
            step=side.step,
            applied=lambda: plan.group_by_layer(trainer.name_applied()),
            statistics=lambda: plan.group_by_layer(trainer.name_statistics()),
            summarised=self.join_changes,
            checks=self.audit() if is_proof else (),
        )

    def tell_accounting(self):
        """Return what stands beside a row: the recipe, and in the article edition what an epoch's seconds
        hold."""
        told = self.how.settings()
        if self.cell["edition"] == "article":
            within = self.side.is_validated_in_article
            told["validation"] = "in the epoch's time" if within else "outside of the epoch's time"
        return told

    def start(self):
        """Go back to the canonical start and to the first epoch."""
        self.epoch = 0
        self.side.start()

    def count_reads(self):
        """Count the values that the host reads from the device in each measure's unit."""
        counts = {}
        for name in self.cell["measures"]:
            steps, validations = densenet.count_steps(self.cell["parameters"], name)
            if name == "article_epoch" and self.side.is_validated_in_article:
                validations = densenet.count_steps(self.cell["parameters"], "validate_epoch")[1]
            counts[name] = self.side.reads * (steps + validations)
        return counts

    def join_changes(self, changes):
        """Leave out tensors whose change says nothing, and join the others by layer."""
        return plan.group_by_layer(
            {name: value for name, value in changes.items() if reference.is_told(name, self.how)}
        )

    def next_rate(self):
        """Set the learning rate of the epoch that begins, and return it."""
        rate = self.rates[min(self.epoch, len(self.rates) - 1)]
        self.epoch += 1
        self.side.trainer.set_rate(rate)
        return rate

    def train(self):
        """Train on all images of an epoch."""
        rate = self.next_rate()
        passed = self.side.train()
        self.check_count(passed, "train_images")
        series = {"loss": passed.loss, "accuracy": passed.accuracy, "learning_rate": rate}
        return Epoch(passed.tensor, passed.images, series, waiting_s=passed.waiting_s)

    def validate(self):
        """Validate on all images for that."""
        passed = self.side.validate()
        self.check_count(passed, "validate_images")
        return Epoch(passed.tensor, passed.images, name_series(passed), waiting_s=passed.waiting_s)

    def train_and_validate(self):
        """Train for an epoch, then validate, in the framework's own way to do both."""
        rate = self.next_rate()
        trained, validated = self.side.train_and_validate()
        self.check_count(trained, "train_images")
        self.check_count(validated, "validate_images")
        series = {"loss": trained.loss, "accuracy": trained.accuracy, "learning_rate": rate}
        waiting_s = None
        if trained.waiting_s is not None and validated.waiting_s is not None:
            waiting_s = trained.waiting_s + validated.waiting_s
        return Epoch(
            validated.tensor,
            trained.images + validated.images,
            dict(series, **name_series(validated)),
            waiting_s=waiting_s,
        )

    def train_as_printed(self):
        """An epoch as the article counted it: Keras's seconds hold the validation, PyTorch's do not."""
        if self.side.is_validated_in_article:
            epoch = self.train_and_validate()
            epoch.images -= self.cell["parameters"]["validate_images"]
            return epoch
        epoch = self.train()
        epoch.after = lambda: name_series(self.side.validate())
        return epoch

    def check_count(self, passed, wanted):
        """See that an epoch had all its images.

        Raises:
            Fault: it had not.
        """
        count = self.cell["parameters"][wanted]
        if passed.images != count:
            raise Fault("data", "%d images were handed out in an epoch of %d" % (passed.images, count))

    def audit(self):
        """Count what is not as it should be, for a proof: name, expected, found."""
        side, data = self.side, self.side.data
        images, labels = data.train
        checks = [("count[other learning rates]", 0, self.count_rates())]
        if self.cell["edition"] == "fair":
            choices = next(data.draw())
            found = side.augment(choices)
            expected = augment.apply(images, choices), labels[choices.images]
            checks.append(("count[other values of training images]", 0, count_differing(found, expected)))
            expected = augment.normalise(data.validate[0]), data.validate[1]
        else:
            found = side.hand_out("train")
            check_kind(found[0], images.shape)
            checks.append(("count[training images of other classes]", 0, count_other(found[1], labels)))
            expected = side.prepare_as_article(data.validate[0]), data.validate[1]
        found = side.hand_out("validate")
        checks.append(("count[other values of validation images]", 0, count_differing(found, expected)))
        return checks

    def count_rates(self):
        """Count the epochs whose learning rate, read back, is not the schedule's."""
        differing = 0
        self.epoch = 0
        for expected in reference.schedule(self.cell["parameters"]):
            self.next_rate()
            differing += abs(self.side.trainer.rate() / expected - 1) > 1e-6
        self.start()
        return differing


def name_series(validated):
    """Name what a validation came to."""
    return {"validation_loss": validated.loss, "validation_accuracy": validated.accuracy}


def check_kind(images, shape):
    """See that a framework's images are what a net takes.

    Raises:
        Fault: they are of another type or shape.
    """
    if images.dtype != numpy.float32 or images.shape != shape:
        raise Fault(
            "data", "images are %s of %s where float32 of %s is wanted" % (images.dtype, images.shape, shape)
        )


def count_differing(found, expected):
    """Count values and labels that differ, the values by more than rounding does."""
    check_kind(found[0], expected[0].shape)
    values = numpy.abs(found[0] - expected[0]) > 1e-5
    return int(values.sum()) + int((found[1] != expected[1]).sum())


def count_other(found, expected):
    """Count labels that are there too often or not often enough, in whatever order."""
    counts = [numpy.bincount(labels, minlength=plan.CLASSES) for labels in (found, expected)]
    return int(numpy.abs(counts[0] - counts[1]).sum())
