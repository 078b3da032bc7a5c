"""Shared and own parameters of a fleet: the sum over robots is the one big least-squares problem."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import arm, fourier

from dynid.arrays import Array
from dynid.datasets.log_fold import LogFold, ManifestEntry
from dynid.fleet.robot_fold import RobotFold
from dynid.fleet.shared import consistent_shared_estimate, shared_columns, shared_estimate
from dynid.model import Model
from dynid.recording import Samples
from dynid.regression import Regression, base_parameters, fold, prepared_equations


def robots_of(count: int, *, noise: float = 0.05, seconds: float = 5.0, friction: float = 0.3,
              seed: int = 0) -> tuple[Model, list[RobotFold], list[list[Samples]], Array]:
    """Robots with equal links and friction of their own: model, folds, samples of each, true values (robots,
    parameters)."""
    model, theta = arm()
    base, rng = base_parameters(model), np.random.default_rng(seed)
    folds, data, truth = [], [], []
    own = ~model.parameters.of_group("body", "rotor")
    for k in range(count):
        mine = np.where(own, theta * rng.uniform(1.0 - friction, 1.0 + friction, len(theta)), theta)
        logs = []
        for part in range(2):
            q, dq, ddq = fourier(model.dof, seconds=seconds, seed=7 * k + part)
            tau = model.inverse_dynamics(mine, q, dq, ddq)
            logs.append(Samples.from_arrays(q, dq, ddq, tau + noise * rng.normal(size=tau.shape), rate=200.0))
        folded = [LogFold(ManifestEntry(f"{k}-{part}", f"{k}-{part}", len(log), 0.0, seconds),
                          fold(prepared_equations(model, log, base), blocks=1)) for part, log in enumerate(logs)]
        folds.append(RobotFold.from_folds(f"robot {k}", folded))
        data.append(logs)
        truth.append(mine)
    return model, folds, data, np.array(truth)


def big_problem(model: Model, folds: list[RobotFold], data: list[list[Samples]]) -> tuple[Array, Array, Array]:
    """All rows of all robots in one matrix, shared columns first and then each robot's own; torques; shared."""
    base = folds[0].regression.base
    shared = shared_columns(base)
    s, o = int(shared.sum()), int((~shared).sum())
    rows, torques = [], []
    for k, (robot, logs) in enumerate(zip(folds, data, strict=True)):
        for log in logs:
            y = model.regressor(log.q, log.dq, log.ddq)[:, :, base.independent] * robot.weights[:, None]
            wide = np.zeros((len(log) * model.dof, s + o * len(folds)))
            wide[:, :s] = y[:, :, shared].reshape(-1, s)
            wide[:, s + o * k:s + o * (k + 1)] = y[:, :, ~shared].reshape(-1, o)
            rows.append(wide)
            torques.append((log.tau * robot.weights).ravel())
    return np.vstack(rows), np.concatenate(torques), shared


def test_the_sum_over_twenty_robots_is_the_one_big_problem() -> None:
    model, folds, data, _ = robots_of(20, seconds=2.5)
    found = shared_estimate(folds)
    x, y, shared = big_problem(model, folds, data)
    solution, *_ = np.linalg.lstsq(x, y, rcond=None)
    s, o = int(shared.sum()), int((~shared).sum())
    size = np.abs(solution).max()
    assert np.abs(found.values[0, found.shared] - solution[:s]).max() < 1e-9 * size
    for k in range(20):
        assert np.abs(found.values[k, ~shared] - solution[s + o * k:s + o * (k + 1)]).max() < 1e-9 * size


def test_a_parameter_that_no_log_excites_has_a_finite_value_and_an_infinite_standard_error() -> None:
    _, folds, _, _ = robots_of(3)
    friction = folds[0].regression.base.names.index("Fv2")
    folds[1] = replace(folds[1], regression=_without(folds[1].regression, friction))
    for found in (shared_estimate(folds), shared_estimate(folds, gains=0.05), consistent_shared_estimate(folds)):
        assert np.isfinite(found.values).all() and np.isfinite(found.gains).all()
        assert np.argwhere(np.isinf(found.std)).tolist() == [[1, friction]]
        assert found.values[1, friction] == 0.0


def _without(regression: Regression, column: int) -> Regression:
    """The regression of logs in which the column of one base parameter is zero."""
    factors = tuple(replace(factor, r=np.where([*(factor.columns == column), False], 0.0, factor.r))
                    for factor in regression.factors)
    return replace(regression, factors=factors)


def test_stated_deviations_cover_the_truth() -> None:
    worst = []
    for seed in range(5):
        _, folds, _, truth = robots_of(8, seed=seed)
        found = shared_estimate(folds)
        errors = (found.values - truth @ folds[0].regression.base.matrix.T) / found.std
        worst.append(np.concatenate([errors[0, found.shared], errors[:, ~found.shared].ravel()]))
    rms = float(np.sqrt(np.mean(np.concatenate(worst) ** 2)))
    assert 0.8 < rms < 1.25


def test_gains_of_each_robot_are_found() -> None:
    model, folds, _, _ = robots_of(12, noise=0.02)
    rng = np.random.default_rng(3)
    gains = 1.0 + 0.05 * rng.normal(size=(12, model.dof))
    # A drive that gives more than the controller believes: the log says less than the joint feels.
    weaker = [RobotFold(robot.name, _divided(robot.regression, own), None, robot.weights * own)
              for robot, own in zip(folds, gains, strict=True)]
    found = shared_estimate(weaker, gains=0.05)
    ratio = found.gains * gains  # reported factor times the drive's own: alike for all robots
    assert np.abs(ratio / ratio.mean(axis=0) - 1.0).max() < 0.01


def _divided(regression: Regression, gains: Array) -> Regression:
    factors = []
    for factor, gain in zip(regression.factors, gains, strict=True):
        r = factor.r.copy()
        r[:, -1] /= gain
        factors.append(replace(factor, r=r, power=factor.power / gain ** 2))
    return replace(regression, factors=tuple(factors))


def test_the_consistent_form_agrees_with_cvxpy() -> None:
    cvxpy = pytest.importorskip("cvxpy")
    from dynid.robot import inertia as ten
    model, folds, data, _ = robots_of(5, noise=3.0, seconds=2.0, friction=0.95, seed=1)
    found = consistent_shared_estimate(folds)
    base, shared = folds[0].regression.base, found.shared
    x, y, _ = big_problem(model, folds, data)
    o = int((~shared).sum())
    r = np.linalg.qr(np.column_stack([x, y]), mode="r")
    theta = cvxpy.Variable(len(base.parameters))
    own = [cvxpy.Variable(o) for _ in folds]
    scale = np.abs(r[:, -1]).max()
    values = cvxpy.hstack([base.matrix[shared] @ theta, *own])
    limits = [sum(theta[places[9]] for places in base.parameters.bodies.values()) <= 1000.0]
    for places in base.parameters.bodies.values():
        matrix = sum(ten.pseudo_inertia(np.eye(10)[k]) * theta[places[k]] for k in range(10))
        limits.append(matrix - 1e-9 * np.eye(4) >> 0)
    rotors = [k for k, item in enumerate(base.parameters) if item.kind.group == "rotor"]
    limits += [theta[k] >= 0 for k in rotors]
    items = [base.parameters.items[base.independent[c]] for c in np.flatnonzero(~shared)]
    limits += [one[k] >= 0 for one in own for k, item in enumerate(items) if item.positive]
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares((r[:, :-1] @ values - r[:, -1]) / scale)), limits)
    program.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    beta = np.concatenate([base.matrix[shared] @ theta.value, *[one.value for one in own]])
    ours = np.concatenate([found.values[0, found.shared], *[row[~shared] for row in found.values]])
    assert any(row[c] == 0.0 for row in found.values for c in np.flatnonzero(~shared))  # a condition was met
    misfit = [float(np.sum((r[:, :-1] @ one - r[:, -1]) ** 2)) for one in (ours, beta)]
    assert misfit[0] == pytest.approx(misfit[1], rel=1e-6)
    assert np.linalg.norm(r[:, :-1] @ (ours - beta)) < 1e-3 * np.linalg.norm(r[:, -1])
