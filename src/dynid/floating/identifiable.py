"""Base parameters that each kind of equations of a robot with a free base can identify, before any fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.errors import ModelError, NotPossibleError
from dynid.floating.contacts import Contact, contact_bias, null_rows, standing_jacobian
from dynid.floating.preparation import FloatingEquations
from dynid.model import Model
from dynid.regression import BaseParameters, base_parameters
from dynid.regression.base import reduce_columns
from dynid.robot import FREE_COORDINATES as SIX

_POSTURE_SPREAD = 1.0  # rad or m of random joint positions
_SAMPLES_PER_PARAMETER = 4  # random motions for each parameter, so that no rank is missed


def floating_base_parameters(model: Model, equations: FloatingEquations, *, contacts: Sequence[Contact] = (),
                             schedules: Sequence[Sequence[bool]] = (), seed: int = 0) -> BaseParameters:
    """Return the base parameters that a kind of equations can identify with sufficient excitation.

    Args:
        model: model of a robot with a free base.
        equations: "wrenches", "base", "projected" or "flight", see `prepare_floating`. "flight" is
            without a force sensor: the rows of the joints alone. With "base" the parameters are those of the whole
            robot: the rows of the base alone have the same base parameters (Ayusawa,
            Venture and Nakamura 2014), except friction and rotor inertias, which do not affect these rows.
        contacts: contacts of "projected" equations.
        schedules: combinations of standing contacts that occur, one bool for each contact; default: all stand.
        seed: seed of the random motions.
    """
    robot = model.robot
    if not robot.has_free_base:
        raise ModelError(f"robot '{robot.name}' has a fixed base", "use dynid.base_parameters", code="fixed-base")
    if equations == "base":
        return base_parameters(model, seed=seed, unmeasured=range(SIX, robot.dof))
    if equations == "flight":
        return base_parameters(model, seed=seed, unmeasured=range(SIX))
    if equations != "projected":
        return base_parameters(model, seed=seed)
    if not contacts:
        raise ModelError("projected equations need contacts", code="no-contacts")
    rng = np.random.default_rng(seed)
    states = [list(map(bool, one)) for one in schedules] or [[True] * len(contacts)]
    count = max(24, _SAMPLES_PER_PARAMETER * len(model.parameters) // len(states))
    found = []
    for state in states:
        # A round foot has the space of parameters of a pointed one.
        active = [replace(contact, radius=0.0) for contact, stands in zip(contacts, state, strict=True) if stands]
        q = np.hstack([np.zeros((count, SIX)), rng.normal(size=(count, robot.dof - SIX)) * _POSTURE_SPREAD])
        dq, ddq = rng.normal(size=(2, count, robot.dof)) * 2.0
        down = rng.normal(size=(count, 3))
        down /= np.linalg.norm(down, axis=1, keepdims=True)
        jacobian, owners = standing_jacobian(robot, active, q, down)
        if jacobian.shape[1]:
            inverse = np.linalg.pinv(jacobian, rcond=1e-9)
            dq -= np.einsum("sij,sj->si", inverse, np.einsum("sij,sj->si", jacobian, dq))
            bias = np.hstack([contact_bias(robot, contact, q, dq) for contact in active])
            ddq -= np.einsum("sij,sj->si", inverse, np.einsum("sij,sj->si", jacobian, ddq) + bias)
        ddq[:, :3] -= down * (np.linalg.norm(robot.gravity) or 0.0)  # the proper acceleration
        mixing, keep = null_rows(jacobian, owners, np.ones((count, len(active)), dtype=bool), np.ones(robot.dof))
        rows = mixing @ model.regressor(q, dq, ddq)
        found.append(rows[keep])
    tall = np.vstack(found)
    if not len(tall):
        raise NotPossibleError(f"with all contacts standing, no equation of robot '{robot.name}' is free of contact "
                               "forces", "use measured forces, or motions with fewer standing contacts",
                               code="no-free-equation")
    size = np.linalg.norm(tall, axis=1, keepdims=True)
    factor = np.asarray(np.linalg.qr(tall / np.where(size > 0, size, 1.0), mode="r"))
    return reduce_columns(factor, model.parameters, range(len(model.parameters)))
