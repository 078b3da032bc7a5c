"""Read a log into a Recording."""

from __future__ import annotations

from collections.abc import Mapping as Dictionary
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import RecordingError
from dynid.recording.check import Extremes, content_notes, timing_notes, unit_notes
from dynid.recording.clean import cleaned
from dynid.recording.mapping import Mapping
from dynid.recording.recording import Recording
from dynid.robot import Robot

Paths = str | Path | Sequence[str | Path]
ATTRIBUTES = {"position": "q", "velocity": "dq", "torque": "tau", "reference": "reference",
              "reference_velocity": "reference_velocity", "wrench": "wrench"}


def read(path: Paths, mapping: Mapping | Dictionary[str, Any] | str | Path | None = None, robot: Robot | None = None,
         **overrides: Any) -> Recording:
    """One log as a Recording: joint side, SI units, the robot's joint order.

    path: a file, a folder (a ROS 2 bag, or files that the mapping names), or several files of one log
    that follow each other in time. mapping: a `Mapping`, its settings, or a TOML file with a [log]
    table; what it leaves out is guessed from the names of the columns. overrides: settings of the
    mapping given one by one. Everything that was guessed, left out or looks wrong is in `notes`.
    """
    paths, rules = paths_of(path), mapping_of(mapping, overrides)
    parts = list(cleaned(paths, rules, robot, None))
    t = np.concatenate([part.t for part in parts])
    if not len(t):
        raise RecordingError(f"{paths[0]}: holds no row that can be used")
    signals = {name: np.concatenate([part.signals[name] for part in parts]) for name in parts[0].signals}
    extremes = Extremes.of(signals["position"], signals["torque"])
    notes = [note for part in parts for note in part.notes]
    notes += timing_notes(t, signals["position"])
    notes += content_notes(extremes, parts[0].joints)
    if robot is not None:
        notes += unit_notes(extremes, robot, parts[0].unit_said, str(paths[0]))
    return recording_of(t, signals, parts[0].joints, paths, notes)


def recording_of(t: Array, signals: Dictionary[str, Array], joints: Sequence[str], paths: Sequence[Path],
                 notes: Sequence[str], **rest: Any) -> Recording:
    """Signals by their names in the mapping (samples, dof) as a Recording."""
    arrays: dict[str, Any] = {ATTRIBUTES[name]: np.ascontiguousarray(array) for name, array in signals.items()}
    return Recording(t=t, joints=tuple(joints), source=", ".join(map(str, paths)),
                     notes=tuple(dict.fromkeys(notes)), **arrays, **rest)


def paths_of(path: Paths) -> list[Path]:
    """One or several paths as a list of at least one."""
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(item) for item in path]
    if not paths:
        raise RecordingError("there is no file to read in the list of paths")
    return paths


def mapping_of(mapping: Mapping | Dictionary[str, Any] | str | Path | None, overrides: Dictionary[str, Any]) -> Mapping:
    """Whatever says how to read the log, as a Mapping."""
    if mapping is None:
        rules = Mapping()
    elif isinstance(mapping, Mapping):
        rules = mapping
    elif isinstance(mapping, str | Path):
        rules = Mapping.load(mapping)
    else:
        rules = Mapping.of(mapping)
    return rules.having(**overrides)
