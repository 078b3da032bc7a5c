"""Euler-Lagrange equations: an independent derivation of the torques from derivatives of the energy.

With T_b the pose of a body and J_b its pseudo-inertia, the inertia matrix is M_ij = sum tr(dT_b/dq_i J_b dT_b/dq_j'),
and tau_i = sum M_ij ddq_j + sum (dM_ij/dq_k - 1/2 dM_jk/dq_i) dq_j dq_k + dV/dq_i. It shares only the robot with the
Newton-Euler recursion, so agreement of both verifies both. It grows too fast for more than a few joints.
"""

from __future__ import annotations

import numpy as np

from dynid.errors import NotPossibleError
from dynid.robot import BASE, Robot
from dynid.robot import inertia as ten
from dynid.symbolic.functions import Function, Output
from dynid.symbolic.graph import Derivatives, Graph, Value
from dynid.symbolic.vectors import Matrix, dot, numbers, transposed

_MOST_JOINTS = 4


def euler_lagrange(robot: Robot) -> Function:
    """Return the inverse dynamics of the bodies: torques tau (joints,) as a function of q, dq, ddq (joints,) and the
    inertial parameters theta (10 joints,), in the order XX XY XZ YY YZ ZZ MX MY MZ M of each body."""
    n = robot.dof
    if n > _MOST_JOINTS:
        raise NotPossibleError(f"Lagrange's equations are generated for up to {_MOST_JOINTS} joints, but robot "
                               f"'{robot.name}' has {n}", "use generate, which applies the Newton-Euler recursion")
    graph = Graph()
    q, dq, ddq = (graph.symbols(name, n) for name in ("q", "dq", "ddq"))
    theta = graph.symbols("theta", 10 * n)
    by = [Derivatives(graph, {x: graph.one}) for x in q]
    poses = _poses(graph, robot, q)
    slopes = [[[[d(x) for x in row] for row in pose] for d in by] for pose in poses]
    inertias = [_pseudo_inertia(graph, theta[10 * b:10 * b + 10]) for b in range(n)]
    mass = [[sum((_trace(slopes[b][i], inertias[b], slopes[b][j]) for b in range(n)), graph.zero) for j in range(n)]
            for i in range(n)]
    height = sum((_weight(robot, pose, theta[10 * b:10 * b + 10]) for b, pose in enumerate(poses)), graph.zero)
    tau = []
    for i in range(n):
        parts = [mass[i][j] * ddq[j] for j in range(n)]
        parts += [(by[k](mass[i][j]) - 0.5 * by[i](mass[j][k])) * (dq[j] * dq[k]) for j in range(n) for k in range(n)]
        tau.append(sum([*parts, by[i](height)], graph.zero))
    return Function("inverse_dynamics", "Torques of the bodies by Lagrange's equations.",
                    (("q", n), ("dq", n), ("ddq", n), ("theta", 10 * n)), (Output("tau", (n,), tuple(tau)),), graph)


def _poses(graph: Graph, robot: Robot, q: list[Value]) -> list[Matrix]:
    """Return the upper three rows (3, 4) of every body's pose in the base."""
    found: list[Matrix] = []
    for i, joint in enumerate(robot.joints):
        motion = [numbers(graph, row) for row in np.eye(4)]
        if joint.prismatic:
            motion[2][3] = q[i]
        else:
            c, s = graph.apply("cos", q[i]), graph.apply("sin", q[i])
            motion[0][0], motion[0][1], motion[1][0], motion[1][1] = c, -s, s, c
        before, after = ([numbers(graph, row) for row in fixed] for fixed in (joint.before, joint.after))
        pose = _product(_product(before, motion), after)
        if joint.parent != BASE:
            pose = _product([*found[joint.parent], numbers(graph, np.eye(4)[3])], pose)
        found.append(pose[:3])
    return found


def _product(a: Matrix, b: Matrix) -> Matrix:
    return [[dot(row, column) for column in transposed(b)] for row in a]


def _pseudo_inertia(graph: Graph, own: list[Value]) -> Matrix:
    """Return the pseudo-inertia (4, 4), linear in the ten inertial parameters."""
    basis = ten.pseudo_inertia(np.eye(10))
    return [[dot(numbers(graph, basis[:, r, c]), own) for c in range(4)] for r in range(4)]


def _trace(a: Matrix, inertia: Matrix, b: Matrix) -> Value:
    """Return the trace of A J B' for (3, 4) matrices A and B and a pseudo-inertia J."""
    return sum((dot(x, y) for x, y in zip(_product(a, inertia), b, strict=True)), a[0][0].graph.zero)


def _weight(robot: Robot, pose: Matrix, own: list[Value]) -> Value:
    """Return the potential energy, - g . (R h + m o), of a body with first moments h, mass m and origin o."""
    return -dot(numbers(own[0].graph, robot.gravity), [dot(row, own[6:]) for row in pose])
