"""Regularisation of friction toward its nominal values, or zero, with strengths estimated from the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array, Bools
from dynid.estimate.nominal_errors import NominalErrors, nominal_groups
from dynid.estimate.problem import Problem
from dynid.estimate.ridge_regression import parameter_scales
from dynid.regression import Stacked
from dynid.regression.known import known_parameters
from dynid.robot import inertia as ten

_UNINFORMATIVE_ERROR = 0.5  # relative error of a nominal value above which zero is a better target


@dataclass(frozen=True, eq=False)
class FrictionPenalty:
    """Regularisation |rows theta - values|^2 of friction, with rows (k, parameters) and values (k,).

    Attributes:
        rows, values: matrix and right-hand side.
        nominal: target values (parameters,).
        errors: estimated errors of the target values.
        scale: scales of the parameters (parameters,).
        shares: estimated relative error by symbol of friction.
        to_zero: symbols that are regularised toward zero although they have a nominal value.
    """

    rows: Array
    values: Array
    nominal: Array
    errors: NominalErrors
    scale: Array
    shares: Mapping[str, float]
    to_zero: tuple[str, ...]


def friction_penalty(problem: Problem, stacked: Stacked, bodies: Mapping[str, Array]) -> FrictionPenalty:
    """Return the regularisation of friction for equations of unit noise; bodies: nominal pseudo-inertias by name.

    The mean square error of friction of one symbol is v scale^2, with v from the score of the nominal values
    (`nominal_errors`), which minimises the mean square error of the estimate. Nominal friction is often unrealistic:
    if its error is more than half of its value, the target is zero.
    """
    items, base = problem.base.parameters.items, problem.base
    columns, normal = stacked.r @ base.matrix, stacked.r.T @ stacked.r
    seen = np.diag(normal) > 0.0
    effect, noise = (stacked.r.T @ columns)[seen], normal[np.ix_(seen, seen)]

    def tried(to_zero: tuple[str, ...]) -> tuple[NominalErrors, Array, Array]:
        nominal, scale = _nominal_and_scale(problem, stacked, bodies, to_zero)
        # Errors are relative to a value of the robot file, or relative to the torques without one.
        groups = [replace(one, kind="ungiven") if one.kind == "other" and not np.any(nominal[one.half.any(axis=1)])
                  else one for one in nominal_groups(base.parameters, bodies, scale)]
        score = (stacked.r.T @ (stacked.rho - columns @ nominal))[seen]
        return NominalErrors.from_score(groups, effect, score, noise), nominal, scale

    pulled = _regularised_friction(problem)
    errors, nominal, scale = tried(())
    wrong = _off(errors, pulled) > _UNINFORMATIVE_ERROR * np.abs(nominal)
    to_zero = tuple(dict.fromkeys(item.symbol for item, useless, value in zip(items, wrong, nominal, strict=True)
                                  if useless and value != 0.0))
    if to_zero:
        errors, nominal, scale = tried(to_zero)
    off = _off(errors, pulled)
    places = np.flatnonzero(off > 0.0)
    rows = np.eye(len(items))[places] / off[places, None]
    return FrictionPenalty(rows, rows @ nominal, nominal, errors, scale,
                        {items[c].symbol: float(off[c] / scale[c]) for c in places}, to_zero)


def _off(errors: NominalErrors, pulled: Bools) -> Array:
    """Return the estimated RMS error (parameters,) of nominal friction; zero for other parameters."""
    square = sum((variance * np.sum(group.half ** 2, axis=1)
                  for variance, group in zip(errors.variances, errors.groups, strict=True)), np.zeros(len(pulled)))
    return np.where(pulled, np.sqrt(square), 0.0)


def _regularised_friction(problem: Problem) -> Bools:
    """Return the mask (parameters,) of friction parameters without a known value and without their own ridge."""
    known = {*problem.base.known, *known_parameters(problem.regression.prior)}
    return np.array([item.kind.group == "friction" and item.ridge == 0.0 and item.name not in known
                     for item in problem.base.parameters])


def _nominal_and_scale(problem: Problem, stacked: Stacked, bodies: Mapping[str, Array], to_zero: tuple[str, ...]
                       ) -> tuple[Array, Array]:
    """Return nominal values (parameters,), zero except for bodies and regularised friction, and scales (parameters,). A
    scale is the nominal value, or the value that alone would explain the torques."""
    parameters, size = problem.base.parameters, np.linalg.norm(stacked.r @ problem.base.matrix, axis=0)
    given = [item.nominal or 0.0 for item in parameters] if problem.nominal is None else problem.nominal
    nominal = np.array([value if own and item.symbol not in to_zero else 0.0 for item, value, own
                        in zip(parameters, given, _regularised_friction(problem), strict=True)], dtype=float)
    for name, places in parameters.bodies.items():
        nominal[places] = ten.from_pseudo_inertia(bodies[name])
    alone = np.where(size > 0.0, np.linalg.norm(stacked.rho) / np.where(size > 0.0, size, 1.0), 0.0)
    body = np.array([item.body is not None for item in parameters])
    return nominal, np.where(body | (nominal != 0.0), parameter_scales(parameters, nominal), alone)
