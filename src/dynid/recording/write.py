"""Write a Recording as CSV or NPZ, in a form that `read` knows without a mapping."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from dynid.errors import RecordingError
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
    with _whole(Path(path), "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(np.hstack(arrays).tolist())
    return Path(path)


def write_npz(recording: Recording, path: str | Path) -> Path:
    """Keys times, positions, velocities, torques, target_positions, target_velocities, wrench, joints."""
    arrays = {key: signal for name, key in _KEYS.items() if (signal := getattr(recording, name)) is not None}
    if recording.joints:
        arrays["joints"] = np.array(recording.joints)
    with _whole(Path(path), "wb") as file:
        np.savez(file, **arrays)
    return Path(path)


@contextmanager
def _whole(path: Path, mode: str) -> Iterator[IO]:
    """A file that appears under its name only when it is complete."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open(mode, encoding=None if "b" in mode else "utf-8", newline=None if "b" in mode else "") as file:
            yield file
        part.replace(path)
    except OSError as problem:
        raise RecordingError(f"{path}: cannot be written: {problem.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
