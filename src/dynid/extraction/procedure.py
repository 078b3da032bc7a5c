"""Extraction of standard parameters from base parameters by global search inside bounds (Simionato, s. 2.3)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from dynid.arrays import Array
from dynid.consistency import Consistency, MassLimit, fit, nearest
from dynid.errors import ModelError, NotPossibleError
from dynid.extraction.bounds import WIDTHS, Bounds, load_bounds, robot_bounds
from dynid.extraction.conditions import Conditions
from dynid.extraction.extraction import BaseValues, ConeAnswer, Extraction, Identified, outside_bounds
from dynid.extraction.searches import Landscape, Search, find_search, solve
from dynid.extraction.space import Form, SearchSpace, make_space
from dynid.model import required_robot_model
from dynid.regression import BaseParameters, Stacked

INSIDE = 1e-5  # kg, kg m^2: margin of the nearest consistent robot from the boundary, which leaves space for a search
Loss = Literal["full", "partial", "inertia"]
LOSSES: dict[Loss, str] = {
    "full": "bounds, physically consistent inertias, centres of mass inside their links, total mass",
    "partial": "bounds alone", "inertia": "bounds and physically consistent inertias"}
# Weights of small inertias, as shares of their upper bounds, relative to the distance from the base values.
_INERTIA_WEIGHTS = tuple(10.0 ** (0.5 * k) for k in range(-10, 1))
_FIRST_WEIGHT, _WEIGHT_GROWTH = 10.0, 10.0  # weight of physical conditions, and its growth factor (algorithm 1)
_FINAL_CONSTRAINT_WEIGHT = 1e8  # final weight of bounds and physical conditions relative to base values
_INTERVAL_MARGINS = (3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6)  # relative margins of the intervals in a descent
_INTERVAL_MARGIN = 1e-3  # relative margin of the intervals in the penalty form
_MAX_INFEASIBLE_RUNS = 3  # runs if the cone programme has shown that no robot satisfies all conditions
_PHYSICS_WEIGHT = 1e2  # weight of physical conditions relative to bounds if both cannot be satisfied
MAX_DESCENT_STEPS = 100  # largest number of Levenberg-Marquardt steps in a descent
_CONVERGED_GAIN = 1e-6  # relative decrease of the loss below which a descent ends
_DAMPING_RANGE = (1e-12, 1e12)  # smallest and largest damping of Levenberg-Marquardt steps


@dataclass(frozen=True)
class ExtractionOptions:
    """Options of the extraction.

    Attributes:
        loss: "full" (all of eq. 2.22-2.31), "partial" (bounds alone) or "inertia" (without contours and total mass).
        form: "exact" searches among vectors with the given base values, "penalty" penalises other base values.
        step: "two" measures the distance in base values (eq. 2.28), "one" in the torques of all rows (eq. 2.29).
        search: name of a global search of `SEARCHES`.
        runs: largest number of runs from random points; the first run that violates no condition is the last.
        iterations: iterations of a run; the weight of the physical conditions grows with each.
        evaluations: evaluations of the loss in each iteration.
        seed: seed of the random numbers.
        finish: whether to end a run with a descent from its best point.
        nearest: whether to use the nearest consistent base values if no robot has the given ones.
        cones: whether to solve the cone programme too.
    """

    loss: Loss = "full"
    form: Form = "exact"
    step: Literal["two", "one"] = "two"
    search: Search = "annealing"
    runs: int = 20
    iterations: int = 4
    evaluations: int = 20000
    seed: int = 0
    finish: bool = True
    nearest: bool = False
    cones: bool = True

    def __post_init__(self) -> None:
        find_search(self.search)
        for name, kind in (("loss", Loss), ("form", Form), ("step", Literal["two", "one"])):
            if getattr(self, name) not in get_args(kind):
                raise ModelError(f"option '{name}' of extraction must be one of {', '.join(get_args(kind))}, got "
                                 f"'{getattr(self, name)}'")
        for name in ("runs", "iterations", "evaluations"):
            if getattr(self, name) < 1:
                raise ModelError(f"option '{name}' of extraction must be at least 1, got {getattr(self, name)}",
                                 code="wrong-option")
        if self.seed < 0:
            raise ModelError(f"option 'seed' of extraction must be at least 0, got {self.seed}")


def extract(given: BaseValues | Identified, bounds: Bounds | str = "normal", options: ExtractionOptions | None = None,
            *, progress: Callable[[str], None] = lambda words: None, **changes: Any) -> Extraction:
    """Find standard parameters with given base values inside bounds by global search.

    Example: `extract(estimate, "tight", search="gradient")`.

    Args:
        given: an estimate, or `BaseValues` of any set of combinations.
        bounds: "loose", "normal" or "tight" from the robot file, the path of a bounds file, or `Bounds`.
        options: options of the search, by default those of `ExtractionOptions`.
        progress: function that is called with a sentence on the progress.
        changes: single options by name, which replace those of `options`.
    """
    chosen = replace(options or ExtractionOptions(), **_checked(changes))
    start = time.perf_counter()
    values = given if isinstance(given, BaseValues) else BaseValues.from_estimate(given)
    within = bounds_for(values, bounds)
    consistency = Consistency(values.model.parameters, margin=0.0)
    if not consistency.bodies:
        raise ModelError("extraction needs a model with rigid bodies, but the given model has none")
    conditions = Conditions(consistency, within, inertia=chosen.loss != "partial", contours=chosen.loss == "full",
                            whole=chosen.loss == "full")
    values = _one_step(values) if chosen.step == "one" else values
    cones = cone_answer(values, within) if chosen.cones or chosen.nearest else None
    check = replace(consistency, centres=within.contours or within.boxes(consistency.bodies), positive=False)
    begin, moved = None, 0.0
    if chosen.nearest:
        before = values.values
        values, begin = _nearest(values, conditions, check, chosen)
        moved = float(np.linalg.norm(values.values - before))
    hopeless = chosen.form == "exact" and chosen.loss != "partial" and not chosen.nearest \
        and cones is not None and not cones.possible
    few = replace(chosen, runs=min(chosen.runs, _MAX_INFEASIBLE_RUNS)) if hopeless else chosen
    theta, run, runs, tried = _search(values, conditions, few, progress, begin)
    name = f"{within.name}, {chosen.loss}" if within.name else chosen.loss
    return Extraction(name, theta, values, within, chosen.loss, chosen.form, chosen.search, check.violations(theta),
                      outside_bounds(conditions, theta), run, runs, tried, time.perf_counter() - start, cones, moved)


def _checked(changes: dict[str, Any]) -> dict[str, Any]:
    known = ExtractionOptions.__dataclass_fields__
    unknown = [name for name in changes if name not in known]
    if unknown:
        raise ModelError(f"extraction has no option '{unknown[0]}'; its options are {', '.join(known)}",
                         code="unknown-option")
    return changes


def bounds_for(given: BaseValues, bounds: Bounds | str) -> Bounds:
    """Return bounds that are given as `Bounds`, as "loose", "normal" or "tight", or as the path of a bounds file."""
    if isinstance(bounds, Bounds):
        return bounds
    model = required_robot_model(given.model, "a name or a file of bounds")
    values = np.where(np.isnan(given.known), 0.0, given.known)
    back, *_ = np.linalg.lstsq(given.matrix, given.values, rcond=None)
    for width in WIDTHS:
        if bounds == width:
            return robot_bounds(model, width, values + back)
    return load_bounds(bounds, model, values + back)


def _one_step(given: BaseValues) -> BaseValues:
    """Return the base values that fit the torques of all rows of a compressed regression best."""
    if given.stacked is None:
        raise ModelError("the one-step loss needs the compressed regression of the data, with every base parameter "
                         "identified; give a result folder, or BaseValues(stacked=...)", code="no-regression")
    best, *_ = np.linalg.lstsq(given.stacked.r, given.stacked.rho, rcond=None)
    return replace(given, values=np.asarray(best))


def _nearest(given: BaseValues, conditions: Conditions, check: Consistency, options: ExtractionOptions
             ) -> tuple[BaseValues, Array]:
    """Return the base values of a physically consistent robot inside the bounds that is near to the given base values,
    and the standard parameters (parameters,) of this robot, from which the search starts.

    Upper bounds of inertias are not convex. If the nearest robot without these bounds violates them, robots with
    smaller inertias and a larger distance are tried. check: the physical conditions of the result.
    """
    bounds = conditions.bounds
    answer = cone_answer(given, bounds, margin=INSIDE)
    if answer.theta is None:
        raise NotPossibleError(f"no physically consistent robot is within the bounds: {answer.sentence}",
                               "widen the bounds")
    closest = given.matrix @ answer.theta
    consistency, base = _convex_conditions(given, bounds, INSIDE)
    equations = Stacked(np.eye(len(closest)), closest, 0.0, len(closest))
    moments = np.zeros((len(consistency.bodies), 3, len(consistency.parameters)))
    for rows, place, high in zip(moments, consistency.places, bounds.high, strict=True):
        rows[range(3), place[[0, 3, 5]]] = 1.0 / np.maximum(high[[4, 7, 9]], 1e-9)
    theta = answer.theta
    for weight in (0.0, *_INERTIA_WEIGHTS):
        if weight:
            rows = weight * float(np.linalg.norm(closest)) * moments.reshape(-1, moments.shape[2])
            theta = fit(consistency, base, equations, prior=(rows, np.zeros(len(rows)))).theta
        values = replace(given, values=given.matrix @ theta)
        space = make_space(values, conditions, options.form)
        matrix, goal = _distance_rows(values, options)
        inside = _after_descent(conditions, theta, _slope(space, matrix, goal), space.exact)
        if _score(conditions, inside, matrix, goal) == 0.0 and not check.violations(inside):
            return values, inside
    return replace(given, values=closest), answer.theta


# -- runs --------------------------------------------------------------------------------------------
def _search(given: BaseValues, conditions: Conditions, options: ExtractionOptions, progress: Callable[[str], None],
            begin: Array | None) -> tuple[Array, int, int, int]:
    """Return the best standard parameters (parameters,), the number of the run that found them, the number of runs, and
    the number of candidates. begin: standard parameters (parameters,) for a first descent before the runs, which start
    at random points."""
    space = make_space(given, conditions, options.form)
    matrix, values = _distance_rows(given, options)
    rng = np.random.default_rng(options.seed)
    slope = _slope(space, matrix, values)
    best: tuple[float, Array, int] | None = None
    tried = run = 0
    if begin is not None:
        begin = _after_descent(conditions, begin, slope, space.exact)
        best = (_score(conditions, begin, matrix, values), begin, 0)
    for run in range(options.runs if best is None or best[0] > 0.0 else 0):
        progress(f"{options.search}, run {run + 1} of at most {options.runs}")
        x = space.random(rng)
        weight = 0.0
        for _ in range(options.iterations if options.search != "gradient" else 1):
            landscape = Landscape(space, conditions, matrix, values, weight)
            x, used = solve(options.search, landscape, x, options.evaluations, rng)
            tried += used
            weight = _FIRST_WEIGHT if weight == 0.0 else _WEIGHT_GROWTH * weight
            if options.loss == "partial":
                break  # there are no physical conditions to weight
        theta = space.theta(x)
        if options.finish:
            theta = _after_descent(conditions, theta, slope, space.exact)
        if not space.exact:
            theta[space.rest] = np.clip(theta[space.rest], *conditions.rest_box[:2])
        score = _score(conditions, theta, matrix, values)
        if best is None or score < best[0]:
            best = (score, theta, run)
        if score == 0.0:
            break
    assert best is not None
    return best[1], best[2] + 1, run + 1, tried


def _distance_rows(given: BaseValues, options: ExtractionOptions) -> tuple[Array, Array]:
    """Return a matrix (k, parameters) and values (k,), for the squared distance |matrix theta - values|^2 of standard
    parameters theta from the given base values. There are no rows in the exact form."""
    if options.form == "exact":
        return np.zeros((0, given.matrix.shape[1])), np.zeros(0)
    if options.step == "one" and given.stacked is not None:
        # In units of the torques, so that weights do not depend on the amount of data.
        size = float(np.sqrt(np.sum(given.stacked.rho ** 2) + given.stacked.rest))
        return given.stacked.r @ given.matrix / size, given.stacked.r @ given.values / size
    return given.matrix, given.values


def _slope(space: SearchSpace, matrix: Array, values: Array) -> Slope:
    """Return the variables of a descent: the free standard parameters, or all parameters in the penalty form."""
    if space.exact:
        return Slope(space.spread * np.maximum(space.high - space.low, 1e-9), matrix, values)
    unit = np.ones(matrix.shape[1])
    for place in space.places:
        unit[place] = [0.01] * 6 + [0.1] * 3 + [1.0]
    return Slope(np.diag(unit), matrix, values)


def _after_descent(conditions: Conditions, theta: Array, slope: Slope, exact: bool) -> Array:
    """Return the standard parameters (parameters,) after a descent from theta; weights grow in the penalty form."""
    if exact:
        # A boundary is reached only in the limit; a descent toward a point behind it crosses it in a few steps.
        for share in _INTERVAL_MARGINS:
            theta, left = descend(replace(conditions, inside=share), theta, slope, (1.0, _PHYSICS_WEIGHT), conditions)
            if left == 0.0:
                return theta
        return descend(conditions, theta, slope, (1.0, _PHYSICS_WEIGHT))[0]
    weight, stricter = 1.0, replace(conditions, inside=_INTERVAL_MARGIN)
    while weight <= _FINAL_CONSTRAINT_WEIGHT:
        theta, _ = descend(stricter, theta, slope, (weight, weight))
        weight *= 100.0
    return theta


def _score(conditions: Conditions, theta: Array, matrix: Array, values: Array) -> float:
    """Return the final loss of theta: squared distance from base values plus weighted squared violations."""
    broken, _, count = conditions.residuals(theta)
    away = float(np.sum((matrix @ theta - values) ** 2))
    firm = _FINAL_CONSTRAINT_WEIGHT if len(values) else 1.0
    return away + firm * (float(np.sum(broken[:count] ** 2)) + _PHYSICS_WEIGHT * float(np.sum(broken[count:] ** 2)))


def cone_answer(given: BaseValues, bounds: Bounds, *, margin: float = 0.0) -> ConeAnswer:
    """Return whether a physically consistent robot has the base values with masses and centres of mass inside their
    bounds, and the nearest robot.

    Bounds of inertias are omitted, because upper bounds and bounds of products about a centre of mass are not convex.
    """
    start = time.perf_counter()
    consistency, base = _convex_conditions(given, bounds, margin)
    try:
        found = nearest(consistency, given.values, base)
    except NotPossibleError as error:
        return ConeAnswer(False, np.inf, None, time.perf_counter() - start, str(error))
    why = "" if found.possible else ("no robot within these bounds has the given base values: the nearest differs by "
                                     f"{found.distance:.3g}, because of {'; '.join(found.reasons[:3])}")
    return ConeAnswer(found.possible, found.distance, found.theta, time.perf_counter() - start, why)


def _convex_conditions(given: BaseValues, bounds: Bounds, margin: float) -> tuple[Consistency, BaseParameters]:
    """Return the physical conditions with those bounds that are convex, and the combinations of the base values."""
    parameters = given.model.parameters
    bare = Consistency(parameters)
    masses = [MassLimit(max(float(low[0]), 0.0), float(high[0]), (body,)) for body, low, high in
              zip(bare.bodies, bounds.low, bounds.high, strict=True)]
    masses += [] if bounds.mass is None else [MassLimit(*bounds.mass)]
    known = {parameters.names[k]: float(given.known[k]) for k in np.flatnonzero(~np.isnan(given.known))}
    # Contours that are not convex hulls, and not implied by the box of bounds, are checked in the search only.
    consistency = replace(bare, margin=margin, centres=bounds.boxes(bare.bodies), masses=tuple(masses), known=known)
    independent = np.array([int(np.flatnonzero(row)[0]) for row in given.matrix], dtype=np.int64)
    return consistency, BaseParameters(parameters, independent, given.matrix)


@dataclass(frozen=True, eq=False)
class Slope:
    """Scaled variables y of a descent, theta = start + spread y with spread (parameters, variables), and the term
    |matrix theta - values|^2 of its loss, with matrix (k, parameters) and values (k,)."""

    spread: Array
    matrix: Array
    values: Array


def descend(conditions: Conditions, theta: Array, slope: Slope, weights: tuple[float, float],
            goal: Conditions | None = None) -> tuple[Array, float]:
    """Return standard parameters (parameters,) with the smallest weighted sum of squared violations near the start, and
    that sum, by Levenberg-Marquardt.

    Args:
        conditions: conditions whose violations are minimised.
        theta: start (parameters,).
        slope: variables of the descent.
        weights: weight of the bounds, and weight of the physical conditions.
        goal: conditions that end the descent, with the sum zero, as soon as theta violates none of them.
    """
    damping = 1e-3
    residual, jacobian = _rows(conditions, theta, slope, weights)
    now = float(residual @ residual)
    for _ in range(MAX_DESCENT_STEPS):
        if goal is not None and not goal.residuals(theta)[0].any():
            return theta, 0.0
        if now == 0.0 or not jacobian.shape[1]:
            break
        normal, gradient = jacobian.T @ jacobian, jacobian.T @ residual
        before = now
        while damping < _DAMPING_RANGE[1]:
            # The unit matrix fixes directions that have no effect on violated conditions.
            held = np.diag(np.diag(normal) + 1e-9)
            step = np.linalg.solve(normal + damping * held, -gradient)
            trial = theta + slope.spread @ step
            new, slopes = _rows(conditions, trial, slope, weights)
            value = float(new @ new)
            if value < now:
                theta, residual, jacobian, now = trial, new, slopes, value
                damping = max(0.2 * damping, _DAMPING_RANGE[0])
                break
            damping *= 5.0
        if damping >= _DAMPING_RANGE[1] or before - now <= _CONVERGED_GAIN * before:
            break
    return theta, now


def _rows(conditions: Conditions, theta: Array, slope: Slope, weights: tuple[float, float]) -> tuple[Array, Array]:
    """Return residuals (rows,) of base values and conditions, and their derivatives (rows, variables)."""
    broken, rows, count = conditions.residuals(theta)
    weight = np.sqrt(np.where(np.arange(len(broken)) < count, *weights))
    return (np.concatenate([slope.matrix @ theta - slope.values, weight * broken]),
            np.vstack([slope.matrix @ slope.spread, (weight[:, None] * rows) @ slope.spread]))
