"""Linearise load-dependent terms of a model before compression, about a first estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.estimate.linear import joint_weights, solve
from dynid.model import LinearModel, robot_model
from dynid.recording import Samples
from dynid.recording.excerpts import excerpt
from dynid.regression import BaseParameters, TorqueEquations, fold
from dynid.regression.derived import CachedEquations

# Rows after decimation:
_ENOUGH_ROWS = 20000  # for the second estimate: transmitted torques need less accuracy than friction
_FIRST_ROWS = 5000  # for the first estimate, which is only the start of the second
_FREE_WIDTH = 100.0


def fitted_model(model: LinearModel, logs: Sequence[Samples], base: BaseParameters,
                 threads: int | None = None) -> LinearModel:
    """Return the model with its load-dependent terms linearised about an estimate, which is computed in two steps."""
    theta = first_estimate(model, logs, base, threads)
    own = robot_model(model)
    return model if theta is None or own is None else own.with_estimate(theta)


def first_estimate(model: LinearModel, logs: Sequence[Samples], base: BaseParameters,
                   threads: int | None = None) -> Array | None:
    """Return the parameters (parameters,) about which load-dependent terms are linearised. They are estimated first
    without and then with these terms. The result is None for a model without such terms."""
    own = robot_model(model)
    if own is None or not own.loaded.any():
        return None
    decimated_by = max(log.decimated_by for log in logs)
    few, some = (excerpt(logs, rows * decimated_by) for rows in (_FIRST_ROWS, _ENOUGH_ROWS))
    kept = np.flatnonzero(~own.loaded[base.independent])
    narrow = replace(base, independent=base.independent[kept], matrix=base.matrix[kept])
    first = fold(CachedEquations.from_equations(TorqueEquations.from_model(model, few, narrow)), blocks=1,
                 threads=threads)
    weights = joint_weights(first)
    beta = solve(first, first.stack(weights)).beta
    tried = []
    for split in (False, True):  # the better one of two distributions of undetermined inertia
        theta = split_values(first.base, beta) if split else first.base.expand(beta)
        if split and np.array_equal(theta, first.base.expand(beta)):
            continue
        loaded = own.with_estimate(theta)
        regression = fold(CachedEquations.from_equations(TorqueEquations.from_model(loaded, some, base)), blocks=1,
                          threads=threads)
        stacked = regression.stack(weights)
        found = solve(regression, stacked).beta
        tried.append((stacked.misfit(found), split, found))
    _, split, beta = min(tried, key=lambda one: one[0])
    return split_values(base, beta) if split else base.expand(beta)


def split_values(base: BaseParameters, beta: Array) -> Array:
    """Return standard parameters (parameters,) with base values beta (base,), and bodies near their nominal values.

    Inertia that torques cannot attribute to link or rotor is assigned to the rotor, or to the link if there are no
    nominal values.
    """
    parameters = base.parameters
    missing = np.array([item.nominal is None for item in parameters])
    body = np.array([item.body is not None for item in parameters])
    if not parameters.of_group("rotor").any() or np.any(missing & body) or not body.any():
        return base.expand(beta)
    start = np.array([item.nominal or 0.0 for item in parameters])
    for name, value in base.known.items():
        start[parameters.index(name)] = value
    # Parameters without a body have a wide prior: a hundred times the largest value that contains them.
    scale = _FREE_WIDTH * (np.abs(base.matrix) > 0).T @ np.abs(beta) + 1e-9
    for places in parameters.bodies.values():
        xx, _, _, yy, _, zz, _, _, _, mass = start[places]
        length = np.sqrt(max(xx + yy + zz, 1e-6) / (2.0 * max(mass, 1e-3)))
        scale[places] = max(mass, 1e-3) * np.array([length ** 2] * 6 + [length] * 3 + [1.0])
    moved = np.linalg.lstsq(base.matrix * scale, beta - base.matrix @ start, rcond=1e-12)[0]
    return start + scale * moved
