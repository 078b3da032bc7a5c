"""Base parameters of serial arms by closed-form rules on the graph (Gautier and Khalil; Ardiani, s. 1.3.2.1 A).

Mass along a joint axis has the same effect on both sides of the joint, so it can be assigned to the previous link. From
the last link to the first, YY (with the same XX), MZ and M are regrouped by this rule. Then parameters without effect
on the first joints are removed. The rules operate on symbols of the parameters and of the arm's lengths. The result can
be evaluated as text (Ardiani, table B.2) or as the numerical combinations of `BaseParameters`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model import Model
from dynid.regression.base import BaseParameters, printed
from dynid.robot import Robot
from dynid.symbolic.frames import clean
from dynid.symbolic.graph import Graph, Value
from dynid.symbolic.vectors import Rotation, Vector, add, subtract

_XX, _XY, _XZ, _YY, _YZ, _ZZ, _MX, _MY, _MZ, _M = range(10)
_PARALLEL_AXES_TOLERANCE = 1e-9
_LENGTH_SYMBOLS = ("a", "b", "d")  # along x, y and z of a link's frame, from the origin of the previous frame


@dataclass(frozen=True, eq=False)
class BaseForms:
    """Symbolic base parameters of a serial arm.

    Attributes:
        robot: the arm.
        graph: graph of the symbols theta[c] of the parameters and length[k] of the lengths, three per link.
        kept: index of the parameter into which each base parameter regroups others (base,).
        values: the base parameters as values of the graph (base,).
        lengths: values of the lengths (3 links,), m.
    """

    robot: Robot
    graph: Graph
    kept: tuple[int, ...]
    values: tuple[Value, ...]
    lengths: Array

    def base(self) -> BaseParameters:
        """Return the base parameters with the numerical values of the arm's lengths."""
        parameters = Model(self.robot).parameters
        units = np.eye(len(parameters))

        def symbol(name: str) -> Array | float:
            place = int(name[:-1].split("[")[1])
            return units[place] if name.startswith("theta") else float(self.lengths[place])

        rows = np.array(self.graph.replay(self.values, symbol, _no_function))
        return BaseParameters(parameters, np.array(self.kept, dtype=np.int64),
                              np.where(np.abs(rows) < 1e-12, 0.0, rows))

    def expressions(self) -> tuple[str, ...]:
        """Return the base parameters as text, with lengths a2, d3: 'XX2 - YY2 + YY3 + 2 d3 MZ3 + d3^2 (M3 + M4)'."""
        names = Model(self.robot).parameters.names
        sums = self.graph.replay(self.values, lambda name: Polynomial({(name,): 1.0}), _no_function)
        return tuple(_grouped_text(polynomial, names) for polynomial in sums)


def _no_function(name: str, of: object) -> float:
    raise ModelError(f"closed-form rules of base parameters do not support the function '{name}'")


def base_forms(robot: Robot) -> BaseForms:
    """Return symbolic base parameters of a serial revolute arm with frames on the joint axes (MDH, URDF)."""
    n = robot.dof
    for joint in robot.joints:
        if joint.prismatic:
            raise ModelError(f"the closed-form rules of base parameters apply to revolute joints, but '{joint.name}' "
                             "is prismatic", "use base_parameters", code="joint-not-revolute")
        if not np.allclose(joint.after, np.eye(4)):
            raise ModelError("the closed-form rules of base parameters need the frame of each link on its joint with z "
                             f"along the axis (modified DH), but the frame of '{joint.name}' is elsewhere",
                             "use base_parameters", code="frame-not-on-joint")
    if not robot.serial:
        raise ModelError(f"the closed-form rules of base parameters apply to serial arms, but robot '{robot.name}' "
                         "has branches", "use base_parameters")
    graph = Graph()
    bodies = [graph.symbols("theta", 10 * n)[10 * j:10 * j + 10] for j in range(n)]
    lengths = np.zeros(3 * n)
    for j in range(n - 1, -1, -1):
        before = clean(robot.joints[j].before)
        lengths[3 * j:3 * j + 3] = clean(before[:3, :3].T @ before[:3, 3])
        link, on_axis = bodies[j], [graph.zero] * 10
        on_axis[_XX] = on_axis[_YY] = link[_YY]
        on_axis[_MZ], on_axis[_M] = link[_MZ], link[_M]
        if j > 0:
            arm = [graph.symbol(f"length[{k}]") if lengths[k] else graph.zero for k in range(3 * j, 3 * j + 3)]
            bodies[j - 1] = add(bodies[j - 1], _handed_over(graph, on_axis, arm, before[:3, :3]))
        bodies[j] = subtract(link, on_axis)
    kept = _moved(robot)
    return BaseForms(robot, graph, tuple(kept), tuple(bodies[c // 10][c % 10] for c in kept), lengths)


def _handed_over(graph: Graph, numbers: Vector, arm: Vector, rotation: Array) -> Vector:
    """Return the ten inertial parameters of a body in the previous frame: translated by r with Steiner's rule, which
    gives J + 2 (r.h) 1 - r h' - h r' + m (r.r 1 - r r'), then rotated."""
    xx, xy, xz, yy, yz, zz, *h, m = numbers
    r = arm
    along = r[0] * h[0] + r[1] * h[1] + r[2] * h[2]
    square = [x * x for x in r]

    def off(i: int, k: int) -> Value:
        return -(r[i] * h[k]) - h[i] * r[k] - m * (r[i] * r[k])

    def own(i: int) -> Value:
        others = [square[k] for k in range(3) if k != i]
        return (along - r[i] * h[i]) * 2.0 + m * (others[0] + others[1])

    turn = Rotation(graph, rotation, None, None)
    inertia = turn.up_symmetric([xx + own(0), xy + off(0, 1), xz + off(0, 2), yy + own(1), yz + off(1, 2), zz + own(2)])
    return [*inertia, *turn.up([a + m * b for a, b in zip(h, r, strict=True)]), m]


def _moved(robot: Robot) -> list[int]:
    """Return the indices of the parameters into which others are regrouped; the first joints excite fewer."""
    kept: list[int] = []
    pose, first_axis, first_point = np.eye(4), np.zeros(3), np.zeros(3)
    parallel = collinear = True  # to the first axis, for all joints so far
    for j, joint in enumerate(robot.joints):
        pose = pose @ joint.before
        axis, point = pose[:3, 2], pose[:3, 3]
        if j == 0:
            first_axis, first_point = axis, point
        parallel = parallel and bool(np.linalg.norm(np.cross(axis, first_axis)) < _PARALLEL_AXES_TOLERANCE)
        distance = np.linalg.norm(np.cross(point - first_point, first_axis))
        collinear = collinear and parallel and bool(distance < _PARALLEL_AXES_TOLERANCE)
        numbers = [_ZZ, _MX, _MY] if parallel else [_XX, _XY, _XZ, _YZ, _ZZ, _MX, _MY]
        upright = bool(np.linalg.norm(np.cross(robot.gravity, first_axis)) < _PARALLEL_AXES_TOLERANCE * 10.0)
        if collinear and upright:
            numbers = [_ZZ]
        kept += [10 * j + k for k in numbers]
    return kept


def closed_form_base(robot: Robot) -> BaseParameters:
    """Return the base parameters of a serial arm by closed-form rules, to check the numerical result; see `base_forms`.
    """
    return base_forms(robot).base()


class Polynomial:
    """A polynomial in symbols, for text: its terms {sorted names of the factors: coefficient}."""

    def __init__(self, terms: dict[tuple[str, ...], float]) -> None:
        self.terms = {factors: c for factors, c in terms.items() if abs(c) > 1e-12}

    def __add__(self, other: Polynomial) -> Polynomial:
        total = defaultdict(float, self.terms)
        for factors, c in other.terms.items():
            total[factors] += c
        return Polynomial(total)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __neg__(self) -> Polynomial:
        return self * -1.0

    def __mul__(self, other: Polynomial | float) -> Polynomial:
        if not isinstance(other, Polynomial):
            return Polynomial({factors: other * c for factors, c in self.terms.items()})
        total: defaultdict[tuple[str, ...], float] = defaultdict(float)
        for first, a in self.terms.items():
            for second, b in other.terms.items():
                total[tuple(sorted(first + second))] += a * b
        return Polynomial(total)

    __rmul__ = __mul__


def _grouped_text(polynomial: Polynomial, names: tuple[str, ...]) -> str:
    """Return a base parameter as text. Parameters that are multiplied by the same lengths are in brackets, and those
    without lengths come first."""
    groups: defaultdict[tuple[str, float], list[tuple[int, str]]] = defaultdict(list)
    for factors, c in polynomial.terms.items():
        place = next(int(name[6:-1]) for name in factors if name.startswith("theta"))
        numbers = [int(name[7:-1]) for name in factors if name.startswith("length")]
        lengths = [f"{_LENGTH_SYMBOLS[k % 3]}{k // 3 + 1}" for k in numbers]
        powers = " ".join(length if lengths.count(length) == 1 else f"{length}^{lengths.count(length)}"
                          for length in dict.fromkeys(lengths))
        groups[powers, abs(c)].append((place, "-" if c < 0 else "+"))
    text = ""
    for (powers, size), members in sorted(groups.items(), key=lambda group: (group[0][0] != "", min(group[1]))):
        front = " ".join(part for part in ("" if size == 1.0 else printed(size), powers) if part)
        if len(members) > 1 and front:
            flip = members[0][1] == "-"
            inside = " ".join(f"{'+' if (sign == '-') == flip else '-'} {names[place]}" for place, sign in members)
            text += f" {members[0][1]} {front} ({inside.removeprefix('+ ')})"
        else:
            text += "".join(f" {sign} {front + ' ' if front else ''}{names[place]}" for place, sign in sorted(members))
    return text.removeprefix(" + ").removeprefix(" ")
