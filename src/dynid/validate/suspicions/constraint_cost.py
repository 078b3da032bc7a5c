"""Cost of physical consistency: the increase of the torque error by the constraints.

A large cost shows that the data contradict physics. The unconstrained fit is then checked, which shows the reason.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from dynid.estimate import identify
from dynid.findings import Finding
from dynid.validate.reconstruction import reconstruct
from dynid.validate.residual_statistics import residual_tests
from dynid.validate.suspicions.case import Case, suspect
from dynid.validate.thresholds import CLEAR_STANDARD_ERRORS, PRICE_RATIO, RELEVANT_TORQUE
from dynid.validate.words import joints_listed

_UNCONSTRAINED_METHOD = "wls"  # method of the unconstrained fit


def unconstrained_case(case: Case) -> tuple[list[Finding], Case]:
    """Return a finding on a large cost of the constraints, and the unconstrained fit; no finding and the unchanged fit
    for a small cost or an unconstrained method."""
    facts = case.estimate.diagnostics
    least, error = facts.get("unconstrained_relative_error"), facts.relative_error
    if least is None or error < max(PRICE_RATIO * least, least + 100.0 * RELEVANT_TORQUE):
        return [], case
    free = _refitted(case)
    joints = _impossible_joints(free)
    where = f" of {joints_listed(joints)}" if joints else ""
    return [suspect("consistency-price", "cost of physical consistency", "all torques",
                    "No physically consistent robot explains these torques: its relative error is "
                    f"{error:.3g} %, without constraints ({_UNCONSTRAINED_METHOD}) it is {least:.3g} %; check signs, "
                    f"units and gains{where}, and the direction of gravity", joints=joints,
                    evidence={"relative_error": error, "unconstrained_relative_error": least})], free


def without_constraints(case: Case, joints: Collection[str]) -> Case:
    """Return the unconstrained fit with residual tests of some joints; the same fit if it has no constraints."""
    return case if case.estimate.diagnostics.get("unconstrained_relative_error") is None else _refitted(case, joints)


def _refitted(case: Case, joints: Collection[str] | None = None) -> Case:
    """Return the unconstrained fit with its residual tests, of all joints by default."""
    problem = case.problem
    estimate = identify(problem, method=_UNCONSTRAINED_METHOD)
    own = problem.torques.equations if estimate.model is problem.model and estimate.base is problem.base else None
    reconstruction = reconstruct(estimate, case.reconstruction.samples, for_tests=True, equations=own)
    return replace(case, estimate=estimate, reconstruction=reconstruction,
                   tests=residual_tests(reconstruction, only=joints, earlier=(case.reconstruction, case.tests)))


def _impossible_joints(free: Case) -> tuple[str, ...]:
    """Return the joints with negative values of parameters that must be positive."""
    base = free.estimate.base
    owners = [base.parameters.items[base.independent[i]].owner for i in _sure(free) if free.estimate.values[i] < 0]
    return tuple(free.problem.regression.joints[j] for j in sorted(set(owners)))


def _sure(free: Case) -> list[int]:
    """Return the base parameters of known sign that are sums of non-negative parameters."""
    estimate, items = free.estimate, free.estimate.base.parameters.items
    return [i for i, row in enumerate(estimate.base.matrix)
            if estimate.identified[i] and np.all(row >= 0)
            and abs(estimate.values[i]) > CLEAR_STANDARD_ERRORS * estimate.std[i]
            and all(items[c].never_negative for c in np.flatnonzero(row))]
