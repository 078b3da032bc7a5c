"""Convert logs of a robot with a free base to samples: filtered motion in the axes of the root, and generalised forces.

The pose of the base, or the signals of an IMU, are filtered and differentiated like the joint positions. Torques and
measured contact forces are first converted to generalised forces of the robot, S' tau + sum of J' f, and then filtered
like torques. The four kinds of equations differ in the right-hand side and in the rows that are used:

- "wrenches": all rows, measured contact forces;
- "base": the six rows of the base alone, measured contact forces, no joint torques;
- "projected": rows of the null space of the standing contacts' Jacobian, no contact forces;
- "flight": all rows without contact while the robot is suspended from a force sensor; the rows of the joints alone
  while the robot flies or is suspended without a sensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from dynid import dynamics
from dynid.arrays import Array, Bools
from dynid.dynamics.kinematics import frame_jacobians
from dynid.dynamics.root_frame import quaternions
from dynid.errors import NotPossibleError, RecordingError
from dynid.floating.base_signals import FloatingLog, FootWrench, at_nearest
from dynid.floating.contacts import null_rows, standing_jacobian
from dynid.recording import Recording, Samples
from dynid.recording.sample_preparation import prepare
from dynid.robot import FREE_COORDINATES as SIX
from dynid.robot import Robot

FloatingEquations = Literal["wrenches", "base", "projected", "flight"]
DEFAULT_GUARD = 0.03  # s before and after a contact in which it counts as active, longer than delays of contact signals
FILTER_MEMORY = 0.8  # periods of the cut-off over which the filter of the torques spreads a contact force


def prepare_floating(robot: Robot, log: FloatingLog, equations: FloatingEquations, *, noise: Array | None = None,
                     guard: float = DEFAULT_GUARD, **options: Any) -> Samples:
    """Return samples of a robot with a free base for one kind of equations.

    Args:
        robot: a robot with a free base.
        log: measured signals.
        equations: "wrenches", "base", "projected" or "flight", see `dynid.floating.preparation`.
        noise: standard deviations of the equations (6 + n,), by which projected rows are whitened; see
            `equation_noise`. Default: equal noise.
        guard: time before and after a contact in which it still counts as active, s, in addition to the filter window.
        options: options of `dynid.prepare`, such as cutoff=8.0.

    Raises:
        RecordingError: if the log lacks signals that the equations need.
    """
    recording = expanded(robot, log, equations, noise=noise, guard=guard)
    return prepare(recording, **{**default_options(equations), **options})


# Rows combine several joints, so rows of single joints are not dropped; velocities follow from the positions. The rows
# of a sample change with its contacts, so they are neither filtered over time nor decimated.
DEFAULT_OPTIONS: dict[str, Any] = {"slow": 0.0, "saturation": "none", "stuck": False, "velocity": "differentiate",
                                   "decimate": 1}


def default_options(equations: str) -> dict[str, Any]:
    """Return options of the preparation for one kind of equations.

    Torques of projected equations are not filtered, because a filter mixes contact forces of several instants, which
    the projection at one instant does not remove.
    """
    return {**DEFAULT_OPTIONS, "torque_cutoff": "none"} if equations == "projected" else DEFAULT_OPTIONS


def expanded(robot: Robot, log: FloatingLog, equations: FloatingEquations, *, noise: Array | None = None,
             guard: float = DEFAULT_GUARD, notes: Sequence[str] = ()) -> Recording:
    """Return a log as a recording with columns of the base in front of those of the joints.

    The torques of the recording are generalised forces. `Recording.to_samples` converts its filtered samples to the
    6 + n coordinates of the robot. Arguments are those of `prepare_floating`; notes: sentences for the recording.
    """
    _check(robot, log, equations)
    columns = _base_columns(robot, log)
    zeros = np.zeros((len(log.t), columns.shape[1]))
    forces = _forces(robot, log, equations)
    torque = np.concatenate([forces[:, :SIX], zeros[:, SIX:], forces[:, SIX:]], axis=1)
    names = (*(f"base{k + 1}" for k in range(columns.shape[1])), *robot.joint_names[SIX:])
    return Recording(np.asarray(log.t, dtype=float), np.hstack([columns, log.q]), torque, joints=names,
                     source=log.source, notes=tuple(notes), base_width=columns.shape[1],
                     to_samples=WholeBody(robot, log, equations, noise, guard, columns.shape[1]))


@dataclass(frozen=True, eq=False)
class WholeBody:
    """Conversion of the filtered columns of a recording to samples of a robot with a free base.

    Attributes:
        robot: a robot with a free base.
        log: measured signals.
        equations: kind of the equations.
        noise: standard deviations of the equations (6 + n,), or None.
        guard: time before and after a contact in which it still counts as active, s.
        width: number of columns of the base.
    """

    robot: Robot
    log: FloatingLog
    equations: FloatingEquations
    noise: Array | None
    guard: float
    width: int

    def __call__(self, found: Samples) -> Samples:
        robot, log, equations = self.robot, self.log, self.equations
        if found.filtered is not None or found.decimation is not None:
            raise NotPossibleError("equations without accelerations and decimation are not available for a robot with "
                                   "a free base", "remove --equations and --set prepare.decimate",
                                   code="free-base-unsupported")
        q, dq, ddq, down = _root_signals(robot, log, found)
        tau = np.delete(found.tau, range(SIX, self.width), axis=1)
        inside = np.asarray(np.any(found.keep, axis=1))
        keep = np.repeat(inside[:, None], robot.dof, axis=1)
        steps = (*found.steps, f"motion of the base from {log.base_motion}; equations: {equations}")
        samples = replace(found, q=q, dq=dq, ddq=ddq, tau=tau, keep=keep, joints=robot.joint_names, raw_tau=None,
                          steps=steps, spectrum={}, unmeasured=(), base_pose=log.pose_at(found.t))
        if equations == "base" or (equations == "flight" and log.tau is None):
            keep[:, SIX:] = False
            return replace(samples, unmeasured=robot.joint_names[SIX:])
        if equations == "flight" and not log.wrenches:
            # Rows of the base have a zero right-hand side: noise of the accelerations would shrink the estimates.
            keep[:, :SIX] = False
            samples = replace(samples, unmeasured=robot.joint_names[:SIX])
        if equations == "wrenches" or log.standing is None:
            return samples
        standing = at_nearest(log.t, samples.t, log.standing)
        cutoff = None if found.settings.get("torque_cutoff") == "none" else found.settings.get("cutoff")
        margin = self.guard + (FILTER_MEMORY / float(cutoff) if cutoff else 0.0)
        standing = _extended(standing, round(margin * samples.rate))
        if equations == "flight":
            return replace(samples, keep=keep & ~np.any(standing, axis=1)[:, None])
        jacobian, owners = standing_jacobian(robot, log.contacts, q, down)
        scale = np.ones(robot.dof) if self.noise is None else np.asarray(self.noise, dtype=float)
        mixing, remaining = null_rows(jacobian, owners, standing, scale)
        return replace(samples, mixing=mixing, keep=keep & remaining)


def _check(robot: Robot, log: FloatingLog, equations: str) -> None:
    """Raise an error if the log lacks signals that the equations need."""
    lacks = None
    if not robot.has_free_base:
        raise RecordingError(f"robot '{robot.name}' has a fixed base", "load the robot with fixed_base=False; if its "
                             "base is fixed, use dynid.prepare instead", code="fixed-base")
    if equations not in get_args(FloatingEquations):
        raise RecordingError(f"there are no equations '{equations}'; there are "
                             f"{', '.join(get_args(FloatingEquations))}", code="unknown-equations")
    if np.shape(log.q)[1] != robot.dof - SIX:
        lacks = f"positions of all {robot.dof - SIX} joints"
    elif equations in ("wrenches", "projected") and log.tau is None:
        lacks = "joint torques"
    elif equations in ("wrenches", "base") and not log.wrenches:
        lacks = "measured contact forces"
    elif equations == "projected" and (log.standing is None or not log.contacts):
        lacks = "contacts and the times at which they are active"
    elif equations == "flight" and log.tau is None and not log.wrenches:
        lacks = "joint torques or the force of a suspension, without which only ratios of parameters are identifiable"
    elif log.orientation is None and any(one.axes == "world" for one in log.wrenches):
        lacks = "an orientation of the base, which forces in world axes need"
    if lacks is not None:
        raise RecordingError(f"{log.source}: equations '{equations}' of robot '{robot.name}' need {lacks}, which the "
                             "log does not contain", code="log-lacks-signal")


def _base_columns(robot: Robot, log: FloatingLog) -> Array:
    """Return the base signals to be filtered: specific force and angular rate of an IMU, or position or velocity and
    quaternion."""
    if log.base_motion == "imu":
        assert log.imu is not None
        bias = np.zeros(SIX) if log.imu.bias is None else np.asarray(log.imu.bias, dtype=float)
        return np.hstack([np.asarray(log.imu.specific_force) - bias[3:], np.asarray(log.imu.angular_rate) - bias[:3]])
    linear = log.position if log.base_motion == "pose" else log.velocity
    assert linear is not None and log.orientation is not None
    # A quaternion and its negative are the same orientation; conversion to a matrix and back makes them continuous.
    return np.hstack([linear, quaternions(dynamics.rotations(log.orientation))])


def _root_signals(robot: Robot, log: FloatingLog, found: Samples) -> tuple[Array, Array, Array, Array | None]:
    """Return q, dq, ddq (samples, 6 + n) and the unit vector toward the ground (samples, 3), all in the axes of the
    root."""
    zero = np.zeros((len(found), SIX))
    if log.base_motion == "imu":
        assert log.imu is not None
        place = robot.frame(log.imu.frame)
        if place.body != SIX - 1:
            raise RecordingError(f"{log.source}: the imu is at frame '{log.imu.frame}', which is not on the root link",
                                 "name a frame of the root link with --set log.imu_frame=...", code="imu-not-on-root")
        turn, arm = place.pose[:3, :3], place.pose[:3, 3]
        force, rate, change = (part @ turn.T for part in (found.q[:, :3], found.q[:, 3:SIX], found.dq[:, 3:SIX]))
        force = force - np.cross(change, arm) - np.cross(rate, np.cross(rate, arm))
        q, dq, ddq = (np.hstack([zero, one[:, SIX:]]) for one in (found.q, found.dq, found.ddq))
        dq[:, 3:SIX], ddq[:, :3], ddq[:, 3:SIX] = rate, force, change
        down = -force / np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        if log.orientation is not None:
            logged = quaternions(dynamics.rotations(log.orientation))
            at = np.column_stack([np.interp(found.t, log.t, column) for column in logged.T])
            down = _down(robot, dynamics.rotations(at / np.linalg.norm(at, axis=1, keepdims=True)))
        return q, dq, ddq, down
    norm = np.linalg.norm(found.q[:, 3:7], axis=1, keepdims=True)
    quaternion, first, second = found.q[:, 3:7] / norm, found.dq[:, 3:7] / norm, found.ddq[:, 3:7] / norm
    turns = dynamics.rotations(quaternion)
    q, dq, ddq = (np.hstack([zero, one[:, 7:]]) for one in (found.q, found.dq, found.ddq))
    dq[:, 3:SIX], ddq[:, 3:SIX] = 2 * _rate_part(quaternion, first), 2 * _rate_part(quaternion, second)
    velocity, acceleration = (found.dq, found.ddq) if log.base_motion == "pose" else (found.q, found.dq)
    dq[:, :3] = np.einsum("sji,sj->si", turns, velocity[:, :3])
    ddq[:, :3] = np.einsum("sji,sj->si", turns, acceleration[:, :3] - robot.gravity)
    return q, dq, ddq, _down(robot, turns)


def _rate_part(q: Array, p: Array) -> Array:
    """Return the vector part (samples, 3) of conj(q) p, both quaternions x y z w (samples, 4)."""
    return q[:, 3:] * p[:, :3] - p[:, 3:] * q[:, :3] - np.cross(q[:, :3], p[:, :3])


def _down(robot: Robot, turns: Array) -> Array:
    """Return the direction of gravity, or of the world's -z axis without gravity, in the axes of the root (samples,
    3)."""
    gravity = np.asarray(robot.gravity, dtype=float)
    size = float(np.linalg.norm(gravity))
    return np.asarray(np.einsum("sji,j->si", turns, gravity / size if size > 0 else np.array([0.0, 0.0, -1.0])))


def _forces(robot: Robot, log: FloatingLog, equations: str) -> Array:
    """Return the generalised forces (rows, 6 + n) of joint torques and measured wrenches."""
    out = np.zeros((len(log.t), robot.dof))
    if log.tau is not None:
        out[:, SIX:] = log.tau
    if equations == "projected":
        return out
    q = np.hstack([np.zeros((len(log.t), SIX)), log.q])
    turns = None if log.orientation is None else dynamics.rotations(log.orientation)
    down = _ground_direction(robot, log) if turns is None else _down(robot, turns)
    places = frame_jacobians(robot, [one.frame for one in log.wrenches], q)
    for one, (pose, jacobian) in zip(log.wrenches, places, strict=True):
        out += np.einsum("sij,si->sj", jacobian, _in_root_axes(one, pose, turns, down))
    return out


def _ground_direction(robot: Robot, log: FloatingLog) -> Array | None:
    """Return the direction to the ground in the axes of the root (samples, 3) from the specific force of an IMU, or
    None."""
    if log.imu is None:
        return None
    force = np.asarray(log.imu.specific_force) @ robot.frame(log.imu.frame).pose[:3, :3].T
    return np.asarray(-force / np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9))


def _in_root_axes(wrench: FootWrench, pose: Array, turns: Array | None, down: Array | None) -> Array:
    """Return a measured wrench (samples, 6) in the axes of the root; pose: poses (samples, 4, 4) of the wrench's frame
    in the root. turns: rotations (samples, 3, 3) of the root in the world, or None. down: unit vector (samples, 3)
    toward the ground, for round feet, or None."""
    values = np.zeros((len(pose), SIX))
    values[:, :np.shape(wrench.values)[1]] = wrench.values
    if wrench.axes == "frame":
        turn = pose[:, :3, :3]
    else:
        assert turns is not None
        turn = turns.transpose(0, 2, 1)
    values = (turn[:, None] @ values.reshape(-1, 2, 3, 1)).reshape(-1, SIX)
    if wrench.radius > 0.0 and down is not None and np.shape(wrench.values)[1] == 3:
        values[:, 3:] = np.cross(wrench.radius * down, values[:, :3])
    return values


def _extended(standing: Bools, margin: int) -> Bools:
    """Return the mask (samples, contacts) of contacts that are active within `margin` samples of each sample."""
    window = np.ones(2 * margin + 1, dtype=int)
    return np.stack([np.convolve(one.astype(int), window, mode="same")[:len(one)] > 0
                     if len(one) >= len(window) else np.full(len(one), np.any(one)) for one in standing.T], axis=1)
