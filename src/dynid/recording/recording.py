"""Recordings: one log as it was measured, joint side, SI units, in the robot's joint order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dynid.arrays import Array, first_not_finite
from dynid.errors import RecordingError
from dynid.html_tables import card, paragraph, table
from dynid.order_statistics import median

# Names of signals in mappings, and in a recording.
SIGNAL_ATTRIBUTES = {"position": "q", "velocity": "dq", "torque": "tau", "reference": "reference",
                     "reference_velocity": "reference_velocity", "wrench": "wrench", "temperature": "temperature",
                     "motor_position": "motor_position", "sensed_torque": "sensed_torque",
                     "target_torque": "target_torque", "target_current": "target_current",
                     "external_torque": "external_torque", "motor_current": "current", "supply_voltage": "voltage",
                     "duty": "duty"}
_JOINT_SIGNALS = tuple(attribute for attribute in SIGNAL_ATTRIBUTES.values() if attribute != "wrench")
# Beginning of the column names of a signal in files that dynid writes: position_<joint> and so on.
COLUMN_STEMS = {name: "reference_position" if name == "reference" else name for name in SIGNAL_ATTRIBUTES
                if name not in ("wrench", "target_current")}
_CARD_HEADER = ("joint", "lowest, rad or m", "highest", "torque RMS, N m or N", "largest")


@dataclass(frozen=True)
class DroppedRow:
    """An ignored row of a file: its number, counted from 1 with the header, and why it was ignored."""

    file: str
    row: int
    why: str


@dataclass(frozen=True, eq=False)
class Recording:
    """One log as arrays. Rows are samples, columns are the joints of the robot.

    Attributes:
        t: time stamps (samples,), s, strictly increasing.
        q: positions (samples, joints), rad or m.
        tau: torques or forces of the actuators (samples, joints), N m or N.
        dq: measured velocities (samples, joints), rad/s or m/s, or None.
        reference, reference_velocity: commanded positions and velocities of the controller, or None.
        wrench: force and moment of a sensor (samples, 6), N and N m, or None.
        temperature: temperature of each joint (samples, joints) in the unit of the log, or None.
        motor_position: positions of the motors, divided by the gear ratio, if encoders are on both sides of the gears.
            `q` then holds the positions of the links.
        sensed_torque: torques of sensors between gear and link, N m or N, or None.
        target_torque, target_current: torque and current that the controller computes, joint side, or None.
        external_torque: external torque that the controller estimates, joint side, or None.
        current: measured motor currents (samples, joints), A, or None. A log may also contain torques.
        voltage: supply voltages of the drives (samples, joints), V, or None.
        duty: PWM duty cycles (samples, joints), -1 to 1, or None.
        gain_covariance: relative covariance (joints, joints) of the drive gains, if they were estimated.
        unscaled: whether `tau` still holds currents whose drive gains are not known.
        unmeasured: joints whose torque is not known. It is zero in `tau` and gives no equation.
        measured: names of the joints with encoders, if these are not the robot's independent joints.
        measured_position: positions (samples, k) of these joints, from which `q` was computed.
        source: file that was read.
        notes: sentences on changes and findings while reading the file.
        base_signals: signals of a free base (samples, k) by their name in the mapping; empty for a fixed base.
        base_columns: names of their columns, by signal.
        to_samples: function that converts prepared samples to the coordinates of a robot with a free base, or
            None. See `dynid.floating.whole_body`, which makes such recordings.
        base_width: number of columns of a free base in front of those of the joints, in such recordings.
        dropped: number of rows that were ignored because they cannot be used.
        dropped_rows: the first of these rows.

    >>> log = dynid.Recording(t=np.arange(5) / 100, q=np.zeros((5, 2)), tau=np.ones((5, 2)))
    >>> len(log), log.dof, round(log.rate)
    (5, 2, 100)
    """

    t: Array
    q: Array
    tau: Array
    dq: Array | None = None
    reference: Array | None = None
    reference_velocity: Array | None = None
    wrench: Array | None = None
    temperature: Array | None = None
    motor_position: Array | None = None
    sensed_torque: Array | None = None
    target_torque: Array | None = field(default=None, kw_only=True)
    target_current: Array | None = field(default=None, kw_only=True)
    external_torque: Array | None = field(default=None, kw_only=True)
    current: Array | None = field(default=None, kw_only=True)
    voltage: Array | None = field(default=None, kw_only=True)
    duty: Array | None = field(default=None, kw_only=True)
    gain_covariance: Array | None = field(default=None, kw_only=True)
    unscaled: bool = field(default=False, kw_only=True)
    joints: tuple[str, ...] = ()
    source: str = "memory"
    notes: tuple[str, ...] = field(default=())
    unmeasured: tuple[str, ...] = ()
    measured: tuple[str, ...] = field(default=(), kw_only=True)
    measured_position: Array | None = field(default=None, kw_only=True)
    base_signals: Mapping[str, Array] = field(default_factory=dict, kw_only=True)
    base_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict, kw_only=True)
    to_samples: Callable[[Any], Any] | None = field(default=None, kw_only=True)
    base_width: int = field(default=0, kw_only=True)
    dropped: int = 0
    dropped_rows: tuple[DroppedRow, ...] = ()

    def __post_init__(self) -> None:
        for name in ("t", *_JOINT_SIGNALS, "wrench", "measured_position"):  # lists and tables become arrays
            signal = getattr(self, name)
            if signal is not None and not isinstance(signal, np.ndarray):
                object.__setattr__(self, name, np.asarray(signal, dtype=float))
        n = len(self.t)
        if np.ndim(self.t) != 1:
            raise RecordingError(f"{self.source}: time must be one column, got shape {np.shape(self.t)}")
        if np.ndim(self.q) != 2:
            raise RecordingError(f"{self.source}: positions must be (samples, joints), got shape {np.shape(self.q)}")
        if self.joints and self.dof - len(self.joints) not in (0, self.base_width):
            raise RecordingError(f"{self.source}: {len(self.joints)} joints are named ({', '.join(self.joints)}), but "
                                 f"there are {self.dof} columns of positions", code="joints-do-not-fit")
        for name in _JOINT_SIGNALS:
            signal = getattr(self, name)
            if signal is None:
                continue
            if signal.shape != self.q.shape or len(signal) != n:
                raise RecordingError(f"{self.source}: {name} has shape {signal.shape}; expected "
                                     f"{(n, self.q.shape[1])}, as for time and positions")
            wrong = first_not_finite(signal)
            if wrong is not None:
                joint = self.joints[wrong[1]] if self.joints else wrong[1] + 1
                raise RecordingError(f"{self.source}: {name} of joint {joint} is not a finite number in row {wrong[0]}")
        if not np.all(np.isfinite(self.t)):
            raise RecordingError(f"{self.source}: time is not a finite number in row {np.argmin(np.isfinite(self.t))}")
        if n > 1 and np.any(np.diff(self.t) <= 0):
            row = int(np.argmax(np.diff(self.t) <= 0)) + 1
            raise RecordingError(f"{self.source}: time does not increase at row {row}")

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, rows: slice) -> Recording:
        """Return some rows of all signals as views, e.g. `recording[100:200]`."""
        own = {name: signal[rows] for name in ("t", *_JOINT_SIGNALS, "wrench", "measured_position")
               if (signal := getattr(self, name)) is not None}
        return replace(self, **own, base_signals={name: signal[rows] for name, signal in self.base_signals.items()})

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the recorded signals, as in a mapping."""
        return ("time", *(name for name, attribute in SIGNAL_ATTRIBUTES.items()
                          if getattr(self, attribute) is not None and not (name == "torque" and self.is_torque_free)),
                *self.base_signals)

    @property
    def dof(self) -> int:
        return self.q.shape[1]

    @property
    def duration(self) -> float:
        """Seconds from the first to the last sample."""
        return float(self.t[-1] - self.t[0]) if len(self) else 0.0

    @property
    def rate(self) -> float:
        """Median sampling rate, Hz."""
        return float(1.0 / median(np.diff(self.t))) if len(self) > 1 else 0.0

    @property
    def is_torque_free(self) -> bool:
        """Whether no torque of any joint was logged."""
        return bool(self.joints) and set(self.joints) <= set(self.unmeasured)

    @staticmethod
    def from_commands(t: Array, q: Array, reference: Array, *, joints: tuple[str, ...] = (), **other: Any) -> Recording:
        """Return a log without torques: measured and commanded positions, for `dynid.identify_actuators`.

        Args:
            t: time stamps (samples,), s.
            q: measured positions (samples, joints), rad or m.
            reference: commanded positions (samples, joints), rad or m.
            joints: names of the joints; default: their numbers from 1.
            other: further fields of the recording, such as current, voltage or duty.
        """
        q = np.asarray(q, dtype=float)
        names = joints or tuple(str(j + 1) for j in range(q.shape[1]))
        return Recording(t=np.asarray(t, dtype=float), q=q, tau=np.zeros_like(q), joints=names, unmeasured=names,
                         reference=np.asarray(reference, dtype=float), **other)

    def __repr__(self) -> str:
        return (f"<Recording of {self.source}: {self.dof} joints, {len(self):,} samples, {self.duration:.1f} s at "
                f"{self.rate:.4g} Hz>")

    def _repr_html_(self) -> str:
        names = self.joints or tuple(f"joint {j + 1}" for j in range(self.dof))
        numbers = np.column_stack([self.q.min(axis=0), self.q.max(axis=0), np.sqrt(np.mean(self.tau ** 2, axis=0)),
                                   np.abs(self.tau).max(axis=0)])
        rows = [(name, *(f"{value:.4g}" for value in row)) for name, row in zip(names, numbers, strict=True)]
        return card(repr(self)[1:-1], table(_CARD_HEADER, rows), *map(paragraph, self.notes))

    def between(self, start: float, end: float) -> Recording:
        """Return the part of the recording with start <= t < end, s."""
        rows = np.flatnonzero((self.t >= start) & (self.t < end))
        if not len(rows):
            raise RecordingError(f"{self.source}: no sample between {start} s and {end} s; the log runs from "
                                 f"{self.t[0]:g} s to {self.t[-1]:g} s")
        return replace(self[rows[0]:rows[-1] + 1], notes=(*self.notes, f"cut to {start:g} s <= t < {end:g} s"))

    def to_frame(self) -> Any:
        """Return a pandas table with one row per sample, see `dynid.recording.write`."""
        from dynid.recording.write import to_frame
        return to_frame(self)

    @staticmethod
    def from_frame(frame: Any, mapping: Any = None, robot: Any = None, **overrides: Any) -> Recording:
        """Return a recording from a pandas table, see `dynid.recording.write.from_frame`.

        Its columns are found as in `dynid.read`.
        """
        from dynid.recording.write import from_frame
        return from_frame(frame, mapping, robot, **overrides)
