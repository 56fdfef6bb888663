"""The match: one loader and one net, as units of work to measure and as something to prove."""

from typing import Any

from workloads.clock import Clock
from workloads.epoch import Epoch, Waited
from workloads.fault import Fault
from workloads.mnist import audit
from workloads.mnist.loader import Order
from workloads.mnist.model import Trainer
from workloads.subject import Subject

READ_AT = (1, 20, 100)
"""Batches after which memory is read, in an epoch that is not timed."""


def build(cell, framework, dtype, open_loader):
    """Build a variant of the match.

    Args:
        cell: the cell, decoded.
        framework: the framework's ``Framework``.
        dtype: name of the net's type.
        open_loader: of the variant's module.
    """

    def open_it(images, fixed=False):
        order = make_order(cell, framework, images)
        return open_loader(cell, framework, order.fixed() if fixed else order)

    if cell["purpose"] == "proof":
        return audit.build(cell, framework, dtype, open_it)
    return Match(cell, framework, dtype, open_it).describe()


def make_order(cell, framework, images):
    """Say how the cell's edition has its data handed out."""
    parameters = cell["parameters"]
    is_article = cell["edition"] == "article"
    from_tfds = cell["variant"].startswith("tfds-")
    return Order(
        images=images,
        batch={
            "train": parameters["batch"],
            "test": parameters["article_tfds_test_batch"]
            if is_article and from_tfds
            else parameters["test_batch"],
        },
        # torchvision's side shuffled its test images in the article.
        shuffled={"train": True, "test": is_article and not from_tfds},
        epochs=parameters["epochs"],
        # Another order in each launch: what an order costs is part of what varies between them.
        seed=cell["seed"] + cell["block"],
        # A CPU has no use for page-locked memory.
        pinned=framework.index is not None and not (is_article and from_tfds),
    )


class Match(object):
    """Units of work over the loaders that a cell's measures need."""

    def __init__(self, cell, framework, dtype, open_it):
        self.cell = cell
        self.framework = framework
        parameters = cell["parameters"]
        now_ns = Clock.now_ns
        begin_ns = now_ns()
        self.loaders = {}
        self.open_it = open_it
        trains = [name for name in cell["measures"] if name != "load_epoch"]
        if "load_epoch" in cell["measures"]:
            self.loaders["load"] = open_it({"train": parameters["load_images"]})
        if trains:
            self.loaders["train"] = open_it(
                {"train": parameters["train_images"], "test": parameters["validate_images"]}
            )
        self.construct_s = (now_ns() - begin_ns) / 1e9 / len(self.loaders)
        self.make_trainer = lambda: Trainer(framework, parameters, dtype)
        # Where nothing is trained, a net would only take memory.
        self.trainer: Any = self.make_trainer() if trains else None

    def describe(self):
        """Return the ``Subject``."""
        first = next(iter(self.loaders.values()))
        settings = dict(first.settings, compiler="none", optimiser="torch.optim.Adadelta")
        settings["inputs"] = "resident" if first.resident else "moved for each batch"
        return Subject(
            units={
                "load_epoch": self.load,
                "train_epoch": self.train,
                "validate_epoch": self.validate,
                "train_validate_epoch": self.train_and_validate,
            },
            losses=lambda value: [],
            settings=settings,
            loop="loader",
            figures={"construct_s": self.construct_s},
            whole=self.cell["edition"] == "article",
            first_losses=self.compute_first_losses if self.trainer is not None else None,
            under_load=self.go_through_start,
            close=self.close,
        )

    def move(self, batches):
        """Bring batches to the device, where they are not there yet."""
        place = self.framework.place
        if place.type == "cpu":
            return batches
        return (
            (images.to(place, non_blocking=True), labels.to(place, non_blocking=True))
            for images, labels in batches
        )

    def load(self):
        """Take all batches of an epoch and do nothing with them."""
        now_ns = Clock.now_ns
        loader, begin_ns = self.loaders["load"], now_ns()
        batches = self.move(loader.epoch("train"))
        images, labels = next(batches)
        first_ns = now_ns() - begin_ns
        size, count = len(labels), 1
        for count, (images, labels) in enumerate(batches, 2):  # noqa: B007
            pass
        seen = (count - 1) * size + len(labels)
        self.check_count(seen, self.cell["parameters"]["load_images"])
        figures = {"first_batch_s": first_ns / 1e9}
        if loader.closing_s is not None:
            figures["closing_s"] = loader.closing_s
        return Epoch(images, seen, figures=figures)

    def go_through(self, split, wanted, use):
        """Hand each batch of an epoch to ``use``.

        Returns:
            (images, seconds): how many were handed out, and how long the host waited for them.
        """
        batches = Waited(self.move(self.loaders["train"].epoch(split)))
        seen = 0
        for batch in batches:
            use(*batch)
            seen += len(batch[1])
        self.check_count(seen, self.cell["parameters"][wanted])
        return seen, batches.ns / 1e9

    def train(self):
        """Train on all batches of an epoch."""
        total, loss = 0.0, None

        def use(images, labels):
            nonlocal total, loss
            loss = self.trainer.train(images, labels)
            total = total + loss * len(labels)

        seen, waiting_s = self.go_through("train", "train_images", use)
        return Epoch(loss, seen, {"loss": total / seen}, waiting_s=waiting_s)

    def validate(self):
        """Validate on all batches of the test images."""
        total, right, loss = 0.0, 0, None  # type: Any, Any, Any

        def use(images, labels):
            nonlocal total, right, loss
            loss, hits = self.trainer.validate(images, labels)
            total, right = total + loss, right + hits

        seen, waiting_s = self.go_through("test", "validate_images", use)
        series = {"validation_loss": total / seen, "validation_accuracy": right.float() / seen}
        return Epoch(loss, seen, series, waiting_s=waiting_s)

    def train_and_validate(self):
        """Train for an epoch, then validate."""
        trained, validated = self.train(), self.validate()
        return Epoch(
            validated.tensor,
            trained.images + validated.images,
            dict(trained.series, **validated.series),
            waiting_s=trained.waiting_s + validated.waiting_s,
        )

    def check_count(self, seen, wanted):
        """See that an epoch had all its images; in the article's accounting it may have more, or fewer.

        Raises:
            Fault: it had not, or none at all.
        """
        if seen != wanted if self.cell["edition"] == "fair" else not seen:
            raise Fault("data", "the loader handed out %d images in an epoch of %d" % (seen, wanted))

    def compute_first_losses(self, count):
        """Train a fresh net on the first batches in the data set's order, which the trajectory knows; return
        the losses as tensors."""
        trainer = self.make_trainer()
        batch = self.cell["parameters"]["batch"]
        return [
            trainer.train(images.to(self.framework.place), labels.to(self.framework.place))
            for images, labels in audit.read_batches(self.cell["data"]["folder"], batch, count)
        ]

    def go_through_start(self, read):
        """Begin an epoch, calling ``read`` after some batches."""
        name = next(iter(self.loaders))
        for count, _ in enumerate(self.move(self.loaders[name].epoch("train")), start=1):
            if count in READ_AT:
                read()
            if count == max(READ_AT):
                break

    def close(self):
        """End the loaders."""
        for loader in self.loaders.values():
            loader.close()
