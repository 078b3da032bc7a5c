"""Least squares inside the set of robots that can exist: pc-ols, pc-wls, pc-ridge, and others to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array, Bools
from dynid.consistency import Consistency, Fit, fit, limits_from_shapes, limits_from_tables
from dynid.consistency.blocks import smat, svec
from dynid.consistency.central import fill
from dynid.consistency.consistency import MARGIN, Form
from dynid.consistency.others import fit_box, fit_log_cholesky, fit_points, fit_reduced, fit_sqp, fit_virtual
from dynid.consistency.prior import (
    STRENGTHS,
    Metric,
    Nominal,
    PriorFit,
    best_strength,
    entropic_fits,
    euclidean_fits,
    euclidean_rows,
    nominal_model,
)
from dynid.errors import ModelError
from dynid.estimate.estimate import Estimate
from dynid.estimate.least_squares import Solution, diagnostics, honest_covariance, joint_weights, solve, stack_enough
from dynid.estimate.problem import Problem, method
from dynid.model import Model
from dynid.regression import Stacked
from dynid.regression.residuals import correlation
from dynid.threads import one_blas_thread

Fill = Literal["auto", "central", "nominal"]
# Share of the misfit (half of it in relative error) that may be given up for links of sensible size: the very best fit
# is often only approached as masses that motion hardly shows grow without end.
_FILL_TOLERANCE = 1e-2
_ROUNDS = 4  # noise and strength of the prior depend on each other: this often they are found in turn
_DOUBT = 2.0  # deviations by which the unconstrained estimate must break a condition before it pins anything
_SINGULAR = 1e-4  # eigenvalue, in kilograms and decimetres, below which an active body stands on the border


def consistency_of(problem: Problem, *, form: Form = "pseudo", margin: float = MARGIN, shapes: bool = False,
                   centres: Mapping[str, Any] | None = None, masses: Sequence[Any] = ()) -> Consistency:
    """The set for a problem. shapes: limit centres of mass by the robot's collision shapes. centres: by link, a
    limit or a table (low, high | points | centre, axes). masses: limits, or tables (bodies, low, high)."""
    found = {}
    if shapes:
        if not isinstance(problem.model, Model):
            raise ModelError("limits from collision shapes need a model made from a robot")
        found = limits_from_shapes(problem.model.robot)
        if not found:
            raise ModelError(f"robot '{problem.model.robot.name}' has no collision primitives to take limits from; "
                             "give boxes under 'centres' instead")
    extra, weights = limits_from_tables(centres or {}, masses)
    return Consistency(problem.model.parameters, form=form, margin=margin, centres={**found, **extra}, masses=weights)


@method("pc-ols", "ordinary least squares among physically consistent robots")
def consistent_ordinary(problem: Problem, *, form: Form = "pseudo", margin: float = MARGIN, shapes: bool = False,
                        centres: Mapping[str, Any] | None = None, masses: Sequence[Any] = (),
                        fill_with: Fill = "auto") -> Estimate:
    """All joints' equations alike, inside the set (Sousa, eq. 3.58)."""
    consistency = consistency_of(problem, form=form, margin=margin, shapes=shapes, centres=centres, masses=masses)
    return consistent_estimate(problem, "pc-ols", np.ones(problem.regression.dof), consistency, fill_with)


@method("pc-wls", "weighted least squares among physically consistent robots")
def consistent_weighted(problem: Problem, *, form: Form = "pseudo", margin: float = MARGIN, shapes: bool = False,
                        centres: Mapping[str, Any] | None = None, masses: Sequence[Any] = (),
                        fill_with: Fill = "auto") -> Estimate:
    """Each joint's equations divided by the deviation of its own residual, inside the set (Sousa, s. 4.5.3)."""
    consistency = consistency_of(problem, form=form, margin=margin, shapes=shapes, centres=centres, masses=masses)
    return consistent_estimate(problem, "pc-wls", joint_weights(problem.regression), consistency, fill_with)


def consistent_estimate(problem: Problem, name: str, weights: Array, consistency: Consistency,
                        fill_with: Fill = "auto") -> Estimate:
    """The constrained fit, what it leaves open filled in, its covariance and diagnostics."""
    with one_blas_thread():
        stacked = stack_enough(problem.regression, weights)
        solution = solve(problem.regression, stacked)
        best = fit(consistency, problem.base, stacked)
        covariance, found = honest_covariance(problem, solution, weights)
        # What the true robot's misfit is above the least, to be expected: less than that says nothing.
        unsure = float(np.sum((stacked.r @ covariance) * stacked.r))
        theta, source = filled(problem, consistency, stacked, best, unsure, fill_with)
        beta = problem.base.matrix @ theta
        shown = Solution(beta, solution.inverse, solution.identified, solution.confounded, solution.condition)
        facts = diagnostics(problem, shown, weights, covariance, found)
        covariance = projected_covariance(problem, consistency, best, stacked, solution.beta, covariance)
        facts |= {
            "consistent": True, "active": active_names(best), "excess_misfit": best.excess,
            "unconstrained_relative_error": problem.regression.relative_error(solution.beta),
            "smallest_eigenvalue": consistency.smallest_eigenvalue(theta), "form": consistency.form,
            "filled_with": source,
            "deviation": "of the unconstrained estimate" if not best.active else
                         "of the unconstrained estimate, projected on the border of the set where conditions are "
                         "active; too small where one is only just active",
        }
        return Estimate(name, problem.model, problem.base, beta, covariance, solution.identified, theta, facts)


def filled(problem: Problem, consistency: Consistency, stacked: Stacked, best: Fit, unsure: float,
           fill_with: Fill = "auto") -> tuple[Array, str]:
    """The best fit with what motion leaves open chosen well (see `fill`), as far as it costs less than `unsure`, the
    weighted squares that noise is worth; and what it was chosen by."""
    nominal = _nominal(problem, consistency, fill_with)
    theta = fill(consistency, stacked.r @ problem.base.matrix, stacked.rho, best.theta,
                 tolerance=max(min(_FILL_TOLERANCE * best.misfit, unsure), 1e-9 * best.misfit, 1e-300),
                 nominal=None if nominal is None else nominal.matrices)
    return theta, "central" if nominal is None else "nominal"


def active_names(best: Fit) -> list[str]:
    """The links and parameters whose conditions hold the fit back, once each, in order."""
    return list(dict.fromkeys(block.body or block.name for block in best.active))


def _nominal(problem: Problem, consistency: Consistency, fill_with: Fill) -> Nominal | None:
    if fill_with not in ("auto", "central", "nominal"):
        raise ModelError(f"what motion leaves open is filled with 'central', 'nominal' or 'auto', not '{fill_with}'")
    if fill_with == "central" or (fill_with == "auto" and consistency.form != "pseudo"):
        return None
    try:
        return nominal_model(consistency, problem.nominal)
    except ModelError:
        if fill_with == "nominal":
            raise
        return None


def projected_covariance(problem: Problem, consistency: Consistency, best: Fit, stacked: Stacked,
                         free: Array, covariance: Array) -> Array:
    """Covariance of the estimate when it may only move along the conditions that hold it back.

    To first order a body on the border keeps its null vectors: v_a' dP v_b = 0. What is left of the unconstrained
    estimate's errors is their projection on these moves, in the metric of the fit. A condition that the unconstrained
    estimate (base,) `free` breaks by no more than its own doubt pins nothing: the truth may well lie inside.
    """
    found = [row for block, z in zip(consistency.blocks, best.duals, strict=True) if block in best.active
             for row in _pinned(block.cone, block.value(best.theta), block.balance, z, block.rows, block.columns,
                                len(best.theta))]
    rows = np.array(found).reshape(-1, len(best.theta))
    rows = rows[~_doubtful(problem, rows, free, covariance)]
    if not len(rows):
        return covariance
    scale = np.linalg.norm(rows, axis=1)
    pinned = rows / np.where(scale > 0, scale, 1.0)[:, None]
    _, values, right = np.linalg.svd(pinned)
    rank = int(np.sum(values > 1e-9 * values[0]))
    moves = problem.base.matrix @ right[rank:].T
    u, sizes, _ = np.linalg.svd(stacked.r @ moves, full_matrices=False)
    u = u[:, sizes > 1e-10 * sizes[0]]
    keep = np.linalg.lstsq(stacked.r, u @ (u.T @ stacked.r), rcond=1e-12)[0]
    return keep @ covariance @ keep.T


def _doubtful(problem: Problem, rows: Array, free: Array, covariance: Array) -> Bools:
    """Whether the unconstrained estimate sees the conditions rows (k, parameters) theta >= 0, and breaks each by no
    more than noise would (k,)."""
    seen = np.linalg.lstsq(problem.base.matrix.T, rows.T, rcond=None)[0].T
    # Not a function of the base parameters: the data alone say nothing of it.
    other = np.linalg.norm(seen @ problem.base.matrix - rows, axis=1) > 1e-9 * np.linalg.norm(rows, axis=1)
    spread = np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", seen, covariance, seen), 0.0))
    return ~other & (np.abs(seen @ free) < _DOUBT * spread)


def _pinned(cone: str, value: Array, balance: Array, z: Array, rows: Array, columns: Any, width: int) -> list[Array]:
    """Rows (width,) of the linear conditions that an active cone puts on moves of theta."""
    found = []
    if cone == "psd":
        matrix = smat(value * balance)
        values, vectors = np.linalg.eigh(matrix)
        null = vectors[:, values < max(_SINGULAR * np.trace(matrix), values[0] * (1 + 1e-9))]
        for a in range(null.shape[1]):
            for b in range(a, null.shape[1]):
                pair = np.outer(null[:, a], null[:, b])
                found.append((svec(pair + pair.T) * balance) @ rows)
    elif cone == "soc":
        found.append(z @ rows)
    else:
        found += [row for row, multiplier in zip(rows, z, strict=True) if abs(multiplier) > 1e-6 * np.abs(z).max()]
    full = []
    for row in found:
        wide = np.zeros(width)
        wide[columns] = row
        full.append(wide)
    return full


@method("pc-ridge", "weighted least squares among consistent robots, pulled to a nominal model")
def consistent_ridge(problem: Problem, *, metric: Metric = "entropic", strength: float | None = None,
                     margin: float = MARGIN, shapes: bool = False, centres: Mapping[str, Any] | None = None,
                     masses: Sequence[Any] = ()) -> Estimate:
    """Pulled to the robot's own file (or `nominal` of the problem) as strongly as the data's evidence asks for.

    metric: "entropic" (log-det divergence of pseudo-inertias) or "euclidean". strength: by default the one of greatest
    evidence, where joint j counts as many rows as its residuals' correlation leaves independent, and its noise is what
    no consistent robot explains; noise and strength are found in turn.
    """
    if metric not in ("entropic", "euclidean"):
        raise ModelError(f"the metric of pc-ridge is 'entropic' or 'euclidean', not '{metric}'")
    if strength is not None and not (np.isfinite(strength) and strength > 0):
        raise ModelError(f"the strength of pc-ridge must be a number above zero, got {strength}")
    if not problem.samples:
        raise ModelError("method 'pc-ridge' weighs the prior against the data by how residuals correlate in time, and "
                         "cannot work from a saved fold alone")
    with one_blas_thread():
        consistency = consistency_of(problem, margin=margin, shapes=shapes, centres=centres, masses=masses)
        nominal = nominal_model(consistency, problem.nominal)
        solution = solve(problem.regression, problem.regression.stack(joint_weights(problem.regression)))
        # The first noise is that of the consistent fit with hardly any prior.
        weights = joint_weights(problem.regression)
        fit(consistency, problem.base, problem.regression.stack(weights))  # refuses limits that contradict the data
        first = problem.regression.stack(weights)
        chosen = best_strength(_prior_fits(problem, consistency, nominal, metric, first, min(STRENGTHS)))
        effective = np.array(problem.regression.rows, dtype=float)
        for _ in range(_ROUNDS):
            deviation, effective = _noise(problem, chosen.theta)
            rows = np.maximum(np.array(problem.regression.rows, dtype=float), 1.0)
            stacked = problem.regression.stack(np.sqrt(effective / rows) / deviation)
            before = chosen
            chosen = best_strength(_prior_fits(problem, consistency, nominal, metric, stacked, strength))
            if chosen.strength == before.strength:
                break
        theta, on_border = chosen.theta, False
        if metric == "euclidean":
            pulled, values = euclidean_rows(consistency, nominal)
            size = np.sqrt(chosen.strength)
            best = fit(consistency, problem.base, stacked, prior=(size * pulled, size * values))
            theta, on_border = best.theta, bool(best.active)
        beta = problem.base.matrix @ theta
        spread = np.linalg.pinv(chosen.information, rcond=1e-14, hermitian=True)
        covariance = problem.base.matrix @ spread @ problem.base.matrix.T
        shown = Solution(beta, solution.inverse, solution.identified, solution.confounded, solution.condition)
        facts = diagnostics(problem, shown, weights, covariance, None)
        facts |= {
            "consistent": True, "metric": metric, "strength": chosen.strength,
            "strength_from": "given" if strength else "evidence",
            "effective_rows_per_joint": effective.tolist(), "nominal_thickened": list(nominal.thickened),
            "nominal_relative_error": problem.regression.relative_error(problem.base.matrix @ nominal.theta),
            "unconstrained_relative_error": problem.regression.relative_error(solution.beta),
            "smallest_eigenvalue": consistency.smallest_eigenvalue(theta),
            "deviation": "of the posterior: effective rows of data and the prior" + (
                "; the set's border, where it is active, is not in it" if on_border else ""),
        }
        return Estimate("pc-ridge", problem.model, problem.base, beta, covariance, solution.identified, theta, facts)


def _prior_fits(problem: Problem, consistency: Consistency, nominal: Nominal, metric: Metric, stacked: Stacked,
                strength: float | None) -> Iterable[PriorFit]:
    """The fits of all strengths, or of one alone."""
    matrix = stacked.r @ problem.base.matrix
    strengths = STRENGTHS if strength is None else (strength,)
    if metric == "entropic":
        return entropic_fits(consistency, matrix, stacked.rho, nominal, strengths)
    return euclidean_fits(matrix, stacked.rho, *euclidean_rows(consistency, nominal), strengths)


def _noise(problem: Problem, theta: Array) -> tuple[Array, Array]:
    """Deviation (dof,) of the torques about a robot, and how many independent rows (dof,) the log is worth."""
    beta = problem.base.matrix @ theta
    rows = np.maximum(np.array(problem.regression.rows, dtype=float), 1.0)
    deviation = np.sqrt(problem.regression.misfits(beta) / rows)
    deviation = np.maximum(deviation, max(1e-9 * float(deviation.max()), 1e-12))
    found = correlation(problem.model, problem.samples, problem.base, beta, threads=problem.threads)
    return deviation, found.effective / np.maximum(found.rows, 1.0) * rows


# -- other ways, for comparison -------------------------------------------------------------------
_OTHERS: dict[str, tuple[Callable[..., Fit], str]] = {
    "pc-points": (fit_points, "point masses in a box by quadratic programming"),
    "pc-sqp": (fit_sqp, "sequential quadratic programming with eigenvalue or minor constraints"),
    "pc-virtual": (fit_virtual, "squared virtual parameters by nonlinear least squares"),
    "pc-logchol": (fit_log_cholesky, "log-Cholesky coordinates by nonlinear least squares"),
    "pc-reduce": (fit_reduced, "parameters left out until least squares is possible"),
    "pc-box": (fit_box, "limits on each parameter alone"),
}


def _other(name: str, problem: Problem, options: Mapping[str, Any]) -> Estimate:
    """Another way behind the same call, with the weights of wls; its covariance is the unconstrained one."""
    weights = joint_weights(problem.regression)
    stacked = stack_enough(problem.regression, weights)
    solution = solve(problem.regression, stacked)
    consistency = consistency_of(problem)
    if name in ("pc-sqp", "pc-virtual", "pc-logchol") and problem.nominal is not None:
        options = {"begin": _inside(consistency, problem.nominal), **options}
    found = _OTHERS[name][0](consistency, problem.base, stacked, **options)
    covariance, correlated = honest_covariance(problem, solution, weights)
    shown = Solution(found.beta, solution.inverse, solution.identified, solution.confounded, solution.condition)
    facts = diagnostics(problem, shown, weights, covariance, correlated)
    wrong = consistency.violations(found.theta, 1e-6)
    facts |= {"consistent": not wrong, "violations": [violation.message for violation in wrong],
              "smallest_eigenvalue": found.smallest_eigenvalue, "excess_misfit": found.excess,
              "deviation": "of the unconstrained estimate"}
    return Estimate(name, problem.model, problem.base, found.beta, covariance, solution.identified, found.theta, facts)


def _inside(consistency: Consistency, values: Array) -> Array | None:
    """Nominal values as the start of a search, where they are strictly possible."""
    return values if consistency.slack(values) > 0 else None


@method("pc-points", _OTHERS["pc-points"][1])
def points(problem: Problem, *, count: int = 3) -> Estimate:
    """Sousa, eq. 2.74-2.76. count: points along each edge of a link's box."""
    return _other("pc-points", problem, {"count": count})


@method("pc-sqp", _OTHERS["pc-sqp"][1])
def sequential(problem: Problem, *, constraint: Literal["sylvester", "eigenvalues"] = "eigenvalues",
               iterations: int = 300) -> Estimate:
    """Mata et al. 2005 (Sousa, eq. 2.69)."""
    return _other("pc-sqp", problem, {"constraint": constraint, "iterations": iterations})


@method("pc-virtual", _OTHERS["pc-virtual"][1])
def squared_virtual(problem: Problem, *, iterations: int = 200) -> Estimate:
    """Ting et al. 2006 (Sousa, eq. 2.70-2.73)."""
    return _other("pc-virtual", problem, {"iterations": iterations})


@method("pc-logchol", _OTHERS["pc-logchol"][1])
def log_cholesky(problem: Problem, *, iterations: int = 200) -> Estimate:
    """Rucker and Wensing 2022."""
    return _other("pc-logchol", problem, {"iterations": iterations})


@method("pc-reduce", _OTHERS["pc-reduce"][1])
def reduced(problem: Problem, *, every: int = 1) -> Estimate:
    """Diaz-Rodriguez et al. 2010 (Sousa, s. 6.4). every: possible is asked after each so many removals."""
    return _other("pc-reduce", problem, {"every": every})


@method("pc-box", _OTHERS["pc-box"][1])
def boxed(problem: Problem) -> Estimate:
    """Lomakin and Deutscher, s. VI: masses, diagonal inertias and friction not negative."""
    return _other("pc-box", problem, {})
