"""Proving a cell: the same work as the committed trajectory, shown in float64."""

import hashlib
import json

import numpy

from workloads import trajectory
from workloads.fault import Fault
from workloads.subject import load

# A proof runs two units at least, the second from the state that the first left, and as many as show
# what only later steps do: momentum does nothing to the first change, nor to the loss after it.
UNITS = 2
LOSSES = 6


def prove(cell, framework):
    """Compare the variant with its trajectory.

    Returns:
        the contract's ``Proof``, whether it holds or not.

    Raises:
        Fault: no trajectory is committed for these parameters.
    """
    dtype = cell["tolerances"]["dtype"]
    subject = load(cell, framework).build(cell, framework, dtype)
    judge, sha256 = find_judge(cell, subject)
    start = subject.parameters()
    count = sum(tensor.size for tensor in start.values())
    checks = list(compare(cell, framework, subject, start, judge))
    counts = [("parameter_count", judge["parameter_count"], count)] + list(subject.checks)
    checks.extend(check(name, expected, found, 1.0, 0.5) for name, expected, found in counts)
    return {
        "dtype": dtype,
        "trajectory_sha256": sha256,
        "parameter_count": count,
        "checks": checks,
        "figures": subject.figures,
        "holds": all(one["error"] <= one["tolerance"] for one in checks),
    }


def find_judge(cell, subject):
    """Return the trajectory that judges a cell, and its sha256: the committed one, or for data that nobody
    committed one for, what the workload's reference computes now.

    Raises:
        Fault: there is none.
    """
    data = cell.get("data")
    judge, sha256 = trajectory.find(
        cell["workload"], cell["parameters"], data["sha256"] if data else None, subject.recipe
    )
    if judge is None and subject.judge is not None:
        judge = subject.judge()
        sha256 = hashlib.sha256(json.dumps(judge, sort_keys=True).encode()).hexdigest()
    if judge is None or not trajectory.is_for(judge, cell["parameters"]):
        raise Fault(
            "trajectory",
            "no trajectory is committed for these parameters of %s; add them to workloads/%s/reference.py"
            % (cell["workload"], cell["workload"]),
        )
    return judge, sha256


def compare(cell, framework, subject, start, judge):
    """Yield a check for each quantity: first loss, gradients, change of a unit, later losses."""
    exact, loose = cell["tolerances"]["gradients"], cell["tolerances"]["update"]
    if subject.gradients is not None:
        loss, gradients = subject.gradients()
        yield check("loss[0]", judge["losses"][0], float(framework.read(loss)), judge["losses"][0], exact)
        for one in compare_tensors("gradient", judge["gradients"], gradients, exact):
            yield one

    unit = subject.step or subject.units[cell["measures"][0]]
    losses = [float(framework.read(value)) for value in subject.losses(unit())]
    if subject.applied is not None:
        for one in compare_tensors("gradient", judge["gradients"], subject.applied(), exact):
            yield one
    if subject.statistics is not None:
        for one in compare_tensors("statistics", judge["statistics"], subject.statistics(), exact):
            yield one
    # Judged as a change: a value hides a wrong step behind the parameter it is small against.
    after = subject.parameters()
    changes = subject.summarised({name: after[name] - start[name] for name in start})
    for one in compare_tensors("change", judge["changes"][str(len(losses))], changes, loose):
        yield one
    units = 1
    while units < UNITS or len(losses) < LOSSES:
        units += 1
        losses.extend(float(framework.read(value)) for value in subject.losses(unit()))
    for step, value in enumerate(losses):
        expected = judge["losses"][step]
        yield check("loss[%d]" % step, expected, value, expected, loose if step else exact)


def compare_tensors(kind, expected, tensors, tolerance):
    """Yield checks of norms and projections, relative to each expected tensor's norm."""
    found = trajectory.summarise(tensors)
    if set(found) != set(expected):
        raise Fault("trajectory", "trainable tensors are %s, expected %s" % (sorted(found), sorted(expected)))
    for name in sorted(expected):
        scale = expected[name]["norm"]
        yield check("%s[%s].norm" % (kind, name), scale, found[name]["norm"], scale, tolerance)
        for index, value in enumerate(expected[name]["projections"]):
            label = "%s[%s].projection[%d]" % (kind, name, index)
            yield check(label, value, found[name]["projections"][index], scale, tolerance)


def check(name, expected, value, scale, tolerance):
    """Compare one quantity, its error relative to ``scale``.

    A value that is not finite, which JSON cannot hold, is told as a fault.
    """
    if not numpy.isfinite(value):
        raise Fault("losses", "%s is %s where %r was expected" % (name, value, expected))
    error = abs(value - expected) / abs(scale) if scale else abs(value - expected)
    return {
        "name": name,
        "expected": float(expected),
        "value": float(value),
        "error": float(error),
        "tolerance": tolerance,
    }


def judge_losses(cell, values, recipe=None):
    """Compare the first losses of a measured launch with the trajectory, in the cell's precision.

    Returns:
        the contract's ``Losses``, or ``None`` where no trajectory is committed or nothing was trained.
    """
    if cell["role"] == "ceiling" or not values:
        return None
    data = cell.get("data")
    judge, _ = trajectory.find(cell["workload"], cell["parameters"], data["sha256"] if data else None, recipe)
    if judge is None:
        return None
    expected = judge["losses"][: len(values)]
    values = values[: len(expected)]
    if not all(numpy.isfinite(values)):
        raise Fault("losses", "the first losses are %s where %s were expected" % (values, expected))
    tolerance = cell["tolerances"]["losses"]
    error = max(abs(value - other) / abs(other) for value, other in zip(values, expected))
    return {
        "values": values,
        "expected": expected,
        "tolerance": tolerance,
        "error": error,
        "holds": error <= tolerance,
    }
