"""Numbers and names as a reader sees them."""

from __future__ import annotations

import math
from pathlib import PurePath

NOTHING = "\u2013"  # a dash


def number(value: float | None, digits: int = 4) -> str:
    """So many significant digits; a dash where there is no number."""
    if value is None or not math.isfinite(value):
        return NOTHING
    text = f"{value:.{digits}g}"
    if "e" in text:
        mantissa, exponent = text.split("e")
        return f"{mantissa}e{int(exponent)}"
    return text


def percent(value: float | None) -> str:
    """'1.62 %', '23 %', '> 1000 %', not to be broken over lines; a dash where there is no number."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if abs(value) > 1000:
        return "> 1000\u00a0%" if value > 0 else "< \u22121000\u00a0%"
    return f"{value:.3g}\u00a0%" if abs(value) < 100 else f"{value:.0f}\u00a0%"


def whole(value: float | None) -> str:
    """A count, thousands apart by a thin space."""
    return NOTHING if value is None or not math.isfinite(value) else f"{round(value):,}".replace(",", "\u202f")


def count(number_of: int, noun: str) -> str:
    """'1 joint', '7 joints'."""
    return f"{number_of} {noun}{'' if number_of == 1 else 's'}"


def seconds(value: float | None) -> str:
    """A time as people say it."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value < 1.0:
        return f"{1e3 * value:.0f} ms"
    if value < 120.0:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min"


def typeset(sentence: str) -> str:
    """A plain sentence or unit with the signs a page has: kg m² for kg m^2, and ± for +-."""
    return sentence.replace("+-", "\u00b1").replace("^2", "\u00b2").replace("^3", "\u00b3")


def file_name(source: str) -> str:
    """The last part of a path; what is no path stays as it is."""
    return PurePath(source).name or source
