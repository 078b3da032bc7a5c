"""Body frames for code generation, chosen so that as many numbers as possible are zero or one.

The z axis of a body's frame is its joint axis. The frame may be moved along this axis and turned about it. Its origin
is the foot of the common perpendicular with the previous axis, as in standard DH tables. If nearly parallel axes place
this foot far away, where large moments cancel, the joint's own origin is used. The next axis is tilted about the x axis
alone. The frame of a prismatic joint's body starts at the origin of the previous body. The transform between frames is
then Tz(d) Tx(a) Rx(alpha) followed by the joint's own motion; for right angles it contains a single plane rotation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.robot import BASE, Robot
from dynid.robot import inertia as ten
from dynid.robot.free_base import refuse_free_base
from dynid.robot.pose import inverse, rotation_z, translation

_ZERO_TOLERANCE = 1e-12  # m or of a direction cosine
FAR_FRAME_RATIO = 3.0  # times the longest step between joints


@dataclass(frozen=True, eq=False)
class Link:
    """A body in generated code, with a frame that is chosen for short code.

    Attributes:
        parent: index of the previous body, BASE for the base.
        sliding: whether the joint is prismatic.
        fixed: pose (4, 4) of the joint in the previous body. The motion of the joint follows: a rotation about z by
            q + offset, or a translation along z by q.
        offset: offset of the joint angle, rad.
        place: pose (4, 4) of the robot's own body frame in the frame of this body.
    """

    parent: int
    sliding: bool
    fixed: Array
    offset: float
    place: Array

    @property
    def rotation(self) -> Array:
        return np.asarray(self.fixed[:3, :3])

    @property
    def origin(self) -> Array:
        return np.asarray(self.fixed[:3, 3])

    @property
    def handed(self) -> tuple[int, ...]:
        """Indices, from 0 to 9, of the body's inertial parameters that can be assigned to the previous body."""
        return (0, 1, 2, 3, 4, 5) if self.sliding else (5, 8, 9)


@dataclass(frozen=True, eq=False)
class Chain:
    """All bodies in generated code, with gravity (3,), m/s^2, and the robot's base frame `base` (4, 4) in the inertial
    frame of the code."""

    links: tuple[Link, ...]
    gravity: Array
    base: Array

    def second_moments(self) -> Array:
        """Return the matrix (10 bodies, 10 bodies) that converts the parameters XX .. M of all bodies to second moments
        Sxx .. Szz, first moments and masses in the frames of the generated code."""
        size = 10 * len(self.links)
        whole = np.zeros((size, size))
        for i, link in enumerate(self.links):
            own = slice(10 * i, 10 * i + 10)
            whole[own, own] = _SECOND_FROM_INERTIA @ ten.change_frame(link.place)
        return clean(whole)

    def handed_over(self, kept: Sequence[int] = ()) -> Array:
        """Return the matrix (10 bodies, 10 bodies) that assigns parameters to the previous body if torques do not
        distinguish them from parameters of that body. Rows of assigned parameters are zero.

        For a revolute joint, these parameters are Szz, MZ and M, which describe mass along its axis; for a prismatic
        joint, all second moments. kept: indices of parameters that are not regrouped.
        """
        whole = np.eye(10 * len(self.links))
        for i, link in reversed(list(enumerate(self.links))):
            given = [10 * i + k for k in link.handed if 10 * i + k not in kept]
            if link.parent != BASE:
                moved = _SECOND_FROM_INERTIA @ ten.change_frame(link.fixed) @ _INERTIA_FROM_SECOND
                own = moved[:, [k - 10 * i for k in given]]
                whole[10 * link.parent:10 * link.parent + 10] += own @ whole[given]
            whole[given] = 0.0
        return clean(whole)


# Matrix (10, 10) from inertias to second moments: Sigma = tr(I)/2 1 - I, with unchanged first moments and mass.
_SECOND_FROM_INERTIA = np.diag([-1.0] * 6 + [1.0] * 4)
_SECOND_FROM_INERTIA[np.ix_([0, 3, 5], [0, 3, 5])] += 0.5
_INERTIA_FROM_SECOND = np.linalg.inv(_SECOND_FROM_INERTIA)


def chain(robot: Robot) -> Chain:
    """Return the frames of a robot's bodies that make the generated code shortest."""
    refuse_free_base(robot, "code generation")
    first = {joint.parent: i for i, joint in reversed(list(enumerate(robot.joints)))}
    size = max(float(np.linalg.norm(pose[:3, 3])) for joint in robot.joints for pose in (joint.before, joint.after))
    place = {BASE: inverse(robot.joints[0].before)}  # the robot's own frame of each body in the new one
    links: list[Link] = []
    for i, joint in enumerate(robot.joints):
        start = place[joint.parent] @ joint.before
        near, angle = _way(start, joint.prismatic)[1:]
        if abs(near) > FAR_FRAME_RATIO * size:
            near = 0.0
        fixed = start @ translation(0.0, 0.0, -near) @ rotation_z(-angle)
        # The pose of the body in the joint's frame is written directly. The product of a pose and its inverse would
        # double the rounding error with every body.
        within = translation(0.0, 0.0, near) @ joint.after
        if joint.prismatic:
            fixed[:3, 3] = 0.0
            slide = rotation_z(angle)
            slide[:3, 3] = fixed[:3, :3].T @ start[:3, 3]
            within = slide @ joint.after
        turn = 0.0 if joint.prismatic else -angle
        if i in first:  # the next axis shall be tilted about x only
            after = robot.joints[first[i]]
            turn = _way(within @ after.before, after.prismatic)[0]
        within = rotation_z(-turn) @ within
        offset = angle + turn
        if joint.prismatic:
            fixed, offset = fixed @ rotation_z(turn), 0.0
        place[i] = within
        links.append(Link(joint.parent, joint.prismatic, clean(fixed), _right_angle(offset), within))
    still = place[BASE]
    return Chain(tuple(links), clean(still[:3, :3] @ robot.gravity), still)


def _way(pose: Array, sliding: bool) -> tuple[float, float, float]:
    """Return theta, near and angle of a joint's `pose` (4, 4) = Rz(theta) Tz(d) Tx(a) Rx(alpha) Tz(near) Rz(angle). For
    a prismatic joint only the direction of its axis matters, and near is zero."""
    z, origin = pose[:3, 2], np.zeros(3) if sliding else pose[:3, 3]
    tilt = math.hypot(z[0], z[1])
    if tilt > _ZERO_TOLERANCE:
        theta = math.atan2(z[0], -z[1])
    else:
        theta = math.atan2(origin[1], origin[0]) if math.hypot(origin[0], origin[1]) > _ZERO_TOLERANCE else 0.0
    if not -0.5 * math.pi < theta <= 0.5 * math.pi:  # the other of the two, with alpha or a below zero
        theta -= math.copysign(math.pi, theta)
    theta = _right_angle(theta)
    back = rotation_z(-theta)[:3, :3]
    turned = back @ z
    near = 0.0 if tilt <= _ZERO_TOLERANCE else float((back @ origin)[1] / turned[1])
    alpha = np.array([[1.0, 0.0, 0.0], [0.0, turned[2], turned[1]], [0.0, -turned[1], turned[2]]])
    rest = alpha.T @ back @ pose[:3, :3]
    return theta, near, _right_angle(math.atan2(rest[1, 0], rest[0, 0]))


def _right_angle(angle: float) -> float:
    """Return an angle in (-pi, pi], exact at multiples of 90 degrees."""
    quarters = angle / (0.5 * math.pi)
    if abs(quarters - round(quarters)) < _ZERO_TOLERANCE:
        return (round(quarters) + 1) % 4 * 0.5 * math.pi - 0.5 * math.pi
    return math.remainder(angle, 2.0 * math.pi)


def clean(matrix: Array) -> Array:
    """Return a matrix whose entries near zero or one, up to rounding errors, are exactly zero or one."""
    size = np.abs(matrix)
    whole = np.where(np.abs(size - 1.0) < _ZERO_TOLERANCE, 1.0, np.where(size < _ZERO_TOLERANCE, 0.0, size))
    return np.asarray(np.copysign(whole, matrix))
