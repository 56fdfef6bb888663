"""Measuring a cell: one launch, its phases timed apart."""

import importlib
import resource

from workloads import clock, machine, proof, protocol
from workloads.fault import Fault

# Losses kept from the first units, for the check against the trajectory. Their tensors stay on the
# device until the measuring is over, so that reading them is no part of it.
KEPT = 5


def measure(cell, framework, import_s, timer=None):
    """Build the variant and measure what the cell asks for.

    Args:
        cell: the cell, decoded.
        framework: the framework's ``Framework``, loaded.
        import_s: seconds that loading took.
        timer: a ``clock.Clock``; the real one by default.

    Returns:
        the fields of the contract's ``Result`` that a measured launch has.

    Raises:
        Fault: the work ran elsewhere than asked, or settings did not hold.
    """
    timer = timer or clock.Clock()
    begin = timer.now_ns()
    module = importlib.import_module("workloads.%s.%s" % (cell["workload"], cell["module"]))
    subject = module.build(cell, framework, "float32")
    framework.synchronise()
    setup_s = (timer.now_ns() - begin) / 1e9

    settings = read_settings(cell, framework, subject)
    limits = dict(cell["protocol"])
    limits["budget_s"] /= len(cell["measures"])
    measures, losses, device = [], [], None
    for name in cell["measures"]:
        record, first = time_unit(name, subject.units[name], framework, limits, timer)
        work = importlib.import_module("workloads." + cell["workload"]).count_work(cell["parameters"], name)
        record.update(name=name, work=work, loop=subject.loop, host_reads=subject.host_reads)
        record.update(series={}, figures={})
        measures.append(record)
        tensors = [tensor for value in first for tensor in subject.losses(value)]
        device = device or describe_device(cell, framework, tensors[0])
        losses.append([float(framework.read(tensor)) for tensor in tensors])
    if read_settings(cell, framework, subject) != settings:
        raise Fault("settings", "settings changed while measuring: a library set them anew")

    answer = {
        "status": "measured",
        "phases": {
            "import_s": import_s,
            "setup_s": setup_s,
            "first_call_s": sum(record["first_call_s"] for record in measures),
            "warmup_s": sum(record["warmup"]["seconds"] for record in measures),
            "sampling_s": sum(sum(record["samples_s"]) * record["repeats"] for record in measures),
        },
        "measures": measures,
        # Each launch starts from the canonical parameters; only its first measure does.
        "losses": proof.judge_losses(cell, losses[0]),
        "synchronisation": framework.synchronisation,
        "settings": settings,
        "device": device,
        "memory": {
            "peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "peak_device_bytes": framework.peak_device_bytes(),
        },
        "warnings": warn(cell, measures) + framework.warnings,
    }
    if answer["losses"] and not answer["losses"]["holds"]:
        answer["status"] = "failed"
        answer["cause"] = {
            "kind": "losses",
            "message": "the first losses differ from the trajectory by %.1e, beyond %.1e"
            % (answer["losses"]["error"], answer["losses"]["tolerance"]),
        }
    return answer


def time_unit(name, unit, framework, limits, timer):
    """Time a unit as its measure asks: epochs one by one, anything else in the steady state.

    Returns:
        (record, values): the contract's fields, and what the first units returned.
    """
    if name.endswith("_epoch"):
        return protocol.measure_epochs(unit, framework.synchronise, limits["max_samples"], timer)
    return protocol.measure(unit, framework.synchronise, limits, timer, KEPT)


def read_settings(cell, framework, subject):
    """Read settings back, and see that threads are as many as the cell says.

    Raises:
        Fault: a framework did not take the number of threads.
    """
    settings = dict(framework.settings(), **subject.settings)
    for name in ("intra_op", "inter_op"):
        if settings["threads_" + name] != cell["threads"][name]:
            raise Fault(
                "settings",
                "%s uses %d %s threads where %d were set"
                % (
                    framework.name,
                    settings["threads_" + name],
                    name.replace("_", "-"),
                    cell["threads"][name],
                ),
            )
    return settings


def describe_device(cell, framework, tensor):
    """Say where ``tensor`` was computed.

    Raises:
        Fault: elsewhere than the cell asks for.
    """
    observed = framework.device_of(tensor)
    expected = "cpu" if framework.index is None else "cuda:%d" % framework.index
    if observed != expected:
        raise Fault("device", "%s was asked for and %s computed" % (expected, observed))
    return dict(framework.describe_device(), asked=cell["device"], observed=observed)


def warn(cell, measures):
    """Say what makes this launch's figures doubtful."""
    warnings = []
    usable = machine.usable_cpus()
    if cell["threads"]["intra_op"] > usable:
        warnings.append("%d threads on %d usable CPUs" % (cell["threads"]["intra_op"], usable))
    least = cell["protocol"]["min_samples"]
    if any(record["stopped_by"] == "budget" and len(record["samples_s"]) < least for record in measures):
        warnings.append("the budget was too short for %d samples" % least)
    return warnings
