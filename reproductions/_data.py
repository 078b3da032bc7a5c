"""Location and reading of real logs."""

from __future__ import annotations

import os
from pathlib import Path

from dynid.errors import NotPossibleError
from dynid.recording import Recording
from dynid.recording.log_reading import read
from dynid.robot import Robot

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("DYNID_DATA", HERE.parents[1] / "shared" / "data"))


def data(*parts: str) -> Path:
    """Return the path of a data file or folder; raise an error with its expected location if it is missing."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        raise NotPossibleError(f"{'/'.join(parts)} is not below the data folder; set DYNID_DATA to where it is")
    return path


def log(name: str, robot: Robot, *parts: str) -> Recording:
    """Return a real log, read with its mapping."""
    return read(data(name, *parts), HERE / "mappings" / f"{name}.toml", robot)
