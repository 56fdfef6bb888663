"""What this process and its descendants, such as loader workers, use together. Linux, by /proc."""

import os
import resource

TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


def cpu_s():
    """Return the CPU seconds of this process, of its descendants that ended and were waited for, and of those
    that live; of the latter in whole ticks."""
    own = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    ended_s = sum(usage.ru_utime + usage.ru_stime for usage in own)
    return ended_s + TICK_S * sum(sum(map(int, stat[11:15])) for _, stat in _list_descendants())


def memory_bytes():
    """Return the memory of this process and its living descendants, pages that several map shared out among
    them (proportional set size); ``None`` where the kernel does not tell."""
    sizes = [_read_share(pid) for pid in [os.getpid()] + [pid for pid, _ in _list_descendants()]]
    known = [size for size in sizes if size is not None]
    return sum(known) if sizes[0] is not None else None


def _list_descendants():
    """Return pid and status fields, from the process's state on, of each living descendant."""
    stats = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as file:
                    # A program's name may hold anything, even a bracket.
                    stats[int(name)] = file.read().rpartition(b")")[2].split()
            except (OSError, ValueError):
                continue
    found = []  # type: list
    level = {os.getpid()}
    while level:
        level = {pid for pid, stat in stats.items() if int(stat[1]) in level}
        found.extend((pid, stats[pid]) for pid in sorted(level))
    return found


def _read_share(pid):
    try:
        with open("/proc/%d/smaps_rollup" % pid, "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:")), None)
