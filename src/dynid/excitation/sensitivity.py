"""How the weighted sum of a model's regressor entries changes with the motion: exact, term by term.

`sensitivity(model, layout, q, dq, ddq, weights)` is the adjoint of `Model.fill`. A term of one's own is differentiated
by central differences, or exactly when a rule is added with `@rule.register`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.adjoint import adjoint_kernel
from dynid.dynamics.tree import tree_of
from dynid.model import (
    AsymmetricCoulomb,
    AsymmetricViscous,
    Coulomb,
    CoupledWrist,
    LinearModel,
    Model,
    MotorSide,
    Offset,
    Payload,
    RigidBodies,
    RotorInertia,
    Sign,
    Spring,
    Stribeck,
    Viscous,
)
from dynid.model.terms import Place, chosen, coupling_matrix, fill_entries
from dynid.regression.equations import Layout
from dynid.robot import Robot
from dynid.robot import inertia as ten

_STEP = 1e-6  # of central differences, rad, rad/s, rad/s^2


def smooth(model: LinearModel, width: float) -> LinearModel:
    """The same model with every hard sign of a velocity made smooth over `width` (rad/s), so that it has a slope."""
    if not isinstance(model, Model):
        return model
    terms: list[Any] = []
    for term in model.terms:
        sign = getattr(term, "sign", None)
        if isinstance(sign, Sign) and sign.kind == "hard" and isinstance(term, Coulomb | AsymmetricCoulomb | MotorSide
                                                                         | CoupledWrist):
            terms.append(replace(term, sign=Sign("tanh", width)))
        else:
            terms.append(term)
    return replace(model, terms=tuple(terms))


def sign_slope(sign: Sign, velocity: Array) -> Array:
    """Derivative of a sign by the velocity; a hard one is flat but for its jump."""
    x = velocity / sign.width
    if sign.kind == "tanh":
        return (1.0 - np.tanh(x) ** 2) / sign.width
    if sign.kind == "arctan":
        return (2.0 / np.pi) / (sign.width * (1.0 + x * x))
    return np.zeros_like(velocity)


@singledispatch
def rule(term: Any, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, weights: Array, out: Array) -> None:
    """out (3, samples, dof) += derivatives by q, dq, ddq of the sum of weights (rows, samples) times a term's entries.

    place (dof, the term's parameters): the row of each entry, -1 for none. Without a rule: central differences.
    """
    motion = [q, dq, ddq]
    values = np.zeros((2, len(weights), len(q)))
    for which in range(3):
        for joint in range(robot.dof):
            for side, step in enumerate((_STEP, -_STEP)):
                moved = [x.copy() if k == which else x for k, x in enumerate(motion)]
                moved[which][:, joint] += step
                fill_entries(term, robot, moved[0], moved[1], moved[2], place, values[side])
            rows = place[place >= 0]
            slope = (values[0, rows] - values[1, rows]) / (2.0 * _STEP)
            out[which, :, joint] += np.einsum("rs,rs->s", slope, weights[rows])


@rule.register
def _rigid(term: RigidBodies, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, weights: Array,
           out: Array) -> None:
    adjoint_kernel(*tree_of(robot), q, dq, ddq, place, weights, out, 0, len(q))


@rule.register
def _payload(term: Payload, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, weights: Array,
             out: Array) -> None:
    # Y_load = Y_body X, so a weight on the load is the weight times X' on its body.
    frame = robot.frame(term.frame)
    to_body = ten.change_frame(frame.pose @ np.asarray(term.pose, dtype=float))
    carriers = np.flatnonzero(robot.supports[:, frame.body])
    moved = np.zeros((10 * len(carriers), len(q)))
    whole = np.full((robot.dof, 10 * robot.dof), -1, dtype=np.int64)
    for c, joint in enumerate(carriers):
        given = np.zeros((10, len(q)))
        used = place[joint] >= 0
        given[used] = weights[place[joint, used]]
        moved[10 * c:10 * c + 10] = to_body @ given
        whole[joint, 10 * frame.body:10 * frame.body + 10] = np.arange(10 * c, 10 * c + 10)
    adjoint_kernel(*tree_of(robot), q, dq, ddq, whole, moved, out, 0, len(q))


def _columns(place: Place, weights: Array, joints: list[int], parts: int) -> Any:
    """(joint, [weights or None of each of its parts]) of a term with `parts` parameters a joint."""
    for k, j in enumerate(joints):
        rows = place[j, parts * k:parts * (k + 1)]
        yield j, [weights[row] if row >= 0 else np.zeros(weights.shape[1]) for row in rows]


@rule.register
def _rotor(term: RotorInertia, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, weights: Array,
           out: Array) -> None:
    for j, (g,) in _columns(place, weights, chosen(robot, term.joints), 1):
        out[2, :, j] += g


@rule.register
def _viscous(term: Viscous, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, weights: Array,
             out: Array) -> None:
    for j, (g,) in _columns(place, weights, chosen(robot, term.joints), 1):
        out[1, :, j] += g


@rule.register
def _coulomb(term: Coulomb, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, weights: Array,
             out: Array) -> None:
    for j, (g,) in _columns(place, weights, chosen(robot, term.joints), 1):
        out[1, :, j] += g * sign_slope(term.sign, dq[:, j])


@rule.register
def _offset(term: Offset, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, weights: Array,
            out: Array) -> None:
    return


@rule.register
def _asymmetric_coulomb(term: AsymmetricCoulomb, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place,
                        weights: Array, out: Array) -> None:
    for j, (forward, backward) in _columns(place, weights, chosen(robot, term.joints), 2):
        out[1, :, j] += np.where(dq[:, j] > 0, forward, backward) * sign_slope(term.sign, dq[:, j])


@rule.register
def _asymmetric_viscous(term: AsymmetricViscous, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place,
                        weights: Array, out: Array) -> None:
    for j, (forward, backward) in _columns(place, weights, chosen(robot, term.joints), 2):
        out[1, :, j] += np.where(dq[:, j] > 0, forward, backward)


@rule.register
def _spring(term: Spring, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, weights: Array,
            out: Array) -> None:
    joint = robot.joint_index(term.joint)
    if place[joint, 0] >= 0:
        out[0, :, joint] += weights[place[joint, 0]]


@rule.register
def _stribeck(term: Stribeck, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, weights: Array,
              out: Array) -> None:
    joints = chosen(robot, term.joints)
    delta, alpha, steep = (np.broadcast_to(np.atleast_1d(np.asarray(getattr(term, name), dtype=float)), len(joints))
                           for name in term.SHAPES)
    for k, (j, g) in enumerate(_columns(place, weights, joints, 5)):
        v = dq[:, j]
        sign, slope = (2.0 / np.pi) * np.arctan(steep[k] * v), (2.0 / np.pi) * steep[k] / (1.0 + (steep[k] * v) ** 2)
        size = np.maximum(np.abs(v), 1e-12)
        power = alpha[k] * size ** (alpha[k] - 1.0) * np.abs(sign) + size ** alpha[k] * slope
        out[1, :, j] += g[0] * slope + g[1] * delta[k] / (1.0 + (delta[k] * v) ** 2) + g[2] + g[4] * power


@rule.register
def _motor_side(term: MotorSide, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, weights: Array,
                out: Array) -> None:
    coupling = coupling_matrix(robot, term.coupling)
    velocity, parts = dq @ coupling, len(term.parts)
    by_velocity, by_acceleration = np.zeros_like(dq), np.zeros_like(dq)
    for m in range(robot.dof):
        for j in np.flatnonzero(coupling[:, m]):
            for k, part in enumerate(term.parts):
                row = place[j, m * parts + k]
                if row < 0:
                    continue
                g = coupling[j, m] * weights[row]
                if part == "Fvm":
                    by_velocity[:, m] += g
                elif part == "Fcm":
                    by_velocity[:, m] += g * sign_slope(term.sign, velocity[:, m])
                elif part == "Iam":
                    by_acceleration[:, m] += g
    out[1] += by_velocity @ coupling.T
    out[2] += by_acceleration @ coupling.T


@rule.register
def _wrist(term: CoupledWrist, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, weights: Array,
           out: Array) -> None:
    a, b = chosen(robot, term.joints)
    slope = sign_slope(term.sign, dq[:, a] + dq[:, b])
    for here, other in ((a, b), (b, a)):
        inertia, viscous, dry = (weights[row] if row >= 0 else 0.0 for row in place[here])
        out[2, :, other] += inertia
        out[1, :, other] += viscous
        out[1, :, a] += dry * slope
        out[1, :, b] += dry * slope


def term_places(layout: Layout) -> tuple[tuple[Any, Place], ...]:
    """Every term of the layout's model with the rows of its entries (dof, its parameters); empty for a user's model."""
    model = layout.model
    if not isinstance(model, Model):
        return ()
    column = {name: k for k, name in enumerate(model.parameters.names)}
    found = []
    for term in model.terms:
        place = layout.place[:, [column[parameter.name] for parameter in term.parameters(model.robot)]]
        if (place >= 0).any():
            found.append((term, np.ascontiguousarray(place)))
    return tuple(found)


def sensitivity(layout: Layout, places: tuple[tuple[Any, Place], ...], q: Array, dq: Array, ddq: Array,
                weights: Array) -> Array:
    """Derivatives (3, samples, dof) by q, dq, ddq of sum(weights * entries), entries as `Layout.place` puts them.

    places: `term_places(layout)`, made once.
    """
    out = np.zeros((3, *q.shape))
    model = layout.model
    if isinstance(model, Model):
        for term, place in places:
            rule(term, model.robot, q, dq, ddq, place, weights, out)
        return out
    joints, columns = np.nonzero(layout.place >= 0)
    g = weights[layout.place[joints, columns]]
    motion = [q, dq, ddq]
    for which, signal in enumerate(motion):
        for joint in range(model.dof):
            sides = []
            for step in (_STEP, -_STEP):
                moved = signal.copy()
                moved[:, joint] += step
                sides.append(model.regressor(*(moved if k == which else x for k, x in enumerate(motion))))
            slope = (sides[0] - sides[1])[:, joints, columns] / (2.0 * _STEP)
            out[which, :, joint] = np.einsum("sr,rs->s", slope, g)
    return out
