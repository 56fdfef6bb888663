"""Measuring a cell: one launch, its phases timed apart."""

import importlib
import math
import resource

from workloads import clock, machine, process_tree, proof, protocol, steady
from workloads.fault import Fault
from workloads.subject import load

# Losses kept from the first units, for the check against the trajectory. Their tensors stay on the
# device until the measuring is over, so that reading them is no part of it.
KEPT = 5


def measure(cell, framework, import_s, timer=None, keep=None):
    """Build the variant and measure what the cell asks for.

    Args:
        cell: the cell, decoded.
        framework: the framework's ``Framework``, loaded.
        import_s: seconds that loading took.
        timer: a ``clock.Clock``; the real one by default.
        keep: is called after each epoch with what is known of it, a dictionary; what a launch that dies
            later leaves behind.

    Returns:
        the fields of the contract's ``Result`` that a measured launch has.

    Raises:
        Fault: the work ran elsewhere than asked, or settings did not hold.
    """
    timer = timer or clock.Clock()
    begin = timer.now_ns()
    subject = load(cell, framework).build(cell, framework, "float32")
    framework.synchronise()
    setup_s = (timer.now_ns() - begin) / 1e9

    settings = read_settings(cell, framework, subject)
    limits = cell["protocol"]
    count_work = importlib.import_module("workloads." + cell["workload"]).count_work
    measures, device = [], None
    losses = []  # type: list
    for name in cell["measures"]:
        work = count_work(cell["parameters"], name)
        subject.start()
        if name.endswith("_epoch"):
            record, tensor = measure_epochs(cell, subject, name, framework, limits, timer, work, keep)
        else:
            record, first = protocol.measure(subject.units[name], framework.synchronise, limits, timer, KEPT)
            tensors = [tensor for value in first for tensor in subject.losses(value)]
            tensor = subject.observe() if subject.observe else tensors[0]
            # Each launch starts from the canonical parameters; only its first measure does.
            losses = losses or [float(framework.read(tensor)) for tensor in tensors]
        record.setdefault("series", {})
        record.setdefault("figures", {}).update(subject.figures)
        record.update(name=name, work=work, loop=subject.loop)
        record["host_reads"] = subject.host_reads.get(name, 0)
        measures.append(record)
        device = device or describe_device(cell, framework, tensor)
    if read_settings(cell, framework, subject) != settings:
        raise Fault("settings", "settings changed while measuring: a library set them anew")
    memory = read_memory(framework, subject)
    if subject.first_losses is not None:
        losses = [float(framework.read(tensor)) for tensor in subject.first_losses(KEPT)]
    subject.close()

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
        "losses": proof.judge_losses(cell, losses, subject.recipe),
        "synchronisation": framework.synchronisation,
        "settings": settings,
        "device": device,
        "memory": memory,
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


def measure_epochs(cell, subject, name, framework, limits, timer, work, keep=None):
    """Time epochs, and read what each left behind.

    Returns:
        (record, tensor): the contract's fields, and something that an epoch handed out or computed.
    """
    series = {"epoch_s": []}  # type: dict
    apart_s = 0.0

    def tell(epoch, seconds):
        nonlocal apart_s
        begin_s = process_tree.cpu_s()
        further = epoch.after() if epoch.after else {}
        found = {key: read_number(framework, value) for key, value in dict(epoch.series, **further).items()}
        found["epoch_s"] = seconds
        if epoch.waiting_s is not None:
            found["waiting_share"] = epoch.waiting_s / seconds
        for key, value in found.items():
            series.setdefault(key, []).append(value)
        if keep is not None:
            keep(dict(found, measure=name, epoch=len(series["epoch_s"])))
        apart_s += process_tree.cpu_s() - begin_s

    begin_s = process_tree.cpu_s()
    record, values, _ = protocol.measure_epochs(
        subject.units[name],
        framework.synchronise,
        cell["parameters"]["epochs"],
        timer,
        limits["budget_s"],
        subject.whole,
        tell,
    )
    cpu_s = process_tree.cpu_s() - begin_s - apart_s
    later = values[1:] or values
    figures = {key: steady.median([value.figures[key] for value in later]) for key in later[0].figures}
    images = sum(value.images for value in values)
    figures["cpu_s_per_image"] = cpu_s / images
    if abs(images - work["images"] * len(values)) > 0.5:
        # The article counts otherwise: what was handed out is not what its epochs are said to be.
        figures["images"] = images
    if "waiting_share" in series:
        figures["waiting_share"] = steady.median(series["waiting_share"][1:] or series["waiting_share"])
    if "validation_accuracy" in series:
        known = [value for value in series["validation_accuracy"] if value is not None]
        figures.update({"best_validation_accuracy": max(known)} if known else {})
    record.update(series=series, figures=figures)
    return record, values[-1].tensor


def read_number(framework, value):
    """Read a number, be it on the device or here already; ``None`` where it is not finite, which JSON has no
    word for."""
    number = float(value if isinstance(value, (float, int)) else framework.read(value))
    return number if math.isfinite(number) else None


def read_memory(framework, subject):
    """Read the most memory that was used: by the device's allocator, by this process, and by it and its
    loader workers together, which no kernel counts and which is therefore read while they work."""
    readings = []
    if subject.under_load is not None:
        subject.under_load(lambda: readings.append(process_tree.memory_bytes()))
    known = [reading for reading in readings if reading is not None]
    return {
        "peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "peak_device_bytes": framework.peak_device_bytes(),
        "peak_tree_bytes": max(known) if known else None,
    }


def read_settings(cell, framework, subject):
    """Read settings back, and see that threads are as many as the cell says.

    Raises:
        Fault: a framework did not take the number of threads.
    """
    settings = dict(framework.settings(), **subject.settings)
    for name in ("intra_op", "inter_op"):
        # An old version that has no such threads has none to set.
        if settings["threads_" + name] not in (cell["threads"][name], None):
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
    """Say where ``tensor`` was computed, or handed out.

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
    if any(None in values for record in measures for values in record["series"].values()):
        warnings.append("training diverged: a loss is not finite")
    least = cell["protocol"]["min_samples"]
    # An epoch is as long as it is: of those there are as many as fit.
    short = [record for record in measures if record["stopped_by"] == "budget" and not record["series"]]
    if any(len(record["samples_s"]) < least for record in short):
        warnings.append("the budget was too short for %d samples" % least)
    return warnings
