"""Closures of loops on the graph: their equations in all coordinates, and how the dependent joints move.

Coordinates are z = (q, q_follow), those of own freedom and those that the closures determine. With equations phi(z) = 0
and Phi their derivatives by z, q_follow moves by dq_follow = X dq, X = -Phi_f^+ Phi_q, and where no joint of own
freedom accelerates it still accelerates by dX/dt dq. Columns are orthogonalised one after the other (Gram and Schmidt
without square roots), so that no pivot is chosen that another posture would make zero: it is singular where the
machine is. Equations that repeat others are no harm.
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
from dynid.symbolic.derivative import Derivatives
from dynid.symbolic.frames import Chain, clean
from dynid.symbolic.graph import Graph, Value
from dynid.symbolic.motion import FramePose, places
from dynid.symbolic.trace import evaluated
from dynid.symbolic.vectors import Matrix, Vector, add, dot, numbers

_ZERO_DERIVATIVE = 1e-12  # of a derivative, relative to the largest


@dataclass(frozen=True, eq=False)
class LoopMotion:
    """How the dependent joints move, on a graph in the symbols q, q_follow and dq.

    rates X (following, dof); rate_slopes dX/dt (following, dof); bias dX/dt dq (following,); correction (following,):
    what Newton's method adds to q_follow that does not quite close the loops.
    """

    graph: Graph
    rates: Matrix
    rate_slopes: Matrix
    bias: Vector
    correction: Vector


def tree_positions(graph: Graph, followers: DependentJoints, z: Sequence[Value]) -> Vector:
    """Positions of all joints of the tree at coordinates z."""
    rows = [dot(numbers(graph, row), z) for row in followers.coupling]
    return [x + float(b) for x, b in zip(rows, followers.offset, strict=True)]


def own_joints(followers: DependentJoints) -> tuple[int, ...]:
    """The joint of the tree that each coordinate which follows is the position of."""
    return tuple(followers.tree.joint_index(name) for name in followers.following)


def loop_motion(chain: Chain, followers: DependentJoints, postures: Array) -> LoopMotion:
    """The motion of a robot's loops; postures (samples, dof + following): coordinates in which they are closed, by
    which derivatives that are zero are known."""
    graph, n = Graph(), len(followers.free)
    follow = postures.shape[1] - n
    q, dq = graph.symbols("q", n), graph.symbols("dq", n)
    z = [*q, *graph.symbols("q_follow", follow)]
    frames = places(graph, chain, tree_positions(graph, followers, z), own_joints(followers))
    assert followers.loops is not None
    phi = [e for closure in followers.loops.closures for e in _equations(graph, chain, frames, closure)]
    by = [Derivatives(graph, {one: graph.one}) for one in z]
    at = {"q": postures[:, :n], "q_follow": postures[:, n:]}
    jacobian = _without_nothing(graph, [[d(e) for d in by] for e in phi], at)
    kept = [k for k, row in enumerate(jacobian) if any(x != graph.zero for x in row)]
    phi, jacobian = [phi[k] for k in kept], [jacobian[k] for k in kept]
    solve = _Solution(graph, [row[n:] for row in jacobian])
    rates = [solve([-row[k] for row in jacobian]) for k in range(n)]
    X = [[rates[k][i] for k in range(n)] for i in range(follow)]
    moving = [*dq, *(dot(row, dq) for row in X)]
    # Derivatives of the equations along the motion, the rates held: those of symbols that stand for them.
    held = graph.symbols("rate", len(z))
    along = Derivatives(graph, dict(zip(z, held, strict=True)))
    told = {symbol.node: rate for symbol, rate in zip(held, moving, strict=True)}
    slopes = [graph.rewritten([along(x) for x in row], told) for row in jacobian]
    bias = solve([-dot(row, moving) for row in slopes])
    whole = [[graph.one if i == k else graph.zero for i in range(n)] + [X[i][k] for i in range(follow)]
             for k in range(n)]
    turned = [solve([-dot(row, column) for row in slopes]) for column in whole]
    return LoopMotion(graph, X, [[turned[k][i] for k in range(n)] for i in range(follow)], bias,
                      solve([-e for e in phi]))


def end_of(chain: Chain, frame: Frame) -> tuple[int, Array]:
    """The body of a place, and its pose (4, 4) in that body's frame."""
    place = chain.base if frame.body == BASE else chain.links[frame.body].place
    return frame.body, clean(place @ frame.pose)


def path_to(chain: Chain, body: int) -> list[int]:
    """Bodies from the base to a body, in order."""
    path: list[int] = []
    while body != BASE:
        path.insert(0, body)
        body = chain.links[body].parent
    return path


def paths_apart(chain: Chain, first: int, second: int) -> tuple[list[int], list[int]]:
    """Bodies on the way to either of two bodies, without those on both."""
    one, other = path_to(chain, first), path_to(chain, second)
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    return one, other


def carried_out(frames: Mapping[int, FramePose] | Sequence[FramePose], path: Sequence[int], point: Vector) -> Vector:
    """A point of the last body of a path in the frame before the first."""
    for k in reversed(path):
        point = add(frames[k].origin, frames[k].rotation.up(point))
    return point


def _equations(graph: Graph, chain: Chain, frames: Sequence[FramePose], closure: Closure) -> Vector:
    """What is zero where a closure is closed, m or of direction cosines."""
    (first, pose1), (second, pose2) = end_of(chain, closure.first), end_of(chain, closure.second)
    path1, path2 = paths_apart(chain, first, second)
    apart = [a - b for a, b in zip(carried_out(frames, path1, numbers(graph, pose1[:3, 3])),
                                   carried_out(frames, path2, numbers(graph, pose2[:3, 3])), strict=True)]
    if closure.kind == "rod":
        return [(dot(apart, apart) - closure.length ** 2) * (0.5 / closure.length)]

    def axis(path: Sequence[int], pose: Array, k: int) -> Vector:
        vector = numbers(graph, pose[:3, k])
        for i in reversed(path):
            vector = frames[i].rotation.up(vector)
        return vector

    pairs = {"point": (), "axis": ((2, 0), (2, 1)), "rigid": ((0, 1), (1, 2), (2, 0))}[closure.kind]
    return [*apart, *(dot(axis(path1, pose1, i), axis(path2, pose2, j)) for i, j in pairs)]


def _without_nothing(graph: Graph, rows: Matrix, at: Mapping[str, Array]) -> Matrix:
    """The same with zero for what is zero in all postures but for rounding."""
    flat = [x for row in rows for x in row]
    sizes = np.array([np.max(np.abs(x)) for x in evaluated(graph, flat, at)])
    kept = iter(sizes > _ZERO_DERIVATIVE * sizes.max())
    return [[x if next(kept) else graph.zero for x in row] for row in rows]


class _Solution:
    """Least squares solutions of matrix x = right for several right sides, which is exact where there is a solution.

    Columns of few neighbours come first, so that zeros stay.
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
        """What is left of a column, and the share of each earlier one in it."""
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
