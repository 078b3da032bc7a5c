"""Synthetic logs of a robot with a free base that moves over standing feet, by inverse dynamics.

The base and the joints that carry no contact move on sums of sines. Joints between base and contacts follow from the
feet, which stand still or are lifted one after the other. Torques and contact forces are those of inverse dynamics. If
several distributions of the contact forces are possible, the distribution has the smallest sum of squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid import dynamics
from dynid.arrays import Array, Bools, Ints
from dynid.dynamics.kinematics import frame_jacobians
from dynid.errors import NotPossibleError
from dynid.floating.base_signals import FloatingLog, FootWrench, Imu
from dynid.floating.contacts import Contact, contact_bias, contact_jacobian
from dynid.robot import FREE_COORDINATES as SIX
from dynid.robot import Robot
from dynid.robot.pose import body_rates, quaternions_of_vectors, rotation_errors

_MOTION_SINES = 4  # sines in the motion of each coordinate
INVERSE_STEPS = 30  # steps of Newton's method from the posture to a sample
FOOT_TOLERANCE = 1e-10  # m or rad: largest error of the feet's poses
_MAX_JOINT_STEP = 0.3  # rad or m of a leg joint in one step of Newton's method
_STEP_DAMPING = 1e-14  # m^2 or rad^2 added to J J', which regularises singular legs


@dataclass(frozen=True)
class SensorNoise:
    """Standard deviations of the white noise of the sensors of a walking robot.

    Attributes:
        position, torque: joint positions (rad or m) and joint torques (N m or N).
        force, moment: contact forces (N) and contact moments (N m).
        base_position, base_orientation: position (m) and orientation (rad) of the base.
        angular_rate, specific_force: signals of an IMU, rad/s and m/s^2.
    """

    position: float = 0.0
    torque: float = 0.0
    force: float = 0.0
    moment: float = 0.0
    base_position: float = 0.0
    base_orientation: float = 0.0
    angular_rate: float = 0.0
    specific_force: float = 0.0


@dataclass(frozen=True, eq=False)
class WalkerMotion:
    """A motion of a robot with a free base.

    Attributes:
        t: times (samples,), s.
        q: configurations (samples, 7 + n).
        v, a: velocities and accelerations (samples, 6 + n).
        standing: mask of active contacts (samples, contacts)."""

    t: Array
    q: Array
    v: Array
    a: Array
    standing: Bools


def standing_motion(robot: Robot, contacts: Sequence[Contact], posture: ArrayLike, *, duration: float = 10.0,
                    rate: float = 200.0, seed: int = 0, sway: float = 0.03, tilt: float = 0.15, swing: ArrayLike = 0.4,
                    lift: float = 0.0, top_frequency: float = 1.5, shift: float = 0.0) -> WalkerMotion:
    """Return a motion in which the base sways over feet that stand still or are lifted in turn.

    Args:
        robot: a robot with a free base, its gravity along -z.
        contacts: feet; round feet are treated as points. Without contacts the robot is suspended.
        posture: mean joint positions (n,), with a horizontal base.
        duration: duration, s.
        rate: samples per second.
        seed: seed of the random phases and amplitudes.
        sway: largest displacement of the base, m.
        tilt: largest rotation of the base, rad.
        swing: largest motion of joints that carry no contact, rad, one number or one per joint.
        lift: height to which feet are lifted one after the other, m; zero leaves all feet on the ground.
        top_frequency: highest frequency of the sines, Hz.
        shift: displacement of the base away from the foot that is lifted, m, so that other feet can carry the robot.
    """
    rng, t = np.random.default_rng(seed), np.arange(round(duration * rate)) / rate
    n, home = robot.dof - SIX, np.asarray(posture, dtype=float)
    legs = leg_joints(robot, contacts)
    held = np.isin(np.arange(robot.dof), legs)
    size = np.concatenate([np.full(3, sway), np.full(3, tilt), np.where(held[SIX:], 0.0, swing)])
    course, speed, change = (size * one for one in _sines(t, SIX + n, rng, top_frequency))
    start = np.concatenate([np.zeros(3), [0.0, 0.0, 0.0, 1.0], home])
    places = [dynamics.frame_pose(robot, contact.frame, start) for contact in contacts]
    lifts = _lifts(t, len(contacts), lift)
    if contacts and lift > 0.0 and shift > 0.0:
        toward = np.array([place[:2, 3] / np.linalg.norm(place[:2, 3]) for place in places])
        for signal, moved in zip((course, speed, change), _shifts(t, toward), strict=True):
            signal[:, :2] -= shift * moved
    # Orientation as the exponential of a rotation vector; its derivatives are computed as for a measured log.
    quaternion = quaternions_of_vectors(course[:, 3:SIX])
    twist, twist_change = body_rates(course[:, 3:SIX], speed[:, 3:SIX], change[:, 3:SIX])
    turns = dynamics.rotations(quaternion)
    q = np.hstack([course[:, :3], quaternion, home + course[:, SIX:]])
    if contacts:
        targets = [np.repeat(place[None], len(t), axis=0) for place in places]
        for k, target in enumerate(targets):
            target[:, 2, 3] += lifts[0][:, k]
        q, off = reach_places(robot, contacts, targets, q, legs)
        if off.max() >= FOOT_TOLERANCE:
            raise NotPossibleError(f"the feet of robot '{robot.name}' cannot reach their positions in this motion",
                                   "use a smaller sway or tilt, or another posture", code="feet-out-of-reach")
    v, a = np.zeros((2, len(t), robot.dof))
    v[:, :3] = np.einsum("sji,sj->si", turns, speed[:, :3])
    v[:, 3:SIX], a[:, 3:SIX] = twist, twist_change
    a[:, :3] = np.einsum("sji,sj->si", turns, change[:, :3]) - np.cross(twist, v[:, :3])
    free = np.flatnonzero(~held)[SIX:]
    v[:, free], a[:, free] = speed[:, free], change[:, free]
    if not contacts:
        return WalkerMotion(t, q, v, a, np.zeros((len(t), 0), dtype=bool))
    feet = fixed_feet(contacts)
    upward = np.einsum("sji,j->si", turns, np.array([0.0, 0.0, 1.0]))
    moving = [np.hstack([np.hstack([lifts[order][:, k, None] * upward,
                                    np.zeros((len(t), (0 if foot.kind == "point" else 3)))])
                         for k, foot in enumerate(feet)]) for order in (1, 2)]
    v, a = leg_rates(robot, feet, q, v, a, legs, (moving[0], moving[1]))
    return WalkerMotion(t, q, v, a, lifts[0] == 0.0)


def virtual_log(robot: Robot, contacts: Sequence[Contact], motion: WalkerMotion, *, noise: SensorNoise | None = None,
                rotor: ArrayLike | None = None, viscous: ArrayLike | None = None, coulomb: ArrayLike | None = None,
                imu: str | None = None, seed: int = 0) -> FloatingLog:
    """Return the log of a motion with torques, contact forces in the axes of the feet, pose and IMU of the base.

    Args:
        robot: the robot, with true inertias.
        contacts: feet of the motion.
        motion: a motion of `standing_motion`.
        noise: noise of the sensors. Default: none.
        rotor, viscous, coulomb: rotor inertia and friction of the joints (n,).
        imu: frame of an IMU on the root link; without an IMU, the log has the pose of the base.
        seed: seed of the noise.
    """
    rng, noise = np.random.default_rng([seed, 1]), noise or SensorNoise()
    q, v, a = motion.q, motion.v, motion.a
    force = dynamics.inverse_dynamics(robot, None, q, v, a)
    joints = slice(SIX, None)
    for extra, signal in ((rotor, a), (viscous, v), (coulomb, np.sign(v))):
        if extra is not None:
            force[:, joints] += np.asarray(extra, dtype=float) * signal[:, joints]
    reduced = np.hstack([np.zeros((len(q), SIX)), q[:, 7:]])
    widths = [3 if contact.kind == "point" else SIX for contact in contacts]
    jacobian = np.concatenate([dynamics.jacobian(robot, contact.frame, reduced)[:, :width]
                               for contact, width in zip(contacts, widths, strict=True)], axis=1)
    stands = np.repeat(motion.standing, widths, axis=1)
    jacobian *= stands[:, :, None]
    loads = np.einsum("sij,sj->si", np.linalg.pinv(jacobian[:, :, :SIX].transpose(0, 2, 1)), force[:, :SIX])
    left = force - np.einsum("sji,sj->si", jacobian, loads)
    if np.abs(left[:, :SIX]).max() > 1e-6 * np.abs(force[:, :SIX]).max():
        raise NotPossibleError(f"the standing feet of robot '{robot.name}' cannot support the robot in some samples",
                               "let more feet stand", code="feet-cannot-hold")
    wrenches, at = [], 0
    for contact, width in zip(contacts, widths, strict=True):
        turn = dynamics.frame_pose(robot, contact.frame, reduced)[:, :3, :3].transpose(0, 2, 1)
        own = (turn[:, None] @ loads[:, at:at + width].reshape(len(q), -1, 3, 1)).reshape(len(q), width)
        spread = np.repeat([noise.force, noise.moment], 3)[:width]
        wrenches.append(FootWrench(contact.frame, own + rng.normal(size=own.shape) * spread))
        at += width
    seen = q[:, 7:] + rng.normal(size=(len(q), q.shape[1] - 7)) * noise.position
    torque = left[:, joints] + rng.normal(size=seen.shape) * noise.torque
    position = q[:, :3] + rng.normal(size=(len(q), 3)) * noise.base_position
    small = quaternions_of_vectors(rng.normal(size=(len(q), 3)) * noise.base_orientation)
    orientation = dynamics.quaternions(dynamics.rotations(q[:, 3:7]) @ dynamics.rotations(small))
    unit = None if imu is None else _imu(robot, imu, motion, noise, rng)
    return FloatingLog(motion.t, seen, torque, position, orientation, unit, tuple(wrenches), tuple(contacts),
                       motion.standing, "virtual log")


def _imu(robot: Robot, frame: str, motion: WalkerMotion, noise: SensorNoise, rng: np.random.Generator) -> Imu:
    """Return the signals of an IMU at a frame of the root link."""
    place = robot.frame(frame)
    turn, arm = place.pose[:3, :3], place.pose[:3, 3]
    _, dq, ddq = dynamics.root_motion(robot, motion.q, motion.v, motion.a)
    rate, change = dq[:, 3:SIX], ddq[:, 3:SIX]
    force = ddq[:, :3] + np.cross(change, arm) + np.cross(rate, np.cross(rate, arm))
    return Imu(frame, rate @ turn + rng.normal(size=rate.shape) * noise.angular_rate,
               force @ turn + rng.normal(size=rate.shape) * noise.specific_force)


def _sines(t: Array, count: int, rng: np.random.Generator, top: float) -> tuple[Array, Array, Array]:
    """Return sums of sines with total amplitude one (samples, count), and their first and second derivatives."""
    frequency = 2 * np.pi * rng.uniform(0.1 * top, top, (_MOTION_SINES, count))
    phase, size = rng.uniform(0, 2 * np.pi, (_MOTION_SINES, count)), rng.uniform(0.3, 1.0, (_MOTION_SINES, count))
    size /= size.sum(axis=0)
    angle = frequency[:, None] * t[:, None] + phase[:, None]
    value = (size[:, None] * np.sin(angle)).sum(axis=0)
    first = (size[:, None] * frequency[:, None] * np.cos(angle)).sum(axis=0)
    return value, first, -(size[:, None] * frequency[:, None] ** 2 * np.sin(angle)).sum(axis=0)


def _lifts(t: Array, feet: int, height: float) -> Array:
    """Return the heights of the feet, m, and their first and second derivatives (3, samples, feet). One foot after the
    other is lifted for half a second, with half a second between. The height over time is the fourth power of a
    sine."""
    out = np.zeros((3, len(t), feet))
    if height <= 0.0 or not feet:
        return out
    phase = t % (feet * 1.0)
    for k in range(feet):
        inside = (phase > k + 0.25) & (phase < k + 0.75)
        w = 2 * np.pi
        s, c = np.sin(w * (phase[inside] - k - 0.25)), np.cos(w * (phase[inside] - k - 0.25))
        out[0, inside, k], out[1, inside, k] = height * s ** 4, 4 * height * w * s ** 3 * c
        out[2, inside, k] = 4 * height * w * w * (3 * s ** 2 * c ** 2 - s ** 4)
        out[0, inside, k] = np.maximum(out[0, inside, k], 1e-300)  # in the air, even at small heights
    return out


def _shifts(t: Array, toward: Array) -> list[Array]:
    """Return the displacement of the base (samples, 2) toward each foot while the foot is lifted, and its first and
    second derivatives; toward: horizontal unit vectors (feet, 2) to the feet."""
    turn, phase = 2 * np.pi, t % len(toward)
    foot = toward[np.minimum(phase.astype(int), len(toward) - 1)]
    profiles = (0.5 - 0.5 * np.cos(turn * phase), 0.5 * turn * np.sin(turn * phase),
                0.5 * turn ** 2 * np.cos(turn * phase))
    return [profile[:, None] * foot for profile in profiles]


def fixed_feet(contacts: Sequence[Contact]) -> list[Contact]:
    """Return the contacts as points or soles: a line becomes a sole, and a round foot the point at its centre."""
    return [Contact(contact.frame, "point" if contact.kind == "point" else "sole") for contact in contacts]


def leg_joints(robot: Robot, contacts: Sequence[Contact]) -> Ints:
    """Return the coordinates of the joints between the base and the contacts, in ascending order."""
    bodies = [robot.frame(contact.frame).body for contact in contacts]
    held = np.asarray(np.any(robot.supports[:, bodies], axis=1))
    held[:SIX] = False
    return np.flatnonzero(held)


def solve_rows(jacobian: Array, right: Array) -> Array:
    """Return the minimum-norm solution x (samples, columns[, k]) of jacobian x = right, for jacobians (samples, rows,
    columns)."""
    turned = jacobian.transpose(0, 2, 1)
    square = jacobian @ turned + _STEP_DAMPING * np.eye(jacobian.shape[1])
    columns = right if right.ndim == 3 else right[:, :, None]
    found = np.asarray(turned @ np.linalg.solve(square, columns))
    return found if right.ndim == 3 else found[:, :, 0]


def reach_places(robot: Robot, contacts: Sequence[Contact], targets: Sequence[Array], q: Array, legs: Ints
                 ) -> tuple[Array, Array]:
    """Return configurations (samples, 7 + n) with the feet at given poses, and the largest error (samples,), m or rad.

    Args:
        robot: a robot with a free base.
        contacts: feet, points or soles.
        targets: pose of each foot in the world, (4, 4) or (samples, 4, 4).
        q: configurations to start from (samples, 7 + n), near the solution.
        legs: coordinates of the joints that move, see `leg_joints`.
    """
    q = q.copy()
    for _ in range(INVERSE_STEPS):
        wrong, rates = [], []
        feet = frame_jacobians(robot, [contact.frame for contact in contacts], q)
        for contact, target, (here, jacobian) in zip(contacts, targets, feet, strict=True):
            aim = np.broadcast_to(target, here.shape)
            error = np.hstack([aim[:, :3, 3] - here[:, :3, 3], rotation_errors(aim[:, :3, :3], here[:, :3, :3])])
            used = 3 if contact.kind == "point" else SIX
            wrong.append(error[:, :used])
            rates.append(jacobian[:, :used, legs])
        error = np.hstack(wrong)
        off = np.abs(error).max(axis=1)
        if off.max() < FOOT_TOLERANCE:
            break
        q[:, legs + 1] += np.clip(solve_rows(np.concatenate(rates, axis=1), error), -_MAX_JOINT_STEP, _MAX_JOINT_STEP)
    return q, off


def leg_rates(robot: Robot, feet: Sequence[Contact], q: Array, v: Array, a: Array, legs: Ints,
              foot_rates: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
    """Return velocities and accelerations (samples, 6 + n) with leg joints that give the feet their prescribed motion.

    Args:
        robot: a robot with a free base.
        feet: contacts of the feet, points or soles, see `fixed_feet`.
        q: configurations (samples, 7 + n).
        v: velocities (samples, 6 + n), zero for the legs.
        a: accelerations (samples, 6 + n), zero for the legs.
        legs: coordinates of the leg joints.
        foot_rates: velocities and accelerations of the feet in the axes of the root (samples, rows). Default: zero.
    """
    v, a = v.copy(), a.copy()
    reduced = np.hstack([np.zeros((len(q), SIX)), q[:, 7:]])
    jacobian = np.concatenate([contact_jacobian(robot, foot, reduced) for foot in feet], axis=1)
    velocity, acceleration = foot_rates or (np.zeros(jacobian.shape[:2]), np.zeros(jacobian.shape[:2]))
    own = jacobian[:, :, legs]
    v[:, legs] = solve_rows(own, velocity - np.einsum("sij,sj->si", jacobian, v))
    bias = np.hstack([contact_bias(robot, foot, reduced, v) for foot in feet])
    classical = a.copy()
    classical[:, :3] += np.cross(v[:, 3:SIX], v[:, :3])
    a[:, legs] = solve_rows(own, acceleration - bias - np.einsum("sij,sj->si", jacobian, classical))
    return v, a
