"""Self-motions of a redundant arm: the joints move while a frame keeps its pose."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.dynamics import frame_pose, jacobian
from dynid.errors import NotPossibleError
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.random_motions import home_posture, ranges, spread_postures
from dynid.excitation.trajectories.trajectory import Piecewise
from dynid.robot import Robot
from dynid.robot.pose import rotation_errors

SELF_MOTION_STEP = 0.01  # rad along the path
MAX_PATH_ANGLE = 4.0 * np.pi  # rad, longest path in one direction; closed paths end earlier
_SINGULAR_JACOBIAN = 0.03  # smallest relative singular value of the Jacobian along a path
_NEWTON_STEPS = 8  # most iterations of Newton's method for the pose
_POSE_TOLERANCE = 1e-10  # m and rad: largest error of the pose of the frame
_KNOT_SECONDS = 0.01  # s between the knots of the motion in time
MIN_PATH_ANGLE = 0.1  # rad, shortest useful path
LONG_PATH_ANGLE = 1.0  # rad, length of a path with which joints move far enough for identification
POSTURE_DRAWS = 16  # postures that are tried if the middle of the ranges is singular
DRAWN_RANGE_SHARE = 0.6  # central share of the ranges from which postures are drawn: near the ends paths are short


@dataclass(frozen=True, eq=False)
class SelfMotion:
    """Path of a redundant arm along which a frame is fixed.

    Attributes:
        s: path length (points,), norm of the joint motion in rad or m.
        q: postures (points, dof).
        posture: the start posture (dof,).
    """

    s: Array
    q: Array
    posture: Array

    @property
    def length(self) -> float:
        return float(self.s[-1] - self.s[0])


def self_motion(robot: Robot, frame: str, limits: Limits, *, posture: ArrayLike | None = None, reach: float = 0.95,
                seed: int = 0) -> SelfMotion:
    """Return the longest path from a posture along which `frame` keeps its pose, in both directions up to the joint
    limits or a singular posture.

    With several redundant degrees of freedom, the seed selects the direction. If no posture (dof,) is given, the middle
    of all ranges is tried, and then random postures, since many arms are singular in the middle.

    Raises:
        NotPossibleError: If the robot is not redundant, or hardly moves from the posture; the message names a better
            posture.
    """
    home = home_posture(posture, limits)
    if robot.dof <= 6:
        raise NotPossibleError(f"robot '{robot.name}' has {robot.dof} joints, but keeping frame '{frame}' fixed "
                               "constrains six degrees of freedom; at least seven joints are needed",
                               code="not-redundant")
    found = _self_motion_path(robot, frame, limits, home, reach, seed)
    if found.length >= MIN_PATH_ANGLE:
        return found
    drawn = spread_postures(limits, POSTURE_DRAWS, np.random.default_rng(seed), DRAWN_RANGE_SHARE)
    others = (_self_motion_path(robot, frame, limits, np.round(one, 2), reach, seed) for one in drawn)
    other = next((one for one in others if one.length >= LONG_PATH_ANGLE), None)
    if posture is None and other is not None:
        return other
    raise NotPossibleError(
        f"from {'the middle of its ranges' if posture is None else 'this posture'} the joints of robot '{robot.name}' "
        f"can move by only {found.length:.2g} rad while frame '{frame}' keeps its pose",
        "choose another posture with --home" if other is None else
        f"give a posture such as --home {','.join(f'{x:g}' for x in other.posture)}, from which the joints can move by "
        f"{other.length:.2g} rad")


def _self_motion_path(robot: Robot, frame: str, limits: Limits, start: Array, reach: float, seed: int) -> SelfMotion:
    """Return the self-motion path from a posture (dof,), of length zero if the posture is singular."""
    aim = frame_pose(robot, frame, start[None])[0]
    wish = np.random.default_rng(seed).normal(size=robot.dof)
    paths = [_followed(robot, frame, aim, start, sign * wish, ranges(limits, reach)) for sign in (-1.0, 1.0)]
    q = np.concatenate([paths[0][::-1], start[None], paths[1]])
    s = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(q, axis=0), axis=1))])
    return SelfMotion(s, q, start)


def null_space_motion(path: SelfMotion, limits: Limits, *, duration: float = 20.0, harmonics: int = 5,
                      seed: int = 0) -> Piecewise:
    """Return a motion along a self-motion path from rest to rest, with path length s(t) = c + A sum_k a_k cos(2 pi k t
    / duration) and random a_k; c and A are such that s covers the path.

    Limits of velocity, acceleration and torque must be checked by the caller.
    """
    from scipy.interpolate import make_interp_spline

    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, duration, max(int(np.ceil(duration / _KNOT_SECONDS)), 50) + 1)
    amplitude = rng.normal(size=harmonics)
    wave = np.cos(2.0 * np.pi * np.arange(1, harmonics + 1) * t[:, None] / duration) @ amplitude
    wave = (wave - wave.min()) / max(np.ptp(wave), 1e-9)
    s = path.s[0] + wave * path.length
    q = make_interp_spline(path.s, path.q, k=5)(s)
    spline = make_interp_spline(t, q, k=5)
    breaks = np.unique(spline.t)
    return Piecewise(breaks, np.stack([spline(breaks[:-1], nu=k) / factorial(k) for k in range(6)], axis=2))


def _followed(robot: Robot, frame: str, aim: Array, start: Array, wish: Array, bounds: tuple[Array, Array]) -> Array:
    """Return postures (points, dof) along the self-motion from `start` (dof,) in the direction `wish` (dof,). The path
    ends at the bounds, at a singular posture, or when it returns to the start."""
    path: list[Array] = []
    q, ahead = start, wish
    for _ in range(int(MAX_PATH_ANGLE / SELF_MOTION_STEP)):
        direction = _tangent(robot, frame, q, ahead)
        if direction is None:
            break
        after = _posture_with_pose(robot, frame, aim, q + SELF_MOTION_STEP * direction)
        if after is None or np.any((after < bounds[0]) | (after > bounds[1])):
            break
        if len(path) > 10 and np.linalg.norm(after - start) < 0.5 * SELF_MOTION_STEP:  # the path is closed
            break
        path.append(after)
        q, ahead = after, direction
    return np.array(path).reshape(-1, len(start))


def _tangent(robot: Robot, frame: str, q: Array, ahead: Array) -> Array | None:
    """Return the unit direction (dof,) of joint motion at posture q (dof,) that keeps the frame fixed and is nearest to
    `ahead` (dof,); None near a singular posture."""
    _, s, vt = np.linalg.svd(jacobian(robot, frame, q[None])[0])
    free = vt[6:]
    along = free.T @ (free @ ahead)
    size = float(np.linalg.norm(along))
    return None if s[-1] < _SINGULAR_JACOBIAN * s[0] or size < 1e-9 else along / size


def _posture_with_pose(robot: Robot, frame: str, aim: Array, q: Array) -> Array | None:
    """Return the posture nearest to q (dof,) in which the frame has the pose `aim`; None if Newton's method fails."""
    for _ in range(_NEWTON_STEPS):
        pose = frame_pose(robot, frame, q[None])[0]
        error = np.concatenate([aim[:3, 3] - pose[:3, 3], rotation_errors(aim[None, :3, :3], pose[None, :3, :3])[0]])
        if float(np.abs(error).max()) < _POSE_TOLERANCE:
            return q
        q = q + np.linalg.pinv(jacobian(robot, frame, q[None])[0]) @ error
    return None
