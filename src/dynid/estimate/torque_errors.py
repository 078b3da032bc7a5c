"""Torque errors of estimates that were computed from filtered equations."""

from __future__ import annotations

from dataclasses import replace

from dynid.estimate.estimate import Estimate
from dynid.estimate.problem import Problem

_OF_ROWS = ("effective_rows_per_joint", "autocovariance", "autocovariance_rate")


def with_torque_errors(estimate: Estimate, problem: Problem) -> Estimate:
    """Return an estimate from filtered equations with the diagnostics of its fit to the torques; those of the filtered
    equations are diagnostics["equations"]. Other estimates are returned unchanged."""
    if problem.filtered is None or estimate.base is not problem.base:
        return estimate
    own, signals = estimate.diagnostics, problem.data[0].filtered
    assert signals is not None
    rows = {"kind": problem.filtered, "relative_error": own.relative_error, "rows": list(own.rows_per_joint),
            "window_s": signals.filter.window, "delay_s": signals.filter.delay}
    plain = estimate.uncertainty_of.then(lambda found: replace(found, facts={
        name: value for name, value in found.facts.items() if name not in _OF_ROWS}))
    fitted = replace(own, weights=None).refitted(problem.torques.regression, estimate.values)
    return replace(estimate, uncertainty_of=plain, diagnostics=fitted.with_facts({"equations": rows}))
