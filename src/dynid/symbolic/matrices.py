"""Inertia matrix, regressor, momentum and energies of the bodies on the expression graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dynid.robot import BASE
from dynid.symbolic.frames import Chain
from dynid.symbolic.graph import Graph, Value
from dynid.symbolic.motion import FORCES, NUMBERS, BodyState, FramePose, summed, torques, unit_forces, unit_moments
from dynid.symbolic.vectors import Matrix, Vector, add, apply, cross, dot, transposed


def composites(graph: Graph, chain: Chain, frames: Sequence[FramePose],
               bodies: Sequence[Sequence[Value]]) -> list[Vector]:
    """Return the ten inertial parameters of each body together with all bodies that it carries, in its own frame.

    In the frame of the previous body, with k = R h: S becomes R S R' + r k' + k r' + m r r', and h becomes k + m r.
    """
    whole = [list(body) for body in bodies]
    for i in reversed(range(len(chain.links))):
        parent = chain.links[i].parent
        if parent != BASE:
            place = frames[i]
            second, mass = place.rotation.up_symmetric(whole[i][:6]), whole[i][9]
            first, r = place.rotation.up(whole[i][6:9]), place.origin
            half = [h + 0.5 * mass * x if mass != graph.zero else h for h, x in zip(first, r, strict=True)]
            moved = [value + (r[j] * half[k] + r[k] * half[j])
                     for value, (j, k) in zip(second, _SYMMETRIC_PAIRS, strict=True)]
            whole[parent] = add(whole[parent], [*moved, *(h + mass * x for h, x in zip(first, r, strict=True)), mass])
    return whole


_SYMMETRIC_PAIRS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def inertia(graph: Graph, chain: Chain, frames: Sequence[FramePose], bodies: Sequence[Sequence[Value]]) -> Matrix:
    """Return the joint-space inertia matrix: column i has the torques for unit acceleration of joint i."""
    count = len(chain.links)
    matrix = [[graph.zero] * count for _ in range(count)]
    for i, numbers in enumerate(composites(graph, chain, frames, bodies)):
        xx, _, xz, yy, yz, _, hx, hy, _, mass = numbers
        if chain.links[i].sliding:
            force, moment = [graph.zero, graph.zero, mass], [hy, -hx, graph.zero]
        else:
            force, moment = [-hy, hx, graph.zero], [-xz, -yz, xx + yy]
        k = i
        while True:
            link = chain.links[k]
            matrix[k][i] = matrix[i][k] = (force if link.sliding else moment)[2]
            if link.parent == BASE:
                break
            place = frames[k]
            force = place.rotation.up(force)
            moment = add(place.rotation.up(moment), cross(place.origin, force))
            k = link.parent
    return matrix


def regressor(graph: Graph, chain: Chain, frames: Sequence[FramePose], motion: Sequence[BodyState],
              kept: Sequence[int]) -> Matrix:
    """Return the joint torques (joints, kept) for unit values of the parameters with indices `kept`, 10 body + number.

    The axis of every previous joint is transformed into the body's frame, as rotation (3) and velocity of the body's
    origin (3). Each entry is the product of the axis with the moment and the force of a parameter.
    """
    count = len(chain.links)
    matrix = [[graph.zero] * len(kept) for _ in range(count)]
    axes: list[dict[int, tuple[Vector, Vector]]] = []
    for i, link in enumerate(chain.links):
        own = {}
        if link.parent != BASE:
            down = frames[i].rotation.down
            own = {j: (down(turn), down(add(slide, cross(turn, frames[i].origin))))
                   for j, (turn, slide) in axes[link.parent].items()}
        unit = [graph.zero, graph.zero, graph.one]
        still = [graph.zero] * 3
        own[i] = (still, unit) if link.sliding else (unit, still)
        axes.append(own)
        moments, forces = unit_moments(graph, motion[i]), unit_forces(graph, motion[i])
        for column, number in enumerate(kept):
            if number // NUMBERS == i:
                k = number % NUMBERS
                for j, (turn, slide) in own.items():
                    weight = dot(turn, moments[k])
                    matrix[j][column] = weight + dot(slide, forces[k]) if k >= FORCES.start else weight
    return matrix


def coriolis(graph: Graph, chain: Chain, frames: Sequence[FramePose], motion: Sequence[BodyState], dq: Sequence[Value],
             bodies: Sequence[Sequence[Value]]) -> Matrix:
    """Return the Coriolis matrix (joints, joints) of Christoffel symbols. C_kj is the integral of x_k . d/dt x_j over
    the mass, where x_j is the velocity of a point for unit velocity of joint j.

    For the points r of a body, d/dt x_j is a field A + B r like an acceleration, with B = [dz]x + [z]x[w]x, the axis z
    of joint j and dz = w_j x z. Column j is the torque that this field requires.
    """
    count, still = len(chain.links), [graph.zero] * 3
    columns = []
    for j in range(count):
        fields: list[BodyState] = []
        axes: dict[int, tuple[Vector, Vector]] = {}
        for i, link in enumerate(chain.links):
            w = motion[i].w
            field = BodyState(still, still, [still] * 3, still, (graph.zero,) * 3)
            if i == j:
                z, dz = [graph.zero, graph.zero, graph.one], [w[1], -w[0], graph.zero]
                field = _field(graph, z, dz, w, still) if not link.sliding else replace(field, a=dz)
                axes[i] = (z, dz)
            elif link.parent in axes:
                down, before = frames[i].rotation.down, fields[link.parent]
                z, dz = (down(v) for v in axes[link.parent])
                a = down(add(before.a, apply(before.u, frames[i].origin)))
                if not chain.links[j].sliding:
                    if link.sliding:
                        a = add(a, [z[1] * dq[i], -z[0] * dq[i], graph.zero])
                    field = _field(graph, z, dz, w, a)
                else:
                    field = replace(field, a=a)
                axes[i] = (z, dz)
            fields.append(field)
        columns.append(torques(graph, chain, frames, fields, bodies))
    return transposed(columns)


def _field(graph: Graph, z: Vector, dz: Vector, w: Vector, a: Vector) -> BodyState:
    """Return the acceleration field A + B r of a body with B = [dz]x + w z' - (z . w) 1; a: its value at the origin."""
    along = dot(z, w)
    u = [[w[r] * z[c] for c in range(3)] for r in range(3)]
    for r in range(3):
        u[r][r] = u[r][r] - along
    for r, c, k in ((2, 1, 0), (0, 2, 1), (1, 0, 2)):
        u[r][c], u[c][r] = u[r][c] + dz[k], u[c][r] - dz[k]
    return BodyState(w, dz, u, a, (u[2][2] - u[1][1], u[0][0] - u[2][2], u[1][1] - u[0][0]))


def kinetic_slope(graph: Graph, chain: Chain, frames: Sequence[FramePose], dq: Sequence[Value],
                  bodies: Sequence[Sequence[Value]]) -> Vector:
    """Return the derivative of the kinetic energy by the joint positions, C' dq (joints,).

    With linear momentum L and angular momentum N of all bodies that joint j carries, about its frame's origin with
    velocity v: (w x z) . N - L . (z x v) for a revolute joint, (w x z) . L for a prismatic one.
    """
    count = len(chain.links)
    rates: list[tuple[Vector, Vector]] = []
    linear: list[Vector] = []
    turning: list[Vector] = []
    for i, link in enumerate(chain.links):
        w0, v0 = rates[link.parent] if link.parent != BASE else ([graph.zero] * 3, [graph.zero] * 3)
        down = frames[i].rotation.down
        w, v = down(w0), down(add(v0, cross(w0, frames[i].origin)))
        if link.sliding:
            v = [v[0], v[1], v[2] + dq[i]]
        else:
            w = [w[0], w[1], w[2] + dq[i]]
        rates.append((w, v))
        zero = graph.zero
        u = [[zero, -w[2], w[1]], [w[2], zero, -w[0]], [-w[1], w[0], zero]]
        field = BodyState(w, w, u, v, (zero, zero, zero))
        linear.append(summed(bodies[i], unit_forces(graph, field)))
        turning.append(summed(bodies[i], unit_moments(graph, field)))
    slopes = [graph.zero] * count
    for i in reversed(range(count)):
        (w, v), momentum, moment = rates[i], linear[i], turning[i]
        if chain.links[i].sliding:
            slopes[i] = w[1] * momentum[0] - w[0] * momentum[1]
        else:
            slopes[i] = w[1] * moment[0] - w[0] * moment[1] + (v[1] * momentum[0] - v[0] * momentum[1])
        parent = chain.links[i].parent
        if parent != BASE:
            up = frames[i].rotation.up(momentum)
            linear[parent] = add(linear[parent], up)
            turning[parent] = add(turning[parent], add(frames[i].rotation.up(moment), cross(frames[i].origin, up)))
    return slopes


def weight(graph: Graph, chain: Chain, frames: Sequence[FramePose], bodies: Sequence[Sequence[Value]]) -> Vector:
    """Return the gravity torques (joints,): (h x a) . z for a revolute joint and m a . z for a prismatic joint, with
    first moments h and mass m of all bodies that the joint carries, and the upward acceleration a in its frame."""
    first, mass = _first_moments(chain, frames, bodies)
    still = [graph.value(-float(x)) for x in chain.gravity]
    up: list[Vector] = []
    found = []
    for i, link in enumerate(chain.links):
        a = frames[i].rotation.down(still if link.parent == BASE else up[link.parent])
        up.append(a)
        found.append(mass[i] * a[2] if link.sliding else first[i][0] * a[1] - first[i][1] * a[0])
    return found


def _first_moments(chain: Chain, frames: Sequence[FramePose],
                   bodies: Sequence[Sequence[Value]]) -> tuple[list[Vector], Vector]:
    """Return first moments (3) and mass of each body together with all bodies that it carries, in its own frame."""
    first, mass = [list(body[6:9]) for body in bodies], [body[9] for body in bodies]
    for i in reversed(range(len(chain.links))):
        parent = chain.links[i].parent
        if parent != BASE:
            first[parent] = add(first[parent], _moved(frames[i], first[i], mass[i]))
            mass[parent] = mass[parent] + mass[i]
    return first, mass


def _moved(place: FramePose, first: Vector, mass: Value) -> Vector:
    """Return the first moments (3) of a body, converted to the frame of the previous body; place: pose of the body."""
    return [h + mass * r for h, r in zip(place.rotation.up(first), place.origin, strict=True)]


def potential(graph: Graph, chain: Chain, frames: Sequence[FramePose], bodies: Sequence[Sequence[Value]]) -> Value:
    """Return the potential energy of gravity, - g . (sum of first moments), in the inertial frame."""
    first, mass = _first_moments(chain, frames, bodies)
    total = [graph.zero] * 3
    for i, link in enumerate(chain.links):
        if link.parent == BASE:
            total = add(total, _moved(frames[i], first[i], mass[i]))
    return -dot([graph.value(float(x)) for x in chain.gravity], total)
