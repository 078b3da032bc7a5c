"""Parameter status of the modified recursive least squares (Lomakin and Deutscher, fig. 1), from a triangular factor.

In their notation, <v_i, v_i> is the squared norm of the part of a column that is independent of the identified columns
before it, a squared diagonal entry of the triangular factor. K_ii is the squared norm of the whole column. A parameter
with too small an independent part keeps its initial value. Unlike in eq. 41, the others are estimated by least squares
on all data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Ints
from dynid.errors import ModelError
from dynid.model import LinearModel, required_robot_model
from dynid.regression import BaseParameters, Stacked

Limits = Mapping[str, tuple[float, float]] | str | None
IDENTIFIED, NOT_EXCITED, DEPENDENT = 1, 0, -1  # s_i of the document


@dataclass(frozen=True, eq=False)
class Judged:
    """Parameter status of the modified recursive least squares.

    Attributes:
        values: (base,).
        status: (base,), 1 identified, 0 not excited, -1 dependent.
        added: (base,), squared norm of the independent part of each column.
        norms: (base,), squared norm of each column.
    """

    values: Array
    status: Ints
    added: Array
    norms: Array


def judge(stacked: Stacked, initial: Array, threshold: Array, box: tuple[Array, Array] | None = None) -> Judged:
    """Return least squares in the parameters whose columns add more than `threshold` (base,), the others at `initial`
    (base,), within a box (lower and upper limits, base each) if given."""
    b = len(initial)
    work, norms = stacked.r.copy(), np.sum(stacked.r ** 2, axis=0)
    status, added, kept = np.zeros(b, dtype=np.int64), np.zeros(b), []
    for i in range(b):
        added[i] = float(work[:, i] @ work[:, i])
        if added[i] > threshold[i]:
            status[i] = IDENTIFIED
            axis = work[:, i] / np.sqrt(added[i])
            work[:, i + 1:] -= np.outer(axis, axis @ work[:, i + 1:])
            kept.append(i)
        else:
            status[i] = DEPENDENT if norms[i] > threshold[i] else NOT_EXCITED
    frozen = np.setdiff1d(np.arange(b), kept)
    values, size = initial.copy(), np.sqrt(norms[kept])
    rest = stacked.rho - stacked.r[:, frozen] @ initial[frozen]
    values[kept] = np.linalg.lstsq(stacked.r[:, kept] / size, rest, rcond=None)[0] / size
    if box is not None:
        values = np.clip(values, *box)
    return Judged(values, status, added, norms)


def default_threshold(stacked: Stacked, wanted: float | None) -> Array:
    """Return (noise / wanted standard error)^2 (base,), wanted in each parameter's unit; by default the value that
    alone would explain the torque."""
    noise = stacked.rest / max(stacked.rows - len(stacked.r), 1)
    if wanted is not None:
        return np.full(len(stacked.r), noise / wanted ** 2)
    torque = float(np.sum(stacked.rho ** 2)) + stacked.rest
    return np.maximum(noise / max(torque, 1e-300), 1e-18) * np.sum(stacked.r ** 2, axis=0) + 1e-300


def standard_limits(model: LinearModel, given: Limits) -> dict[str, tuple[float, float]]:
    """Return limits of standard parameters by name. Args: model: Model with these parameters.
        given: Limits by name; or "loose", "normal" or "tight" for those of the bodies and shapes in the robot's file;
            or the path of a bounds file (see `dynid extract`).
    """
    if given is None:
        return {}
    if not isinstance(given, str):
        try:
            pairs = {name: (float(low), float(high)) for name, (low, high) in given.items()}
        except (AttributeError, TypeError, ValueError):
            raise ModelError("limits must be a lower and an upper number for each parameter name, such as "
                             f'`M1 = [0.0, 3.0]`, "normal" or a bounds file; got {given!r}',
                             code="bad-limits") from None
        unknown = [name for name in pairs if name not in model.parameters.names]
        if unknown:
            raise ModelError(f"limits contain '{unknown[0]}', which is not a standard parameter of the model",
                             code="unknown-parameter")
        return pairs
    own = required_robot_model(model, f"limits '{given}' of a robot file")
    from dynid.extraction import WIDTHS, load_bounds, robot_bounds  # imports estimates

    width = next((one for one in WIDTHS if one == given), None)
    bounds = load_bounds(given, own) if width is None else robot_bounds(own, width)
    return bounds.standard_limits(model.parameters)


def base_limits(base: BaseParameters, limits: Mapping[str, tuple[float, float]]) -> tuple[Array, Array]:
    """Return lower and upper limits (base,) of base parameters from those of standard ones by interval arithmetic
    (Lomakin and Deutscher, s. VI); infinite if a standard parameter has none."""
    low, high = np.full((2, len(base.parameters)), np.inf)
    low = -low
    for name, (lower, upper) in limits.items():
        if not lower <= upper:
            raise ModelError(f"the lower limit of '{name}' is above its upper limit: {lower} and {upper}")
        low[base.parameters.index(name)], high[base.parameters.index(name)] = lower, upper
    used = base.matrix != 0.0
    ends = np.where(used, base.matrix * np.where(used, low, 0.0), 0.0), np.where(used, base.matrix * np.where(
        used, high, 0.0), 0.0)
    return np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)
