"""Friction over velocity of each joint: the curve of an estimate, its standard error, and the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.estimate import Estimate
from dynid.model import complete
from dynid.regression.residual_series import Residuals
from dynid.validate.reconstruction import Reconstruction

_CURVE_POINTS = 81  # points of a curve
_VELOCITY_BINS = 24  # velocity bins in each direction
MIN_BIN_ROWS = 5  # rows of a bin that is shown


@dataclass(frozen=True, eq=False)
class FrictionShape:
    """Velocity-dependent friction of one joint, and the measured torque minus all other terms.

    Attributes:
        joint: name of the joint.
        velocity, torque, std: (points,), the curve and its standard error, rad/s or m/s and N m or N.
        centres, medians, low, high: (bins,), velocities of the bins, and medians and quartiles of the data in each.
    """

    joint: str
    velocity: Array
    torque: Array
    std: Array
    centres: Array
    medians: Array
    low: Array
    high: Array


def friction_shapes(reconstruction: Reconstruction) -> tuple[FrictionShape, ...]:
    """Return the velocity-dependent friction of each moving joint; load-dependent friction is excluded."""
    estimate = reconstruction.estimate
    own = velocity_friction(estimate)
    found = []
    for j, name in enumerate(reconstruction.names):
        speeds, left = _rows(reconstruction, j)
        if not own[j].any() or not len(speeds) or not np.abs(speeds).max() > 0:
            continue
        top = float(np.abs(speeds).max())
        # Points are denser near zero velocity, where friction changes sign.
        half = top * np.linspace(0.0, 1.0, _CURVE_POINTS // 2 + 1)[1:] ** 2
        grid = np.concatenate([-half[::-1], half])
        torque, std = friction_at(estimate, j, own[j], grid)
        edges = top * np.linspace(0.0, 1.0, _VELOCITY_BINS + 1) ** 2
        edges = np.concatenate([-edges[:0:-1], edges])
        data = left + friction_at(estimate, j, own[j], speeds)[0]
        found.append(FrictionShape(name, grid, torque, std, *_binned(speeds, data, edges)))
    return tuple(found)


def velocity_friction(estimate: Estimate) -> Bools:
    """Return a mask (dof, parameters) of the friction parameters of each joint that depend on velocities alone."""
    model, parameters = complete(estimate.model), estimate.model.parameters
    friction = parameters.of_group("friction")
    loaded = getattr(estimate.model, "loaded", np.zeros(len(parameters), dtype=bool))
    return np.asarray(model.structure & friction & ~loaded, dtype=np.bool_)


def friction_at(estimate: Estimate, joint: int, own: Bools, velocity: Array) -> tuple[Array, Array]:
    """Return friction torque and its standard error (samples,) of some parameters at velocities of one joint, with all
    other joints at rest. own (parameters,): mask of these parameters."""
    dq = np.zeros((len(velocity), estimate.model.dof))
    dq[:, joint] = velocity
    y = np.asarray(estimate.model.regressor(np.zeros_like(dq), dq, np.zeros_like(dq)))[:, joint]
    base: Ints = np.flatnonzero(own[estimate.base.independent] & estimate.identified)
    columns = y[:, estimate.base.independent[base]]
    spread = np.einsum("si,ij,sj->s", columns, estimate.covariance[np.ix_(base, base)], columns)
    return y[:, own] @ estimate.full[own], np.sqrt(np.maximum(spread, 0.0))


def _rows(reconstruction: Reconstruction, joint: int) -> tuple[Array, Array]:
    """Return velocities and residuals (rows,) of a joint in the rows of the fit."""
    parts: Sequence[Residuals] = reconstruction.series
    speeds, left = [], []
    for samples, part in zip(reconstruction.samples, parts, strict=True):
        keep = part.keep[:, joint]
        rows = np.clip(np.searchsorted(samples.t, part.t[keep] - 0.5 / samples.rate), 0, len(samples) - 1)
        speeds.append(np.asarray(samples.dq[rows, joint]))
        left.append(part.residual[keep, joint])
    return np.concatenate(speeds), np.concatenate(left)


def _binned(x: Array, y: Array, edges: Array) -> tuple[Array, Array, Array, Array]:
    """Return centres, medians and quartiles (bins,) of y by bins of x with enough rows."""
    which = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
    starts = np.searchsorted(np.sort(which), np.arange(len(edges)))
    full = np.flatnonzero(np.diff(starts) >= MIN_BIN_ROWS)
    first, count = starts[:-1][full], np.diff(starts)[full]

    def at(values: Array, share: float) -> Array:
        """Return the quantile (bins,) of sorted values, interpolated linearly."""
        place = share * (count - 1)
        low, part = first + np.floor(place).astype(np.int64), place % 1.0
        return np.asarray(values[low] + part * (values[np.minimum(low + 1, len(values) - 1)] - values[low]))

    by_x, by_y = (values[np.lexsort((values, which))] for values in (x, y))
    return at(by_x, 0.5), at(by_y, 0.5), at(by_y, 0.25), at(by_y, 0.75)
