"""Positions of the dependent joints of closed loops in closed form, if a closed form exists.

A closure is a rod, whose two ends have a known distance, or a pin, where two points coincide. A pin also has a known
distance from the axis of a joint on one side, or from the intersection of two axes. With one unknown coordinate, such a
distance gives A cos x + B sin x = C or a quadratic equation. If n such distances depend on the positions of n prismatic
joints, the solution is an intersection of spheres. The pin then determines the remaining joint. Of two solutions, the
one on the branch of the loops' posture is used. By continuity it remains valid until both solutions coincide. A
solution is accepted only if it agrees with the numerical solution of the loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from dynid.arrays import Array
from dynid.robot.followers import DependentJoints
from dynid.symbolic.closures import attachment, carried_out, own_joints, paths_apart, tree_positions
from dynid.symbolic.frames import Chain
from dynid.symbolic.graph import Graph, Value
from dynid.symbolic.motion import FramePose, place_at, place_turned, turned_on
from dynid.symbolic.trace import evaluated
from dynid.symbolic.vectors import Rotation, Vector, add, apply, cross, dot, numbers, subtract, transposed

_SAME_SOLUTION = 1e-9  # rad or m: largest difference from the numerical solution of the loops
_INTERSECTION_TOLERANCE = 1e-9  # m: axes at a smaller distance intersect


@dataclass(frozen=True, eq=False)
class ExplicitLoops:
    """Closed form of the dependent joints, as values of a graph in the symbol q: their positions (dependent,), and sine
    and cosine of each position, or None for a prismatic joint."""

    graph: Graph
    positions: Vector
    turns: list[tuple[Value, Value] | None]


@dataclass(frozen=True)
class _End:
    """An attachment point of a closure: index of its body, and its position (3) in the body's frame."""

    body: int
    point: Vector


@dataclass(frozen=True)
class _Distance:
    """Two points with a known distance, and the square of the distance, m^2."""

    first: _End
    second: _End
    square: Value


@dataclass(eq=False)
class _Search:
    """State of the search for a closed form.

    Attributes:
        graph, chain: the graph, and the bodies with the frames of the generated code.
        followers: dependent joints of the robot.
        postures: coordinates (samples, coordinates) that close the loops.
        joints: positions of the tree's joints, with symbols for dependent joints.
        frames: frames of the bodies whose joint positions are known, by body.
        found: positions, or sine and cosine, of dependent joints that are solved, by dependent coordinate.
    """

    graph: Graph
    chain: Chain
    followers: DependentJoints
    postures: Array
    joints: Vector
    frames: dict[int, FramePose] = field(default_factory=dict)
    found: dict[int, Value | tuple[Value, Value]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.own = own_joints(self.followers)
        self.dof = len(self.followers.free)
        for j, row in enumerate(self.followers.coupling):
            if not np.any(row[self.dof:]):
                self.frames[j] = place_at(self.graph, self.chain.links[j], self.joints[j])

    def ends(self) -> Iterator[tuple[str, _End, _End, float]]:
        """Yield the kind, the two attachment points and the length of each closure."""
        assert self.followers.loops is not None
        for closure in self.followers.loops.closures:
            first, second = (_End(body, numbers(self.graph, pose[:3, 3])) for body, pose in (
                attachment(self.chain, closure.first), attachment(self.chain, closure.second)))
            yield closure.kind, first, second, closure.length

    def unknown(self, path: Sequence[int]) -> list[int]:
        return [j for j in path if j not in self.frames]

    def usable(self, path: Sequence[int]) -> bool:
        """Return whether every unknown joint of a path has a coordinate of its own, so that none is a mimic joint."""
        return all(j in self.own for j in self.unknown(path))

    def seen_from(self, joint: int, end: _End, path: Sequence[int]) -> Vector:
        """Return the position (3) of an attachment point in the fixed frame of a joint on the other side of its loop.
        The joints before this joint, and all joints on the side of the point, are known."""
        other, own = paths_apart(self.chain, path[-1], end.body)
        point = carried_out(self.frames, own, end.point)
        for k in other[:other.index(joint)]:
            point = self.frames[k].rotation.down(subtract(point, self.frames[k].origin))
        link = self.chain.links[joint]
        fixed = Rotation(self.graph, link.rotation, None, None)
        return fixed.down(subtract(point, numbers(self.graph, link.origin)))

    # -- acceptance of a solution ----------------------------------------------------------------
    def take(self, joint: int, value: Value | tuple[Value, Value]) -> bool:
        """Accept a joint position, or sine and cosine of the angle of its frame, if it agrees with the loops; return
        whether it agrees."""
        k, link = self.own.index(joint), self.chain.links[joint]
        if isinstance(value, tuple):
            value = turned_on(*value, -link.offset)
        true = self.postures[:, self.dof + k]
        expected = (np.sin(true), np.cos(true)) if isinstance(value, tuple) else (true,)
        found = evaluated(self.graph, list(value) if isinstance(value, tuple) else [value],
                          {"q": self.postures[:, :self.dof]})
        if not all(np.max(np.abs(a - b)) < _SAME_SOLUTION for a, b in zip(found, expected, strict=True)):
            return False
        self.found[k] = value
        for j, row in enumerate(self.followers.coupling):
            if j == joint:
                self.frames[j] = (place_turned(self.graph, link, *value) if isinstance(value, tuple)
                                  else place_at(self.graph, link, value))
            elif row[self.dof + k]:
                position = self.position(k) * float(row[self.dof + k]) + float(self.followers.offset[j])
                self.frames[j] = place_at(self.graph, self.chain.links[j], position)
        return True

    def position(self, k: int) -> Value:
        """Return the position of dependent coordinate k; of an angle, the value nearest to the first posture."""
        value = self.found[k]
        if not isinstance(value, tuple):
            return value
        near = float(self.postures[0, self.dof + k])
        s, c = turned_on(*value, -near)
        return self.graph.apply("atan2", s, c) + near

    def on_circle(self, joint: int, a: Value, b: Value, c: Value) -> bool:
        """Solve a cos x + b sin x = c for the angle x of a joint's frame; return whether a solution is accepted."""
        radius = a * a + b * b
        if radius == self.graph.zero:
            return False
        height, inverse = self.graph.apply("sqrt", radius - c * c), self.graph.one / radius
        return any(self.take(joint, ((b * c + a * h) * inverse, (a * c - b * h) * inverse)) for h in (height, -height))

    # -- solutions for one or more joints --------------------------------------------------------
    def by_pin(self) -> bool:
        """Solve a pin for its only unknown joint or two consecutive joints on one side; return if this succeeds."""
        for kind, first, second, _ in self.ends():
            if kind == "rod":
                continue
            for one, other in ((first, second), (second, first)):
                path, beyond = paths_apart(self.chain, one.body, other.body)
                open_ = self.unknown(path)
                if not self.usable(path) or self.unknown(beyond):
                    continue
                if len(open_) == 1:
                    w = carried_out(self.frames, path[path.index(open_[0]) + 1:], one.point)
                    if self._pin(open_[0], w, self.seen_from(open_[0], other, path)):
                        return True
                if len(open_) == 2 and self.chain.links[open_[1]].parent == open_[0] and self._pair(
                        open_[0], open_[1], path, one, other):
                    return True
        return False

    def _pin(self, joint: int, w: Vector, t: Vector) -> bool:
        """Solve for the joint position at which the point w of the joint's body is at the point t; return whether the
        solution is accepted."""
        if self.chain.links[joint].sliding:
            return self.take(joint, t[2] - w[2])
        radius = w[0] * w[0] + w[1] * w[1]
        if radius == self.graph.zero:
            return False
        inverse = self.graph.one / radius
        return self.take(joint, ((w[0] * t[1] - w[1] * t[0]) * inverse, (w[0] * t[0] + w[1] * t[1]) * inverse))

    def _pair(self, before: int, joint: int, path: list[int], one: _End, other: _End) -> bool:
        """Solve Rz(x1) (o + F Rz(x2) w) = t for the angles of two revolute joints: x2 from the height of t above the
        first joint or from its distance, then x1."""
        link = self.chain.links[joint]
        if link.sliding or self.chain.links[before].sliding:
            return False
        w = carried_out(self.frames, path[path.index(joint) + 1:], one.point)
        t = self.seen_from(before, other, path)
        o, turn = numbers(self.graph, link.origin), Rotation(self.graph, link.rotation, None, None)
        up = turn.down([self.graph.zero, self.graph.zero, self.graph.one])
        out = turn.down(o)
        half = (dot(t, t) - dot(o, o) - dot(w, w)) * 0.5
        for g, c in ((up, t[2] - o[2]), (out, half)):
            if self.on_circle(joint, g[0] * w[0] + g[1] * w[1], g[1] * w[0] - g[0] * w[1], c - g[2] * w[2]):
                moved = carried_out(self.frames, [joint], w)
                return self._pin(before, moved, t)
        return False

    def distances(self) -> Iterator[_Distance]:
        """Yield known distances: lengths of rods, and distances of pins from an axis.

        The axis is that of the last unknown joint on one side of the loop. If the last two unknown axes on this side
        intersect, the distance from their intersection is known too.
        """
        for kind, first, second, length in self.ends():
            if kind == "rod":
                yield _Distance(first, second, self.graph.value(length ** 2))
                continue
            for one, other in ((first, second), (second, first)):
                path, _ = paths_apart(self.chain, one.body, other.body)
                open_ = self.unknown(path)
                if not open_ or not self.usable(path):
                    continue
                links, j = self.chain.links, open_[-1]
                if links[j].sliding:
                    continue
                w = carried_out(self.frames, path[path.index(j) + 1:], one.point)
                yield _Distance(_End(links[j].parent, numbers(self.graph, links[j].origin)), other, dot(w, w))
                k = links[j].parent
                if len(open_) > 1 and k == open_[-2] and not links[k].sliding and math.hypot(
                        *links[j].origin[:2]) < _INTERSECTION_TOLERANCE:
                    centre = links[k].origin + links[k].rotation[:, 2] * links[j].origin[2]
                    yield _Distance(_End(links[k].parent, numbers(self.graph, centre)), other, dot(w, w))

    def by_distance(self) -> bool:
        """Solve a known distance for one joint, or several for prismatic joints; return whether this succeeds."""
        groups: dict[tuple[int, ...], list[_Distance]] = {}
        for distance in self.distances():
            paths = paths_apart(self.chain, distance.first.body, distance.second.body)
            open_ = [j for path in paths for j in self.unknown(path)]
            if not open_ or not all(map(self.usable, paths)):
                continue
            if all(self.chain.links[j].sliding for j in open_):
                groups.setdefault(tuple(sorted(open_)), []).append(distance)
                if len(open_) <= 3 and self._spheres(sorted(open_), groups[tuple(sorted(open_))]):
                    return True
            elif len(open_) == 1 and self._circle(open_[0], distance):
                return True
        return False

    def _circle(self, joint: int, distance: _Distance) -> bool:
        one, other = distance.first, distance.second
        if joint not in paths_apart(self.chain, one.body, other.body)[0]:
            one, other = other, one
        path = paths_apart(self.chain, one.body, other.body)[0]
        w = carried_out(self.frames, path[path.index(joint) + 1:], one.point)
        t = self.seen_from(joint, other, path)
        c = (dot(w, w) + dot(t, t) - distance.square) * 0.5 - w[2] * t[2]
        return self.on_circle(joint, w[0] * t[0] + w[1] * t[1], w[0] * t[1] - w[1] * t[0], c)

    def _spheres(self, joints: list[int], distances: list[_Distance]) -> bool:
        """Solve the equations of as many spheres |c_i + D s|^2 = r_i^2 as there are prismatic joints with positions s.
        Differences of two equations are linear in s, so that s = s0 + x v. The first equation determines x."""
        n, graph = len(joints), self.graph
        if len(distances) < n:
            return False
        differences = [self._apart(joints, one) for one in distances[-n:]]
        centres, directions = [a for a, _ in differences], differences[0][1]
        if any(len(differences[0][1]) != n or other != directions for _, other in differences):
            return False
        squares = [dot(c, c) - one.square for c, one in zip(centres, distances[-n:], strict=True)]
        rows = [[dot(subtract(c, centres[0]), d) * 2.0 for d in directions] for c in centres[1:]]
        s0, v = _line(graph, n, rows, [squares[0] - one for one in squares[1:]])
        if s0 is None:
            return False
        start, along = add(centres[0], apply(transposed(directions), s0)), apply(transposed(directions), v)
        a, b, c = dot(along, along), dot(along, start), dot(start, start) - distances[-n].square
        root, inverse = graph.apply("sqrt", b * b - a * c), graph.one / a
        for signed_root in (root, -root):
            x = (signed_root - b) * inverse
            before = dict(self.frames), dict(self.found)
            if all(self.take(j, s + x * w) for j, s, w in zip(joints, s0, v, strict=True)):
                return True
            self.frames, self.found = before
        return False

    def _apart(self, joints: list[int], distance: _Distance) -> tuple[Vector, list[Vector]]:
        """Return the vector between the two points of a distance with the joints at zero, and its derivatives by the
        positions of the prismatic joints. The first derivative is the positive axis of the first joint."""
        graph, still = self.graph, dict(self.frames)
        for j in joints:
            still[j] = place_at(graph, self.chain.links[j], graph.zero)
        paths = paths_apart(self.chain, distance.first.body, distance.second.body)
        ends = [carried_out(still, path, end.point) for path, end in zip(
            paths, (distance.first, distance.second), strict=True)]
        first = 0 if joints[0] in paths[0] else 1
        directions = []
        for j in joints:
            path = paths[0] if j in paths[0] else paths[1]
            axis = [graph.zero, graph.zero, graph.one]
            for k in reversed(path[:path.index(j) + 1]):
                axis = still[k].rotation.up(axis)
            directions.append(axis if (j in paths[0]) == (first == 0) else [-x for x in axis])
        return subtract(ends[first], ends[1 - first]), directions


def _line(graph: Graph, n: int, rows: Sequence[Vector], right: Vector) -> tuple[Vector | None, Vector]:
    """Return s0 and v of the solutions s0 + x v of n - 1 linear equations in n unknowns; s0 is None if v is zero."""
    if n == 1:
        return [graph.zero], [graph.one]
    if n == 2:
        v = [-rows[0][1], rows[0][0]]
        size = dot(v, v)
        return (None, v) if size == graph.zero else ([x * (right[0] / size) for x in rows[0]], v)
    v = cross(rows[0], rows[1])
    size = dot(v, v)
    if size == graph.zero:
        return None, v
    parts = zip(cross(rows[1], v), cross(v, rows[0]), strict=True)
    inverse = graph.one / size
    return [(right[0] * x + right[1] * y) * inverse for x, y in parts], v


def explicit_loops(chain: Chain, followers: DependentJoints, postures: Array) -> ExplicitLoops | None:
    """Return the positions of the dependent joints in closed form, or None if no closed form is found. postures
    (samples, coordinates): coordinates that close the loops; the first row selects the branch."""
    graph, n = Graph(), len(followers.free)
    count = postures.shape[1] - n
    z = [*graph.symbols("q", n), *graph.symbols("q_follow", count)]
    search = _Search(graph, chain, followers, postures, tree_positions(graph, followers, z))
    searches: tuple[Callable[[], bool], ...] = (search.by_pin, search.by_distance)
    while len(search.found) < count:
        if not any(run() for run in searches):
            return None
    values = [search.found[k] for k in range(count)]
    return ExplicitLoops(graph, [search.position(k) for k in range(count)],
                         [value if isinstance(value, tuple) else None for value in values])
