"""Cross-validation against fitting the rows by hand, and its spread against the stated deviations."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused

from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Problem, identify
from dynid.model import Coulomb, Model, Offset, RigidBodies, Stribeck, Viscous
from dynid.robot import Robot
from dynid.validate import cross_validate


def test_each_block_is_predicted_as_by_hand(simulate):
    log = simulate("arm3r", rows=1003)
    problem, _ = log.fitted("ols")
    found = cross_validate(problem, "ols")
    s, base = log.samples, problem.base
    y = log.model.regressor(s.q, s.dq, s.ddq)[:, :, base.independent]
    cuts = [1003 * k // 10 for k in range(11)]
    for k in range(10):
        inside = np.zeros(1003, dtype=bool)
        inside[cuts[k]:cuts[k + 1]] = True
        beta = np.linalg.lstsq(y[~inside].reshape(-1, len(base)), s.tau[~inside].ravel(), rcond=None)[0]
        np.testing.assert_allclose(found.values[k], beta, rtol=1e-6, atol=1e-9)
        error = s.tau[inside] - y[inside] @ beta
        assert found.errors[k] == pytest.approx(100 * np.linalg.norm(error) / np.linalg.norm(s.tau[inside]), rel=1e-6)
        np.testing.assert_allclose(found.errors_per_joint[k], 100 * np.linalg.norm(error, axis=0)
                                   / np.linalg.norm(s.tau[inside], axis=0), rtol=1e-6)
    assert found.mean == pytest.approx(found.errors.mean()) and found.spread == pytest.approx(found.errors.std(ddof=1))
    np.testing.assert_allclose(found.jackknife, np.sqrt(9 / 10 * np.sum(
        (found.values - found.values.mean(axis=0)) ** 2, axis=0)))


def test_the_spread_over_blocks_is_what_the_deviations_say(simulate):
    ratios = []
    for seed in range(6):
        log = simulate("arm3r", rows=3000, seed=seed)
        problem, estimate = log.fitted()
        ratios.append(cross_validate(problem, "wls", estimate=estimate).ratio)
    assert 0.7 < np.mean(ratios) < 1.5


def test_a_robot_that_changes_moves_its_parameters_more(simulate):
    log = simulate("arm3r", rows=4000)
    drift = np.linspace(0.0, 1.0, 4000)[:, None] * np.sign(log.samples.dq)  # friction that grows while it warms
    problem, estimate = log.with_torque(log.samples.tau + drift).fitted()
    found, usual = cross_validate(problem, "wls", estimate=estimate), cross_validate(log.fitted()[0], "wls")
    dry = [found.names.index(f"Fc{j}") for j in (1, 2, 3)]
    assert np.all(found.jackknife[dry] > 3.0 * usual.jackknife[dry])
    assert found.errors[0] > 1.5 * np.median(found.errors) and usual.errors[0] < 1.3 * np.median(usual.errors)


@pytest.mark.parametrize("name", ["ols", "wls", "ml", "tls", "irls"])
def test_any_method_also_those_that_look_at_the_samples(simulate, name):
    log = simulate("arm3r", rows=1500)
    samples = (log.samples, simulate("arm3r", rows=700, seed=9).samples)
    problem = Problem.from_model(log.model, samples, blocks=4)
    found = cross_validate(problem, name)
    assert len(found.blocks) == 4 and found.method == name
    assert 1.5 < found.mean < 3.0  # two percent of noise
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_method_that_changes_the_model_is_tested_on_samples():
    robot = Robot.builtin("arm3r")
    truth = Model(robot, (RigidBodies(), Stribeck(delta=20.0, alpha=0.5)))
    rng = np.random.default_rng(0)
    theta = np.array([0.0 if p.nominal is None else p.nominal for p in truth.parameters])
    for j in (1, 2, 3):
        theta[truth.parameters.index(f"Fsc{j}")] = 0.4
    from dynid.recording import Samples
    t = np.arange(1500) / 200.0
    w = 2 * np.pi * np.array([0.11, 0.23, 0.31])
    q, dq, ddq = np.sin(t[:, None] * w), w * np.cos(t[:, None] * w), -w ** 2 * np.sin(t[:, None] * w)
    tau = truth.inverse_dynamics(theta, q, dq, ddq) + 0.01 * rng.normal(size=q.shape)
    model = Model(robot, (RigidBodies(), Stribeck(delta=5.0, alpha=0.5, free=("delta",))))
    problem = Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, t=t, rate=200.0), blocks=3)
    whole = identify(problem, method="sls")
    found = cross_validate(problem, "sls", estimate=whole)
    assert whole.model is not problem.model
    assert found.mean < 1.5 * whole.diagnostics["relative_error"] + 0.5
    with refused(ModelError, "needs-data"):
        cross_validate(replace(problem, data=()), "sls", estimate=whole)


def test_blocks_have_equal_numbers_of_kept_rows_and_one_is_too_few(simulate):
    """A stretch of which nothing is kept leaves no block empty."""
    log = simulate("arm3r", rows=1000)
    keep = log.samples.keep.copy()
    keep[300:400] = False
    problem = Problem.from_model(log.model, replace(log.samples, keep=keep))
    found = cross_validate(problem, "ols")
    assert found.blocks == tuple(range(10))
    joints, kept = log.model.dof, int(keep.sum())  # a row per joint
    assert sum(block.rows for block in problem.regression.blocks) == kept
    assert all(abs(block.rows - kept / 10) <= joints for block in problem.regression.blocks)
    with refused(NotPossibleError, "too-few-blocks"):
        cross_validate(Problem.from_model(log.model, log.samples, blocks=1), "ols")


def test_model_and_samples_are_cross_validated_as_their_problem(simulate):
    log = simulate("arm3r", rows=600)
    problem = Problem.from_model(log.model, log.samples)
    expected = cross_validate(problem, "ols")
    for found in (cross_validate(log.model, log.samples, "ols"), cross_validate(log.model, [log.samples], method="ols"),
                  cross_validate(problem, method="ols")):
        assert np.array_equal(found.errors, expected.errors) and found.method == "ols"
    with refused(ModelError, "not-a-regression", "Problem.from_model(model, samples)"):
        Problem(log.model, log.samples)
    with refused(ModelError, "data-given-twice"):
        cross_validate(problem, log.samples)
    with refused(ModelError, "not-samples", "ndarray", "dynid.read"):
        cross_validate(log.model, log.samples.q)
    for wrong in ((log.model,), (log.model, "ols"), (log.samples, log.samples)):
        with refused(ModelError, "no-data", "cross_validate(model, samples)"):
            cross_validate(*wrong)


def test_a_joint_at_rest_and_missing_rank(simulate):
    log = simulate("arm3r", rows=1000, frozen=(2,))
    problem, estimate = log.fitted()
    found = cross_validate(problem, "wls", estimate=estimate)
    hidden = ~estimate.identified
    assert hidden.sum() == 2 and np.isnan(found.jackknife[hidden]).all() and np.isfinite(found.ratio)
    text = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert text["jackknife"][int(np.flatnonzero(hidden)[0])] is None


def test_one_joint(simulate):
    problem, estimate = simulate("emps", rows=1000).fitted()
    assert cross_validate(problem, "wls", estimate=estimate).errors_per_joint.shape == (10, 1)
    model = Model(Robot.builtin("emps"), (RigidBodies(), Viscous(), Coulomb(), Offset()))
    assert model.parameters.names == problem.model.parameters.names
