"""Output of recordings and samples as CSV or NPZ that `read` recognises without a mapping, and as pandas tables."""

from __future__ import annotations

import csv
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, RecordingError, optional_package, require_type
from dynid.escape import csv_line
from dynid.files import write_whole
from dynid.recording.recording import COLUMN_STEMS, SIGNAL_ATTRIBUTES, Recording
from dynid.recording.samples import Samples
from dynid.robot import Robot

_ARRAY_KEYS = {"t": "times", "q": "positions", "dq": "velocities", "tau": "torques", "reference": "target_positions",
         "reference_velocity": "target_velocities", "wrench": "wrench", "temperature": "temperatures",
         "motor_position": "motor_positions",
         "sensed_torque": "sensed_torques", "target_torque": "target_torques", "external_torque": "external_torques",
         "current": "motor_currents", "voltage": "supply_voltages", "duty": "duties"}
_WRENCH_COLUMNS = ("fx", "fy", "fz", "mx", "my", "mz")


def recording_columns(recording: Recording) -> dict[str, Array]:
    """Return columns (samples,) by name: time, position_<joint>, velocity_<joint>, torque_<joint>, wrench_fx and so on.

    Positions are those of the joints with encoders.
    """
    names = recording.joints or tuple(str(i + 1) for i in range(recording.dof))
    columns = {"time": recording.t}
    for name, prefix in COLUMN_STEMS.items():
        signal, whose = getattr(recording, SIGNAL_ATTRIBUTES[name]), names
        if name == "position" and recording.measured_position is not None:
            signal, whose = recording.measured_position, recording.measured
        if name == "torque" and recording.is_torque_free:
            continue
        if signal is not None:
            columns |= {f"{prefix}_{joint}": signal[:, j] for j, joint in enumerate(whose)}
    if recording.wrench is not None:
        columns |= {f"wrench_{axis}": recording.wrench[:, k] for k, axis in enumerate(_WRENCH_COLUMNS)}
    return columns


def write_csv(recording: Recording, path: str | Path) -> Path:
    """Write a CSV file in full precision: time, position_<joint>, velocity_<joint>, torque_<joint> and so on."""
    columns = recording_columns(recording)
    with write_whole(Path(path), "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        file.write(csv_line(columns))
        writer.writerows(np.column_stack(list(columns.values())).tolist())
    return Path(path)


def write_npz(recording: Recording, path: str | Path) -> Path:
    """Write an NPZ file with all signals of a recording.

    The keys are times, positions, velocities, torques, target_positions, target_velocities, wrench, temperatures,
    motor_positions, sensed_torques, target_torques, external_torques, motor_currents, supply_voltages, duties and
    joints. Positions are those of the joints with encoders.
    """
    arrays = {key: signal for name, key in _ARRAY_KEYS.items() if (signal := getattr(recording, name)) is not None
              and not (name == "tau" and recording.is_torque_free)}
    if recording.measured_position is not None:
        arrays["positions"] = recording.measured_position
    elif recording.joints:
        arrays["joints"] = np.array(recording.joints)
    with write_whole(Path(path), "wb") as file:
        np.savez(file, **arrays)
    return Path(path)


def to_frame(data: Recording | Samples) -> Any:
    """Return a table with one row per sample: time, position_<joint>, velocity_<joint>, torque_<joint> and so on.

    Tables of samples also have acceleration_<joint> and keep_<joint>, which states whether a row is used.
    """
    pandas = optional_package("pandas", "pandas")
    if isinstance(data, Recording):
        return pandas.DataFrame(recording_columns(data))
    names = data.joints or tuple(str(j + 1) for j in range(data.dof))
    table: dict[str, Any] = {"time": data.t}
    for prefix, signal in (("position", data.q), ("velocity", data.dq), ("acceleration", data.ddq),
                           ("torque", data.tau), ("keep", data.keep)):
        table |= {f"{prefix}_{name}": signal[:, j] for j, name in enumerate(names)}
    return pandas.DataFrame(table)


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
    from dynid.recording.log_reading import read  # imported here, because log_reading imports this module
    require_type(robot, (Robot, type(None)), "Recording.from_frame",
                 "Recording.from_frame(frame, robot=dynid.Robot.load('robot.urdf'))")
    if isinstance(mapping, Robot):
        raise ModelError("the second argument of Recording.from_frame is the mapping of a log, not a robot",
                         "call Recording.from_frame(frame, robot=robot)", code="wrong-type")
    if not hasattr(frame, "columns"):
        raise ModelError(f"Recording.from_frame takes a pandas DataFrame, not {type(frame).__name__}",
                         "call Recording.from_frame(pandas.DataFrame(table), robot=robot)", code="wrong-type")
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
