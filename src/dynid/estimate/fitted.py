"""Set data-dependent terms of a model before compression, from top speeds of joints and a first estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.estimate.linear import joint_weights, solve
from dynid.model import DataContext, LinearModel, bound, robot_model
from dynid.recording import Samples
from dynid.recording.excerpts import excerpt
from dynid.regression import BaseParameters, TorqueEquations, fold
from dynid.regression.derived import CachedEquations

# Rows after decimation:
_ENOUGH_ROWS = 20000  # for the second estimate: transmitted torques need less accuracy than friction
_FIRST_ROWS = 5000  # for the first estimate, which is only the start of the second
_ROWS_AT_ONCE = 65536
_FREE_WIDTH = 100.0


def scaled_model(model: LinearModel, logs: Sequence[Samples]) -> LinearModel:
    """Return the model with scales taken from the data: top speeds and ranges of the joints, times and temperatures."""
    if not len(logs):
        return model
    times = min(float(log.t[0]) for log in logs), max(float(log.t[-1]) for log in logs)
    warm = [log.temperature for log in logs if log.temperature is not None]
    return bound(model, DataContext(speeds=top_speeds(logs), ranges=motion_ranges(logs), times=times,
                                    temperatures=np.mean(np.concatenate(warm), axis=0) if warm else None))


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


def top_speeds(logs: Sequence[Samples]) -> Array:
    """Return the top speed of each joint (dof,) over the valid samples, rad/s or m/s; one for a joint at rest."""
    top = np.zeros(logs[0].dof)
    for log in logs:
        for start in range(0, len(log), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            top = np.maximum(top, np.where(log.keep[rows], np.abs(log.dq[rows]), 0.0).max(axis=0, initial=0.0))
    return np.where(top > 0, top, 1.0)


def motion_ranges(logs: Sequence[Samples]) -> Array:
    """Return the range of motion of each joint (dof,) over the segments of all logs, rad or m; one for a joint at
    rest."""
    low, high = np.full((2, logs[0].dof), np.inf) * np.array([[1.0], [-1.0]])
    for log in logs:
        for start, stop in log.segments:
            for at in range(start, stop, _ROWS_AT_ONCE):
                rows = log.q[at:min(at + _ROWS_AT_ONCE, stop)]
                low, high = np.minimum(low, rows.min(axis=0)), np.maximum(high, rows.max(axis=0))
    found = high - low
    return np.where(found > 0, found, 1.0)
