"""Reference implementation of Newton-Euler inverse dynamics of a tree for any number type.

The kernels of `tiles`, `state` and `adjoint` implement the same textbook equations (Featherstone's ID, Khalil and
Dombre, s. 9.5). Number types need only + - *: floats, complex numbers for complex-step derivatives, fractions, or
symbols of an expression graph. Vectors are lists of three, matrices lists of three rows. The regressor
follows column by column from unit inertial parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dynid.robot import BASE, Joint, Robot

Number = Any  # any type with + - *
Vector = Sequence[Number]
Matrix = Sequence[Sequence[Number]]


def inverse_dynamics(robot: Robot, inertias: Matrix, q: Vector, dq: Vector, ddq: Vector, *,
                     cos: Callable[[Number], Number] = math.cos, sin: Callable[[Number], Number] = math.sin,
                     number: Callable[[float], Number] = float) -> list[Number]:
    """Return the torques (joints,) of one sample q, dq, ddq (joints,) for inertial parameters (joints, 10).

    cos, sin: functions for the numbers in q. number: converts the robot's own constants (poses, gravity) to this kind
    of number.
    """
    base = ([number(0.0)] * 3, [number(0.0)] * 3, [number(-g) for g in robot.gravity])
    motions: list[tuple[Vector, Vector, Vector]] = []
    poses, axes, forces, moments = [], [], [], []
    for joint, x, d, dd, (XX, XY, XZ, YY, YZ, ZZ, *h, M) in zip(robot.joints, q, dq, ddq, inertias, strict=True):
        R, p = pose(joint, x, cos, sin, number)  # of the body in its parent
        s, v = axis(joint, number)  # angular and linear velocity for unit joint velocity, body frame
        W, E, A = base if joint.parent == BASE else motions[joint.parent]
        u = turned_back(R, W)
        # Angular velocity, angular acceleration, acceleration of the origin minus gravity, all in the body frame.
        w = add(u, times(d, s))
        e = add(turned_back(R, E), times(dd, s), times(d, cross(u, s)))
        a = add(turned_back(R, add(A, cross(E, p), cross(W, cross(W, p)))),
                times(dd, v), times(d, cross(u, v)), times(d, cross(w, v)))
        # Newton and Euler about the body's origin: f = M a + e x h + w x (w x h), n = I e + w x I w + h x a.
        inertia = [[XX, XY, XZ], [XY, YY, YZ], [XZ, YZ, ZZ]]
        motions.append((w, e, a))
        poses.append((R, p))
        axes.append((s, v))
        forces.append(add(times(M, a), cross(e, h), cross(w, cross(w, h))))
        moments.append(add(turned(inertia, e), cross(w, turned(inertia, w)), cross(h, a)))
    torques = []
    for i in reversed(range(robot.dof)):  # a joint transmits the wrenches of all bodies that it carries
        (R, p), (s, v), parent = poses[i], axes[i], robot.joints[i].parent
        torques.append(dot(s, moments[i]) + dot(v, forces[i]))
        if parent != BASE:
            force = turned(R, forces[i])
            forces[parent] = add(forces[parent], force)
            moments[parent] = add(moments[parent], turned(R, moments[i]), cross(p, force))
    return torques[::-1]


def pose(joint: Joint, x: Number, cos: Callable[[Number], Number], sin: Callable[[Number], Number],
         number: Callable[[float], Number]) -> tuple[Matrix, Vector]:
    """Return rotation and origin of a body in its parent: before * motion(x) * after (see `Joint`)."""
    (B, b), (A, a) = (([[number(k) for k in row[:3]] for row in at[:3]], [number(row[3]) for row in at[:3]])
                      for at in (joint.before, joint.after))
    if joint.prismatic:
        return [turned_back(A, row) for row in B], add(b, turned(B, [a[0], a[1], a[2] + x]))
    c, s = cos(x), sin(x)
    turn = [[c * row[0] + s * row[1], c * row[1] - s * row[0], row[2]] for row in B]  # B times the rotation about z
    return [turned_back(A, row) for row in turn], add(b, turned(turn, a))


def axis(joint: Joint, number: Callable[[float], Number]) -> tuple[Vector, Vector]:
    """Return angular velocity and velocity of a body's origin for unit joint velocity, body frame: z, z x a for a
    revolute joint, with a the origin relative to the joint."""
    A = [[number(k) for k in row] for row in joint.after[:3]]
    z, zero = A[2][:3], [number(0.0)] * 3
    origin = turned_back([row[:3] for row in A], [row[3] for row in A])
    return (zero, z) if joint.prismatic else (z, cross(z, origin))


def add(first: Vector, *others: Vector) -> Vector:
    total = list(first)
    for other in others:
        total = [x + y for x, y in zip(total, other, strict=True)]
    return total


def times(factor: Number, vector: Vector) -> Vector:
    return [factor * x for x in vector]


def dot(a: Vector, b: Vector) -> Number:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def turned(matrix: Matrix, vector: Vector) -> Vector:
    return [dot(row, vector) for row in matrix]


def turned_back(matrix: Matrix, vector: Vector) -> Vector:
    """Return the product of the transposed matrix (3, 3) and a vector (3,)."""
    return [matrix[0][k] * vector[0] + matrix[1][k] * vector[1] + matrix[2][k] * vector[2] for k in range(3)]
