"""Noise that equations of a robot with a free base have in common, against direct sums and known correlations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import toeplitz
from walkers import quadruped

from dynid.estimate import Problem
from dynid.floating import Contact, prepare_floating
from dynid.floating.virtual_walker import standing_motion, virtual_log
from dynid.model import Model
from dynid.regression.noise_spectrum import common_noise_matrix, have_common_noise, residual_correlation
from dynid.robot import Robot


@pytest.fixture(scope="module")
def problem() -> Problem:
    robot = Robot.load(quadruped())
    feet = [Contact(f"{leg}_toe") for leg in ("FL", "FR", "RL", "RR")]
    motion = standing_motion(robot, feet, np.tile([0.0, 0.8, -1.6], 4), duration=1.5, rate=100.0, seed=3)
    log = virtual_log(robot, feet, motion)
    return Problem.from_model(Model(robot), [prepare_floating(robot, log, "wrenches", cutoff=10.0)])


def test_the_matrix_is_the_sum_over_all_pairs_of_equations(problem):
    equations, rng = problem.equations, np.random.default_rng(0)
    count, lags, size = len(equations.joints), 30, 4096
    # Spectra of moving averages, which are positive.
    shapes = [np.correlate(taps, taps, "full")[lags - 1:] for taps in rng.uniform(0.1, 1.0, (count, lags))]
    mixed = rng.normal(size=(count, 3))
    rho = mixed @ mixed.T + np.eye(count)
    rho /= np.sqrt(np.outer(np.diag(rho), np.diag(rho)))
    weights = rng.uniform(0.5, 2.0, count)
    work = equations.pieces()
    found = common_noise_matrix(equations, work, shapes, rho, weights)

    spectra = []
    for shape in shapes:
        kernel = np.zeros(size)
        kernel[:lags], kernel[1 - lags:] = shape, shape[:0:-1]
        spectra.append(np.sqrt(np.maximum(np.fft.rfft(kernel).real, 0.0)))
    direct = np.zeros_like(found)
    for piece in work:
        rows = equations.rows(piece)
        x = [np.where(rows.keep[:, j], rows.joint(j)[:-1], 0.0) for j in range(count)]
        for i in range(count):
            for j in range(count):
                if i != j:
                    between = toeplitz(np.fft.irfft(spectra[i] * spectra[j], size)[:x[i].shape[1]])
                    own = np.ix_(equations.layout.columns[i], equations.layout.columns[j])
                    direct[own] += rho[i, j] * (weights[i] * weights[j]) ** 2 * x[i] @ between @ x[j].T
    np.testing.assert_allclose(found, direct, atol=1e-3 * np.abs(direct).max())


def test_only_a_free_base_has_common_noise(problem):
    assert have_common_noise(problem.equations)
    fixed = Model(Robot.load(quadruped(), fixed_base=True))
    assert not have_common_noise(Problem.from_model(fixed, _samples_of(fixed)).equations)


def _samples_of(model: Model):
    from dynid.recording import Recording
    from dynid.recording.sample_preparation import prepare
    t, rng = np.arange(200) / 100.0, np.random.default_rng(1)
    q = np.cumsum(rng.normal(size=(200, model.dof)), axis=0) * 0.01
    return [prepare(Recording(t, q, q, joints=model.robot.joint_names), cutoff=10.0)]


def test_correlation_at_the_frequencies_of_the_regressor():
    """Slow noise is common to two of three equations, fast noise to none; only the slow one counts."""
    rng, rows = np.random.default_rng(5), 40_000
    smooth = np.ones(40) / 40.0
    common, *own = (np.convolve(rng.normal(size=rows), smooth, "same") for _ in range(4))
    slow = np.stack([common + 0.5 * own[0], common + 0.5 * own[1], own[2]], axis=1)
    residual = slow + rng.normal(size=slow.shape)
    window = np.correlate(smooth, smooth, "full")
    keep = np.ones(residual.shape, dtype=bool)
    rho = residual_correlation(residual, keep, [window[39:]] * 3)
    slow_power, white_power = np.sum(window ** 2), window.max()  # in the band of the window
    true = slow_power / (1.25 * slow_power + white_power)
    assert abs(rho[0, 1] - true) < 0.1 and np.abs(rho[:2, 2]).max() < 0.15
    everywhere = residual_correlation(residual, keep, [None] * 3)
    assert abs(everywhere[0, 1] - white_power / (1.25 * white_power + 1.0)) < 0.03
    none = residual_correlation(rng.normal(size=(rows, 3)), keep, [None] * 3)
    assert np.abs(none - np.eye(3)).max() < 0.03
