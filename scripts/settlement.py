"""What a launch comes to: the result that it wrote, if that can be trusted, or why there is none."""

from pathlib import Path

from msgspec.structs import replace

from scripts.contract import SCHEMA, Cause, Cell, Result
from scripts.decode import LeftOut, decode_result
from scripts.diagnosis import diagnose
from scripts.process import Ending


def settle(
    seen: Cell,
    cell: Cell,
    written: Path,
    ending: Ending,
    log: Path,
    log_name: str,
    started: str,
    limit_s: float,
) -> Result:
    """Take the result that was written, or make one that says why there is none.

    Args:
        seen: the cell as the launched process saw it, which its result has to repeat.
        cell: the same as the host knows it, which the result is kept with.
        written: where the process was to write.
        log: what it printed; ``log_name`` is how the result names that file.
    """
    try:
        found = replace(read_result(written, seen), cell=cell)
    except LeftOut as fault:
        if ending.is_clean():
            cause = Cause("result", f"its result cannot be trusted: {fault.reason}")
        else:
            cause = diagnose(ending, log, limit_s)
        return Result(
            schema=SCHEMA,
            cell=cell,
            status="failed",
            started=started,
            duration_s=ending.seconds,
            cause=cause,
            log=log_name,
        )
    if found.status == "failed":
        return replace(found, cause=_add_memory(found.cause, ending), log=log_name)
    if ending.is_clean():
        return found
    end = diagnose(ending, log, limit_s)
    return replace(found, log=log_name, warnings=[*found.warnings, f"after its result: {end.message}"])


def read_result(place: Path, cell: Cell) -> Result:
    """Read the result of ``cell``.

    Raises:
        LeftOut: there is none, or it is not whole, or it answers another cell.
    """
    if place.is_symlink():
        # It would be read with the host's rights, wherever it leads.
        raise LeftOut(str(place), "a link, not a file")
    if not place.exists():
        raise LeftOut(str(place), "there is none")
    result = decode_result(place)
    if result.cell != cell:
        names = (name for name in cell.__struct_fields__ if getattr(cell, name) != getattr(result.cell, name))
        raise LeftOut(str(place), f"of another cell: its {next(names)} differs")
    return result


def _add_memory(cause: Cause | None, ending: Ending) -> Cause | None:
    """An exception may be only what a process saw of the death of another, such as a loader's worker."""
    if cause is None or cause.kind != "exception" or not ending.oom_kills:
        return cause
    return Cause("out-of-memory", f"{cause.message} (the kernel killed a process for memory meanwhile)")
