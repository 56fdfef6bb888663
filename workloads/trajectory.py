"""The judge of "same work": a float64 trajectory committed with each workload.

A trajectory holds, for one set of parameters, what training computes from the canonical start: the
losses of the first steps, for each trainable tensor the norm and some random projections of its
gradient, and the same of the change that the first ``n`` steps make, for a few ``n``. A projection
on a fixed random direction tells a tensor from any other of the same norm, in a few bytes.
"""

import hashlib
import json
import os

import numpy

PROJECTIONS = 2


def path(workload):
    """Return the path of the workload's committed trajectories."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), workload, "trajectories.json")


def find(workload, parameters, data_sha256=None, recipe=None):
    """Return the committed trajectory for these parameters, data and recipe, and the sha256 of its file.

    Returns:
        (trajectory, sha256), the trajectory ``None`` where none was committed for them.
    """
    with open(path(workload), "rb") as file:
        content = file.read()
    for trajectory in json.loads(content.decode()):
        if trajectory.get("recipe") != recipe or trajectory.get("data") not in (None, data_sha256):
            continue
        if is_for(trajectory, parameters):
            return trajectory, hashlib.sha256(content).hexdigest()
    return None, hashlib.sha256(content).hexdigest()


def is_for(trajectory, parameters):
    """Tell whether a trajectory was computed for these parameters; more of them are of no account to it."""
    return all(parameters.get(name) == value for name, value in trajectory["parameters"].items())


def summarise(tensors):
    """Reduce float arrays by name to their norms and projections, all as floats."""
    return {
        name: {
            "norm": float(numpy.linalg.norm(tensor)),
            "projections": [float(value) for value in project(name, tensor)],
        }
        for name, tensor in tensors.items()
    }


def project(name, tensor):
    """Project ``tensor`` on directions that its name and size alone decide.

    Directions are standard normal, scaled so that a projection is about as large as the norm.
    """
    seed = int(hashlib.sha256(name.encode()).hexdigest()[:8], 16)
    directions = numpy.random.RandomState(seed).standard_normal((PROJECTIONS, tensor.size))
    return directions.dot(numpy.asarray(tensor, dtype="float64").ravel())


def write(workload, trajectories):
    """Commit ``trajectories``, a list, to the workload's folder."""
    with open(path(workload), "w") as file:
        json.dump(trajectories, file, indent=1, sort_keys=True, allow_nan=False)
        file.write("\n")
