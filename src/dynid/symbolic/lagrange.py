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
from dynid.symbolic.vectors import Matrix, dot, transposed

_MOST_JOINTS = 4


def euler_lagrange(robot: Robot) -> Function:
    """Return the inverse dynamics of the bodies: from q, dq, ddq (joints,) and theta (10 joints,), the inertial
    parameters in dynid's order, to tau (joints,)."""
    n = robot.dof
    if n > _MOST_JOINTS:
        raise NotPossibleError("Lagrange's equations are generated for up "
                               f"to {_MOST_JOINTS} joints, but robot "
                               f"'{robot.name}' has {n}", "use generate, which applies the Newton-Euler recursion")
    graph = Graph()
    q, dq, ddq = (graph.symbols(name, n) for name in ("q", "dq", "ddq"))
    theta = graph.symbols("theta", 10 * n)
    by = [Derivatives(graph, {x: graph.one}) for x in q]
    poses = _poses(graph, robot, q)
    slopes = [[[[d(x) for x in row] for row in pose] for d in by] for pose in poses]
    inertias = [_pseudo_inertia(graph, theta[10 * b:10 * b + 10]) for b in range(n)]
    mass = [[_sum(graph, [_trace(slopes[b][i], inertias[b], slopes[b][j]) for b in range(n)]) for j in range(n)]
            for i in range(n)]
    height = _sum(graph, [_weight(robot, pose, theta[10 * b:10 * b + 10]) for b, pose in enumerate(poses)])
    tau = []
    for i in range(n):
        parts = [mass[i][j] * ddq[j] for j in range(n)]
        parts += [(by[k](mass[i][j]) - 0.5 * by[i](mass[j][k])) * (dq[j] * dq[k]) for j in range(n) for k in range(n)]
        tau.append(_sum(graph, [*parts, by[i](height)]))
    return Function("inverse_dynamics", "Torques of the bodies by Lagrange's equations.",
                    (("q", n), ("dq", n), ("ddq", n), ("theta", 10 * n)), (Output("tau", (n,), tuple(tau)),), graph)


def _poses(graph: Graph, robot: Robot, q: list[Value]) -> list[Matrix]:
    """Return the upper three rows (3, 4) of every body's pose in the base."""
    found: list[Matrix] = []
    for i, joint in enumerate(robot.joints):
        motion = [[graph.value(float(x)) for x in row] for row in np.eye(4)]
        if joint.prismatic:
            motion[2][3] = q[i]
        else:
            c, s = graph.apply("cos", q[i]), graph.apply("sin", q[i])
            motion[0][0], motion[0][1], motion[1][0], motion[1][1] = c, -s, s, c
        pose = _product(_product(_numbers(graph, joint.before), motion), _numbers(graph, joint.after))
        if joint.parent != BASE:
            last = [graph.value(float(x)) for x in (0, 0, 0, 1)]
            pose = _product([*found[joint.parent], last], pose)
        found.append(pose[:3])
    return found


def _numbers(graph: Graph, matrix: np.ndarray) -> Matrix:
    return [[graph.value(float(x)) for x in row] for row in matrix]


def _product(a: Matrix, b: Matrix) -> Matrix:
    return [[dot(row, column) for column in transposed(b)] for row in a]


def _pseudo_inertia(graph: Graph, numbers: list[Value]) -> Matrix:
    """Return the pseudo-inertia (4, 4), linear in the ten inertial parameters."""
    basis = ten.pseudo_inertia(np.eye(10))
    return [[_sum(graph, [float(basis[k, r, c]) * numbers[k] for k in range(10)]) for c in range(4)] for r in range(4)]


def _trace(a: Matrix, inertia: Matrix, b: Matrix) -> Value:
    """Return the trace of A J B' for (3, 4) matrices A and B and a pseudo-inertia J."""
    half = _product(a, inertia)
    total = dot(half[0], b[0])
    for x, y in zip(half[1:], b[1:], strict=True):
        total = total + dot(x, y)
    return total


def _weight(robot: Robot, pose: Matrix, numbers: list[Value]) -> Value:
    """Return the potential energy, - g . (R h + m o)."""
    first = [dot(row, [*numbers[6:9], numbers[9]]) for row in pose]
    return -_sum(first[0].graph, [float(g) * x for g, x in zip(robot.gravity, first, strict=True)])


def _sum(graph: Graph, values: list[Value]) -> Value:
    total = graph.zero
    for value in values:
        total = total + value
    return total
