"""From logs of a robot with a free base to samples: filtered motion in the axes of the root, and generalised forces.

The pose of the base, or the signals of an IMU, go through the same zero-phase filter and differences as the joints do.
Torques and measured contact forces are first brought onto the coordinates of the robot, S' tau + sum of J' f, and then
filtered as torques are. The four kinds of equations differ in the right-hand side and in the rows that count:

- "wrenches": all rows, measured contact forces;
- "base": the six rows of the base alone, measured contact forces, no joint torques;
- "projected": rows of the null space of the standing contacts' Jacobian, no contact forces;
- "flight": all rows without contact, while the robot flies or is suspended from a sensor whose force is given.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from dynid import dynamics
from dynid.arrays import Array, Bools
from dynid.dynamics.root_frame import quaternions
from dynid.errors import RecordingError
from dynid.floating.contacts import null_rows, standing_jacobian
from dynid.floating.floating_log import FloatingLog, FootWrench
from dynid.recording import Recording, Samples
from dynid.recording.sample_preparation import prepare
from dynid.robot import FREE_COORDINATES as SIX
from dynid.robot import Robot

FloatingEquations = Literal["wrenches", "base", "projected", "flight"]
DEFAULT_GUARD = 0.05  # s around a change of contacts that no row of projected equations is taken from


def prepare_floating(robot: Robot, log: FloatingLog, equations: FloatingEquations, *, noise: Array | None = None,
                     guard: float = DEFAULT_GUARD, **options: Any) -> Samples:
    """Return samples of a robot with a free base for one kind of equations.

    Args:
        robot: a robot with a free base.
        log: what was measured.
        equations: "wrenches", "base", "projected" or "flight", see the module.
        noise: standard deviations of the equations (6 + n,), by which projected rows are whitened; see
            `equation_noise`. Default: equal noise.
        guard: time around a change of contacts from which no projected row is taken, s.
        options: of `dynid.prepare`, such as cutoff=8.0.

    Raises:
        RecordingError: where the log lacks what the equations need.
    """
    _check(robot, log, equations)
    columns = _base_columns(robot, log)
    zeros = np.zeros((len(log.t), columns.shape[1]))
    forces = _forces(robot, log, equations)
    torque = np.concatenate([forces[:, :SIX], zeros[:, SIX:], forces[:, SIX:]], axis=1)
    names = (*(f"base{k + 1}" for k in range(columns.shape[1])), *robot.joint_names[SIX:])
    recording = Recording(np.asarray(log.t, dtype=float), np.hstack([columns, log.q]), torque, joints=names,
                          source=log.source)
    options = {"slow": 0.0, "saturation": "none", "stuck": False, "velocity": "differentiate", **options}
    found = prepare(recording, **options)
    q, dq, ddq, down = _root_signals(robot, log, found)
    tau = np.delete(found.tau, range(SIX, columns.shape[1]), axis=1)
    inside = np.asarray(np.any(found.keep, axis=1))
    keep = np.repeat(inside[:, None], robot.dof, axis=1)
    steps = (*found.steps, f"motion of the base from {'the imu' if log.imu is not None else 'its pose'}; "
                           f"equations: {equations}")
    samples = replace(found, q=q, dq=dq, ddq=ddq, tau=tau, keep=keep, joints=robot.joint_names, raw_tau=None,
                      steps=steps, settings={}, unmeasured=())
    if equations == "base" or (equations == "flight" and log.tau is None):
        keep[:, SIX:] = False
        return replace(samples, unmeasured=robot.joint_names[SIX:])
    if equations != "projected":
        return samples
    standing = _at(log.t, samples.t, log.standing)
    jacobian, owners = standing_jacobian(robot, log.contacts, q, down)
    scale = np.ones(robot.dof) if noise is None else np.asarray(noise, dtype=float)
    mixing, remaining = null_rows(jacobian, owners, standing, scale)
    quiet = _far_from_changes(standing, round(guard * samples.rate))
    return replace(samples, mixing=mixing, keep=keep & remaining & quiet[:, None])


def _check(robot: Robot, log: FloatingLog, equations: str) -> None:
    """Raise where the log does not hold what the equations need."""
    lacks = None
    if not robot.has_free_base:
        raise RecordingError(f"robot '{robot.name}' has a fixed base", "load it with fixed_base=False, and use "
                             "dynid.prepare for logs of a fixed base", code="fixed-base")
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
        lacks = "contacts and the times at which they stand"
    elif equations == "flight" and log.tau is None and not log.wrenches:
        lacks = "joint torques or the force of a suspension, without which only ratios of parameters show"
    elif log.orientation is None and any(one.axes == "world" for one in log.wrenches):
        lacks = "an orientation of the base, which forces in world axes need"
    if lacks is not None:
        raise RecordingError(f"{log.source}: equations '{equations}' of robot '{robot.name}' need {lacks}, which the "
                             "log does not hold", code="log-lacks-signal")


def _base_columns(robot: Robot, log: FloatingLog) -> Array:
    """Signals of the base that are filtered: position and quaternion, or specific force and angular rate."""
    if log.imu is not None:
        bias = np.zeros(SIX) if log.imu.bias is None else np.asarray(log.imu.bias, dtype=float)
        return np.hstack([np.asarray(log.imu.specific_force) - bias[3:], np.asarray(log.imu.angular_rate) - bias[:3]])
    assert log.position is not None and log.orientation is not None
    # A quaternion and its negative are one orientation: through the matrix they become continuous.
    return np.hstack([log.position, quaternions(dynamics.rotations(log.orientation))])


def _root_signals(robot: Robot, log: FloatingLog, found: Samples) -> tuple[Array, Array, Array, Array | None]:
    """q, dq, ddq (samples, 6 + n) in the axes of the root, and the direction to the ground there, of filtered
    signals."""
    zero = np.zeros((len(found), SIX))
    if log.imu is not None:
        place = robot.frame(log.imu.frame)
        if place.body != SIX - 1:
            raise RecordingError(f"{log.source}: the imu is at frame '{log.imu.frame}', which is not on the root link",
                                 code="imu-not-on-root")
        turn, arm = place.pose[:3, :3], place.pose[:3, 3]
        force, rate, change = (part @ turn.T for part in (found.q[:, :3], found.q[:, 3:SIX], found.dq[:, 3:SIX]))
        force = force - np.cross(change, arm) - np.cross(rate, np.cross(rate, arm))
        q, dq, ddq = (np.hstack([zero, one[:, SIX:]]) for one in (found.q, found.dq, found.ddq))
        dq[:, 3:SIX], ddq[:, :3], ddq[:, 3:SIX] = rate, force, change
        down = None
        if log.orientation is not None:
            turns = dynamics.rotations(_at(log.t, found.t, quaternions(dynamics.rotations(log.orientation)), True))
            down = _down(robot, turns)
        return q, dq, ddq, down
    norm = np.linalg.norm(found.q[:, 3:7], axis=1, keepdims=True)
    quaternion, first, second = found.q[:, 3:7] / norm, found.dq[:, 3:7] / norm, found.ddq[:, 3:7] / norm
    turns = dynamics.rotations(quaternion)
    q, dq, ddq = (np.hstack([zero, one[:, 7:]]) for one in (found.q, found.dq, found.ddq))
    dq[:, 3:SIX], ddq[:, 3:SIX] = 2 * _rate_part(quaternion, first), 2 * _rate_part(quaternion, second)
    dq[:, :3] = np.einsum("sji,sj->si", turns, found.dq[:, :3])
    ddq[:, :3] = np.einsum("sji,sj->si", turns, found.ddq[:, :3] - robot.gravity)
    return q, dq, ddq, _down(robot, turns)


def _rate_part(q: Array, p: Array) -> Array:
    """Vector part (samples, 3) of conj(q) p, both quaternions x y z w (samples, 4)."""
    return q[:, 3:] * p[:, :3] - p[:, 3:] * q[:, :3] - np.cross(q[:, :3], p[:, :3])


def _down(robot: Robot, turns: Array) -> Array:
    """Direction of gravity in the axes of the root (samples, 3); of the world's -z where there is none."""
    gravity = np.asarray(robot.gravity, dtype=float)
    size = float(np.linalg.norm(gravity))
    return np.asarray(np.einsum("sji,j->si", turns, gravity / size if size > 0 else np.array([0.0, 0.0, -1.0])))


def _forces(robot: Robot, log: FloatingLog, equations: str) -> Array:
    """Generalised forces (rows, 6 + n) of joint torques and measured wrenches."""
    out = np.zeros((len(log.t), robot.dof))
    if log.tau is not None:
        out[:, SIX:] = log.tau
    if equations == "projected":
        return out
    q = np.hstack([np.zeros((len(log.t), SIX)), log.q])
    for one in log.wrenches:
        out += wrench_forces(robot, one, q, None if log.orientation is None else dynamics.rotations(log.orientation))
    return out


def wrench_forces(robot: Robot, wrench: FootWrench, q: Array, turns: Array | None) -> Array:
    """J' f of a measured wrench (samples, 6 + n); q in the axes of the root, turns: rotations of the root."""
    values = np.zeros((len(q), SIX))
    values[:, :np.shape(wrench.values)[1]] = wrench.values
    if wrench.axes == "frame":
        turn = dynamics.frame_pose(robot, wrench.frame, q)[:, :3, :3]
    else:
        assert turns is not None
        turn = turns.transpose(0, 2, 1)
    values = (turn[:, None] @ values.reshape(-1, 2, 3, 1)).reshape(-1, SIX)
    return np.asarray(np.einsum("sij,si->sj", dynamics.jacobian(robot, wrench.frame, q), values))


def _at(t: Array, times: Array, signal: Any, linear: bool = False) -> Any:
    """A signal of the log's rows at other times: the nearest row, or interpolated linearly and normalised."""
    if linear:
        found = np.column_stack([np.interp(times, t, column) for column in np.asarray(signal).T])
        return found / np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(signal)[np.clip(np.searchsorted(0.5 * (t[1:] + t[:-1]), times), 0, len(t) - 1)]


def _far_from_changes(standing: Bools, margin: int) -> Bools:
    """Samples with no change of contacts within so many samples."""
    changed = np.concatenate([[False], np.any(standing[1:] != standing[:-1], axis=1)]).astype(int)
    window = np.ones(2 * margin + 1, dtype=int)
    return np.asarray(np.convolve(changed, window, mode="same")[:len(standing)] == 0)
