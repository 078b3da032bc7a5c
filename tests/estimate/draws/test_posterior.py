"""Draws from a posterior: moments, consistency and torques, against the covariance they are drawn from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import arm, low_passed, motion
from refusals import refused
from robots import random_robot

from dynid.arrays import Array
from dynid.consistency import Consistency
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Estimate, Problem, identify
from dynid.estimate.draws import consistent_sets
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.regression import Regression
from dynid.robot import Robot
from dynid.robot import inertia as ten

COUNT = 2000


def identified(model: Model, theta: Array, noise: float, *, seconds: float = 20.0, seed: int = 1
               ) -> tuple[Estimate, Regression]:
    """An estimate by pc-wls from a virtual log with torque noise (N m), and its compressed regression."""
    rng = np.random.default_rng(seed)
    count = int(seconds * 200)
    samples = motion(model, theta, noise * rng.normal(size=(count, model.dof)), seconds=seconds, seed=seed)
    problem = Problem.from_model(model, samples)
    return identify(problem, method="pc-wls"), problem.regression


@pytest.mark.parametrize(("seed", "seconds"), [(1, 2.0), (17, 2.0), (20, 1.2)])
def test_covariance_of_a_short_log_is_positive_semidefinite_and_can_be_drawn_from(seed: int, seconds: float) -> None:
    """Logs of one or two seconds with 5 % noise: the windowed autocorrelation has a negative spectrum, and H is badly
    conditioned."""
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, rotor=True, friction=("viscous", "coulomb", "offset")))
    rng = np.random.default_rng(seed)
    t, (q, dq, ddq) = np.arange(int(250 * seconds)) / 250.0, np.zeros((3, int(250 * seconds), robot.dof))
    for frequency in (0.25, 0.5, 0.9, 1.4):
        size, phase = 0.35 * rng.normal(size=robot.dof), rng.uniform(0, 6, robot.dof)
        w, angle = 2 * np.pi * frequency, 2 * np.pi * frequency * t[:, None] + phase
        q, dq, ddq = q + size * np.sin(angle), dq + size * w * np.cos(angle), ddq - size * w ** 2 * np.sin(angle)
    theta = np.array([{"Fv": 0.5, "Fc": 0.8, "Fo": 0.1, "Ia": 0.1}[item.name[:2]] if item.nominal is None
                      else item.nominal for item in model.parameters])
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    noise = low_passed(np.random.default_rng(seed), tau.shape, 0.05 * tau.std(axis=0), 4.0 if seed == 20 else 100.0,
                       250.0)
    log = Recording(t, 2.4e-5 * np.round(q / 2.4e-5), tau + noise, joints=robot.joint_names)
    estimate = identify(model, log, method="pc-wls")
    covariance = estimate.covariance[np.ix_(estimate.identified, estimate.identified)]
    size = np.sqrt(np.diag(covariance))
    assert np.linalg.eigvalsh(covariance / np.outer(size, size)).min() > -1e-12
    assert len(estimate.draws(5)) == 5


def test_rounding_errors_of_a_covariance_do_not_stop_draws() -> None:
    model, theta = arm()
    estimate = identified(model, theta, 1e-3)[0]
    covariance = estimate.covariance.copy()
    values, vectors = np.linalg.eigh(covariance / np.outer(estimate.std, estimate.std))
    values[:2] = -1e-12, 0.0
    rounded = (vectors * values) @ vectors.T * np.outer(estimate.std, estimate.std)
    draws = replace(estimate, uncertainty_of=OnDemand.known(Uncertainty(rounded, "correlated"))).draws(500)
    np.testing.assert_allclose(draws.values.std(axis=0, ddof=1), np.sqrt(np.diag(rounded)), rtol=0.15)


def machines() -> list[tuple[str, Model, Array, float]]:
    """Three robots with consistent parameters, and a noise that leaves the posterior inside the consistent set."""
    arm3r, nominal = arm()
    found = [("arm3r", arm3r, nominal, 1e-3)]
    for name, dof, seed in (("tree", 4, 3), ("seven", 7, 5)):
        robot = random_robot(np.random.default_rng(seed), dof, prismatic=0.0, branch=0.0)
        model = Model(robot, make_terms(robot, rotor=True, friction=("viscous", "coulomb")))
        theta = np.array([0.5 if item.body is None else np.nan for item in model.parameters])
        for places, body in zip(model.parameters.bodies.values(), robot.bodies, strict=True):
            theta[places] = body.inertia
        found.append((name, model, theta, 1e-3))
    return found


def assert_consistent(estimate: Estimate, thetas: Array) -> None:
    consistency = Consistency(estimate.model.parameters)
    assert [k for k, theta in enumerate(thetas) if consistency.violations(theta)] == []
    assert np.linalg.eigvalsh(np.array([consistency.matrices(theta) for theta in thetas])).min() > 0.0


@pytest.mark.parametrize(("name", "model", "theta", "noise"), [
    pytest.param(*one, marks=[pytest.mark.slow] * (one[0] == "seven")) for one in machines()],
    ids=lambda x: x if isinstance(x, str) else "")
def test_draws_have_the_mean_and_covariance_of_the_posterior(name: str, model: Model, theta: Array,
                                                             noise: float) -> None:
    estimate, regression = identified(model, theta, noise)
    draws = estimate.draws(COUNT, seed=7)
    assert_consistent(estimate, draws.theta)
    assert draws.kept_base.mean() > 0.99 and draws.rounds == 0
    # Whitened base values of exact draws are standard normal: means within 4.5 of their deviation, and the largest
    # eigenvalue of the sample covariance within what random matrices allow (Marchenko and Pastur).
    factor = np.linalg.cholesky(estimate.covariance)
    white = np.linalg.solve(factor, (draws.values - estimate.values).T).T
    assert np.abs(white.mean(axis=0)).max() < 4.5 / np.sqrt(COUNT)
    spectrum = np.linalg.eigvalsh(np.cov(white.T))
    ratio = np.sqrt(white.shape[1] / COUNT)
    assert (1 - ratio) ** 2 - 0.06 < spectrum[0] and spectrum[-1] < (1 + ratio) ** 2 + 0.06
    spread = draws.torque_spread(regression)
    assert spread.matches and np.abs(spread.ratio - 1.0).max() < 0.1


def test_the_stated_spread_of_torques_is_that_of_single_predictions() -> None:
    model, theta = arm()
    estimate, regression = identified(model, theta, 0.01)
    draws = estimate.draws(500, seed=3)
    samples = motion(model, theta, seed=1)
    torques = np.array([one.predict(samples.q, samples.dq, samples.ddq) for one in draws])
    measured = np.sqrt(np.mean(np.var(torques, axis=0, ddof=1), axis=0))
    np.testing.assert_allclose(draws.torque_spread(regression).drawn, measured, rtol=0.02)


def test_what_the_data_do_not_determine_varies_as_the_prior_states() -> None:
    """Standard deviations of a normal prior given exact base values, its inverse covariance the Hessian of the log-det
    divergence (Wensing, Kim and Slotine 2018) from links 2 cm thicker than the estimate's."""
    _, model, theta, _ = machines()[1]
    estimate, _ = identified(model, theta, 1e-4)
    spread = 0.01  # so narrow that the border of the set cuts nothing off
    draws = estimate.draws(4000, seed=1, spread=spread)
    assert draws.as_drawn.all()
    bodies = model.parameters.bodies
    covariance = np.zeros((len(theta), len(theta)))
    basis = ten.pseudo_inertia(np.eye(10))
    for places in bodies.values():
        pseudo = ten.pseudo_inertia(estimate.theta[places])
        pseudo[:3, :3] += 0.02 ** 2 * pseudo[3, 3] * np.eye(3)
        left = np.linalg.solve(pseudo, basis)
        covariance[np.ix_(places, places)] = np.linalg.inv(np.einsum("kij,lji->kl", left, left))
    others = [k for k, item in enumerate(model.parameters) if item.body is None]
    covariance[others, others] = estimate.theta[others] ** 2
    base = estimate.base.matrix
    gain = covariance @ base.T @ np.linalg.inv(base @ covariance @ base.T)
    expected = spread * np.sqrt(np.maximum(np.diag(covariance - gain @ base @ covariance), 0.0))
    free = [k for places in bodies.values() for k in places if expected[k] > 1e-3 * spread * np.sqrt(covariance[k, k])]
    assert len(free) > 10
    np.testing.assert_allclose(draws.theta[:, free].std(axis=0), expected[free], rtol=0.06)


def test_draws_at_the_border_are_consistent_and_keep_most_of_the_spread() -> None:
    """Friction of zero with a standard error: half of the posterior is outside the set, whatever the method."""
    model, theta = arm()
    estimate, _ = identified(model, theta, 0.01)
    place = estimate.names.index("Fc2")
    values, covariance, full = estimate.values.copy(), estimate.covariance.copy(), estimate.theta.copy()
    values[place] = full[model.parameters.index("Fc2")] = 0.0
    covariance[place] *= 100.0
    covariance[:, place] *= 100.0
    held = replace(estimate, values=values, theta=full).with_covariance(covariance)
    draws = held.draws(COUNT // 2, seed=2)  # a standard deviation is known to 2 %
    assert_consistent(held, draws.theta)
    assert draws.rounds > 0 and 0.3 < np.mean(~draws.kept_base)
    std = np.sqrt(covariance[place, place])
    drawn = draws.values[:, place]
    # Clipping at zero leaves a standard deviation of 0.58 and a mean of 0.40; matched moments are nearer to 1 and 0.
    clipped = np.maximum(np.random.default_rng(0).normal(size=100_000), 0.0)
    assert drawn.min() >= 0.0 and drawn.std() / std > clipped.std() and drawn.mean() / std < clipped.mean() + 0.05
    others = np.arange(len(values)) != place
    ratio = draws.values[:, others].std(axis=0) / np.sqrt(np.diag(covariance))[others]
    assert np.abs(ratio - 1.0).max() < 0.1
    assert "No consistent robot" in " ".join(draws.sentences)


@pytest.mark.slow
def test_torques_scatter_as_stated_where_consistency_restricts_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Friction at its bound cannot have the stated spread, so the free combinations have more than theirs."""
    model, theta = arm()
    estimate, regression = identified(model, theta, 0.01)
    values, full = estimate.values.copy(), estimate.theta.copy()
    for name in ("Fc1", "Fc2", "Fc3", "Fv1", "Fv3"):
        values[estimate.names.index(name)] = full[model.parameters.index(name)] = 0.0
    held = replace(estimate, values=values, theta=full)
    draws = held.draws(COUNT, seed=2, regression=regression)
    assert_consistent(held, draws.theta)
    assert 1.02 < draws.inflation < 1.5 and "so that the spread of torques is as stated" in " ".join(draws.sentences)
    assert draws.torque_spread(regression).matches
    monkeypatch.setattr(consistent_sets, "_MAX_INFLATION", 1.0)
    plain = held.draws(COUNT, seed=2, regression=regression)
    measured, without = (np.mean(one.torque_spread(regression).ratio ** 2) for one in (draws, plain))
    assert abs(measured - 1.0) < 0.03 and without < 0.97


def test_known_values_are_in_every_draw_and_seeds_repeat() -> None:
    model, theta = arm()
    samples = motion(model, theta, 0.01 * np.random.default_rng(1).normal(size=(4000, 3)))
    name = "Fv2"
    known = {name: float(theta[model.parameters.index(name)])}
    estimate = identify(Problem.from_model(model, samples, known=known), method="pc-wls")
    draws = estimate.draws(20, seed=4)
    assert np.all(draws.theta[:, model.parameters.index(name)] == known[name])
    assert np.array_equal(draws.theta, estimate.draws(20, seed=4).theta)
    assert not np.array_equal(draws.theta, estimate.draws(20, seed=5).theta)


def test_each_draw_is_an_estimate() -> None:
    model, theta = arm()
    estimate, _ = identified(model, theta, 0.01)
    draws = estimate.draws(5)
    models = list(draws)
    assert len(models) == len(draws) == 5
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 4, 3))
    np.testing.assert_allclose(models[2].predict(q, dq, ddq), model.inverse_dynamics(draws.theta[2], q, dq, ddq))
    np.testing.assert_allclose(models[2].values, estimate.base.matrix @ draws.theta[2])


def test_bad_input_is_refused() -> None:
    model, theta = arm()
    estimate, regression = identified(model, theta, 0.01)
    with refused(ModelError, "wrong-number-of-draws", "0"):
        estimate.draws(0)
    with refused(ModelError, "wrong-spread", "2"):
        estimate.draws(3, spread=2.0)
    with refused(NotPossibleError, "base-parameters-only", "pc-wls", "--method"):
        replace(estimate, theta=None).draws(3)
    with refused(NotPossibleError, "no-covariance"):
        estimate.with_covariance(np.full_like(estimate.covariance, np.nan)).draws(3)
    broken = estimate.theta.copy()
    broken[model.parameters.bodies["link3"][9] if "link3" in model.parameters.bodies else 9] = -1.0
    with refused(NotPossibleError, "not-consistent", "pc-wls"):
        replace(estimate, theta=broken).draws(3)
    other, _ = identified(*machines()[1][1:3], 0.01, seconds=5.0)
    with refused(ModelError, "other-parameters"):
        other.draws(3).torque_spread(regression)
    with refused(ModelError, "other-parameters"):
        other.draws(3, regression=regression)
