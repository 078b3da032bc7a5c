"""Checks of known values that the torques contradict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dynid.datasets.identifiable import DataFacts, identifiable_base
from dynid.errors import NotPossibleError
from dynid.estimate import Problem, identify
from dynid.estimate.linear import joint_weights, solve
from dynid.findings import Finding
from dynid.regression import Regression, TorqueEquations, fold
from dynid.regression.known import Known, known_parameters
from dynid.validate.thresholds import FALSE_ALARM
from dynid.validate.verdict_checks.case import Case, each, suspect
from dynid.validate.words import listed


def known_contradicted(case: Case) -> Iterator[Finding]:
    """Report known values that torques or physical consistency contradict: without them the fit is far better.

    The data are compressed again without the known values, which gives the cost of each. The cost of all of them with
    the estimate's own method needs a second fit, because the constraints of the method may contradict them.
    """
    problem = case.problem
    known = {**{name: Known(value) for name, value in problem.base.known.items()},
             **known_parameters(problem.regression.prior)}
    if not known or not problem.data:
        return
    from scipy.special import chdtri

    base = identifiable_base(problem.model, DataFacts.from_samples(problem.data, problem.recordings))
    free = fold(TorqueEquations.from_model(problem.model, problem.data, base), blocks=1, threads=problem.threads)
    weights = joint_weights(free)
    # Autocorrelated rows count as fewer independent ones, so sums of squares are divided by the inflation squared.
    worth = max(1.0, case.estimate.uncertainty.facts.get("std_inflation", 1.0)) ** 2
    least = _misfit(free, weights)
    costs = {name: max(_misfit(free.given({name: one}), weights) - least, 0.0) / worth for name, one in known.items()}
    wrong = [name for name, cost in costs.items() if cost > chdtri(1, FALSE_ALARM)]
    if wrong:
        wrong.sort(key=lambda name: -costs[name])
        yield suspect("known-contradicted", "known value", listed(wrong),
                      f"the torques contradict the known {listed(wrong)}: without the known value, the fit improves "
                      f"by {listed([f'{np.sqrt(costs[name]):.1f}' for name in wrong])} "
                      "standard errors; check the value, its unit and its frame", parameters=wrong,
                      evidence={"standard_errors": each([np.sqrt(costs[name]) for name in wrong])})
    elif case.estimate.theta is not None:
        yield from _impossible_together(case, free, weights, worth, known)


def _impossible_together(case: Case, free: Regression, weights: np.ndarray, worth: float,
                         known: dict[str, Known]) -> Iterator[Finding]:
    """Report known values that agree with the torques, but contradict physical consistency."""
    from scipy.special import chdtri

    estimate, problem = case.estimate, case.problem
    loose: Problem = replace(problem, regression=free)
    try:
        other = identify(loose, method=estimate.method, **dict(estimate.provenance.get("options", {})))
    except NotPossibleError:
        return
    size = weights ** 2
    cost = float(size @ (problem.regression.misfits(estimate.values) - free.misfits(other.values))) / worth
    if cost > chdtri(len(known), FALSE_ALARM):
        names = list(known)
        yield suspect("known-not-consistent", "known value", listed(names),
                      f"no physically consistent robot has the known {listed(names)} and these torques: without the "
                      f"known values the consistent fit improves by {np.sqrt(cost):.1f} standard errors; check the "
                      "values, their units and their frames",
                      parameters=names, evidence={"standard_errors": float(np.sqrt(cost))})


def _misfit(regression: Regression, weights: np.ndarray) -> float:
    """Return the weighted squared residuals of the best parameters, including prior rows."""
    stacked = regression.stack(weights)
    return stacked.misfit(solve(regression, stacked).beta)
