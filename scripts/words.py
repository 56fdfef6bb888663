"""Figures and names in words, the same in every format. Names come from results, which are untrusted."""

import math
from collections.abc import Callable, Mapping

from scripts.comparison import Interval
from scripts.contract import Scalar

RATES = {"images": (1.0, "images/s"), "flop": (1e9, "GFLOP/s"), "bytes": (1e9, "GB/s")}
"""What is shown of work a second, the first that a row has: divisor and unit."""
WORK = {"flop": "FLOP", "bytes": "B"}


def make_visible(text: str) -> str:
    """Show what would move the cursor, colour the terminal or reverse the line, as an escape."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def describe_seconds(seconds: float | None) -> str:
    """Three significant digits in the unit that fits: ``62.1 ms``."""
    if seconds is None:
        return ""
    scale, unit = next(
        (
            (scale, unit)
            for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
            if seconds >= scale * 0.9995
        ),
        (1e-9, "ns"),
    )
    return f"{describe_number(seconds / scale)} {unit}"


def describe_duration(seconds: float) -> str:
    """How long something takes a person: ``17 s``, ``4.1 min``, ``25 min``, ``3.5 h``."""
    if seconds >= 10800:
        return f"{seconds / 3600:.0f} h" if seconds >= 35820 else f"{seconds / 3600:.1f} h"
    if seconds >= 119.5:
        return f"{seconds / 60:.0f} min" if seconds >= 595 else f"{seconds / 60:.1f} min"
    if seconds >= 10 or seconds == 0:
        return f"{seconds:.0f} s"
    return describe_seconds(seconds)


def describe_number(value: float) -> str:
    """Three significant digits, without an exponent where a person needs none."""
    if value == 0 or not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3g}"
    if abs(value) >= 999.5:
        return f"{value:,.0f}"
    rounded = float(f"{value:.3g}")
    if abs(rounded) < 1:
        return f"{rounded:.3g}"
    return f"{rounded:.{2 - math.floor(math.log10(abs(rounded)))}f}"


def describe_ratio(ratio: float | None, interval: Interval | None) -> str:
    """``0.57x [0.55, 0.59]``, with as many digits as the interval bears."""
    if ratio is None:
        return ""
    low, high = interval or (ratio, ratio)
    if not 1e-3 <= low <= high < 1e4:
        return f"{ratio:.3g}x [{low:.3g}, {high:.3g}]"
    digits = 3 if high < 0.095 or 0 < high - low < 0.015 else 2 if high < 99.5 else 0
    return f"{ratio:.{digits}f}x [{low:.{digits}f}, {high:.{digits}f}]"


def describe_bytes(count: int | None) -> str:
    if count is None:
        return ""
    return (
        f"{describe_number(count / 2**30)} GiB" if count >= 2**30 else f"{describe_number(count / 2**20)} MiB"
    )


def describe_setting(value: Scalar) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    return make_visible(str(value))


def describe_figure(name: str, value: float) -> str:
    """``first batch 31.2 ms``: by what a figure's name says of its unit."""
    ending, describe = find_unit(name)
    return f"{make_visible(name.removesuffix(ending).replace('_', ' '))} {describe(value)}"


def find_unit(name: str) -> tuple[str, Callable[[float], str]]:
    """Return the end of a figure's name that tells its unit, and what describes such a figure."""
    return next((unit for unit in FIGURES.items() if name.endswith(unit[0])), ("", describe_setting))


def describe_work(work: Mapping[str, float]) -> str:
    """``1 steps, 10.2 GFLOP``"""
    return ", ".join(_describe_amount(make_visible(counted), amount) for counted, amount in work.items())


FIGURES: dict[str, Callable[[float], str]] = {
    "_s_per_image": describe_seconds,
    "_s": describe_seconds,
    "_share": lambda value: f"{100 * value:.3g} %",
    "_correlation": lambda value: f"{value:.2f}",
    "_accuracy": lambda value: f"{100 * value:.2f} %",
}
"""By the end of a name."""


def _describe_amount(counted: str, amount: float) -> str:
    if counted not in WORK:
        return f"{amount:,.10g} {counted.removesuffix('s') if amount == 1 else counted}"
    scale, prefix = next(
        (pair for pair in ((1e12, "T"), (1e9, "G"), (1e6, "M")) if amount >= pair[0]), (1.0, "")
    )
    return f"{describe_number(amount / scale)} {prefix}{WORK[counted]}"
