"""Console for text from untrusted files: no markup, no emoji codes, no control characters."""

from __future__ import annotations

from typing import Any

from rich.console import Console, Group
from rich.text import Text

from dynid.escape import terminal_text


class PlainConsole(Console):
    """Console that prints every text literally: names of robots and joints are neither markup nor terminal commands."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    def print(self, *objects: Any, crop: bool = False, **options: Any) -> None:
        """Print as rich does, but neither wrap nor cut off a text that must not be wrapped, such as `to_copy`."""
        super().print(*(Group(part) if isinstance(part, Text) else part for part in objects), crop=crop, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(terminal_text(text), **options)


def to_copy(text: str) -> Text:
    """Return a line that a user copies, such as a command: it stays one line on a narrow terminal."""
    return Text(terminal_text(text), no_wrap=True, overflow="ignore")
