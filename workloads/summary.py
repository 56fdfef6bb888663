"""A launch in a few lines, for a person at a terminal."""


def describe(answer):
    """Return the lines that say what a launch found."""
    cell = answer["cell"]
    head = "%s, %s edition, %s, %s, %s" % (
        cell["workload"],
        cell["edition"],
        cell["variant"],
        cell["device"],
        cell["precision"],
    )
    lines = [head]
    if "cause" in answer:
        lines.append("  %s: %s" % (answer["status"], answer["cause"]["message"]))
    if "proof" in answer:
        checks = answer["proof"]["checks"]
        worst = max(checks, key=lambda check: check["error"] / check["tolerance"])
        lines.append(
            "  proof %s: %d checks in %s, largest error %.1e (%s), allowed %.0e"
            % (
                "holds" if answer["proof"]["holds"] else "fails",
                len(checks),
                answer["proof"]["dtype"],
                worst["error"],
                worst["name"],
                worst["tolerance"],
            )
        )
    for measure in answer.get("measures", ()):
        samples = sorted(measure["samples_s"])
        middle = samples[len(samples) // 2]
        lines.append(
            "  %-12s %s median, %s best of %d samples of %d; first call %s; warm-up %s; stopped by %s"
            % (
                measure["name"],
                _seconds(middle),
                _seconds(samples[0]),
                len(samples),
                measure["repeats"],
                _seconds(measure["first_call_s"]),
                measure["warmup"]["ended_by"],
                measure["stopped_by"],
            )
        )
        for unit, scale, name in (
            ("images", 1.0, "images/s"),
            ("flop", 1e9, "GFLOP/s"),
            ("bytes", 1e9, "GB/s"),
        ):
            if unit in measure["work"]:
                lines.append("  %-12s %.1f %s" % ("", measure["work"][unit] / middle / scale, name))
        for name, values in sorted(measure["series"].items()):
            lines.append(
                "  %-12s %s by epoch: %s" % ("", name, ", ".join("%.4g" % value for value in values))
            )
    if "device" in answer:
        lines.append("  on %s, %d threads" % (answer["device"]["model"], cell["threads"]["intra_op"]))
    return "\n".join(lines)


def _seconds(value):
    for scale, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= scale:
            return "%.4g %s" % (value / scale, name)
    return "%.4g ns" % (value / 1e-9)
