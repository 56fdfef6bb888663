"""What a workload's module hands to the measuring and to the proving."""

import importlib


def load(cell, framework):
    """Import the module of a cell's variant, or the one that speaks the older interface of this framework's
    version."""
    name = framework.older.get(cell["module"], cell["module"])
    return importlib.import_module("workloads.%s.%s" % (cell["workload"], name))


class Subject(object):
    """One variant of one workload, built from canonical parameters and ready to run.

    Attributes:
        units: by measure, a call without arguments that does one unit of its work, not waiting for
            the device, and returns what ``losses`` reads.
        losses: turns what a unit returned into the losses of its steps, as tensors on the device.
        gradients: a call that returns the loss tensor and the gradients by canonical name, as numpy
            arrays in canonical shape, and updates nothing. ``None`` where nothing is trained.
        parameters: a call that returns the trainable parameters likewise.
        settings: settings of this variant, to stand beside the framework's own.
        loop: who drives the steps: ``hand-written``, ``fit`` or ``loader``.
        host_reads: values that one unit of a measure reads from the device, by measure; 0 where none is
            named.
        observe: a call that returns a tensor which the work computed, where losses do not come as tensors.
        start: a call that goes back to the canonical start; made before each measure.
        recipe: of the trajectory, where a workload has several for the same parameters.
        figures: further figures of every measure, by name with its unit.
        whole: whether all epochs are one sample, as with a stopwatch.
        first_losses: a call that trains from the canonical start as the trajectory does, for so many steps,
            and returns their losses as tensors. ``None`` where the first units do.
        under_load: a call that works for a while, untimed, and calls what it is given when memory is worth
            reading. ``None`` where the work leaves its peak to be read afterwards.
        close: a call that ends what would outlive the measuring.

        Of a proof:

        step: a call that makes one training step and returns what ``losses`` reads. By default, a unit of the
            cell's first measure.
        applied: a call that returns the gradients of the first step as the optimiser got them, after it,
            where ``gradients`` is ``None``: nothing is then differentiated but what is measured.
        statistics: a call that returns what else the first step changed, such as running means.
        summarised: a call that turns changes by tensor into those that are judged.
        checks: counts that have to be equal: name, expected, found.
        judge: a call that computes the trajectory where none is committed. ``None`` where one must be.
    """

    def __init__(
        self,
        units,
        losses,
        gradients=None,
        parameters=None,
        settings=None,
        loop="hand-written",
        host_reads=None,
        observe=None,
        start=None,
        recipe=None,
        figures=None,
        whole=False,
        first_losses=None,
        under_load=None,
        close=None,
        step=None,
        applied=None,
        statistics=None,
        summarised=None,
        checks=(),
        judge=None,
    ):
        self.units = units
        self.losses = losses
        self.gradients = gradients
        self.parameters = parameters
        self.settings = settings or {}
        self.loop = loop
        self.host_reads = host_reads or {}
        self.observe = observe
        self.start = start or (lambda: None)
        self.recipe = recipe
        self.figures = figures or {}
        self.whole = whole
        self.first_losses = first_losses
        self.under_load = under_load
        self.close = close or (lambda: None)
        self.step = step
        self.applied = applied
        self.statistics = statistics
        self.summarised = summarised or (lambda changes: changes)
        self.checks = checks
        self.judge = judge
