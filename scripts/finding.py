"""One line of the doctor's, and what it means for the sessions."""

from dataclasses import dataclass
from typing import Literal

Session = Literal["bench-cpu", "bench-docker", "bench-gpu"]
Verdict = Literal["ok", "note", "NO"]

SESSIONS: tuple[Session, ...] = ("bench-cpu", "bench-docker", "bench-gpu")
CONTAINERS: tuple[Session, ...] = ("bench-docker", "bench-gpu")


@dataclass(frozen=True)
class Finding:
    """What was looked at, whether it is fit for measuring, and what to do if it is not."""

    subject: str
    says: str
    stops: tuple[Session, ...] = ()
    """Sessions that cannot run for it."""
    is_fine: bool = True
    """Whether there is nothing to do about it."""

    @property
    def verdict(self) -> Verdict:
        """``NO`` if it stops a session, ``note`` if it is worth knowing."""
        if self.stops:
            return "NO"
        return "ok" if self.is_fine else "note"


def note(subject: str, says: str) -> Finding:
    return Finding(subject, says, is_fine=False)
