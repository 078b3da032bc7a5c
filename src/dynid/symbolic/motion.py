"""Motion of the bodies on the expression graph, and their wrenches for unit values of each inertial parameter.

Newton-Euler recursion with second moments: a point r of a body, in its frame, has the acceleration a + U r with U =
[dw]x + [w]x[w]x. With first moments h and second moments S, the force is m a + U h and the moment h x a + vee(U S). vee
of a matrix W is the vector (W_zy - W_yz, W_xz - W_zx, W_yx - W_xy). The third column of U does not depend on a revolute
joint's own motion: U_i z = R' U_before z. This saves most of the rotation of dw.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dynid.robot import BASE
from dynid.symbolic.frames import Chain, Link
from dynid.symbolic.graph import Graph, Value
from dynid.symbolic.vectors import Matrix, Rotation, Vector, add, apply, cross, numbers, transposed

NUMBERS = 10  # of a body: Sxx Sxy Sxz Syy Syz Szz MX MY MZ M
FORCES = slice(6, 10)  # parameters that cause a force in addition to a moment


@dataclass(frozen=True)
class FramePose:
    """Pose of a body's frame in the frame of the previous body: rotation, and origin (3)."""

    rotation: Rotation
    origin: Vector


def places(graph: Graph, chain: Chain, q: Sequence[Value], separate: Collection[int] = ()) -> list[FramePose]:
    """Return the frames of all bodies at joint positions q. separate: joints whose sine and cosine may be replaced
    later, so that offsets are not added to their angles."""
    return [place_at(graph, link, q[i], separate=i in separate) for i, link in enumerate(chain.links)]


def place_at(graph: Graph, link: Link, q: Value, *, separate: bool = False) -> FramePose:
    """Return the frame of a body at the position q of its joint."""
    if link.sliding:
        along = [graph.value(float(x)) * q for x in link.rotation[:, 2]]
        return FramePose(Rotation(graph, link.rotation, None, None), add(numbers(graph, link.origin), along))
    if separate or _quarters(link.offset) is not None:
        return place_turned(graph, link, graph.apply("sin", q), graph.apply("cos", q))
    angle = q + link.offset
    turn = Rotation(graph, link.rotation, graph.apply("cos", angle), graph.apply("sin", angle))
    return FramePose(turn, numbers(graph, link.origin))


def place_turned(graph: Graph, link: Link, s: Value, c: Value) -> FramePose:
    """Return the frame of a body whose joint is rotated by an angle with sine s and cosine c."""
    s, c = turned_on(s, c, link.offset)
    return FramePose(Rotation(graph, link.rotation, c, s), numbers(graph, link.origin))


def turned_on(s: Value, c: Value, offset: float) -> tuple[Value, Value]:
    """Return sine and cosine of an angle plus an offset (rad)."""
    quarters = _quarters(offset)
    if quarters is not None:  # they only change places and signs
        for _ in range(quarters):
            s, c = c, -s
        return s, c
    return s * math.cos(offset) + c * math.sin(offset), c * math.cos(offset) - s * math.sin(offset)


def _quarters(offset: float) -> int | None:
    """Return the number of right angles in an offset (rad), from 0 to 3; None if it is not a multiple of 90 degrees."""
    quarters = offset / (0.5 * math.pi)
    return round(quarters) % 4 if abs(quarters - round(quarters)) < 1e-12 else None


@dataclass(frozen=True)
class BodyState:
    """Motion of a body in its frame: angular velocity w and its derivative dw (3), and accelerations a + U r of its
    points r, with the acceleration a (3) of its origin and a matrix U (3, 3). differences: U_zz - U_yy, U_xx - U_zz,
    U_yy - U_xx."""

    w: Vector
    dw: Vector
    u: Matrix
    a: Vector
    differences: tuple[Value, Value, Value]


def states(graph: Graph, chain: Chain, frames: Sequence[FramePose], dq: Sequence[Value], ddq: Sequence[Value],
           gravity: Sequence[float]) -> list[BodyState]:
    """Return the motion of all bodies. gravity (3,), m/s^2: the base has the opposite acceleration."""
    still = [graph.zero] * 3
    base = BodyState(still, still, [still] * 3, [graph.value(-float(x)) for x in gravity], (graph.zero,) * 3)
    found: list[BodyState] = []
    for i, link in enumerate(chain.links):
        before = base if link.parent == BASE else found[link.parent]
        found.append((_sliding if link.sliding else _turning)(graph, frames[i], before, dq[i], ddq[i]))
    return found


def _turning(graph: Graph, place: FramePose, before: BodyState, dq: Value, ddq: Value) -> BodyState:
    down = place.rotation.down
    w = down(before.w)
    # U_before z of this joint's axis, turned: acceleration of points on the axis, which both bodies share.
    axis = place.rotation.up([graph.zero, graph.zero, graph.one])
    xz, yz, zz = down(apply(before.u, axis))
    dwz = down(before.dw)[2] + ddq
    wx, wy, wz = w[0], w[1], w[2] + dq
    a = down(add(before.a, apply(before.u, place.origin)))
    x_z, y_z, x_y = wx * wz, wy * wz, wx * wy
    dwy, dwx = xz - x_z, y_z - yz  # U_xz = wx wz + dwy, U_yz = wy wz - dwx
    x_x, z_z = wx * wx, wz * wz
    xx_zz = x_x - z_z  # U_xx - U_zz, as U_xx = -(wy wy + wz wz) and U_zz = -(wx wx + wy wy)
    xx, yy = xx_zz + zz, -(x_x + z_z)
    u = [[xx, x_y - dwz, xz], [x_y + dwz, yy, yz], [x_z - dwy, y_z + dwx, zz]]
    return BodyState([wx, wy, wz], [dwx, dwy, dwz], u, a, (zz - yy, xx_zz, yy - xx))


def _sliding(graph: Graph, place: FramePose, before: BodyState, dq: Value, ddq: Value) -> BodyState:
    down = place.rotation.down
    w, dw = down(before.w), down(before.dw)
    columns = [down(apply(before.u, place.rotation.up([graph.one if k == c else graph.zero for k in range(3)])))
               for c in range(3)]
    u = transposed(columns)
    a = down(add(before.a, apply(before.u, place.origin)))
    twice = dq + dq  # 2 w x z dq
    a = [a[0] + w[1] * twice, a[1] - w[0] * twice, a[2] + ddq]
    return BodyState(w, dw, u, a, (u[2][2] - u[1][1], u[0][0] - u[2][2], u[1][1] - u[0][0]))


def unit_moments(graph: Graph, state: BodyState) -> list[Vector]:
    """Return the moment (3) of a body for one unit of each of its ten inertial parameters."""
    u, a, zero = state.u, state.a, graph.zero
    d_zy, d_xz, d_yx = state.differences
    return [[zero, -u[2][0], u[1][0]], [u[2][0], -u[2][1], d_yx], [-u[1][0], d_xz, u[1][2]],
            [u[2][1], zero, -u[0][1]], [d_zy, u[0][1], -u[0][2]], [-u[1][2], u[0][2], zero],
            [zero, -a[2], a[1]], [a[2], zero, -a[0]], [-a[1], a[0], zero], [zero, zero, zero]]


def unit_forces(graph: Graph, state: BodyState) -> list[Vector]:
    """Return the force (3) of a body for one unit of each of its ten inertial parameters."""
    still = [graph.zero] * 3
    return [still] * 6 + [[row[c] for row in state.u] for c in range(3)] + [list(state.a)]


def summed(values: Sequence[Value], units: Sequence[Sequence[Value]]) -> Vector:
    """Return the sum (3) of vectors `units` (parameters, 3), each times its value in `values` (parameters,)."""
    total = [values[0] * x for x in units[0]]
    for value, unit in zip(values[1:], units[1:], strict=True):
        total = [t + value * x for t, x in zip(total, unit, strict=True)]
    return total


def torques(graph: Graph, chain: Chain, frames: Sequence[FramePose], motion: Sequence[BodyState],
            bodies: Sequence[Sequence[Value]]) -> Vector:
    """Return the joint torques that a motion requires; bodies: ten inertial parameters of each body."""
    forces, moments = wrenches(graph, chain, frames, motion, bodies)
    return [(forces if link.sliding else moments)[i][2] for i, link in enumerate(chain.links)]


def wrenches(graph: Graph, chain: Chain, frames: Sequence[FramePose], motion: Sequence[BodyState],
             bodies: Sequence[Sequence[Value]]) -> tuple[list[Vector], list[Vector]]:
    """Return forces and moments (bodies, 3) transmitted by each joint, in the frames of the bodies."""
    forces = [summed(body, unit_forces(graph, state)) for body, state in zip(bodies, motion, strict=True)]
    moments = [summed(body, unit_moments(graph, state)) for body, state in zip(bodies, motion, strict=True)]
    for i in reversed(range(len(chain.links))):
        parent = chain.links[i].parent
        if parent != BASE:
            force = frames[i].rotation.up(forces[i])
            moment = add(frames[i].rotation.up(moments[i]), cross(frames[i].origin, force))
            forces[parent], moments[parent] = add(forces[parent], force), add(moments[parent], moment)
    return forces, moments
