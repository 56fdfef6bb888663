"""What this machine is, and how much of it this process may use. Linux, standard library only."""

import os
import platform
import re


def describe():
    """Describe the machine, as the contract's ``Machine``."""
    return {
        "host": platform.node(),
        "cpu_model": _cpu_field("model name") or platform.machine(),
        "cpus_online": os.cpu_count() or 1,
        "cpus_usable": usable_cpus(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or None,
        "load_1m": os.getloadavg()[0],
    }


def usable_cpus(root="/"):
    """Count the CPUs this process may really use: its affinity, cut by its control group's quota.

    Frameworks take their default number of threads from the host's cores, which in a container
    limited to a few makes them fight for the same core. ``root`` is where ``proc`` and ``sys``
    are looked for.
    """
    count = len(os.sched_getaffinity(0))
    for quota in _quotas(root):
        count = min(count, max(1, int(quota)))
    return count


def has_bfloat16(root="/"):
    """Tell whether the CPU computes in bfloat16 rather than emulates it."""
    flags = (_cpu_field("flags", root) or _cpu_field("Features", root) or "").split()
    return bool({"avx512_bf16", "amx_bf16", "bf16"} & set(flags))


def nvidia_driver(root="/"):
    """Return the version of the loaded NVIDIA kernel driver, or ``None``."""
    version = _read(os.path.join(root, "proc/driver/nvidia/version"))
    found = re.search(r"Kernel Module.*?\s(\d+\.\d[\d.]*)\s", version)
    return found.group(1) if found else None


def _quotas(root):
    """Yield the CPU quotas, in CPUs, of this process's control groups and of all above them."""
    for line in _read(os.path.join(root, "proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mount = os.path.join(root, "sys/fs/cgroup", "cpu" if controllers else "")
        parts = [part for part in path.split("/") if part]
        # In a container the path may be the host's, and the group itself mounted at the root: each
        # level that exists is asked, the root included.
        for depth in range(len(parts), -1, -1):
            folder = os.path.join(mount, *parts[:depth])
            quota, _, period = _read(os.path.join(folder, "cpu.max")).partition(" ")
            if not quota:
                quota = _read(os.path.join(folder, "cpu.cfs_quota_us"))
                period = _read(os.path.join(folder, "cpu.cfs_period_us"))
            if quota.isdigit() and period.isdigit():
                yield float(quota) / float(period)


def _cpu_field(name, root="/"):
    found = re.search(r"^%s\s*:\s*(.+)$" % name, _read(os.path.join(root, "proc/cpuinfo")), re.MULTILINE)
    return found.group(1).strip() if found else None


def _read(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError):
        return ""
