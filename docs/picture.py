"""Make docs/images/inspect.svg: what `dynid inspect arm3r` prints, as a picture."""

from __future__ import annotations

import os
import re
from pathlib import Path

from rich.console import Console

from dynid.cli.inspect import look_at, show
from dynid.robot import Robot

PICTURE = Path(__file__).resolve().parent / "images" / "inspect.svg"


def main() -> None:
    """Draw it."""
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=88, file=nowhere, force_terminal=True, highlight=False)
        show(look_at(Robot.builtin("arm3r")), console)
    svg = console.export_svg(title="dynid inspect arm3r", unique_id="inspect")
    # The reader's own monospace font: a picture in a document fetches nothing.
    PICTURE.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
