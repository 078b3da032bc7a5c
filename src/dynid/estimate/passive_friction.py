"""Check that friction dissipates energy at every speed of a joint."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.model import Model
from dynid.regression import BaseParameters

# Of a joint's top speed: speeds at which its friction must dissipate; the last ones are beyond the logged speeds.
SPEEDS_CHECKED = np.array([sign * share for share in (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 3.0)
                           for sign in (1.0, -1.0)])
LOGGED_SPEEDS = SPEEDS_CHECKED[:-2]
FRICTION_OF_SPEED = ("Fv", "Fc", "Ft", "Fvd")  # symbols of the parameters of friction that depends on speed alone


def passive_joints(model: Model, base: BaseParameters, values: Array, top: Array,
                   shares: Array = SPEEDS_CHECKED) -> tuple[int, ...]:
    """Return the joints, counted from 0, whose friction dissipates energy at every speed.

    Args:
        model: model with the friction terms.
        base: its base parameters.
        values: values of the base parameters (base,).
        top: top speed of each joint (dof,), rad/s or m/s.
        shares: speeds to check, relative to the top speed (k,).
    """
    speeds = shares * top[:, None]
    found, rest = [], np.zeros((speeds.shape[1], model.dof))
    for j in range(model.dof):
        velocity = rest.copy()
        velocity[:, j] = speeds[j]
        columns = [k for k, c in enumerate(base.independent) if (one := model.parameters.items[c]).owner == j
                   and one.symbol.rstrip("0123456789_") in FRICTION_OF_SPEED]
        entries = model.regressor(rest, velocity, rest)[:, j, base.independent[columns]]
        if np.all(speeds[j] * (entries @ values[columns]) >= 0.0):
            found.append(j)
    return tuple(found)


def falling_joints(model: Model, base: BaseParameters, values: Array, top: Array) -> tuple[int, ...]:
    """Return the joints, counted from 0, whose friction dissipates energy at logged speeds but not beyond them."""
    passive = passive_joints(model, base, values, top)
    return tuple(j for j in passive_joints(model, base, values, top, LOGGED_SPEEDS) if j not in passive)
