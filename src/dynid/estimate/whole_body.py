"""Identification of a robot with a free base from its logs, with the uncertainty that the bias of an IMU adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.datasets.identifiable import DataFacts, identifiable_base
from dynid.estimate.estimate import Estimate
from dynid.estimate.problem import Problem, identify
from dynid.estimate.uncertainty import Uncertainty
from dynid.floating import FloatingEquations, FloatingLog, floating_base_parameters, prepare_floating
from dynid.floating.facts import Facts, symmetry, total_mass
from dynid.floating.identifiable import equation_noise
from dynid.floating.preparation import DEFAULT_GUARD, WholeBody
from dynid.model import Model, robot_model
from dynid.recording import Samples
from dynid.regression.known import KnownValues, Prior
from dynid.robot import Robot

BIAS_ROWS = 600  # samples per log for the effect of a bias


@dataclass(frozen=True, eq=False)
class WholeBodyEstimate:
    """An estimate of a robot with a free base, and the equations from which it was computed.

    Attributes:
        estimate: the parameters.
        problem: the equations it was computed from.
        equations: kind of the equations.
        identifiable: number of base parameters that these equations can identify with sufficient excitation.
        of_whole_robot: number of base parameters of the whole robot.
        noise: standard deviations of the equations (6 + n,) by which projected rows were whitened, or None.
    """

    estimate: Estimate
    problem: Problem
    equations: FloatingEquations
    identifiable: int
    of_whole_robot: int
    noise: np.ndarray | None = None

    def statement(self) -> str:
        """Sentence that states how many parameters the equations can identify."""
        return (f"Equations '{self.equations}' can identify {self.identifiable} of the {self.of_whole_robot} base "
                "parameters of the whole robot.")


def identify_floating(model: Model, logs: FloatingLog | Sequence[FloatingLog], equations: FloatingEquations,
                      method: str = "wls", *, mass: tuple[float, float] | None = None,
                      mirrored: bool | Mapping[str, str] = False, mirror_std: float = 0.01,
                      known: KnownValues | None = None, blocks: int = 10, prepare: Mapping[str, Any] | None = None,
                      **options: Any) -> WholeBodyEstimate:
    """Identify a robot with a free base from its logs.

    Args:
        model: model of a robot with a free base.
        logs: one log or several.
        equations: "wrenches", "base", "projected" or "flight", see `dynid.floating.prepare_floating`.
        method: name of a method, as `dynid.identify` takes it. "ridge" and "pc-ridge" regularise toward the nominal
            values of the robot file (CAD).
        mass: total mass of the robot and its standard deviation, kg.
        mirrored: whether left and right links are mirror images, or the pairs {left: right}.
        mirror_std: relative standard deviation of the difference between left and right.
        known: standard parameters whose values are known.
        blocks: number of blocks of time for cross-validation.
        prepare: options of `dynid.prepare`, such as {"cutoff": 8.0}.
        options: options of the method.

    Projected equations are fitted twice: the residuals of the first fit give the noise of each coordinate, by which the
    rows of the second fit are whitened.
    """
    every = (logs,) if isinstance(logs, FloatingLog) else tuple(logs)
    robot, chosen = model.robot, dict(prepare or {})
    base = identifiable_base(model, DataFacts(bodies=_bodies(robot, every, equations)))
    whole = len(floating_base_parameters(model, "wrenches")) if equations != "wrenches" else len(base)
    facts = [total_mass(model, *mass)] if mass is not None else []
    if mirrored is not False:
        facts.append(symmetry(model, None if mirrored is True else mirrored, std=mirror_std))

    def weighted_problem(noise: np.ndarray | None) -> Problem:
        samples = [prepare_floating(robot, log, equations, noise=noise, **chosen) for log in every]
        found = Problem.from_model(model, samples, base=base, known=known, blocks=blocks)
        return with_facts(found, facts)

    problem, noise = weighted_problem(None), None
    if equations == "projected":
        first = identify(problem, method="ols")
        noise = equation_noise(problem.equations, first.values)
        problem = weighted_problem(noise)
    estimate = identify(problem, method=method, **options)
    estimate = with_imu_errors(estimate, problem, _bodies(robot, every, equations, noise))
    return WholeBodyEstimate(estimate, problem, equations, len(base), whole, noise)


def _bodies(robot: Robot, logs: Sequence[FloatingLog], equations: FloatingEquations,
            noise: np.ndarray | None = None) -> tuple[WholeBody, ...]:
    return tuple(WholeBody(robot, log, equations, noise, DEFAULT_GUARD, 0) for log in logs)


def with_facts(problem: Problem, facts: Sequence[Facts]) -> Problem:
    """Return the problem with additional linear equations of standard parameters as prior information."""
    if not facts:
        return problem
    matrix, values = np.vstack([one[0] for one in facts]), np.concatenate([one[1] for one in facts])
    known = problem.base.known_vector
    prior = Prior.from_facts(problem.base, matrix, values - matrix @ known)
    before = problem.regression.prior
    return replace(problem, regression=replace(problem.regression,
                                               prior=prior if before is None else before.and_also(prior)))


def with_imu_errors(estimate: Estimate, problem: Problem, bodies: Sequence[WholeBody]) -> Estimate:
    """Return the estimate with a covariance that contains the standard error of each log's accelerometer bias.

    A constant error b of the specific force changes the right-hand side by M(q)[:, :3] R b, with M the inertia matrix
    and R the rotation of the IMU on the root link. Least squares propagates the error to the parameters.
    """
    model = robot_model(problem.model)
    if model is None or estimate.base is not problem.base or len(bodies) != len(problem.data) or not any(
            one.log.base_motion == "imu" for one in bodies):
        return estimate

    def wider(found: Uncertainty) -> Uncertainty:
        known, covariance = np.isfinite(np.diag(found.covariance)), found.covariance.copy()
        covariance[np.ix_(known, known)] += _from_bias(estimate, problem, bodies, model, known)
        return replace(found, covariance=covariance)

    return replace(estimate, uncertainty_of=estimate.uncertainty_of.then(wider))


def _from_bias(estimate: Estimate, problem: Problem, bodies: Sequence[WholeBody], model: Model, known: Array) -> Array:
    """Return the covariance (base, base) of the parameters that accelerometer biases of all logs cause."""
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
    if prior is not None:  # prior knowledge limits the effect of a bias in the same way as that of noise
        rows = prior.strength * prior.matrix[:, known]
        normal += rows.T @ rows
    scale = np.sqrt(np.maximum(np.diag(normal), 1e-300))
    inverse = np.linalg.pinv(normal / np.outer(scale, scale), rcond=1e-12, hermitian=True)
    moved = (inverse @ (np.hstack(effects) / scale[:, None])) / scale[:, None]
    return np.asarray(moved @ moved.T)


def _rows(whole: WholeBody, samples: Samples, model: Model, estimate: Estimate, rows: Array, columns: Array
          ) -> tuple[Array, Array, Array]:
    """Return regressor (k, columns), effect of an accelerometer bias (k, 3) and weights (k,) of some samples."""
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
