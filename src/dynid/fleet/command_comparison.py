"""Comparison of robots with the same commanded motion (Ardiani, fig. F.2 and F.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.datasets.log_fold import ManifestEntry
from dynid.errors import DynidError
from dynid.output_fields import output_fields
from dynid.recording import Recording
from dynid.recording.log_files import LogFile
from dynid.recording.log_reading import read
from dynid.recording.mapping import Mapping as LogMapping
from dynid.robot import Robot
from dynid.signals import at_times

_MAX_ROBOTS, _POINTS_PER_LINE = 4, 400  # robots side by side, and points of a line


@dataclass(frozen=True, eq=False)
class Commanded:
    """Signals of one motion.

    Attributes:
        t: (points,), s from the start of each log.
        position: (robots, points, dof), commanded.
        torque: (robots, points, dof), measured.
        position_difference, torque_difference: (dof,), largest RMS difference from the first robot, percent of its
            standard deviation.
    """

    motion: str
    robots: tuple[str, ...]
    t: Array
    position: Array
    torque: Array
    position_difference: Array
    torque_difference: Array

    @output_fields(motion=str, robots=list[str], position_difference_percent=list[Any],
                   torque_difference_percent=list[Any])
    def to_dict(self) -> dict[str, Any]:
        return {"motion": self.motion, "robots": list(self.robots),
                "position_difference_percent": self.position_difference.tolist(),
                "torque_difference_percent": self.torque_difference.tolist()}


def commanded(entries: Sequence[ManifestEntry], mapping: LogMapping, robot: Robot) -> Commanded | None:
    """Return the first motion commanded to several robots whose logs hold the commands; None if there is none, or the
    logs are not available."""
    by_motion: dict[str, dict[str, ManifestEntry]] = {}
    for entry in entries:
        if entry.motion:
            by_motion.setdefault(entry.motion, {}).setdefault(entry.robot, entry)
    for motion, logs in by_motion.items():
        if len(logs) < 2:
            continue
        found = [(name, one) for name, one in ((name, _read(entry, mapping, robot))
                                               for name, entry in list(logs.items())[:_MAX_ROBOTS]) if one is not None]
        if len(found) >= 2:
            return _side_by_side(motion, found)
    return None


def _read(entry: ManifestEntry, mapping: LogMapping, robot: Robot) -> Recording | None:
    try:
        with LogFile(entry.source).local() as path:
            log = read(path, mapping, robot)
    except DynidError:
        return None
    return log if log.reference is not None else None


def _side_by_side(motion: str, logs: Sequence[tuple[str, Recording]]) -> Commanded:
    t = np.linspace(0.0, min(log.duration for _, log in logs), _POINTS_PER_LINE)
    position = np.array([at_times(t, log.t - log.t[0], log.reference) for _, log in logs if log.reference is not None])
    torque = np.array([at_times(t, log.t - log.t[0], log.tau) for _, log in logs])
    return Commanded(motion, tuple(name for name, _ in logs), t, position, torque, _difference(position),
                     _difference(torque))


def _difference(signals: Array) -> Array:
    """Return the largest difference (dof,) of signals (robots, points, dof) from the first, percent of its standard
    deviation."""
    own = signals[0].std(axis=0)
    apart = np.sqrt(np.mean((signals[1:] - signals[0]) ** 2, axis=1)).max(axis=0)
    return 100.0 * apart / np.where(own > 0, own, 1.0)
