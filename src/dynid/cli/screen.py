"""Screen: what a command prints, kept to the lines of one screen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

LINES = 30  # of one screen


@dataclass
class Screen:
    """Prints to a console and counts the lines; lines: those that are left."""

    to: Console
    lines: int = field(default=LINES)

    def print(self, part: Any = "") -> None:
        """Print a part, whatever it takes; text is taken as it is, a table without the blank line below it."""
        text = self._rendered(part)
        self.lines -= text.count("\n")
        self.to.out(text, end="", highlight=False)

    def height(self, parts: Sequence[Any]) -> int:
        """Lines that parts take."""
        return sum(self._rendered(part).count("\n") for part in parts)

    def print_if_it_fits(self, part: Any, spare: int = 0) -> bool:
        """Print a part where `spare` lines are left below it; whether it was."""
        if self._rendered(part).count("\n") + spare > self.lines:
            return False
        self.print(part)
        return True

    def print_what_fits(self, parts: Sequence[Any], spare: int = 0, most: int | None = None) -> int:
        """Print the first parts, at most so many, as long as `spare` lines are left below them; how many were."""
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
