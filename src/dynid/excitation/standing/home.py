"""Home posture of standing feet: on level ground, with flexed legs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dynid import dynamics
from dynid.arrays import Array, Ints
from dynid.errors import DynidError, NotPossibleError
from dynid.excitation.limits.motion_limits import Limits
from dynid.floating import Contact
from dynid.floating.rotation_vectors import quaternions_of_vectors
from dynid.floating.standing_legs import FOOT_TOLERANCE, leg_joints, reach_places
from dynid.robot import FREE_COORDINATES as SIX
from dynid.robot import Robot

_ADJUSTED = 1e-3  # m or rad by which feet of a given posture may be off level ground without a remark
# Shares of the height of the base above the feet by which legs are shortened. Flexed legs leave room to move upward.
_BENDS = (0.15, 0.1, 0.06, 0.2, 0.3)
_LEG_DRAWS = 12  # random leg postures to start from, for each bend
_DRAWN_ANGLE = 1.2  # rad of the random bends


def home_configuration(robot: Robot, contacts: tuple[Contact, ...], limits: Limits, given: ArrayLike | None,
                       excess: Callable[[Array], float], seed: int = 0) -> tuple[Array, tuple[str, ...]]:
    """Return a configuration (7 + n,) with a level base and all feet on the ground at height zero, and remarks.

    Args:
        robot: a robot with a free base.
        contacts: its feet.
        limits: of all 6 + n coordinates.
        given: joint positions (n,), or None to choose some.
        excess: largest violation of a limit in a configuration, for the choice.
        seed: of the choice.

    Raises:
        NotPossibleError: If a foot cannot reach the ground.
    """
    n = robot.dof - SIX
    lower, upper = limits.lower[SIX:], limits.upper[SIX:]
    if given is not None:
        joints = np.asarray(given, dtype=float)
        if joints.shape != (n,) or not np.isfinite(joints).all():
            raise DynidError(f"the home posture of robot '{robot.name}' must be {n} finite numbers, one per joint "
                             f"without the base, got {joints.size}", code="wrong-home")
        found, off = _on_ground(robot, contacts, joints, 0.0, joints)
        if off.max() >= FOOT_TOLERANCE:
            raise _out_of_reach(robot, contacts, off)
        moved = np.abs(found[7:] - joints)
        note = ("leg joints of the home posture were changed by up to "
                f"{moved.max():.2g} rad, so that all feet stand on level ground",) if moved.max() > _ADJUSTED else ()
        return found, note
    middle = np.where(np.isfinite(lower + upper), 0.5 * (lower + upper), 0.0)
    joints = np.where((lower <= 0.0) & (upper >= 0.0), 0.0, middle)
    rng, legs = np.random.default_rng(seed), leg_joints(robot, contacts)
    depth = _depths(robot, legs)
    best: tuple[float, Array] | None = None
    worst = np.zeros(len(contacts))
    for bend in _BENDS:
        for _ in range(_LEG_DRAWS):
            start = joints.copy()
            # Equal bends at equal places of all legs: a robot whose knees point the same way.
            start[legs - SIX] = rng.uniform(-_DRAWN_ANGLE, _DRAWN_ANGLE, depth.max() + 1)[depth]
            found, worst = _on_ground(robot, contacts, np.clip(start, lower, upper), bend, joints)
            if worst.max() < FOOT_TOLERANCE and np.all((found[7:] >= lower) & (found[7:] <= upper)):
                value = excess(found)
                if best is None or value < best[0]:
                    best = value, found
        if best is not None and best[0] < 0.0:
            break
    if best is None:
        raise _out_of_reach(robot, contacts, worst)
    shown = ",".join(f"{x:.3g}" for x in best[1][7:])
    return best[1], (f"the home posture was chosen, --home {shown}; give another one with --home",)


def _out_of_reach(robot: Robot, contacts: tuple[Contact, ...], off: Array) -> NotPossibleError:
    worst = contacts[int(np.argmax(off))].frame
    return NotPossibleError(f"foot '{worst}' of robot '{robot.name}' cannot reach level ground together with the "
                            "others",
                            "give a posture with flexed knees with --home Q1,Q2,..., or name other feet",
                            code="feet-out-of-reach")


def _depths(robot: Robot, legs: Ints) -> Ints:
    """Return the place of each leg joint in its chain, from 0 at the base."""
    parents = robot.parents
    found = np.zeros(robot.dof, dtype=np.int64)
    for i in range(SIX, robot.dof):
        found[i] = found[parents[i]] + 1 if parents[i] >= SIX else 0
    return found[legs]


def _on_ground(robot: Robot, contacts: tuple[Contact, ...], joints: Array, bend: float, places: Array
               ) -> tuple[Array, Array]:
    """Return a configuration (7 + n,) from `joints` (n,) with all feet on level ground, and the error of each foot.

    The feet are below their places in the posture `places` (n,); legs are shortened by the share `bend`.
    """
    start = np.concatenate([np.zeros(3), [0.0, 0.0, 0.0, 1.0], places])
    poses = [dynamics.frame_pose(robot, contact.frame, start) for contact in contacts]
    ground = float(np.mean([pose[2, 3] for pose in poses])) * (1.0 - bend)
    targets = []
    for pose, contact in zip(poses, contacts, strict=True):
        target = pose if contact.kind == "point" else _level(pose)
        targets.append(np.block([[target[:3, :3], np.array([[pose[0, 3]], [pose[1, 3]], [ground]])],
                                 [np.array([[0.0, 0.0, 0.0, 1.0]])]]))
    begin = np.concatenate([np.zeros(3), [0.0, 0.0, 0.0, 1.0], joints])
    found, _ = reach_places(robot, contacts, targets, begin[None], leg_joints(robot, contacts))
    here = [dynamics.frame_pose(robot, contact.frame, found[0]) for contact in contacts]
    off = np.array([max(float(np.abs(one[:3, 3] - target[:3, 3]).max()), 0.0 if contact.kind == "point" else
                        float(np.abs(one[:3, :3] - target[:3, :3]).max()))
                    for one, target, contact in zip(here, targets, contacts, strict=True)])
    # Joints of a leg may have turned more than once.
    found[0, 7:] = np.where(np.array([not joint.prismatic for joint in robot.joints[SIX:]]),
                            np.mod(found[0, 7:] + np.pi, 2 * np.pi) - np.pi, found[0, 7:])
    found[0, 2] = -ground
    return found[0], off


def _level(pose: Array) -> Array:
    """Return a pose (4, 4) turned by the smallest rotation that makes its most vertical axis vertical."""
    up = int(np.argmax(np.abs(pose[2, :3])))
    axis = pose[:3, up] * np.sign(pose[2, up])
    turn = np.cross(axis, np.array([0.0, 0.0, 1.0]))
    size = float(np.linalg.norm(turn))
    angle = float(np.arctan2(size, axis[2]))
    vector = turn / size * angle if size > 1e-12 else np.zeros(3)
    out = pose.copy()
    out[:3, :3] = dynamics.rotations(quaternions_of_vectors(vector[None]))[0] @ pose[:3, :3]
    return out
