"""Method ridge: ridge regression toward a nominal model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.covariance import LinearFit, ScoreNoise
from dynid.estimate.estimate import Estimate
from dynid.estimate.linear import joint_weights, solve, stack_enough
from dynid.estimate.nominal_errors import NominalErrors, at_most_the_difference, leaning, nominal_groups
from dynid.estimate.problem import Problem, method
from dynid.estimate.uncertainty import CovType, OnDemand, Uncertainty
from dynid.model import Parameters
from dynid.regression import BaseParameters, Regression, Stacked
from dynid.robot import inertia as ten

RULES = ("one-standard-error", "minimum")
_LEAST_SCALE = 0.1  # of the typical value of its kind: smallest scale of a parameter with a nominal value near zero
_STRENGTH_DECADES = np.arange(-14.0, 1.01, 0.25)  # candidates, in decades of the largest squared singular value


@method("ridge", "least squares regularised toward the nominal model", needs={"blocks"}, gives={"theta"})
def ridge(problem: Problem, *, strength: float | None = None, rule: str = "one-standard-error") -> Estimate:
    """Return theta that minimises sum w_j^2 |X_j B theta - tau_j|^2 + strength |(theta - nominal) / scale|^2.

    Parameters are scaled by their body: mass by its mass m, first moments by m l, inertias by m l^2, with l the radius
    of gyration about the link frame; all others by their nominal value, or a tenth of the usual value of their kind and
    unit if that is larger. Parameters without a nominal value are regularised toward zero (see `nominal_and_scales`).
    With independent rows, 1 / sqrt(strength) is the relative error of the nominal values. By default the strength is
    chosen by cross-validation: rule "minimum" takes the smallest error, "one-standard-error" the largest strength whose
    loss is within one standard error of it.

    The covariance is the mean square error: noise, and the bias by the estimated errors of the nominal values
    (`nominal_errors`). Parameters that the data do not excite are marked as not identified.
    """
    if rule not in RULES:
        raise ModelError(f"method 'ridge' has no rule '{rule}'; it has {', '.join(RULES)}", code="unknown-rule")
    if strength is not None and not (np.isfinite(strength) and strength > 0):
        raise ModelError(f"the strength of method 'ridge' must be above zero, got {strength}", code="bad-strength")
    (nominal, scale), regression = nominal_and_scales(problem), problem.regression
    weights = joint_weights(regression)
    stacked = stack_enough(regression, weights)
    scaled = RidgeProblem.from_stacked(stacked, problem.base, nominal, scale)
    facts: dict[str, Any] = {}
    if strength is None:
        strengths = scaled.singular[0] ** 2 * 10.0 ** _STRENGTH_DECADES
        strength, facts = _cross_validate(regression, weights, nominal, scale, strengths, rule)
    theta = scaled.theta(np.array([strength]))[0]
    known = solve(regression, stacked)
    solution = replace(known, beta=problem.base.reduce(theta), inverse=scaled.inverse(strength))
    fit = LinearFit.from_solution(problem, solution, weights, strength=float(strength), **facts)
    penalty = scaled.nominal_sensitivity(strength)

    def uncertain(cov_type: CovType | None) -> Uncertainty:
        found = fit.noise(cov_type)
        by_noise = found.covariance(solution)
        errors = _nominal_errors(problem, stacked, found, known.excited, nominal, scale)
        by_nominal = at_most_the_difference(errors.covariance(penalty), by_noise, found.covariance(known),
                                            solution.beta - known.beta)
        covariance = by_noise + by_nominal
        return fit.uncertainty(cov_type, covariance=covariance, nominal_wrong_by=errors.wrong_by(scale),
                               std_from_noise_alone=np.sqrt(np.maximum(np.diag(by_noise), 0.0)).tolist(),
                               notes=leaning(problem.base, np.diag(by_nominal), np.diag(covariance), known.identified))

    return replace(fit.estimate("ridge"), uncertainty_of=OnDemand(uncertain), theta=theta)


@dataclass(frozen=True, eq=False)
class RidgeProblem:
    """Ridge regression in z = (theta - nominal) / scale: min |A z - target|^2 + strength |z|^2, A = U singular V'.

    Attributes:
        base: the base parameters.
        nominal, scale: nominal values and scales (parameters,).
        right: right singular vectors V (parameters, parameters).
        singular: singular values, zero beyond the rank (parameters,).
        target: U'target, zero beyond the rank (parameters,).
    """

    base: BaseParameters
    nominal: Array
    scale: Array
    right: Array
    singular: Array
    target: Array

    @staticmethod
    def from_stacked(stacked: Stacked, base: BaseParameters, nominal: Array, scale: Array) -> RidgeProblem:
        left, singular, right = np.linalg.svd(stacked.r @ (base.matrix * scale))
        padded, target = np.zeros(len(scale)), np.zeros(len(scale))
        padded[:len(singular)] = singular
        target[:len(singular)] = left[:, :len(singular)].T @ (stacked.rho - stacked.r @ base.reduce(nominal))
        return RidgeProblem(base, nominal, scale, right.T, padded, target)

    def theta(self, strengths: Array) -> Array:
        """Return the standard parameters for each strength (strengths, parameters)."""
        along = self.singular * self.target / (self.singular ** 2 + strengths[:, None])
        return self.nominal + along @ self.right.T * self.scale

    @property
    def _to_base(self) -> Array:
        """Return the change (base, parameters) of the base parameters by a unit step in each singular direction."""
        return (self.base.matrix * self.scale) @ self.right

    def inverse(self, strength: float) -> Array:
        """Return the inverse (base, base) of the normal matrix of the base parameters, including the regularisation."""
        half = self._to_base / np.sqrt(self.singular ** 2 + strength)
        return half @ half.T

    def nominal_sensitivity(self, strength: float) -> Array:
        """Return the sensitivity (base, parameters) of the base values to errors of the nominal values."""
        return (self._to_base * (strength / (self.singular ** 2 + strength))) @ (self.right.T / self.scale)


def _nominal_errors(problem: Problem, stacked: Stacked, found: ScoreNoise, excited: Bools, nominal: Array, scale: Array
                    ) -> NominalErrors:
    """Return the estimated errors of nominal values (parameters,) with given scales (parameters,)."""
    columns, normal = stacked.r @ problem.base.matrix, stacked.r.T @ stacked.r
    seen, score_covariance = np.ix_(excited, excited), found.score_covariance
    if found.cov_type == "blocks":  # rank deficient, so only its size is used
        score_covariance = normal * (np.trace(np.linalg.solve(normal[seen], score_covariance[seen])) / excited.sum())
    matrices = {body: ten.pseudo_inertia(nominal[places]) for body, places in problem.base.parameters.bodies.items()}
    groups = nominal_groups(problem.base.parameters, matrices, scale)
    return NominalErrors.from_score(groups, (stacked.r.T @ columns)[excited],
                                    (stacked.r.T @ (stacked.rho - columns @ nominal))[excited], score_covariance[seen])


def nominal_and_scales(problem: Problem) -> tuple[Array, Array]:
    """Return nominal values (parameters,) and scales (parameters,). Parameters without a nominal value, such as
    friction and offsets, are regularised toward zero. Their scale is the value that alone would explain the torques."""
    parameters, given = problem.base.parameters, problem.nominal
    missing = np.array([given is None and item.nominal is None for item in parameters])
    if any(is_missing and item.body is not None for is_missing, item in zip(missing, parameters, strict=True)):
        return problem.need_nominal("ridge"), np.empty(0)  # raises an error that names missing values
    nominal = np.array([item.nominal or 0.0 for item in parameters]) if given is None else given
    scale = parameter_scales(parameters, nominal)
    alone = np.zeros(len(parameters))
    alone[problem.base.independent] = problem.lone_values()
    return nominal, np.where(missing & (alone > 0), alone, scale)


def parameter_scales(parameters: Parameters, nominal: Array) -> Array:
    """Return a positive scale (parameters,) of each parameter, in which its changes are measured."""
    kinds = [(item.symbol, item.unit) for item in parameters]
    scale = np.zeros(len(parameters))
    for kind in set(kinds):
        same = np.array([one == kind for one in kinds])
        usual = np.sqrt(np.mean(nominal[same] ** 2))
        scale[same] = np.maximum(np.abs(nominal[same]), _LEAST_SCALE * usual if usual > 0 else 1.0)
    for places in parameters.bodies.values():
        xx, _, _, yy, _, zz, _, _, _, mass = nominal[places]
        if mass > 0 and xx + yy + zz > 0:
            length = np.sqrt((xx + yy + zz) / (2.0 * mass))
            scale[places] = mass * np.array([length ** 2] * 6 + [length] * 3 + [1.0])
    return scale


def _cross_validate(regression: Regression, weights: Array, nominal: Array, scale: Array, strengths: Array,
                    rule: str) -> tuple[float, dict[str, Any]]:
    """Return the regularisation strength chosen by cross-validation, and the errors of all strengths."""
    seen = np.array(regression.rows) > 0  # joints without measured torque have no equations
    whole = [k for k, block in enumerate(regression.blocks)
             if all(factor.rows > 0 for factor, measured in zip(block.factors, seen, strict=True) if measured)]
    if len(whole) < 3:
        raise NotPossibleError(f"the data have only {len(whole)} blocks of time, too few to choose the strength of "
                               "method 'ridge' by cross-validation; give the strength, or record a longer motion",
                               code="too-few-blocks")
    errors = np.zeros((len(whole), len(strengths)))
    others = regression.without_each()
    for row, k in enumerate(whole):
        rest, left = others[k].stack(weights), regression.only(k).stack(weights, prior=False)
        thetas = RidgeProblem.from_stacked(rest, regression.base, nominal, scale).theta(strengths)
        errors[row] = [left.misfit(regression.base.matrix @ theta) / left.rows for theta in thetas]
    mean = errors.mean(axis=0)
    best = int(np.argmin(mean))
    # Blocks differ in difficulty, so losses are compared block by block.
    loss = errors - errors[:, [best]]
    deviation = loss.std(axis=0, ddof=1) / np.sqrt(len(whole))
    chosen = best
    if rule == "one-standard-error":
        chosen = int(np.flatnonzero(loss.mean(axis=0) <= deviation + 1e-12 * mean[best]).max(initial=best))
    facts = {"rule": rule, "strengths": strengths.tolist(), "left_out_error": np.sqrt(mean).tolist(),
             "left_out_blocks": len(whole)}
    return float(strengths[chosen]), facts
