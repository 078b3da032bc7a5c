"""Inertia matrix, regressor, momentum and energies of the bodies on the expression graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dynid.robot import BASE
from dynid.symbolic.frames import Chain
from dynid.symbolic.graph import Graph, Value
from dynid.symbolic.motion import FORCES, NUMBERS, BodyState, FramePose, torques, unit_forces, unit_moments, wrenches
from dynid.symbolic.vectors import Matrix, Vector, add, apply, cross, dot, transposed


def composites(graph: Graph, chain: Chain, frames: Sequence[FramePose],
               bodies: Sequence[Sequence[Value]]) -> list[Vector]:
    """Return the ten inertial parameters of each body together with all bodies that it carries, in the body's frame.

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
    velocity v: (w x z) . N - L . (z x v) for a revolute joint, (w x z) . L for a prismatic joint.
    """
    zero = graph.zero
    fields: list[BodyState] = []  # velocities in place of accelerations, so that wrenches are momenta
    for i, link in enumerate(chain.links):
        w0, v0 = (fields[link.parent].w, fields[link.parent].a) if link.parent != BASE else ([zero] * 3, [zero] * 3)
        down = frames[i].rotation.down
        w, v = down(w0), down(add(v0, cross(w0, frames[i].origin)))
        if link.sliding:
            v = [v[0], v[1], v[2] + dq[i]]
        else:
            w = [w[0], w[1], w[2] + dq[i]]
        u = [[zero, -w[2], w[1]], [w[2], zero, -w[0]], [-w[1], w[0], zero]]
        fields.append(BodyState(w, w, u, v, (zero, zero, zero)))
    slopes = []
    for link, field, L, N in zip(chain.links, fields, *wrenches(graph, chain, frames, fields, bodies), strict=True):
        w, v = field.w, field.a
        slopes.append(w[1] * L[0] - w[0] * L[1] if link.sliding else
                      w[1] * N[0] - w[0] * N[1] + (v[1] * L[0] - v[0] * L[1]))
    return slopes


def weight(graph: Graph, chain: Chain, frames: Sequence[FramePose], bodies: Sequence[Sequence[Value]]) -> Vector:
    """Return the gravity torques (joints,): (h x a) . z for a revolute joint and m a . z for a prismatic joint, with
    first moments h and mass m of all bodies that the joint carries, and the upward acceleration a in its frame."""
    still = [graph.value(-float(x)) for x in chain.gravity]
    up: list[Vector] = []
    torques = []
    for i, (link, numbers) in enumerate(zip(chain.links, composites(graph, chain, frames, bodies), strict=True)):
        a = frames[i].rotation.down(still if link.parent == BASE else up[link.parent])
        up.append(a)
        torques.append(numbers[9] * a[2] if link.sliding else numbers[6] * a[1] - numbers[7] * a[0])
    return torques


def potential(graph: Graph, chain: Chain, frames: Sequence[FramePose], bodies: Sequence[Sequence[Value]]) -> Value:
    """Return the potential energy of gravity, - g . (sum of first moments), in the inertial frame."""
    total = [graph.zero] * 3
    for link, place, numbers in zip(chain.links, frames, composites(graph, chain, frames, bodies), strict=True):
        if link.parent == BASE:
            first = place.rotation.up(numbers[6:9])
            total = add(total, [h + numbers[9] * r for h, r in zip(first, place.origin, strict=True)])
    return -dot([graph.value(float(x)) for x in chain.gravity], total)
