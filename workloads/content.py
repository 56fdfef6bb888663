"""Identity of a workload, by content."""

import hashlib
import os

GROUND = os.path.dirname(os.path.abspath(__file__))
SHARED = ("frameworks", "data")
ENDINGS = (".py", ".json", ".toml")


def names():
    """Return the workloads: the folders that hold a ``workload.toml``."""
    return sorted(
        name for name in os.listdir(GROUND) if os.path.exists(os.path.join(GROUND, name, "workload.toml"))
    )


def sha256(workload):
    """Hash a workload's folder together with what all workloads share.

    Covers each source, trajectory and table by its path and content, so that a change of the
    protocol, of a framework's settings or of the workload itself gives another hash.
    """
    found = [name for name in os.listdir(GROUND) if name.endswith(ENDINGS)]
    for folder in SHARED + (workload,):
        for parent, _, files in os.walk(os.path.join(GROUND, folder)):
            inside = os.path.relpath(parent, GROUND)
            found.extend(os.path.join(inside, name) for name in files if name.endswith(ENDINGS))
    digest = hashlib.sha256()
    for name in sorted(found):
        with open(os.path.join(GROUND, name), "rb") as file:
            digest.update(("%s\0%s\n" % (name, hashlib.sha256(file.read()).hexdigest())).encode())
    return digest.hexdigest()
