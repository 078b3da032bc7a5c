"""Write a Recording as CSV or NPZ, in a form that `read` knows without a mapping."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from dynid.files import write_whole
from dynid.recording.recording import Recording

_COLUMNS = {"q": "position", "dq": "velocity", "tau": "torque", "reference": "reference_position",
            "reference_velocity": "reference_velocity"}
_KEYS = {"t": "times", "q": "positions", "dq": "velocities", "tau": "torques", "reference": "target_positions",
         "reference_velocity": "target_velocities", "wrench": "wrench"}
_WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")


def write_csv(recording: Recording, path: str | Path) -> Path:
    """A header of time, position_<joint>, velocity_<joint>, torque_<joint>, ...; every digit kept."""
    names = recording.joints or tuple(str(i + 1) for i in range(recording.dof))
    header, arrays = ["time"], [recording.t[:, None]]
    for attribute, prefix in _COLUMNS.items():
        signal = getattr(recording, attribute)
        if signal is not None:
            header += [f"{prefix}_{name}" for name in names]
            arrays.append(signal)
    if recording.wrench is not None:
        header += [f"wrench_{axis}" for axis in _WRENCH]
        arrays.append(recording.wrench)
    with write_whole(Path(path), "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(np.hstack(arrays).tolist())
    return Path(path)


def write_npz(recording: Recording, path: str | Path) -> Path:
    """Keys times, positions, velocities, torques, target_positions, target_velocities, wrench, joints."""
    arrays = {key: signal for name, key in _KEYS.items() if (signal := getattr(recording, name)) is not None}
    if recording.joints:
        arrays["joints"] = np.array(recording.joints)
    with write_whole(Path(path), "wb") as file:
        np.savez(file, **arrays)
    return Path(path)

