"""Recordings and samples as pandas tables, if pandas is installed."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import RecordingError
from dynid.recording.recording import Recording
from dynid.recording.samples import Samples
from dynid.recording.write import columns_of
from dynid.robot import Robot


def pandas() -> Any:
    """Return the package pandas; raise an error that states how to install it if it is missing."""
    try:
        import pandas as found
    except ImportError:
        raise RecordingError("tables of pandas need the package pandas: pip install pandas",
                             code="missing-package") from None
    return found


def to_frame(data: Recording | Samples) -> Any:
    """Return a table with one row per sample: time, position_<joint>, velocity_<joint>, torque_<joint> and so on.

    Tables of samples also have acceleration_<joint> and keep_<joint>, which states whether a row is used.
    """
    if isinstance(data, Recording):
        return pandas().DataFrame(columns_of(data))
    names = data.joints or tuple(str(j + 1) for j in range(data.dof))
    table: dict[str, Any] = {"time": data.t}
    for prefix, signal in (("position", data.q), ("velocity", data.dq), ("acceleration", data.ddq),
                           ("torque", data.tau), ("keep", data.keep)):
        table |= {f"{prefix}_{name}": signal[:, j] for j, name in enumerate(names)}
    return pandas().DataFrame(table)


def from_frame(frame: Any, mapping: Any = None, robot: Robot | None = None, *, source: str = "a table",
               **overrides: Any) -> Recording:
    """Return a recording from a pandas table, whose columns are found like those of a log file.

    Args:
        frame: one row per sample; its index is the time if there is no time column.
        mapping: as in `dynid.read`.
        robot: robot with these joints.
        source: name of the table in messages.
        overrides: settings that replace those of the mapping, such as position=["a", "b"].
    """
    from dynid.recording.log_reading import read  # which reads files of all kinds, and with them this one
    columns = {str(name): _numbers(frame[name]) for name in frame.columns}
    if frame.index.name and str(frame.index.name) not in columns:
        columns = {str(frame.index.name): _numbers(frame.index.to_series()), **columns}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        np.savez(path, **columns)
        try:
            found = read(path, mapping, robot, **overrides)
        except RecordingError as problem:
            raise RecordingError(str(problem).replace(str(path), source), code=problem.code,
                                 where=problem.where) from None
    return replace(found, source=source)


def _numbers(column: Any) -> Any:
    """Return a column as numbers; dates and durations are converted to seconds."""
    values = column.to_numpy()
    if values.dtype.kind in "mM":
        return (values - values[:1]) / np.timedelta64(1, "s")
    return values
