"""Second fits for diagnosis: with a fault corrected, with plain friction, or without constraints.

Flexible friction terms absorb faults of the data: a delay, a wrong sign or a wrong scale. So hypotheses about faults
are tested on an excerpt of the logs with a model of plain friction: viscous and Coulomb friction, offsets and rotors.
If physical consistency increases the torque error much, the data contradict physics; the unconstrained fit is then
checked, which shows the reason.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.estimate import Problem, identify
from dynid.estimate.friction_choice import REPLACED
from dynid.findings import Finding
from dynid.model import LinearModel, Model, Term, robot_model, term_from_table
from dynid.recording import Samples
from dynid.regression import TorqueEquations, fold
from dynid.regression.derived import CachedEquations
from dynid.validate.gains import nominal_gains
from dynid.validate.hypotheses.hypothesis import Hypothesis
from dynid.validate.hypotheses.trial import BLOCKS
from dynid.validate.hypotheses.weigh import hypothesis_excerpt
from dynid.validate.reconstruction import reconstruct
from dynid.validate.residual_statistics import residual_tests
from dynid.validate.thresholds import CLEAR_STANDARD_ERRORS, PRICE_RATIO, RELEVANT_TORQUE
from dynid.validate.verdict_checks.case import Case, suspect
from dynid.validate.words import joints_listed

METHOD = "wls"  # method of second fits: fast, because it uses the compressed regression alone
PLAIN_FRICTION = ("viscous", "coulomb", "offset")  # friction of the model with which faults are searched

def without(case: Case, hypothesis: Hypothesis) -> Case:
    """Return a second fit of data with a fault corrected, by weighted least squares.

    The second fit has its own estimate, reconstruction, residual tests and gains relative to the nominal model.
    """
    model, samples = hypothesis.change(case.problem.model, case.problem.data)
    return _fitted_again(case, model, samples)


def plain_case(case: Case) -> Case:
    """Return a second fit with plain (viscous and Coulomb) friction; the given fit if it has that or no robot."""
    model = robot_model(case.problem.model)
    if model is None or not case.problem.data:
        return case
    kinds = [getattr(term, "kind", "") for term in model.terms]
    if not set(kinds) & set(REPLACED) - set(PLAIN_FRICTION):
        return case
    core: list[Term] = [term for term, kind in zip(model.terms, kinds, strict=True) if kind not in REPLACED]
    core += [term_from_table({"kind": kind}) for kind in (*PLAIN_FRICTION, *(() if "rotor" in kinds else ("rotor",)))]
    return _fitted_again(case, Model(model.robot, tuple(core)), hypothesis_excerpt(case.problem.data))


def case_with_friction(case: Case) -> Case:
    """Return a second fit with the viscous and Coulomb friction that the model lacks; else the given fit."""
    model = robot_model(case.problem.model)
    if model is None or not case.problem.data:
        return case
    kinds = {getattr(term, "kind", "") for term in model.terms}
    lacking = [term_from_table({"kind": kind}) for kind in PLAIN_FRICTION if kind not in kinds]
    if not lacking:
        return case
    return _fitted_again(case, Model(model.robot, (*model.terms, *lacking)), hypothesis_excerpt(case.problem.data))


def _fitted_again(case: Case, model: LinearModel, samples: tuple[Samples, ...]) -> Case:
    """Return a second fit with another model or other samples, by weighted least squares."""
    problem = case.problem
    base = problem.base if model is problem.model else None
    same = len(model.parameters) == len(problem.model.parameters)
    equations = CachedEquations.from_equations(TorqueEquations.from_model(model, samples, base))
    anew = fold(equations, blocks=BLOCKS, threads=problem.threads)
    prior = problem.regression.prior if base is not None else None
    second = Problem(model, replace(anew, prior=prior), samples,
                     problem.nominal if same else _renamed(problem, model), problem.threads)
    if second.filtered is None:
        vars(second)["equations"] = equations  # reuses equations that were computed before
    estimate = identify(second, method=METHOD)
    reconstruction = reconstruct(estimate, samples, for_tests=True, equations=equations)
    return replace(case, problem=second, estimate=estimate, reconstruction=reconstruction,
                   tests=residual_tests(reconstruction), gains=nominal_gains(second))


def _renamed(problem: Problem, model: LinearModel) -> Array | None:
    """Return nominal values (parameters,) for another model: those of the problem by parameter name, else those of the
    other model, else zero."""
    if problem.nominal is None:
        return None
    known = dict(zip(problem.model.parameters.names, problem.nominal.tolist(), strict=True))
    return np.array([known.get(one.name, one.nominal or 0.0) for one in model.parameters])


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
                    "No physically consistent robot explains these torques: with constraints the relative error is "
                    f"{error:.3g} %, without constraints ({METHOD}) it is {least:.3g} %; check signs, units and "
                    f"gains{where}, and the direction of gravity", joints=joints,
                    evidence={"relative_error": error, "unconstrained_relative_error": least})], free


def without_constraints(case: Case, joints: Collection[str]) -> Case:
    """Return the unconstrained fit with residual tests of the named joints; the given fit if it has no constraints."""
    return case if case.estimate.diagnostics.get("unconstrained_relative_error") is None else _refitted(case, joints)


def _refitted(case: Case, joints: Collection[str] | None = None) -> Case:
    """Return the unconstrained fit with its residual tests, of all joints by default."""
    problem = case.problem
    estimate = identify(problem, method=METHOD)
    own = problem.torques.equations if estimate.model is problem.model and estimate.base is problem.base else None
    reconstruction = reconstruct(estimate, case.reconstruction.samples, for_tests=True, equations=own)
    return replace(case, estimate=estimate, reconstruction=reconstruction,
                   tests=residual_tests(reconstruction, only=joints, earlier=(case.reconstruction, case.tests)))


def _impossible_joints(free: Case) -> tuple[str, ...]:
    """Return the joints with negative values of parameters that must be positive."""
    estimate, base, items = free.estimate, free.estimate.base, free.estimate.base.parameters.items
    wrong = estimate.identified & base.never_negative & (estimate.values < -CLEAR_STANDARD_ERRORS * estimate.std)
    owners = {items[c].owner for c in base.independent[wrong]}
    return tuple(free.problem.regression.joints[j] for j in sorted(owners))
