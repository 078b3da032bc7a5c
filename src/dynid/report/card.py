"""A key number at the top of a page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """A key number: its name, its value and a short explanation."""

    title: str
    value: str
    words: str
