"""What an epoch leaves behind, beside the time that it took."""

from workloads.clock import Clock


class Waited(object):
    """Hands on the batches of an epoch.

    Attributes:
        ns: nanoseconds in which the host waited for them, their end included.
    """

    def __init__(self, batches):
        self.batches = iter(batches)
        self.ns = 0

    def __iter__(self):
        return self

    def __next__(self):
        asked_ns = Clock.now_ns()
        try:
            return next(self.batches)
        finally:
            self.ns += Clock.now_ns() - asked_ns


class Epoch(object):
    """Read after the epoch's time was taken: no value here makes the epoch wait for the device.

    Attributes:
        tensor: something that was computed or handed out last, to see where.
        images: how many were handed out.
        series: values of this epoch by name, as numbers or as tensors on the device.
        figures: seconds and other numbers of this epoch by name.
        waiting_s: seconds in which the host waited for data; ``None`` where nothing is done but that, or
            where nobody can see it.
        after: a call that does what belongs to the epoch but not to its time, and returns further series.
    """

    def __init__(self, tensor, images, series=None, figures=None, waiting_s=None, after=None):
        self.tensor = tensor
        self.images = images
        self.series = series or {}
        self.figures = figures or {}
        self.waiting_s = waiting_s
        self.after = after
