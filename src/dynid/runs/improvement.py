"""Command line that designs a motion for the least determined parameters of a result."""

from __future__ import annotations

import shlex
from pathlib import Path

MOTION = "motion.csv"  # file that the command writes


def improve_command(robot: str, folder: str | Path) -> str:
    """Return the `dynid excite` command that designs a better motion for a robot and the folder of its result."""
    return shlex.join(["dynid", "excite", robot, "--improve", str(folder), "-o", MOTION])
