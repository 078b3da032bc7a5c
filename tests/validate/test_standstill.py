"""Rows at a standstill are no evidence about a joint's friction, and scales that nothing determines are stated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.robot import Robot
from dynid.validate import verdict
from dynid.validate.hypotheses.gains import wrong_scales
from dynid.validate.hypotheses.trial import try_out
from dynid.validate.joint_motion import in_motion

RATE = 100.0


def moved(dq: np.ndarray) -> Samples:
    return Samples.from_arrays(np.cumsum(dq, axis=0) / RATE, dq, np.gradient(dq, 1.0 / RATE, axis=0), np.ones_like(dq),
                               rate=RATE)


def test_a_standstill_is_left_out_and_a_reversal_is_not():
    t = np.arange(1000) / RATE
    dq = np.column_stack([np.sin(t), np.where((t > 4.0) & (t < 6.0), 0.0, np.sin(t) + 2.0)])
    moving = in_motion(moved(dq))
    assert np.all(moving[:, 0])
    assert not np.any(moving[410:590, 1])
    assert np.all(moving[:390, 1]) and np.all(moving[610:, 1])


def test_a_joint_that_hardly_moves_keeps_its_rows():
    dq = np.zeros((1000, 2))
    dq[::2, 0], dq[400:500, 1] = 1.0, 1.0
    assert np.all(in_motion(moved(dq))[:, 1])


def arm() -> tuple[Model, Samples]:
    robot = Robot.builtin("puma560")
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb")))
    rng = np.random.default_rng(4)
    q, dq, ddq = rng.uniform(-1.0, 1.0, size=(3, 600, robot.dof))
    theta = np.array([0.3 if p.nominal is None else p.nominal for p in model.parameters])
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    tau += 0.01 * np.sqrt(np.mean(tau ** 2, axis=0)) * rng.normal(size=tau.shape)
    return model, Samples.from_arrays(q, dq, ddq, tau, rate=RATE)


def test_the_nominal_model_chooses_between_sets_of_wrong_scales():
    model, samples = arm()
    factor = np.array([1.0, 1.0, 2.0, 1.0, 1.0, 1.0])
    regression = Problem.from_model(model, replace(samples, tau=samples.tau * factor)).regression
    found = wrong_scales(regression, try_out(regression).noise, 1.0, [None, 1.0, 2.0, None, None, None])
    assert found is not None
    assert found.joints == (2,)
    assert abs(found.gains[0] - 2.0) < 0.1


def test_scales_that_nothing_determines_are_stated_and_blame_nothing():
    robot = Robot.from_mdh([(0.0, 0.0, 0.0, 0.0, "prismatic"), (np.pi / 2.0, 0.0, 0.0, 0.0, "prismatic")],
                           name="gantry", gravity=(0.0, 0.0, 0.0))
    model = Model(robot, make_terms(robot, friction=("viscous",)))
    rng = np.random.default_rng(5)
    q, dq, ddq = rng.uniform(-1.0, 1.0, size=(3, 400, 2))
    theta = np.array([1.0 if p.name in ("M1", "M2", "Fv1", "Fv2") else 0.0 for p in model.parameters])
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    samples = Samples.from_arrays(q, dq, ddq, tau + 0.01 * rng.normal(size=tau.shape), rate=RATE)
    said = verdict(identify(model, samples, method="wls"), samples)
    [finding] = [one for one in said.findings if one.code == "scales-undecidable"]
    assert finding.kind == "validation"
    assert finding.joints == robot.joint_names
    assert "drive-gain" not in {one.code for one in said.findings}
