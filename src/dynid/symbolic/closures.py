"""Loop closures on the expression graph: their equations, and the motion of the dependent joints.

The coordinates are z = (q, q_follow): positions of the independent joints and of the joints that the closures
determine. The equations phi(z) = 0 have the derivatives Phi_q by q and Phi_f by q_follow. The dependent velocities are
dq_follow = X dq with X = -Phi_f^+ Phi_q, and the accelerations are X ddq + dX/dt dq. Columns are orthogonalised one
after the other (Gram-Schmidt without square roots). No pivot is chosen that could be zero in another posture, so the
solution is singular only in singular postures of the robot. Redundant equations are allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.robot import BASE
from dynid.robot.followers import DependentJoints
from dynid.robot.loops import Closure
from dynid.robot.robot import Frame
from dynid.symbolic.frames import Chain, clean
from dynid.symbolic.graph import Derivatives, Graph, Value
from dynid.symbolic.motion import FramePose, places
from dynid.symbolic.trace import evaluated
from dynid.symbolic.vectors import Matrix, Vector, add, dot, numbers, subtract, transposed

_ZERO_DERIVATIVE = 1e-12  # of a derivative, relative to the largest


@dataclass(frozen=True, eq=False)
class LoopMotion:
    """Motion of the dependent joints, on a graph in the symbols q, q_follow and dq.

    Attributes:
        rates: velocities X (dependent, dof) of the dependent joints for unit velocities dq.
        rate_slopes: time derivative dX/dt (dependent, dof).
        bias: dX/dt dq (dependent,).
        correction: Newton step (dependent,) for positions q_follow that do not quite close the loops.
    """

    graph: Graph
    rates: Matrix
    rate_slopes: Matrix
    bias: Vector
    correction: Vector


def tree_positions(graph: Graph, followers: DependentJoints, z: Sequence[Value]) -> Vector:
    """Return the positions of all joints of the tree, as graph values, at coordinates z."""
    rows = [dot(numbers(graph, row), z) for row in followers.coupling]
    return [x + float(b) for x, b in zip(rows, followers.offset, strict=True)]


def own_joints(followers: DependentJoints) -> tuple[int, ...]:
    """Return the index in the tree of the joint that each dependent coordinate belongs to."""
    return tuple(followers.tree.joint_index(name) for name in followers.following)


def loop_motion(chain: Chain, followers: DependentJoints, postures: Array) -> LoopMotion:
    """Return the motion of the dependent joints of a robot's loops. postures (samples, coordinates): coordinates that
    close the loops, at which derivatives that are always zero are detected."""
    graph, n = Graph(), len(followers.free)
    follow = postures.shape[1] - n
    q, dq = graph.symbols("q", n), graph.symbols("dq", n)
    z = [*q, *graph.symbols("q_follow", follow)]
    frames = places(graph, chain, tree_positions(graph, followers, z), own_joints(followers))
    assert followers.loops is not None
    phi = [e for closure in followers.loops.closures for e in _equations(graph, chain, frames, closure)]
    by = [Derivatives(graph, {coordinate: graph.one}) for coordinate in z]
    at = {"q": postures[:, :n], "q_follow": postures[:, n:]}
    jacobian = _with_exact_zeros(graph, [[d(e) for d in by] for e in phi], at)
    kept = [k for k, row in enumerate(jacobian) if any(x != graph.zero for x in row)]
    phi, jacobian = [phi[k] for k in kept], [jacobian[k] for k in kept]
    solve = _Solution(graph, [row[n:] for row in jacobian])
    X = transposed([solve([-row[k] for row in jacobian]) for k in range(n)])
    moving = [*dq, *(dot(row, dq) for row in X)]
    # Derivatives of the equations along the motion at constant rates, which are represented by symbols.
    held = graph.symbols("rate", len(z))
    along = Derivatives(graph, dict(zip(z, held, strict=True)))
    substituted = {symbol.node: rate for symbol, rate in zip(held, moving, strict=True)}
    slopes = [graph.rewritten([along(x) for x in row], substituted) for row in jacobian]
    bias = solve([-dot(row, moving) for row in slopes])
    columns = transposed([*(numbers(graph, row) for row in np.eye(n)), *X])
    rate_slopes = transposed([solve([-dot(row, column) for row in slopes]) for column in columns])
    return LoopMotion(graph, X, rate_slopes, bias, solve([-e for e in phi]))


def attachment(chain: Chain, frame: Frame) -> tuple[int, Array]:
    """Return the body of an attachment frame, and the frame's pose (4, 4) in the body's frame of the generated code."""
    place = chain.base if frame.body == BASE else chain.links[frame.body].place
    return frame.body, clean(place @ frame.pose)


def path_to(chain: Chain, body: int) -> list[int]:
    """Return the bodies from the base to a body, in order."""
    path: list[int] = []
    while body != BASE:
        path.insert(0, body)
        body = chain.links[body].parent
    return path


def paths_apart(chain: Chain, first: int, second: int) -> tuple[list[int], list[int]]:
    """Return the bodies on the paths from the base to two bodies, without bodies that are on both paths."""
    to_first, to_second = path_to(chain, first), path_to(chain, second)
    while to_first and to_second and to_first[0] == to_second[0]:
        to_first, to_second = to_first[1:], to_second[1:]
    return to_first, to_second


def carried_out(frames: Mapping[int, FramePose] | Sequence[FramePose], path: Sequence[int], point: Vector) -> Vector:
    """Return a point of the last body of a path, in the frame of the body before the first body of the path."""
    for k in reversed(path):
        point = add(frames[k].origin, frames[k].rotation.up(point))
    return point


def _equations(graph: Graph, chain: Chain, frames: Sequence[FramePose], closure: Closure) -> Vector:
    """Return the residuals of a closure's equations, in m or as direction cosines."""
    (first, pose1), (second, pose2) = attachment(chain, closure.first), attachment(chain, closure.second)
    path1, path2 = paths_apart(chain, first, second)
    difference = subtract(carried_out(frames, path1, numbers(graph, pose1[:3, 3])),
                          carried_out(frames, path2, numbers(graph, pose2[:3, 3])))
    if closure.kind == "rod":
        return [(dot(difference, difference) - closure.length ** 2) * (0.5 / closure.length)]

    def axis(path: Sequence[int], pose: Array, k: int) -> Vector:
        vector = numbers(graph, pose[:3, k])
        for i in reversed(path):
            vector = frames[i].rotation.up(vector)
        return vector

    pairs = {"point": (), "axis": ((2, 0), (2, 1)), "rigid": ((0, 1), (1, 2), (2, 0))}[closure.kind]
    return [*difference, *(dot(axis(path1, pose1, i), axis(path2, pose2, j)) for i, j in pairs)]


def _with_exact_zeros(graph: Graph, rows: Matrix, at: Mapping[str, Array]) -> Matrix:
    """Return a matrix of graph values in which entries that are zero up to rounding in all postures are zero."""
    flat = [x for row in rows for x in row]
    sizes = np.array([np.max(np.abs(x)) for x in evaluated(graph, flat, at)])
    kept = iter(sizes > _ZERO_DERIVATIVE * sizes.max())
    return [[x if next(kept) else graph.zero for x in row] for row in rows]


class _Solution:
    """Least-squares solutions of matrix x = right for several right-hand sides, exact for consistent equations.

    Columns with few neighbours come first, which preserves zeros.
    """

    def __init__(self, graph: Graph, matrix: Matrix) -> None:
        self._graph = graph
        columns = [list(column) for column in zip(*matrix, strict=True)]
        seen = [{k for k, x in enumerate(column) if x != graph.zero} for column in columns]
        self._order = sorted(range(len(columns)), key=lambda k: (sum(bool(seen[k] & other) for other in seen), k))
        self._columns, self._inverse = [], list[Value]()
        self._shares: list[list[Value]] = []  # [k][j]: of an earlier column j in column k
        for k in self._order:
            column, shares = self._projected(columns[k])
            self._columns.append(column)
            self._shares.append(shares)
            self._inverse.append(graph.one / dot(column, column))

    def _projected(self, column: Vector) -> tuple[Vector, Vector]:
        """Return the part of a column that is orthogonal to the earlier columns, and the coefficients of the earlier
        columns in the given column."""
        shares: Vector = []
        for earlier, inverse in zip(self._columns, self._inverse, strict=True):
            share = dot(earlier, column) * inverse
            shares.append(share)
            column = [x - share * e for x, e in zip(column, earlier, strict=True)]
        return column, shares

    def __call__(self, right: Vector) -> Vector:
        _, rest = self._projected(right)
        found = [self._graph.zero] * len(rest)
        for k in reversed(range(len(rest))):
            found[self._order[k]] = rest[k]
            rest = [x - self._shares[k][j] * rest[k] if j < k else x for j, x in enumerate(rest)]
        return found
