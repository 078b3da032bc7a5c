"""Formatting of numbers and names."""

from __future__ import annotations

import math
from pathlib import PurePath

NOTHING = "\u2013"  # a dash


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with `digits` significant digits, or a dash if it is None or not finite."""
    if value is None or not math.isfinite(value):
        return NOTHING
    text = f"{value:.{digits}g}"
    if "e" in text:
        mantissa, exponent = text.split("e")
        return f"{mantissa}e{int(exponent)}"
    return text


def percent(value: float | None) -> str:
    """Format as '1.62 %', '23 %' or '> 1000 %' without line breaks; a dash for no number."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if abs(value) > 1000:
        return "> 1000\u00a0%" if value > 0 else "< \u22121000\u00a0%"
    return f"{value:.3g}\u00a0%" if abs(value) < 100 else f"{value:.0f}\u00a0%"


def whole(value: float | None) -> str:
    """Format a count with thin spaces between thousands."""
    return NOTHING if value is None or not math.isfinite(value) else f"{round(value):,}".replace(",", "\u202f")


def count(number_of: int, noun: str) -> str:
    """Format as '1 joint', '7 joints'."""
    return f"{number_of} {noun}{'' if number_of == 1 else 's'}"


def seconds(value: float | None) -> str:
    """Format a time in ms, s or min."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value < 1.0:
        return f"{1e3 * value:.0f} ms"
    if value < 120.0:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min"


def typeset(sentence: str) -> str:
    """Replace kg m^2 by kg m² and +- by ± in a sentence or unit."""
    return sentence.replace("+-", "\u00b1").replace("^2", "\u00b2").replace("^3", "\u00b3")


def file_name(source: str) -> str:
    """Return the last part of a path; other text is unchanged."""
    return PurePath(source).name or source
