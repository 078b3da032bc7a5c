"""The report page of a recorded stream."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynid.online import Online
from dynid.online.record import read_history
from dynid.report import write_page
from dynid.report.pages.stream import STREAM, Shown, StreamData

PAGE = "report.html"


def write_stream_page(folder: Path, online: Online, robot: str) -> Path | None:
    """Write the page of a recorded stream into its folder; return None if its history is too short."""
    names, rows = read_history(folder)
    if len(rows) < 2:
        return None
    b = len(online.base)
    restarts = [float(rows[k, 0]) for k in np.flatnonzero(np.diff(rows[:, 2]) > 0) + 1]
    changes = tuple(Shown(float(np.interp(change.sample, rows[:, 1], rows[:, 0])), change.sample, change.cause, tuple(
        (str(one), one.evidence, 100.0 * one.explained) for one in change.explanations)) for change in online.changes())
    data = StreamData(f"{robot}: live estimation", online.method, online.samples, rows[:, 0], rows[:, 3:3 + b],
                      rows[:, 3 + b:3 + 2 * b], tuple(names[3:3 + b]), online.base.units, tuple(restarts), changes,
                      tuple((one.t, one.text) for one in online.events))
    return write_page(STREAM, data, Path(folder) / PAGE)
