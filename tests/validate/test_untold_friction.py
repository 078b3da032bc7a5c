"""Friction that is not told from simpler friction: on machines that have it and on machines that have not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dynid.estimate import Problem, identify
from dynid.estimate.columns_left_out import dealt
from dynid.estimate.linear import joint_weights, solve
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.robot import Robot
from dynid.validate import reconstruct, verdict
from dynid.validate.unresolved_friction import friction_worths

ROBOT = Robot.builtin("arm3r")
SIMPLE = {"Fv": 0.8, "Fc": 0.6}


def log(terms: list[dict[str, Any]], seed: int = 0, **values: float) -> Samples:
    """20 s of a machine with viscous, dry and this friction; values by symbol."""
    rng = np.random.default_rng(seed)
    model = Model(ROBOT, make_terms(ROBOT, ("viscous", "coulomb"), extra=terms))
    theta = [{**SIMPLE, **values}.get(p.symbol, p.nominal or 0.0) for p in model.parameters]
    t = np.arange(4000) / 200.0
    w = 2.0 * np.pi * np.arange(1, 7) / 10.0
    size, phase = 1.5 * rng.normal(size=(ROBOT.dof, 6)) / np.arange(1, 7), rng.uniform(0.0, 6.3, (ROBOT.dof, 6))
    angle = w * t[:, None, None] + phase
    q, dq, ddq = (np.sum(x, axis=2) for x in (size * np.sin(angle), size * w * np.cos(angle),
                                              -size * w ** 2 * np.sin(angle)))
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    return Samples.from_arrays(q, dq, ddq, tau + 0.05 * rng.normal(size=q.shape), rate=200.0)


def untold(friction: tuple[str, ...], samples: Samples, method: str = "wls") -> dict[str, tuple[str, ...]]:
    """Joints by kind of the findings of a verdict."""
    problem = Problem.from_model(Model(ROBOT, make_terms(ROBOT, friction)), samples)
    estimate = identify(problem, method=method)
    said = verdict(estimate, problem, reconstruction=reconstruct(estimate, samples))
    found = [one for one in said.findings if one.code == "friction-unresolved"]
    assert all(one.kind == "validation" and one.severity == "info" for one in found)
    assert all(len(one.evidence["gain_percent"]) == len(one.joints) and one.parameters for one in found)
    return {one.title.split()[0]: one.joints for one in found}


@pytest.mark.parametrize("friction", [
    ("curve", "load"), ("viscous", "coulomb", "ripple", "cable"), ("viscous", "dahl"), ("viscous", "lugre"),
    ("viscous", "coulomb", "hysteresis"),
    ("stribeck",), ("exponential-stribeck",), ("polynomial",), ("asymmetric-viscous", "coulomb"),
    ("viscous", "coulomb", "delay", "drift")], ids="+".join)
def test_what_is_not_there_is_said(friction: tuple[str, ...]) -> None:
    """A machine with viscous and dry friction alone: every kind beyond these is not told, on every joint."""
    joints = ROBOT.joint_names
    found = untold(friction, log([]))
    assert found == {kind: joints for kind in friction if kind not in ("viscous", "coulomb")}


def test_simple_friction_has_no_finding() -> None:
    assert untold(("viscous", "coulomb", "offset"), log([])) == {}


@pytest.mark.parametrize(("term", "values", "friction"), [
    ({"kind": "load", "joints": ["joint2"]}, {"Fl": 0.2}, ("curve", "load")),
    ({"kind": "cable", "joints": ["joint2"]}, {"Cc2_": 1.0}, ("viscous", "coulomb", "cable"))], ids=["load", "cable"])
def test_what_is_there_is_told(term: dict[str, Any], values: dict[str, float], friction: tuple[str, ...]) -> None:
    """Load and cable on the second joint: the finding names the others alone."""
    assert untold(friction, log([term], 3, **values), "pc-wls")[term["kind"]] == ("joint1", "joint3")


def test_worth_is_that_of_fits_without_each_block() -> None:
    """Asymmetric friction of one joint against the same models fitted without each block by least squares."""
    samples = log([{"kind": "offset", "joints": ["joint2"]}], Fo=0.02)
    simple = [{"kind": "asymmetric-coulomb", "joints": ["joint1", "joint3"]}, {"kind": "coulomb", "joints": ["joint2"]}]
    models = [Model(ROBOT, make_terms(ROBOT, ("viscous", *kinds), extra=extra))
              for kinds, extra in ((("asymmetric-coulomb",), []), ((), simple))]
    problem = Problem.from_model(models[0], samples)
    one = next(one for one in friction_worths(problem, identify(problem, method="wls")) if one.joint == "joint2")
    weights, losses = joint_weights(problem.regression), []
    for model in models:
        folded = dealt(Problem.from_model(model, samples, blocks=64).regression, 8)
        fits = [solve(rest, rest.stack(weights)).beta for rest in (folded.without(k) for k in range(8))]
        losses.append(np.array([folded.only(k).misfits(beta) * weights ** 2 for k, beta in enumerate(fits)]))
    gains, size = (losses[1] - losses[0]).sum(axis=1), losses[1][:, 1].sum()
    assert one.is_resolved and one.parameters == ("Fcp2", "Fcn2")
    assert one.worth.gain == pytest.approx(100.0 * (1.0 - np.sqrt(1.0 - gains.sum() / size)), rel=1e-5)
    assert one.worth.error == pytest.approx(50.0 * gains.std(ddof=1) * np.sqrt(8) / size, rel=1e-5)
