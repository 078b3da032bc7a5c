"""Conversion of logs with positions or torques of other joints or of motors to a robot's independent joints."""

from __future__ import annotations

from collections.abc import Mapping as Dictionary
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.dynamics.measured import OwnPositions, own_positions
from dynid.errors import RecordingError
from dynid.recording.recording import Recording
from dynid.recording.whole_body import WITHOUT_JOINTS
from dynid.robot import Robot, numbered_joints

TORQUES = ("torque", "sensed_torque", "target_torque", "target_current")
_RATES = {"velocity": "position", "reference_velocity": "reference"}
_REFUSED_SIGNALS = ("motor_position", "sensed_torque", "target_current")


@dataclass
class Measuring:
    """Conversion of the signals of a log, part by part, to a robot's independent joints.

    Attributes:
        robot: the robot.
        last: last row of positions and references so far, from which the solution of the next part starts.
        squares, rows: sum of squared closure errors of the encoders (measured,), and the number of samples.
    """

    robot: Robot
    last: dict[str, Array] = field(default_factory=dict)
    squares: Array = field(default_factory=lambda: np.zeros(0))
    rows: int = 0

    @property
    def measured(self) -> tuple[str, ...]:
        return self.robot.measured or self.robot.joint_names

    def own(self, signals: Dictionary[str, Array], joints: tuple[str, ...],
            lacking: Dictionary[str, tuple[str, ...]]) -> dict[str, Array]:
        """Return signals (rows, dof) of the independent joints, and the measured positions (rows, measured).

        signals (rows, joints): as read; lacking: joints without data, by signal.
        """
        robot, found = self.robot, {name: array for name, array in signals.items() if name in WITHOUT_JOINTS}
        refused = [name for name in _REFUSED_SIGNALS if name in signals]
        if refused:
            raise RecordingError(f"{refused[0]} cannot be converted to the joints of robot '{robot.name}', whose logs "
                                 f"contain positions of {', '.join(self.measured)}; remove it from [log]")
        own = [joints.index(name) for name in robot.joint_names]
        encoders = [joints.index(name) for name in self.measured]
        solved = self._solved("position", signals["position"][:, encoders])
        found["position"], found["measured_position"] = solved.q, signals["position"][:, encoders]
        self.squares = np.sum(solved.misfit ** 2, axis=0) + (self.squares if self.rows else 0.0)
        self.rows += len(solved.q)
        solutions = {"position": solved}
        for name in ("reference", "velocity", "reference_velocity", "temperature"):
            if name not in signals:
                continue
            if name == "temperature" or not set(robot.joint_names) & set(lacking.get(name, ())):
                found[name] = signals[name][:, own]
            elif name == "reference":
                solutions[name] = self._solved(name, signals[name][:, encoders])
                found[name] = solutions[name].q
            elif _RATES[name] in solutions:
                back = np.linalg.pinv(solutions[_RATES[name]].rates)
                found[name] = np.einsum("sak,sk->sa", back, signals[name][:, encoders])
        drives = [joints.index(name) for name in robot.driven or robot.joint_names]
        for name in ("torque", "target_torque"):
            if name in signals:
                found[name] = (np.einsum("ska,sk->sa", solved.driven, signals[name][:, drives]) if robot.driven
                               else signals[name][:, own])
        return found

    def _solved(self, signal: str, positions: Array) -> OwnPositions:
        solved = own_positions(self.robot, positions, self.last.get(signal))
        if len(positions):
            self.last[signal] = solved.last
        return solved

    @property
    def notes(self) -> list[str]:
        """Return notes on the conversion, and on how well redundant encoders agree with the closed loops."""
        robot, found = self.robot, list[str]()
        followers = robot.followers
        how = "its tree" if followers is None else "mimic joints" if followers.loops is None else \
            f"the loops {followers.loops.names}"
        if robot.measured:
            found.append(f"positions were measured at {', '.join(robot.measured)} and converted to "
                         f"{', '.join(robot.joint_names)} by {how}")
        if len(robot.measured) > robot.dof and self.rows:
            off = np.sqrt(self.squares / self.rows)
            found.append("more joints are measured than are independent: encoders deviate from the solution by "
                         f"{', '.join((f'{name} {x:.3g}' for name, x in zip(robot.measured, off, strict=True)))} "
                         "(RMS, rad or m)")
        if robot.driven:
            still = [name for name in robot.joint_names if name not in robot.driven]
            found.append(f"torques of {', '.join(robot.driven)} are converted to {', '.join(robot.joint_names)} by "
                         f"{how}" + (f"; {', '.join(still)} {'have' if len(still) > 1 else 'has'} no motor"
                                        if still else ""))
        return found


def recording_from_joints(robot: Robot, t: ArrayLike, positions: Dictionary[str, ArrayLike] | ArrayLike,
                          torques: Dictionary[str, ArrayLike] | ArrayLike, **other: Any) -> Recording:
    """Return a recording of the independent joints from positions of the measured and torques of the driven joints.

    Args:
        robot: robot whose measured or driven joints are not its independent joints.
        t: time stamps (samples,), s.
        positions: by joint name (samples,) each, or an array (samples, k) in the order of `Robot.measured`.
        torques: by joint name (samples,) each, or an array (samples, k) in the order of `Robot.driven`.
        other: further fields of the recording, of the independent joints.
    """
    measuring = Measuring(robot)
    names, drives = measuring.measured, robot.driven or robot.joint_names
    joints = (*names, *(name for name in dict.fromkeys((*drives, *robot.joint_names)) if name not in names))
    signals = {"position": _spread(positions, names, joints, "position"),
               "torque": _spread(torques, drives, joints, "torque")}
    found = measuring.own(signals, joints, {})
    return Recording(np.asarray(t, dtype=float), found["position"], np.ascontiguousarray(found["torque"]),
                     joints=robot.joint_names, measured=robot.measured,
                     measured_position=found["measured_position"] if robot.measured else None,
                     **{"notes": tuple(measuring.notes), **other})


def _spread(given: Dictionary[str, ArrayLike] | ArrayLike, names: tuple[str, ...], joints: tuple[str, ...],
            what: str) -> Array:
    """Return signals (samples, joints), with zeros for joints that are not given."""
    if isinstance(given, Dictionary):
        missing = [name for name in names if name not in given]
        if missing:
            raise RecordingError(f"there is no {what} of joint '{missing[0]}' among {', '.join(given)}")
        given = np.column_stack([np.asarray(given[name], dtype=float) for name in names])
    array = np.asarray(given, dtype=float)
    if array.ndim != 2 or array.shape[1] != len(names):
        raise RecordingError(f"{what}s must be an array (samples, {len(names)}) of joints {', '.join(names)}, got "
                             f"shape {array.shape}")
    whole = np.zeros((len(array), len(joints)))
    whole[:, [joints.index(name) for name in names]] = array
    return whole


def motor_name(joint: str) -> str:
    """Return the name of the coordinate of a joint's motor, such as 'joint1 motor'."""
    return f"{joint} motor"


def add_motor_side(recording: Recording, joints: Sequence[int]) -> Recording:
    """Return the recording with link and motor positions (samples, dof + motors), as `FlexibleModel` needs it.

    The motors of `joints` (counted from 0) have the same torques as the links. Filters, differentiation and the
    selection of rows treat both sides alike. A logged reference is that of the motors and is used for both sides.
    """
    motors = recording.motor_position
    if motors is None:
        raise RecordingError(f"{recording.source} has no motor positions. Flexible joints need them in addition to "
                             "the link positions: add --set 'log.motor_position=[...]', or motor_position = [...] "
                             "under [log], or remove [model.flexible]", code="no-motor-positions")
    own, names = list(joints), recording.joints or numbered_joints(recording.dof)
    every = [*range(recording.dof), *own]
    signals: dict[str, Any] = {name: np.ascontiguousarray(signal[:, every])
                               for name in ("tau", "reference", "reference_velocity", "motor_position", "sensed_torque")
                               if (signal := getattr(recording, name)) is not None}
    return replace(recording, **signals, q=np.hstack([recording.q, motors[:, own]]), dq=None,
                   joints=(*names, *(motor_name(names[j]) for j in own)),
                   unmeasured=(*recording.unmeasured,
                               *(motor_name(names[j]) for j in own if names[j] in recording.unmeasured)))
