"""The one exception that ends a launch with a foreseen cause."""


class Fault(Exception):
    """A launch cannot go on, for a reason that a table can show.

    ``kind`` is one of the contract's words for a cause, ``message`` one line. ``status`` is
    ``failed``, or ``skipped`` where this machine lacks what the cell asks for.
    """

    def __init__(self, kind, message, status="failed"):
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.status = status
