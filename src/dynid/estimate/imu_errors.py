"""Uncertainty of an estimate from the bias of an IMU, which is known only to its standard error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.estimate.estimate import Estimate
from dynid.estimate.problem import Problem
from dynid.estimate.uncertainty import Uncertainty
from dynid.floating.preparation import WholeBody
from dynid.model import Model, robot_model
from dynid.recording import Samples

BIAS_ROWS = 600  # samples of a log from which the effect of a bias is computed


def with_imu_errors(estimate: Estimate, problem: Problem, bodies: Sequence[WholeBody]) -> Estimate:
    """Return the estimate with a covariance that contains the standard error of each log's accelerometer bias.

    A constant error b of the specific force changes the right-hand side by M(q)[:, :3] R b, with M the inertia matrix
    and R the rotation of the IMU on the root link. Least squares carries it into the parameters.
    """
    model = robot_model(problem.model)
    if model is None or estimate.base is not problem.base or len(bodies) != len(problem.data) or not any(
            one.log.base_motion == "imu" for one in bodies):
        return estimate

    def wider(found: Uncertainty) -> Uncertainty:
        if not np.all(np.isfinite(np.diag(found.covariance))):
            known = np.isfinite(np.diag(found.covariance))
        else:
            known = np.ones(len(found.covariance), dtype=bool)
        extra = _from_bias(estimate, problem, bodies, model, known)
        covariance = found.covariance.copy()
        covariance[np.ix_(known, known)] += extra
        return replace(found, covariance=covariance)

    return replace(estimate, uncertainty_of=estimate.uncertainty_of.then(wider))


def _from_bias(estimate: Estimate, problem: Problem, bodies: Sequence[WholeBody], model: Model, known: Array) -> Array:
    """Return the covariance (base, base) of the parameters that follows from the accelerometer biases of all logs."""
    columns = estimate.base.independent[known]
    normal, effects = np.zeros((len(columns), len(columns))), list[Array]()
    for whole, samples in zip(bodies, problem.data, strict=True):
        rows = np.linspace(0, len(samples) - 1, min(BIAS_ROWS, len(samples))).astype(int)
        share = len(samples) / len(rows)
        x, d, weight = _rows(whole, samples, model, estimate, rows, columns)
        normal += share * x.T @ (weight[:, None] * x)
        imu = whole.log.imu
        if whole.log.base_motion == "imu" and imu is not None and imu.bias_std is not None:
            effects.append(share * x.T @ (weight[:, None] * d) * np.asarray(imu.bias_std)[3:])
    if not effects:
        return np.zeros_like(normal)
    prior = problem.regression.prior
    if prior is not None:  # total mass and symmetry limit the effect of a bias as they limit that of noise
        rows = prior.strength * prior.matrix[:, known]
        normal += rows.T @ rows
    scale = np.sqrt(np.maximum(np.diag(normal), 1e-300))
    inverse = np.linalg.pinv(normal / np.outer(scale, scale), rcond=1e-12, hermitian=True)
    moved = (inverse @ (np.hstack(effects) / scale[:, None])) / scale[:, None]
    return np.asarray(moved @ moved.T)


def _rows(whole: WholeBody, samples: Samples, model: Model, estimate: Estimate, rows: Array, columns: Array
          ) -> tuple[Array, Array, Array]:
    """Return regressor (k, columns), effect of a bias (k, 3) and weights (k,) of the equations of some samples."""
    q, dq, ddq, tau = (getattr(samples, name)[rows] for name in ("q", "dq", "ddq", "tau"))
    imu = whole.log.imu
    turn = np.eye(3) if imu is None else whole.robot.frame(imu.frame).pose[:3, :3]
    effect = model.inertia_matrix(estimate.full, q)[:, :, :3] @ turn
    left = (tau - model.inverse_dynamics(estimate.full, q, dq, ddq))[:, :, None]
    parts = [model.regressor(q, dq, ddq)[:, :, columns], effect, left]
    if samples.mixing is not None:
        parts = [samples.mixing[rows] @ part for part in parts]
    keep = samples.keep[rows]
    noise = np.array([np.mean(parts[2][keep[:, j], j, 0] ** 2) if np.any(keep[:, j]) else 1.0
                      for j in range(keep.shape[1])])
    weight = np.broadcast_to(1.0 / np.maximum(noise, 1e-300), keep.shape)[keep]
    return parts[0][keep], parts[1][keep], weight
