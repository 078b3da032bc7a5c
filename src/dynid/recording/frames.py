"""Recordings and samples as tables of pandas, where that is installed."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.errors import RecordingError
from dynid.recording.recording import Recording
from dynid.recording.samples import Samples
from dynid.recording.write import columns_of


def pandas() -> Any:
    """The package pandas, or a sentence that says how to get it."""
    try:
        import pandas as found
    except ImportError:
        raise RecordingError("tables of pandas need the package pandas: pip install pandas") from None
    return found


def to_frame(data: Recording | Samples) -> Any:
    """A table with a row a sample: time, position_<joint>, velocity_<joint>, torque_<joint>, ...; of samples also
    acceleration_<joint>, and keep_<joint>, which rows count."""
    if isinstance(data, Recording):
        return pandas().DataFrame(columns_of(data))
    names = data.joints or tuple(str(j + 1) for j in range(data.dof))
    table: dict[str, Any] = {"time": data.t}
    for prefix, signal in (("position", data.q), ("velocity", data.dq), ("acceleration", data.ddq),
                           ("torque", data.tau), ("keep", data.keep)):
        table |= {f"{prefix}_{name}": signal[:, j] for j, name in enumerate(names)}
    return pandas().DataFrame(table)


def from_frame(frame: Any, *, time: str = "time", position: str = "position_", torque: str = "torque_",
               velocity: str = "velocity_", source: str = "a table") -> Recording:
    """A recording from a table: the columns whose names begin so, in their order; joint side, SI units."""
    found = {prefix: [name for name in map(str, frame.columns) if name.startswith(prefix)]
             for prefix in (position, torque, velocity)}
    if time not in frame.columns:
        raise RecordingError(f"{source} has no column '{time}'; its columns are {', '.join(map(str, frame.columns))}")
    for prefix in (position, torque):
        if not found[prefix] or len(found[prefix]) != len(found[position]):
            raise RecordingError(f"{source} has {len(found[prefix])} columns that begin with '{prefix}' and "
                                 f"{len(found[position])} that begin with '{position}'; give one of each per joint")
    q, tau, dq = (np.ascontiguousarray(frame[found[prefix]].to_numpy(dtype=float)) for prefix in found)
    t = np.ascontiguousarray(frame[time].to_numpy(dtype=float))
    return Recording(t, q, tau, dq if dq.shape[1] else None, source=source,
                     joints=tuple(name.removeprefix(position) for name in found[position]))
