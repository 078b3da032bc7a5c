"""Output of a command that is limited to the lines of one screen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

LINES = 30  # lines per screen
MAX_FINDINGS_PRINTED = 5  # findings per screen


@dataclass
class Screen:
    """Console output with a count of the remaining lines."""

    to: Console
    lines: int = field(default=LINES)

    def print(self, part: Any = "") -> None:
        """Print a text (literally) or a table (without the blank line below it), regardless of its height."""
        from rich.text import Text

        text = self._rendered(part)
        self.lines -= text.count("\n")
        # A terminal's rendered text has codes of styles, which the console would print as characters.
        self.to.print(Text.from_ansi(text.removesuffix("\n")), no_wrap=True, overflow="ignore")

    def height(self, parts: Sequence[Any]) -> int:
        """Return the number of screen lines that some texts and tables need."""
        return sum(self._rendered(part).count("\n") for part in parts)

    def print_if_it_fits(self, part: Any, spare: int = 0) -> bool:
        """Print a text or table if `spare` lines of the screen remain below it. Return whether it was printed."""
        if self._rendered(part).count("\n") + spare > self.lines:
            return False
        self.print(part)
        return True

    def print_what_fits(self, parts: Sequence[Any], spare: int = 0, most: int | None = None) -> int:
        """Print the first texts and tables, at most `most`, while `spare` lines of the screen remain below them.

        Return the number of printed texts and tables.
        """
        done = 0
        for part in parts[:most]:
            if not self.print_if_it_fits(part, spare):
                break
            done += 1
        return done

    def _rendered(self, part: Any) -> str:
        with self.to.capture() as captured:
            self.to.print(part, markup=False)
        lines = [line.rstrip() for line in captured.get().split("\n")]
        if not isinstance(part, str):  # tables are framed by empty lines
            lines = [line for line in lines if line]
            lines.append("")
        return "\n".join(lines)
