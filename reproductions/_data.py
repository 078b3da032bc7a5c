"""Where the real logs are, and how they are read."""

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
    """A file or folder of the data, or a sentence that says where it should be."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        raise NotPossibleError(f"{'/'.join(parts)} is not below the data folder; set DYNID_DATA to where it is")
    return path


def log(name: str, robot: Robot, *parts: str) -> Recording:
    """A real log, read by its mapping."""
    return read(data(name, *parts), HERE / "mappings" / f"{name}.toml", robot)
