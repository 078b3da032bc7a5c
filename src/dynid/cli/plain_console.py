"""Console for text from untrusted files: no markup, no emoji codes, no control characters."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from dynid.escape import terminal_text


class PlainConsole(Console):
    """Console that prints every text literally: names of robots and joints are neither markup nor terminal commands."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(terminal_text(text), **options)
