"""What a workload's module hands to the measuring and to the proving."""


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
        host_reads: values that one unit of a measure reads from the device.
    """

    def __init__(
        self,
        units,
        losses,
        gradients=None,
        parameters=None,
        settings=None,
        loop="hand-written",
        host_reads=0,
    ):
        self.units = units
        self.losses = losses
        self.gradients = gradients
        self.parameters = parameters
        self.settings = settings or {}
        self.loop = loop
        self.host_reads = host_reads
