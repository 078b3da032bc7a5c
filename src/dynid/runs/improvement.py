"""Command that designs a motion for the least certain parameters of a result."""

from __future__ import annotations

import shlex
from pathlib import Path

MOTION = "motion.csv"  # what it writes


def improve_command(robot: str, folder: str | Path) -> str:
    """Return the `dynid excite` command that designs a better motion. robot: as the run names it. folder: folder of the
    result."""
    return shlex.join(["dynid", "excite", robot, "--improve", str(folder), "-o", MOTION])
