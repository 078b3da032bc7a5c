"""Blocks of time that the other blocks do not determine, against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.estimate import Problem, identify
from dynid.model import Model
from dynid.recording import Samples
from dynid.robot import Robot
from dynid.validate.block_repetition import unrepeated_blocks, unrepeated_finding
from dynid.validate.cross_validation import CrossValidation, cross_validate
from dynid.validate.grade import unseen_error
from dynid.validate.reconstruction import reconstruct

ROWS, BLOCKS, NOISE = 1000, 10, 0.05
ALONE = slice(300, 400)  # the fourth block


def fitted(swing: float) -> tuple[Samples, Problem, object, CrossValidation]:
    """A log of an arm whose last two joints move by `swing` of their motion outside of the fourth block."""
    model, rng = Model(Robot.load("arm3r")), np.random.default_rng(0)
    q, dq, ddq = rng.uniform(-1.0, 1.0, size=(3, ROWS, 3))
    share = np.full(ROWS, swing)
    share[ALONE] = 1.0
    for signal in (q, dq, ddq):
        signal[:, 1:] *= share[:, None]
    tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq) + NOISE * rng.normal(size=(ROWS, 3))
    samples = Samples.from_arrays(q, dq, ddq, tau, rate=100.0)
    problem = Problem.from_model(model, samples, blocks=BLOCKS)
    estimate = identify(problem, method="wls")
    return samples, problem, estimate, cross_validate(problem, "wls", estimate=estimate)


def test_a_block_with_motion_of_its_own():
    samples, problem, estimate, cross = fitted(1e-3)
    assert int(np.argmax(cross.errors)) == 3 and cross.mean > 3.0 * np.median(cross.errors)
    found = unrepeated_blocks(problem, estimate, cross)
    assert found is not None and found.numbers == (3,)
    others = np.delete(cross.errors, 3)
    assert found.error == pytest.approx(others.mean())
    # The covariance of the parameters from the other blocks, and the variance of their prediction in the fourth one.
    rows = problem.model.regressor(samples.q, samples.dq, samples.ddq)[:, :, problem.base.independent]
    residual = samples.tau - rows @ estimate.values
    rows = rows / np.sqrt(np.mean(residual ** 2, axis=0))[:, None]
    inside = np.zeros(ROWS, dtype=bool)
    inside[ALONE] = True
    rest, own = rows[~inside].reshape(-1, rows.shape[2]), rows[inside].reshape(-1, rows.shape[2])
    variance = np.einsum("ij,jk,ik->i", own, np.linalg.inv(rest.T @ rest), own)
    assert found.expected[0] == pytest.approx(np.sqrt(variance.mean()), rel=1e-6)
    assert unseen_error(reconstruct(estimate, samples), (), cross, found) == (found.error, "cross-validation")
    finding = unrepeated_finding(problem, cross, found)
    assert finding.kind == "not-excited" and "3 to 3.99 s" in finding.title and "longer log" in finding.text


def test_blocks_that_repeat_each_other():
    _, problem, estimate, cross = fitted(1.0)
    assert unrepeated_blocks(problem, estimate, cross) is None


def test_a_disturbance_in_a_block_that_the_others_determine():
    """An unusual error is not excused: the other blocks determine the parameters."""
    samples, problem, _, _ = fitted(1.0)
    tau = samples.tau.copy()
    tau[ALONE] += 20.0
    disturbed = Problem.from_model(problem.model,
                                   Samples.from_arrays(samples.q, samples.dq, samples.ddq, tau, rate=100.0),
                                   blocks=BLOCKS)
    estimate = identify(disturbed, method="wls")
    cross = cross_validate(disturbed, "wls", estimate=estimate)
    assert int(np.argmax(cross.errors)) == 3
    assert unrepeated_blocks(disturbed, estimate, cross) is None
