"""Second fits for diagnosis: with a fault corrected, or with plain friction (viscous, Coulomb, offset).

Flexible friction terms absorb faults of the data: a delay, a wrong sign or a wrong scale. So hypotheses about faults
are tested on a model with viscous and Coulomb friction, offsets and rotors alone, on the excerpt that hypotheses use.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.estimate import Problem, identify
from dynid.estimate.friction_choice import REPLACED
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
from dynid.validate.suspicions.case import Case

METHOD = "wls"  # method of second fits: fast, because it uses the compressed regression alone
PLAIN_FRICTION = ("viscous", "coulomb", "offset")  # friction of the model with which faults are searched


def without(case: Case, hypothesis: Hypothesis) -> Case:
    """Return a second fit of data with a fault corrected, by weighted least squares.

    It has its own estimate, reconstruction, residual tests and gains relative to the nominal model.
    """
    model, samples = hypothesis.change(case.problem.model, case.problem.data)
    return _fitted_again(case, model, samples)


def plain_case(case: Case) -> Case:
    """Return a second fit with plain friction; the same fit if it has plain friction or no robot."""
    model = robot_model(case.problem.model)
    if model is None or not case.problem.data:
        return case
    kinds = [getattr(term, "kind", "") for term in model.terms]
    if not set(kinds) & set(REPLACED) - set(PLAIN_FRICTION):
        return case
    core: list[Term] = [term for term, kind in zip(model.terms, kinds, strict=True) if kind not in REPLACED]
    core += [term_from_table({"kind": kind}) for kind in (*PLAIN_FRICTION, *(() if "rotor" in kinds else ("rotor",)))]
    return _fitted_again(case, Model(model.robot, tuple(core)), hypothesis_excerpt(case.problem.data))


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
    """Return nominal values (parameters,) of another model by name; otherwise the model's own, or zero."""
    if problem.nominal is None:
        return None
    known = dict(zip(problem.model.parameters.names, problem.nominal.tolist(), strict=True))
    return np.array([known.get(one.name, one.nominal or 0.0) for one in model.parameters])
