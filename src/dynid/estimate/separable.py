"""Method sls: separable least squares, which estimates nonlinear shape parameters of friction and linear parameters.

The torques are Y(s) theta with a few shape parameters s. For given s the best theta is linear least squares, so only
s is searched (variable projection; Ardiani, eq. 2.23-2.26):

- A grid: one regression with the columns for many values of s. A joint's shape affects only its own rows, so each
  combination is evaluated from its factor; a shared shape from the factors of all joints.
- Gauss-Newton: a regression on [Y(s), d(Y(s) theta)/d log s]. The coefficients of the last columns are the step, and
  their covariance is that of the shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from dynid.arrays import Array, Ints
from dynid.datasets.identifiable import DataFacts, bind_to_data
from dynid.errors import ModelError
from dynid.estimate.covariance import LinearFit, ScoreNoise, naive_covariance, noise
from dynid.estimate.estimate import Estimate
from dynid.estimate.linear import Solution, joint_weights, solve, stack_enough
from dynid.estimate.problem import Problem, method
from dynid.estimate.shape_models import Assembled, ShapeDependence, Slopes
from dynid.estimate.uncertainty import OnDemand
from dynid.findings import Note
from dynid.lapack import solve_triangular
from dynid.model import LinearModel, Parameters, complete
from dynid.recording import Samples
from dynid.recording.excerpts import excerpt
from dynid.regression import BaseParameters, Regression, Stacked, TorqueEquations, fold
from dynid.regression.equations import torques_along

_GRID_POINTS = 24  # values of a shape parameter on the grid
_FEW_POINTS = 9  # values of each shape parameter on the grid, if a column depends on two of them
_ENOUGH_ROWS = 40000  # rows after decimation for the grid search; all rows are used afterwards
_GRID_STARTS = 3  # grid minima from which the search continues
_LARGEST_STEP = 0.5  # of log s, in one step of Gauss-Newton
_SMALLEST_STEP = 1e-10  # of log s: smaller steps are not taken
_SIGNIFICANT_STD = 2.0  # standard errors from zero at which a friction term is significant
_DEPENDENT_COLUMN = 1e-8  # independent share of a column below which it is a rounding error


@method("sls", "separable least squares, including shape parameters of friction", needs={"data", "shape", "torques"},
        gives={"shape"})
def separable_least_squares(problem: Problem, *, span: float = 30.0, iterations: int = 30,
                            tolerance: float = 1e-3) -> Estimate:
    """Return the weighted least-squares estimate with estimation of the free shape parameters of the model.

    span: shape parameters are searched within a factor `span` of their current value, first on a grid joint by joint,
    then jointly with weights as in `wls`. The search ends when none changes by more than `tolerance` of its standard
    error. The estimate's model has the estimated shape; diagnostics["shape"] has its values and standard errors, and
    all standard errors include the uncertainty of the shape. If all coefficients of the terms with a shape are within
    two standard errors of zero, its standard error is infinite.
    """
    found = separable_fit(problem, span=span, iterations=iterations, tolerance=tolerance)
    return replace(found.free.estimate("sls"), uncertainty_of=OnDemand.known(
        found.free.uncertainty(None, covariance=found.covariance)))


@dataclass(frozen=True, eq=False)
class SeparableFit:
    """A fit with the shape that was found.

    Attributes:
        free: least squares at that shape; its facts state the shape parameters.
        weights: (dof,) of the joints.
        regression: the equations at that shape.
        covariance: (base, base), with the uncertainty of the shape included.
        noise: noise of the equations that gives this covariance of `free`.
    """

    free: LinearFit
    weights: Array
    regression: Regression
    covariance: Array
    noise: ScoreNoise


def separable_fit(problem: Problem, *, span: float, iterations: int, tolerance: float,
                  inside: Inside | None = None) -> SeparableFit:
    """Find the shape parameters of friction, and fit all other parameters for this shape.

    inside: function that returns the best base parameters (base,) under constraints; None for plain least squares.
    Other arguments are those of `separable_least_squares`.
    """
    model: Any = problem.model
    name = "sls" if inside is None else "pc-sls"
    if not complete(model).shape_names:
        raise ModelError(f"method '{name}' needs a model with free shape parameters, e.g. Stribeck friction with "
                         "free = ['delta', 'alpha']", "add --friction none --set "
                         "'model.terms=[{kind=\"stribeck\", free=[\"delta\", \"alpha\"]}]'", "no-free-shapes")
    if not span > 1:
        raise ModelError(f"the span of method '{name}' must be above one, got {span}", code="bad-span")
    dependence = ShapeDependence.from_model(model)
    center = np.log(model.shape)
    limits = center - np.log(span), center + np.log(span)
    log_shape = _search(problem, dependence, center, np.log(span))
    base = _base(problem.base, dependence, np.exp(log_shape), DataFacts.from_samples(problem.data))
    best, steps = _descend(Descent(problem, dependence, base, inside), log_shape, limits, iterations, tolerance)

    b, shape = len(base), np.exp(best.log_shape)
    whole = replace(problem, model=best.model, regression=best.regression, data=_without_known(problem))
    found = noise(whole, best.solution, best.weights)
    covariance = found.covariance(best.solution)
    naive = naive_covariance(best.regression, best.solution, best.weights)[:b, :b]
    plain = replace(problem, model=model.with_shape(shape), regression=best.plain)
    solution = replace(best.plain_solution, identified=best.plain_solution.identified & best.solution.identified[:b])
    significant = np.abs(best.beta) > _SIGNIFICANT_STD * np.sqrt(np.maximum(np.diag(covariance)[:b], 0.0))
    shaped = np.array([np.isin(base.independent, dependence.columns[varies]) for varies in dependence.varies])
    known = best.solution.identified[b:] & np.any(shaped & significant & solution.identified, axis=1)
    deviations = np.where(known, shape * np.sqrt(np.maximum(np.diag(covariance)[b:], 0.0)), np.inf)
    at_limit = (best.log_shape <= limits[0] + 1e-6) | (best.log_shape >= limits[1] - 1e-6)
    found_shape = {name: {"value": float(shape[i]), "std": float(deviations[i]), "at_limit": bool(at_limit[i])}
                   for i, name in enumerate(model.shape_names)}
    untold = [name for name, one in found_shape.items() if one["at_limit"] or not np.isfinite(one["std"])]
    # The diagnostics contain standard errors of the shape, so the covariance is already computed.
    free = LinearFit(plain, solution, best.weights, lambda cov_type: found, lambda found: naive,
                     {"shape": found_shape, "iterations": steps, "converged": steps < iterations,
                      "notes": _undetermined_shape_notes(untold)})
    normal = np.linalg.pinv(solution.inverse, hermitian=True, rcond=1e-15)
    return SeparableFit(free, best.weights, best.plain, covariance[:b, :b],
                        replace(found, score_covariance=normal @ covariance[:b, :b] @ normal))


def _undetermined_shape_notes(names: Sequence[str]) -> tuple[Note, ...]:
    """Return a note on shape parameters that the data do not determine, if there are any."""
    if not names:
        return ()
    text = (f"the data do not determine the friction shape {', '.join(names)}: the coefficient of its term is within "
            "two standard errors of zero, or the shape is at an end of the searched range; remove the term, or record "
            "slower or faster motion")
    return (Note("shape-unresolved", text),)


def _base(base: BaseParameters, dependence: ShapeDependence, shape: Array, facts: DataFacts) -> BaseParameters:
    """Return base parameters valid for every shape: those given, unless they group columns that depend on the shape."""
    varying = dependence.varying
    kept = np.isin(varying, base.independent)
    alone = np.count_nonzero(base.matrix[:, varying], axis=0) == 1
    rows = np.flatnonzero(np.isin(base.independent, varying))
    if kept.all() and alone.all() and np.all(np.count_nonzero(base.matrix[rows], axis=1) == 1):
        return base
    return bind_to_data(dependence.model.with_shape(shape), facts, base.known).base


# -- the grid, joint by joint ----------------------------------------------------------------------
def _search(problem: Problem, dependence: ShapeDependence, center: Array, reach: float) -> Array:
    """Return log s (shapes,) with the smallest error, searched on a wide grid about `center`, then on narrow grids."""
    logs = _without_known(problem)
    samples = list(excerpt(logs, _ENOUGH_ROWS * max(log.decimated_by for log in logs)))
    found, _, step = _grid(problem, dependence, samples, center, reach)
    tries = [_grid(problem, dependence, samples, valley, step) for valley in found]
    if len(dependence.shared):
        # Log-likelihood of joints with these residual sums of squares, each with its own noise.
        return min(tries, key=lambda tried: float(np.sum(np.log(tried[1][tried[1] > 0]))))[0][0]
    best = center.copy()
    for j in range(dependence.model.dof):
        deepest = min(tries, key=lambda tried: tried[1][j])
        best[dependence.of_joint(j)] = deepest[0][0][dependence.of_joint(j)]
    return best


def _without_known(problem: Problem) -> tuple[Samples, ...]:
    """Return the data with the torques of exactly known parameters subtracted."""
    values = problem.base.known_vector
    if not np.any(values):
        return problem.data
    return tuple(replace(log, tau=log.tau - torques_along(problem.model, values, log)) for log in problem.data)


def _grid(problem: Problem, dependence: ShapeDependence, samples: list[Samples], center: Array,
          reach: float) -> tuple[Array, Array, float]:
    """Search a grid from center - reach to center + reach (of log s) for minima.

    Returns:
        The deepest minima (valleys, shapes), deepest first for each joint; the misfit (dof,) in the deepest; the grid
            distance.
    """
    joints = [(j, dependence.of_joint(j)) for j in range(dependence.model.dof) if len(dependence.of_joint(j))]
    # Each varying column of a joint with the positions of its shape parameters among those of the joint.
    shows = complete(dependence.part).structure
    columns = [(j, c, tuple(np.flatnonzero(dependence.varies[own, c]).tolist()))
               for j, own in joints for c in np.flatnonzero(dependence.varies[own].any(axis=0) & shows[j]).tolist()]
    points = _GRID_POINTS if all(len(positions) == 1 for _, _, positions in columns) else _FEW_POINTS
    values = center[:, None] + np.linspace(-reach, reach, points)
    fixed = problem.base.independent[~np.isin(problem.base.independent, dependence.varying)]
    items = [problem.base.parameters.items[c] for c in fixed]
    candidate: dict[tuple[int, ...], int] = {}  # (column, grid indices of its shape parameters) -> place
    needed: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}  # (positions, indices) -> columns of the part
    for _, c, positions in columns:
        for at in product(range(points), repeat=len(positions)):
            if (c, *at) in candidate:  # a column that affects several joints
                continue
            candidate[(c, *at)] = len(items)
            item = dependence.part.parameters.items[c]
            items.append(replace(item, name=f"{item.name}@{at}"))
            needed.setdefault((positions, at), []).append(c)
    sources: list[tuple[LinearModel, Ints, Ints]] = [(dependence.model, fixed, np.arange(len(fixed)))]
    for (positions, at), same_shape in needed.items():
        log_shape = center.copy()
        for _, shapes in joints:
            for position, k in zip(positions, at, strict=True):
                if position < len(shapes):
                    log_shape[shapes[position]] = values[shapes[position], k]
        sources.append((dependence.part.with_shape(np.exp(log_shape)), np.array(same_shape),
                        np.array([candidate[(c, *at)] for c in same_shape])))
    many = Assembled(dependence.model.dof, Parameters(tuple(items)), tuple(sources))
    regression = fold(TorqueEquations.from_model(many, samples, many.base), blocks=1, threads=problem.threads)
    depths: dict[int, Array] = {}
    for j, own in joints:
        mine = [(c, positions) for joint, c, positions in columns if joint == j]
        choices = np.array(list(product(range(points), repeat=len(own))))
        places = np.array([[candidate[(c, *(choice[p] for p in positions))] for c, positions in mine]
                           for choice in choices.tolist()])
        depths[j] = _misfits(regression, j, len(fixed), places).reshape((points,) * len(own))
    return *_valleys(dependence, center, values, depths), 2.0 * reach / (points - 1)


def _valleys(dependence: ShapeDependence, center: Array, values: Array, depths: dict[int, Array]
             ) -> tuple[Array, Array]:
    """Return the deepest minima (valleys, shapes) of the losses, and the loss (dof,) of each joint in the deepest.
    depths: the losses of joint j over the values (shapes, points) of its shape parameters, by j. For shared shapes a
    minimum is one of the sum over joints."""
    valleys, misfit = np.repeat(center[None], _GRID_STARTS, axis=0), np.zeros(dependence.model.dof)
    shared = dependence.shared
    picked = np.zeros((_GRID_STARTS, len(center)), dtype=np.int64)
    if len(shared):
        total = np.zeros((values.shape[1],) * len(shared))
        for j, depth in depths.items():
            own = dependence.of_joint(j)
            best = depth.min(axis=tuple(np.flatnonzero(~np.isin(own, shared)).tolist()))
            total += np.log(np.maximum(best, 1e-300)).reshape([values.shape[1] if s in own else 1 for s in shared])
        picked[:, shared] = _lowest(total)
        valleys[:, shared] = values[shared, picked[:, shared]]
    for j, depth in depths.items():
        own = dependence.of_joint(j)
        alone = own[~np.isin(own, shared)]
        for v in range(_GRID_STARTS):
            part = depth[tuple(picked[v, s] if s in shared else slice(None) for s in own)]
            if len(alone):
                picked[v, alone] = _lowest(part)[0 if len(shared) else v]
                valleys[v, alone] = values[alone, picked[v, alone]]
        misfit[j] = depth[tuple(picked[0, own])]
    return valleys, misfit


def _lowest(depths: Array) -> Ints:
    """Return grid indices (valleys, dimensions) of the local minima of a loss, lowest first."""
    from scipy import ndimage

    flat = depths.ravel()
    low = np.flatnonzero(depths == ndimage.minimum_filter(depths, size=3, mode="nearest"))
    low = low[np.argsort(flat[low], kind="stable")]
    return np.column_stack(np.unravel_index(np.resize(low, _GRID_STARTS), depths.shape))


def _misfits(regression: Regression, joint: int, fixed: int, places: Ints) -> Array:
    """Return a joint's residual sum of squares with its fixed columns and each row of places (choices, columns)."""
    factor = regression.factors[joint]
    first = int(np.searchsorted(factor.columns, fixed))
    # Rows below the fixed columns are independent of these columns.
    tail, length = factor.r[first:, first:], np.linalg.norm(factor.r[:, first:-1], axis=0)
    unit = tail[:, :-1] / np.where(length > 0, length, 1.0)
    chosen = np.moveaxis(unit[:, np.searchsorted(factor.columns[first:], places)], 0, 1)
    left, singular, _ = np.linalg.svd(chosen, full_matrices=False)
    along = np.einsum("crk,r->ck", left, tail[:, -1])
    return np.sum(tail[:, -1] ** 2) - np.sum(np.where(singular > _DEPENDENT_COLUMN, along, 0.0) ** 2, axis=1)


# -- Gauss-Newton, all joints together -------------------------------------------------------------
# Function that returns the best base parameters (base,) of a problem's weighted equations under constraints.
Inside = Callable[[Problem, Stacked], Array]


@dataclass(frozen=True, eq=False)
class Point:
    """An accepted shape of the search, with its regressions and solutions, without and with derivatives by the shape.

    Attributes:
        log_shape, weights: logarithms of the shape parameters s (shapes,), and weights of the joints (dof,).
        plain, plain_solution: regression without derivatives, and its solution.
        model, regression, solution: model, regression and solution with derivatives by the shape.
        beta: best base parameters for this shape (base,), under constraints if there are any.
        step: Gauss-Newton step in log s (shapes,).
    """

    log_shape: Array
    plain: Regression
    plain_solution: Solution
    model: Assembled
    regression: Regression
    solution: Solution
    weights: Array
    beta: Array
    step: Array

    @property
    def misfit(self) -> float:
        return self.plain.stack(self.weights).misfit(self.beta)


@dataclass(frozen=True, eq=False)
class Descent:
    """Constant data of a search for the shape: the problem, its base parameters, and the constraints if any."""

    problem: Problem
    dependence: ShapeDependence
    base: BaseParameters
    inside: Inside | None

    def plain(self, log_shape: Array) -> Regression:
        """Return the compressed regression of the model with a given shape."""
        shaped = self.dependence.model.with_shape(np.exp(log_shape))
        return fold(TorqueEquations.from_model(shaped, self.problem.data, self.base), blocks=1,
                    threads=self.problem.threads)

    def best(self, log_shape: Array, plain: Regression, stacked: Stacked, solution: Solution) -> Array:
        """Return base parameters (base,) of the best constrained fit at a shape; solution: the unconstrained one."""
        if self.inside is None:
            return solution.beta
        shaped: Any = self.dependence.model.with_shape(np.exp(log_shape))
        return self.inside(replace(self.problem, model=shaped, regression=plain), stacked)

    def point(self, log_shape: Array, plain: Regression, weights: Array) -> Point:
        """Return the regressions and solutions for given shape parameters, with derivatives by the shape."""
        base, dependence, count = self.base, self.dependence, len(log_shape)
        b = len(base)
        stacked = stack_enough(plain, weights)
        plain_solution = solve(plain, stacked)
        beta = self.best(log_shape, plain, stacked, plain_solution)
        slopes = Slopes(dependence, log_shape, base.expand(beta)[dependence.columns])
        items = [replace(base.parameters.items[c], name=name)
                 for c, name in zip(base.independent, base.names, strict=True)]
        model = Assembled(dependence.model.dof, Parameters((*items, *slopes.parameters.items)), (
            (dependence.model.with_shape(np.exp(log_shape)), base.independent, np.arange(b)),
            (slopes, np.arange(count), np.arange(b, b + count))))
        regression = fold(TorqueEquations.from_model(model, _without_known(self.problem), model.base), blocks=1,
                          threads=self.problem.threads)
        both = regression.stack(weights)
        solution = solve(regression, both)
        step = solution.beta[b:]
        if self.inside is not None:
            step = self._step_inside(log_shape, plain, both, solution)
        return Point(log_shape, plain, plain_solution, model, regression, solution, weights, beta,
                     np.clip(step, -_LARGEST_STEP, _LARGEST_STEP))

    def _step_inside(self, log_shape: Array, plain: Regression, both: Stacked, solution: Solution) -> Array:
        """Return the Gauss-Newton step (shapes,) for which the parameters satisfy the constraints."""
        b = len(self.base)
        moved = b + np.flatnonzero(solution.excited[b:])
        order = np.concatenate([moved, np.arange(b)])
        q, r = np.linalg.qr(both.r[:, order])
        rho, k = q.T @ both.rho, len(moved)
        rest = both.rest + float(both.rho @ both.rho - rho @ rho)
        beta = self.best(log_shape, plain, replace(both, r=r[k:, k:], rho=rho[k:], rest=rest), solution)
        step = np.zeros(len(log_shape))
        step[moved - b] = solve_triangular(r[:k, :k], rho[:k] - r[:k, k:] @ beta)
        return step


def _descend(descent: Descent, log_shape: Array, limits: tuple[Array, Array], iterations: int,
             tolerance: float) -> tuple[Point, int]:
    """Make Gauss-Newton steps until convergence; halve a step that increases the error."""
    plain = descent.plain(log_shape)
    best = descent.point(log_shape, plain, joint_weights(plain))
    # The noise of a joint is the residual of a fit that includes its shape.
    best = descent.point(log_shape, plain, joint_weights(best.regression))
    step = best.step
    for count in range(1, iterations + 1):
        target = np.clip(best.log_shape + step, *limits)
        step = target - best.log_shape
        unit = np.sqrt(np.diag(best.solution.inverse)[len(descent.base):])
        if np.all(np.abs(step) <= np.maximum(tolerance * unit, _SMALLEST_STEP)) or count == iterations:
            return best, count
        plain = descent.plain(target)
        stacked = plain.stack(best.weights)
        if stacked.misfit(descent.best(target, plain, stacked, solve(plain, stacked))) < best.misfit:
            best = descent.point(target, plain, best.weights)
            step = best.step
        else:
            step = step / 2.0
    raise ModelError(f"separable least squares needs at least one iteration, got {iterations}", code="no-iterations")
