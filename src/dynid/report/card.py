"""Card: a key number at the top of a page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """A key number: what it is, the number, and a few words."""

    title: str
    value: str
    words: str
