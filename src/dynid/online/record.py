"""Record of a stream in a folder, from which it can be resumed after an interruption.

stream.npz: the whole state, replaced atomically. history.csv: a line per update with time, samples and the estimate
with its standard errors; it restarts when another model is chosen. An incomplete last line is dropped on opening.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import RecordingError
from dynid.estimate.estimate import Estimate
from dynid.files import write_whole, writing
from dynid.model import LinearModel
from dynid.online.online import Online
from dynid.online.store import saved_about

STATE, HISTORY = "stream.npz", "history.csv"


class Record:
    """The record of a stream in a folder, which is created."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)

    def resume(self, model: LinearModel) -> Online | None:
        """Return the recorded stream; None if there is none."""
        path = self.folder / STATE
        return Online.load(path, model) if path.exists() else None

    @property
    def about(self) -> dict[str, Any] | None:
        """Return the description of the recorded stream (`Online.about`); None if nothing is recorded."""
        path = self.folder / STATE
        return saved_about(path) if path.exists() else None

    def write(self, online: Online, estimate: Estimate | None) -> None:
        """Write the state, and a line of the history if there is an estimate."""
        if estimate is not None:
            self._line(online, estimate)
        online.save(self.folder / STATE)

    def _line(self, online: Online, estimate: Estimate) -> None:
        path, names = self.folder / HISTORY, estimate.names
        head = ",".join(["t", "samples", "restarts", *names, *(f"std {name}" for name in names)]) + "\n"
        with writing(path):
            content = path.read_bytes() if path.exists() else b""
            whole = content[:content.rfind(b"\n") + 1]  # a kill may have come in the middle of a line, the head's too
            if not whole.startswith(head.encode()):  # none yet, or of a model that another one was chosen for
                whole = head.encode()
            if whole != content:
                with write_whole(path, "wb") as file:
                    file.write(whole)
            numbers = [online.last_stamp, online.samples, len(online.restarts), *estimate.values, *estimate.std]
            with open(path, "a", encoding="utf-8") as file:
                file.write(",".join(f"{x:.9g}" for x in numbers) + "\n")


def read_history(folder: Path) -> tuple[list[str], Array]:
    """Return the column names of a record's history, and its rows (looks, columns)."""
    path = Path(folder) / HISTORY
    try:
        head, *lines = path.read_text(encoding="utf-8").split("\n")[:-1]  # what no line end follows is not whole
    except (OSError, ValueError):
        raise RecordingError(f"{folder} is not the record of a stream: it has no {HISTORY}") from None
    names = head.split(",")
    rows = [[float(x) for x in line.split(",")] for line in lines if line.count(",") == len(names) - 1]
    return names, np.array(rows).reshape(-1, len(names))
