"""Cleaned: the usable rows of a log, before they become a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dynid.arrays import Array
from dynid.recording.recording import DroppedRow


@dataclass(frozen=True, eq=False)
class Cleaned:
    """Usable rows: t (n,) s from the start of the log, signals (n, dof), and notes.

    Attributes:
        joints: names of the columns, if known.
        unit_said: whether the unit of positions was given.
        dropped: number of unusable rows.
        dropped_rows: the first of them.
        until: s, end of the log as far as it was read, including rows outside the window.
        lacking: joints without data, by signal.
        torque_free: whether the log has no torques.
        labels: names of the columns of signals of a free base, by signal.
    """

    t: Array
    signals: dict[str, Array]
    notes: tuple[str, ...]
    joints: tuple[str, ...] = ()
    unit_said: bool = False
    dropped: int = 0
    dropped_rows: tuple[DroppedRow, ...] = ()
    until: float = 0.0
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    torque_free: bool = False
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
