"""Essential parameters: the base parameters that matter for the torques of this motion (Ardiani, s. 1.3.2.2).

A `View` of a fit gives, for any kept set of parameters, their values, their standard errors, and the cost of removing
the others. Rules select the next parameter to remove (Ardiani, s. 1.3.2.2): the parameter of largest relative standard
error while it is above a threshold ("standard-error") or a multiple of the smallest ("ratio", Gautier et al. 2013), or
as long as an F-test allows ("f-test", eq. 1.35); all at once those above ten times the smallest ("smallest", Khalil and
Dombre 2002); and those with little torque, by the diagonal of R of the columns times their values ("r"), or by their
singular values ("singular"), both of Pham and Gautier 1991.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dynid.arrays import Array, Ints
from dynid.consistency.consistency import LENGTH
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.block_cross_validation import masked
from dynid.estimate.covariance import noise
from dynid.estimate.estimate import Estimate
from dynid.estimate.least_squares import linear_estimate
from dynid.estimate.linear import joint_weights, solve, stack_enough
from dynid.estimate.problem import Problem, find_method, identify
from dynid.lapack import solve_triangular
from dynid.output_fields import array_of, output_fields, record
from dynid.plain import finite
from dynid.regression import Stacked, fold, prepared_equations

ROWS = ("effective", "all")
_EXACT_METHODS = ("ols", "wls")  # methods that solve every subset of parameters from the compressed regression
_MAX_REFITS = 5  # largest number of fits of other methods


_REMOVED_PARAMETER = record("RemovedParameter", name=str, rel_std=float | None, f=float | None)


@dataclass(frozen=True, eq=False)
class Essential:
    """Essential base parameters, and their estimate.

    Attributes:
        kept: the essential parameters.
        removed: the others, in the order of removal.
        estimate, problem: estimate of the kept parameters, and its problem.
        error_before, error_after: relative torque errors with all and with the kept parameters, percent.
        full: the estimate of all parameters.
        criterion, threshold: rule of the selection.
        unseen: relative errors, percent, in cross-validation with all and with the kept parameters, or None.
    """

    kept: tuple[str, ...]
    removed: tuple[Removal, ...]
    estimate: Estimate
    error_before: float
    error_after: float
    problem: Problem
    full: Estimate
    criterion: str
    threshold: float
    unseen: tuple[float, float] | None = None

    def toward(self, nominal: Array) -> Array:
        """Return full parameters (parameters,) with the essential values, nearest to a nominal model (parameters,).

        The null space of the essential parameters, which includes the removed ones, is free. Within this space, the
        parameters nearest to a nominal model, such as that of drawings, are chosen (Gautier et al. 2013; Sousa, s.
        2.6.6). Distances are in kilograms and decimetres. The result need not be physically consistent.
        """
        base = self.full.base
        rows = [base.names.index(name) for name in self.estimate.names]
        scale = np.ones(len(base.parameters))
        for columns in base.parameters.bodies.values():
            scale[columns] = [LENGTH ** 2] * 6 + [LENGTH] * 3 + [1.0]
        matrix = base.matrix[rows]
        missing = self.estimate.values - matrix @ nominal
        return np.asarray(nominal + scale * (np.linalg.pinv(matrix * scale) @ missing))

    @output_fields(criterion=str, threshold=float, kept=list[str], removed=array_of(_REMOVED_PARAMETER),
                   relative_error_before=float | None, relative_error=float | None, unseen_before=float | None,
                   unseen=float | None)
    def to_dict(self) -> dict[str, Any]:
        """Return the object as plain data for JSON; numbers that are not finite are None."""
        return {"criterion": self.criterion, "threshold": self.threshold, "kept": list(self.kept),
                "removed": [{"name": one.name, "rel_std": finite(one.relative_std), "f": finite(one.statistic)}
                            for one in self.removed],
                "relative_error_before": self.error_before, "relative_error": self.error_after,
                "unseen_before": None if self.unseen is None else self.unseen[0],
                "unseen": None if self.unseen is None else self.unseen[1]}


@dataclass(frozen=True)
class _Rule:
    """Rule for the selection of essential parameters, with the arguments of `essential`."""

    criterion: str
    threshold: float
    alpha: float
    rows: str

    def __post_init__(self) -> None:
        if self.criterion not in RULES:
            raise ModelError(f"essential parameters are selected by {', '.join(RULES)}, not by '{self.criterion}'",
                             code="unknown-criterion")
        if self.rows not in ROWS:
            raise ModelError(f"the F-test uses {' or '.join(ROWS)} rows, not '{self.rows}'", code="unknown-rows")
        if not (self.threshold > 0 and 0 < self.alpha < 1):
            raise ModelError(f"a threshold must be above zero and alpha between 0 and 1, got {self.threshold} and "
                             f"{self.alpha}", code="bad-threshold")

    def allows(self, gone: int, statistic: float, free: float) -> bool:
        """Return whether an F-test with `free` degrees of freedom allows the removal of `gone` parameters."""
        from scipy.special import fdtri

        return self.criterion != "f-test" or statistic < float(fdtri(gone, min(free, 1e9), 1.0 - self.alpha))

    def facts(self, removed: list[Removal], before: float) -> dict[str, Any]:
        """Return facts about the removal for the diagnostics of an estimate."""
        return {"criterion": self.criterion, "removed": [one.name for one in removed], "relative_error_before": before}


def essential(problem: Problem, *, criterion: str = "standard-error", threshold: float | None = None,
              alpha: float = 0.05, rows: str = "effective", weights: Array | None = None, method: str = "wls",
              options: Mapping[str, Any] | None = None, unseen: bool = False) -> Essential:
    """Remove base parameters that are not significant, and estimate the others again.

    Args:
        problem: the identification problem.
        criterion: "standard-error" removes the parameter of largest relative standard error, one at a time, while it
            exceeds the threshold (30 percent); "ratio" while it exceeds 30 times the smallest; "f-test" while the
            reduced model is not worse at significance alpha, F = (|e_r|^2 - |e|^2) / |e|^2 (r - b) / (b - b_r)
            (Ardiani, eq. 1.35); "smallest" removes all above 10 times the smallest at once; "r" and "singular"
            remove those whose independent torque is below 1 percent of the largest.
        threshold: threshold of the criterion, if not the default above.
        alpha: significance level of the F-test.
        rows: number r of rows in the F-test: "effective" or "all".
        weights: weights of the joints (dof,). Default: as in `wls`.
        method: "wls" and "ols" are solved again from the compressed regression at every step, with the noise of the
            full model. For other methods the covariance predicts the reduced fit, and the method is run again until no
            further parameter is removed. Shapes of friction are found with all parameters and then fixed.
        options: options of the method.
        unseen: whether to cross-validate choice and fit too, for least squares.
    """
    rule = _Rule(criterion, THRESHOLDS.get(criterion, 1.0) if threshold is None else threshold, alpha, rows)
    chosen = find_method(method)
    if "theta" in chosen.gives:
        raise ModelError(f"method '{method}' needs complete inertias and "
                         "cannot drop base parameters", "use 'wls', 'iv' or another method of base parameters",
                         code="needs-all-parameters")
    if method in _EXACT_METHODS:
        found = _least_squares(problem, rule, method, weights, {})
    elif "shape" in chosen.gives:
        first = identify(problem, method=method, **dict(options or {}))
        problem = _with_shape(problem, first)
        found = _least_squares(problem, rule, method, weights, {"shape": first.diagnostics.get("shape")})
    else:
        return _refitted(problem, rule, method, dict(options or {}))
    if not unseen or len([one for one in problem.regression.blocks if one.rows]) < 3:
        return found
    return replace(found, unseen=_unseen(problem, rule, method, weights))


def _least_squares(problem: Problem, rule: _Rule, name: str, weights: Array | None,
                   facts: Mapping[str, Any]) -> Essential:
    """Remove parameters with the compressed regression; the final estimate has standard errors of its own."""
    regression, names = problem.regression, problem.base.names
    if weights is None and name != "ols":
        weights = joint_weights(regression)
    stacked = stack_enough(regression, weights)
    full = solve(regression, stacked)
    noisy = noise(problem, full, weights)
    first = np.flatnonzero(full.excited).astype(np.int64)
    count = float(sum(regression.rows))
    if noisy.correlation is not None and rule.rows == "effective":
        share = noisy.correlation.effective / np.maximum(noisy.correlation.rows, 1.0)
        count = float(np.sum(share * np.array(regression.rows)))
    free = count - len(first)
    if rule.criterion == "f-test" and free < 1:
        raise NotPossibleError(f"{count:.0f} {rule.rows} rows are too few for an F-test of {len(first)} base "
                               "parameters; record a longer motion", code="too-few-rows")
    view = FoldedView(stacked, noisy.score_covariance, stacked.select(first).rest, free)
    kept, more = walked(view, first, names, rule, stacked, free)
    removed = [*(Removal(names[c], np.inf, 0.0) for c in np.flatnonzero(~full.excited)), *more]
    reduced = replace(problem, regression=regression.select(kept))
    before = linear_estimate(problem, name, weights, **facts)
    error = before.diagnostics.relative_error
    estimate = linear_estimate(reduced, name, weights, essential=rule.facts(removed, error), **facts)
    return Essential(estimate.names, tuple(removed), estimate, error, estimate.diagnostics.relative_error, reduced,
                     before, rule.criterion, rule.threshold)


def _with_shape(problem: Problem, found: Estimate) -> Problem:
    """Return the problem for the model whose shape parameters a method has estimated."""
    problem = problem.whole()
    regression = fold(prepared_equations(found.model, problem.data, found.base), blocks=len(problem.regression.blocks),
                      threads=problem.threads)
    prior = problem.regression.prior if len(found.base) == len(problem.base) else None
    return replace(problem, model=found.model, regression=replace(regression, prior=prior))


def _refitted(problem: Problem, rule: _Rule, name: str, options: dict[str, Any]) -> Essential:
    """Remove parameters by the covariance of the estimate, and repeat the estimation until none is removed."""
    before = estimate = identify(problem, method=name, **options)
    removed, reduced = list[Removal](), problem
    for _ in range(_MAX_REFITS):
        size = np.diag(estimate.covariance)
        first = np.flatnonzero((size > 0) & np.isfinite(size)).astype(np.int64)
        stacked = stack_enough(reduced.regression, joint_weights(reduced.regression))
        kept, more = walked(NormalView(estimate.values, estimate.covariance), first, reduced.base.names, rule, stacked,
                            estimate.uncertainty.degrees_of_freedom)
        unknown = [Removal(reduced.base.names[c], np.inf, 0.0) for c in range(len(size)) if c not in set(first)]
        if not more and not unknown:
            break
        removed += [*unknown, *more]
        reduced = replace(reduced, regression=reduced.regression.select(kept))
        estimate = identify(reduced, method=name, **options)
        if rule.criterion not in ("standard-error", "ratio"):
            break
    error = before.diagnostics.relative_error
    estimate = replace(estimate, diagnostics=estimate.diagnostics.with_facts({"essential": rule.facts(removed, error)}))
    return Essential(estimate.names, tuple(removed), estimate, error, estimate.diagnostics.relative_error, reduced,
                     before, rule.criterion, rule.threshold)


def _unseen(problem: Problem, rule: _Rule, name: str, weights: Array | None) -> tuple[float, float]:
    """Return cross-validation errors, percent, with all parameters and with those selected without each block."""
    regression, errors = problem.regression, list[tuple[float, float]]()
    others = regression.without_each()
    for k, block in enumerate(regression.blocks):
        if not block.rows:
            continue
        data = masked(problem, block, inside=False) if problem.data else ()
        less = replace(problem, regression=others[k], data=data, dataset=None)
        found = _least_squares(less, rule, name, weights, {})
        values = np.zeros(len(problem.base))
        values[np.isin(problem.base.independent, found.estimate.base.independent)] = found.estimate.values
        if any(factor.power > 0 for factor in block.factors):
            own = regression.only(k)
            errors.append((own.relative_error(found.full.values), own.relative_error(values)))
    if not errors:
        raise NotPossibleError("no block of time has a torque to test on, because all torques are zero; check the "
                               "torque columns")
    before, after = np.mean(errors, axis=0)
    return float(before), float(after)


THRESHOLDS = {"standard-error": 30.0, "ratio": 30.0, "smallest": 10.0, "r": 1.0, "singular": 1.0}
RULES = ("standard-error", "ratio", "f-test", "smallest", "r", "singular")


@dataclass(frozen=True)
class Removal:
    """A removed base parameter, with its relative standard error in percent (infinite if it was not excited), and the
    F-statistic that compares the full model with the model after this removal."""

    name: str
    relative_std: float
    statistic: float


class KeptParameters(NamedTuple):
    """Values and standard errors (kept,) of a subset of parameters, and the cost of removing the others, a sum of
    squares in units of the noise variance."""

    values: Array
    std: Array
    cost: float

    @property
    def relative(self) -> Array:
        """Relative standard errors (kept,) of the kept parameters, percent."""
        size = np.abs(self.values)
        return np.where(size > 0, 100.0 * self.std / np.where(size > 0, size, 1.0), np.inf)


View = Callable[[Ints], KeptParameters]  # a fit with only some of its parameters, given by their indices


@dataclass(frozen=True, eq=False)
class FoldedView:
    """Function that solves least squares with any subset of columns, with the noise of the full model."""

    stacked: Stacked
    score_covariance: Array
    rest: float
    free: float

    def __call__(self, kept: Ints) -> KeptParameters:
        part = self.stacked.select(kept)
        scale = np.linalg.norm(part.r, axis=0)
        half = solve_triangular(part.r / scale, np.eye(len(kept))) / scale[:, None]
        inverse = half @ half.T
        std = np.sqrt(np.diag(inverse @ self.score_covariance[np.ix_(kept, kept)] @ inverse))
        cost = (part.rest - self.rest) / self.rest * self.free if self.rest > 0 else np.inf
        return KeptParameters(half @ part.rho, std, float(cost))


@dataclass(frozen=True, eq=False)
class NormalView:
    """Estimate of some parameters with the others fixed at zero, by conditioning; the cost is Wald's statistic."""

    values: Array
    covariance: Array

    def __call__(self, kept: Ints) -> KeptParameters:
        gone = np.setdiff1d(np.arange(len(self.values)), kept)
        gone = gone[np.diag(self.covariance)[gone] > 0]  # others were not excited
        whole, both = self.covariance[np.ix_(kept, kept)], self.covariance[np.ix_(kept, gone)]
        scale = np.sqrt(np.diag(self.covariance)[gone])
        share = np.linalg.solve(self.covariance[np.ix_(gone, gone)] / np.outer(scale, scale),
                                np.column_stack([self.values[gone] / scale, both.T / scale[:, None]]))
        values = self.values[kept] - both / scale @ share[:, 0]
        variance = np.diag(whole) - np.einsum("kg,gk->k", both / scale, share[:, 1:])
        cost = float(self.values[gone] / scale @ share[:, 0])
        return KeptParameters(values, np.sqrt(np.maximum(variance, 0.0)), cost)


Choose = Callable[[Ints, Array], int | None]  # kept ones, relative standard errors -> next to remove


def walked(view: View, first: Ints, names: Sequence[str], rule: _Rule, stacked: Stacked,
           free: float) -> tuple[Ints, list[Removal]]:
    """Remove parameters by a rule; return the indices of the kept parameters, ascending, and the removals in order.

    Args:
        view: the fit.
        first: indices of the parameters to begin with (k,).
        names: names of all base parameters.
        rule: rule of the removal.
        stacked: equations of all joints.
        free: degrees of freedom of an F-test.
    """
    kept, removed, choose = first, list[Removal](), chooser(rule.criterion, rule.threshold, view, first, stacked)
    while len(kept) > 1:
        relative = view(kept).relative
        worst = choose(kept, relative)
        if worst is None:
            break
        place = int(np.flatnonzero(kept == worst)[0])
        fewer = np.delete(kept, place)
        gone = len(first) - len(fewer)
        statistic = view(fewer).cost / gone
        if not rule.allows(gone, statistic, free):
            break
        kept = fewer
        removed.append(Removal(names[worst], float(relative[place]), float(statistic)))
    return kept, removed


def chooser(rule: str, threshold: float, view: View, first: Ints, stacked: Stacked) -> Choose:
    """Return a function that selects the next parameter to remove by a rule; it returns None at the end."""
    if rule in ("standard-error", "ratio", "f-test"):
        def largest(kept: Ints, relative: Array) -> int | None:
            worst = int(np.argmax(relative))
            limit = {"standard-error": threshold, "ratio": threshold * float(relative.min()), "f-test": -1.0}[rule]
            return int(kept[worst]) if relative[worst] > limit else None
        return largest
    if rule == "smallest":
        relative = view(first).relative
        order = np.argsort(-relative)
        going = [int(first[k]) for k in order if relative[k] > threshold * relative.min()]
    else:
        going = _little_torque(rule, 0.01 * threshold, first, stacked, view(first).values)
    left = iter(going)
    return lambda kept, relative: next(left, None)


def _little_torque(rule: str, share: float, first: Ints, stacked: Stacked, values: Array) -> list[int]:
    """Return the parameters whose independent torque is below a share of the largest, smallest first."""
    from scipy.linalg import qr

    columns = stacked.r[:, first] * values  # torques of each parameter, in units of the noise
    if rule == "r":
        triangle, order = qr(columns, mode="economic", pivoting=True)[1:]
        size = np.abs(np.diag(triangle))
        return [int(first[k]) for k in order[size < share * size[0]][::-1]]
    _, singular, right = np.linalg.svd(columns, full_matrices=False)
    many = max(int(np.sum(singular >= share * singular[0])), 1)
    # Columns that best span the large singular directions (Golub and Van Loan, subset selection).
    order = qr(right[:many], mode="economic", pivoting=True)[2]
    return [int(first[k]) for k in order[many:][::-1]]
