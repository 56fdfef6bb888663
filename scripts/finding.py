"""One line of the doctor's, and what it means for the sessions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
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


def gather(subject: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield a finding of all that say the same, whose subjects it names."""
    alike: dict[tuple[str, Verdict], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.says, finding.verdict), []).append(finding)
    for (says, _), found in alike.items():
        names = ", ".join(one.subject for one in found)
        yield replace(found[0], subject=subject, says=f"{names}: {says}")
