"""Texts with joint names, lists and numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dynid.quantities import percent_text


def joint_label(name: str) -> str:
    """Return a joint's name for a sentence: 'joint 3' for joint3, 'joint carriage' for carriage, panda_joint4
    unchanged."""
    bare = bare_joint(name)
    return name if bare == name and "joint" in name.lower() else f"joint {bare}"


def bare_joint(name: str) -> str:
    """Return a joint's name without the word joint before a number: '3' for joint3, carriage unchanged."""
    numbered = re.fullmatch(r"joint[ _]?(\d+)", name)
    return numbered[1] if numbered else name


def span(values: Sequence[float], unit: str = "%") -> str:
    """Return the range of some values as text, such as '5 %' or '5 to 9 %'."""
    low, high = (percent_text(x).removesuffix(" %") for x in (min(values), max(values)))
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def listed(words: Sequence[str], most: int | None = None) -> str:
    """Return words as a list in a sentence: 'a', 'a and b', 'a, b and c'; with `most`, 'a, b and 5 more'."""
    if most is not None and len(words) > most + 1:
        words = [*words[:most], f"{len(words) - most} more"]
    return str(words[0]) if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def joints_listed(names: Sequence[str]) -> str:
    """Return 'joint 2', 'joints 2 and 3', or the names unchanged."""
    bare = [bare_joint(name) for name in names]
    if len(names) > 1 and not any("joint" in name.lower() for name in bare):
        return "joints " + listed(bare)
    return listed([joint_label(name) for name in names])


# First words of sentences that take a capital; any other is the name of a joint or parameter, which stays as it is.
_ORDINARY_WORDS = ("a", "joint", "joints", "the", "block", "on", "all", "between", "more", "record", "longer",
                   "torques", "positions")


def capitalised(text: str) -> str:
    """Return the text with a capital first letter, unless it starts with the name of a joint or parameter."""
    return text[0].upper() + text[1:] if text.split(" ", 1)[0] in _ORDINARY_WORDS else text


def sentence(text: str) -> str:
    """Return the text with a full stop, and a capital letter as in `capitalised`."""
    return capitalised(text if text.endswith((".", "!", "?")) else text + ".")


def inside(text: str) -> str:
    """Return a sentence without its capital first letter, for use after a colon, unless it starts with a name."""
    return text[0].lower() + text[1:] if text.split(" ", 1)[0].lower() in _ORDINARY_WORDS else text
