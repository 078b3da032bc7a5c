"""What terms of a model take from the data before these are folded: how fast joints move, and a first estimate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Array
from dynid.estimate.linear import joint_weights, solve
from dynid.model import LinearModel, Model
from dynid.recording import Samples
from dynid.regression import BaseParameters, TorqueEquations, fold
from dynid.regression.thinned import thinned

_ROUNDS = 2  # estimates of the bodies before the fit itself: without friction from load, then with it
_ENOUGH_ROWS = 20000  # for these estimates: the torque of a gear need not be known as well as its friction
_PIECE = 65536


def scaled_model(model: LinearModel, logs: Sequence[Samples]) -> LinearModel:
    """The model for the speeds that joints reach in the data."""
    return model.with_speeds(top_speeds(logs)) if isinstance(model, Model) and len(logs) else model


def fitted_model(model: LinearModel, logs: Sequence[Samples], base: BaseParameters,
                 threads: int | None = None) -> LinearModel:
    """The model, its terms that see an estimate beside the last of a few."""
    if not isinstance(model, Model) or not model.loaded.any():
        return model
    some = thinned(logs, _ENOUGH_ROWS)
    for k in range(_ROUNDS):
        regression = fold(TorqueEquations.of(model, some, base), blocks=1, threads=threads)
        if k == 0:
            regression = regression.select(np.flatnonzero(~model.loaded[base.independent]))
        solution = solve(regression, regression.stack(joint_weights(regression)))
        model = model.with_estimate(regression.base.expand(solution.beta))
    return model


def top_speeds(logs: Sequence[Samples]) -> Array:
    """Top speed of each joint (dof,) in the rows that are kept, rad/s or m/s; one for a joint that stands still."""
    top = np.zeros(logs[0].dof)
    for log in logs:
        for start in range(0, len(log), _PIECE):
            rows = slice(start, start + _PIECE)
            top = np.maximum(top, np.where(log.keep[rows], np.abs(log.dq[rows]), 0.0).max(axis=0, initial=0.0))
    return np.where(top > 0, top, 1.0)
