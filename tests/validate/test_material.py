"""What is no fault is not called one: noise of the positions in residuals, blocks of time with little torque."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import arm, fourier

from dynid.arrays import Array
from dynid.estimate import Estimate, Problem, identify
from dynid.estimate.motion_errors import noise_torques
from dynid.model import Model, make_terms
from dynid.recording import Recording, Samples
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.validate import Verdict, cross_validate, reconstruct, verdict

RATE = 250.0


def noisy(seed: int, more: float = 0.0) -> tuple[Recording, Model, Array]:
    """A log of the 3R arm with white noise of 1 mrad on its positions and a little on its torques; more: of each
    joint's RMS torque, a sine of 1.7 Hz that no term of the model has."""
    model, theta = arm()
    rng = np.random.default_rng([seed, 3])
    q, dq, ddq = fourier(model.dof, rate=RATE, seed=seed)
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    size = np.sqrt(np.mean(tau ** 2, axis=0))
    t = np.arange(len(q)) / RATE
    tau = tau + size * (0.002 * rng.normal(size=tau.shape) + more * np.sqrt(2.0) * np.sin(2 * np.pi * 1.7 * t)[:, None])
    return Recording(t, q + 1e-3 * rng.normal(size=q.shape), tau), model, theta


def judged(log: Recording, model: Model) -> tuple[Verdict, Estimate, Samples]:
    samples = prepare(log, cutoff=10.0)
    problem = Problem.from_model(model, samples, recordings=log)
    estimate = identify(problem, method="wls")
    return verdict(estimate, problem, reconstruction=reconstruct(estimate, samples)), estimate, samples


def test_torques_of_the_positions_noise_are_those_it_makes() -> None:
    log, model, theta = noisy(1)
    samples = prepare(log, cutoff=10.0)
    q, _, _ = fourier(model.dof, rate=RATE, seed=1)
    clean = prepare(replace(log, q=q), cutoff=10.0, slow=samples.settings["slow"])
    found = identify(Problem.from_model(model, samples), method="wls")
    truth = replace(found, values=found.base.reduce(theta))
    [seen], [without] = truth.residuals(samples), truth.residuals(clean)
    expected = [np.sqrt(np.mean((seen.predicted - without.predicted)[seen.keep[:, j], j] ** 2)) for j in range(3)]
    assert noise_torques(truth, [samples]) == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("seed", [4, 7, 12])
def test_noise_of_the_positions_colours_a_residual_and_is_no_missing_term(seed: int) -> None:
    log, model, _ = noisy(seed)
    found, estimate, samples = judged(log, model)
    coloured = [joint.joint for joint in found.tests.joints if joint.whiteness and joint.whiteness.autocorrelated]
    own = reconstruct(estimate, samples)
    assert any((fit.rms or 0.0) > 0.05 * (fit.torque_rms or 0.0) for fit in own.joints if fit.name in coloured)
    assert [joint.noise for joint in found.tests.joints] == pytest.approx([1.0, 1.0, 1.0], abs=0.35)
    assert found.of_kind("problem") == ()


@pytest.mark.parametrize("seed", [1, 4])
def test_what_is_not_modelled_is_said_beside_noise_of_the_positions(seed: int) -> None:
    log, model, _ = noisy(seed, more=0.3)
    found, _, _ = judged(log, model)
    assert [one.joints for one in found.of_kind("problem") if one.code == "residuals-autocorrelated"] == [
        tuple(log.joints or model.robot.joint_names)]


@pytest.mark.parametrize(("disturbed", "named"), [(0.0, False), (1.0, True)])
def test_a_block_with_little_torque_is_not_odd(disturbed: float, named: bool) -> None:
    """Without gravity a slow stretch needs few torques, of which the noise of the others is a large share. A
    disturbance there as large as the torques elsewhere is odd."""
    robot = Robot.builtin("arm3r").with_gravity(np.zeros(3))
    model = Model(robot, make_terms(robot, defaults=True))
    theta = np.array([0.0 if p.nominal is None or p.name.startswith("F") else p.nominal for p in model.parameters])
    q, dq, ddq = fourier(model.dof, rate=RATE, seed=3)
    slow = slice(3000, 3500)  # one block of ten
    q[slow], dq[slow], ddq[slow] = q[slow], 0.03 * dq[slow], 0.03 * ddq[slow]
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    size = np.sqrt(np.mean(tau ** 2, axis=0))
    tau += 0.01 * size * np.random.default_rng(4).normal(size=tau.shape)
    tau[slow] += disturbed * size * np.sin(np.arange(500) / 20)[:, None]
    problem = Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=RATE))
    estimate = identify(problem, method="wls")
    cross = cross_validate(problem, "wls", estimate=estimate)
    assert cross.worst == 6 and cross.errors[6] > 3.0 * np.median(cross.errors) + 2.0  # relative to its own torques
    found = verdict(estimate, problem, cross=cross)
    odd = [one for one in found.findings if one.code == "odd-block"]
    assert bool(odd) == named
    if odd:
        power = [sum(factor.power for factor in block.factors) for block in problem.regression.blocks]
        assert odd[0].evidence["block"] == 7
        assert odd[0].evidence["error"] == pytest.approx(cross.errors[6] * np.sqrt(power[6] / np.mean(power)), rel=1e-2)
