"""Random bodies, arms and regressions for the tests of consistency."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from dynid.consistency import Consistency
from dynid.model import Model, Parameter, Parameters, make_terms
from dynid.recording import Samples
from dynid.regression import TorqueEquations, base_parameters, fold
from dynid.robot import Robot
from dynid.robot import inertia as ten


def random_body(rng: np.random.Generator) -> np.ndarray:
    """Ten numbers of a cloud of point masses: consistent by construction."""
    points = rng.normal(size=(12, 3)) * rng.uniform(0.02, 0.3) + rng.normal(size=3) * 0.2
    masses = rng.uniform(0.01, 1.0, 12)
    homogeneous = np.column_stack([points, np.ones(12)])
    return ten.from_pseudo_inertia((homogeneous * masses[:, None]).T @ homogeneous)


def bodies(count: int, extra: tuple[str, ...] = ()) -> Parameters:
    """Parameters of free bodies link1, link2, .. and some positive ones."""
    items = [Parameter(f"{name}{k}", unit, k - 1, f"link{k}", body=f"link{k}")
             for k in range(1, count + 1) for name, unit in zip(ten.NAMES, ten.UNITS, strict=True)]
    return Parameters(tuple(items) + tuple(Parameter(name, "N m", 0, "joint1", positive=True) for name in extra))


def arm_problem(links: int, seed: int = 0, samples: int = 120, noise: float = 0.3):
    """Model, true parameters, base parameters and folded noisy data of a random arm with friction."""
    rng = np.random.default_rng(seed)
    rows = [{"alpha": float(rng.choice([0.0, np.pi / 2, -np.pi / 2])) if k else 0.0,
             "a": float(rng.uniform(0, 0.3)) if k else 0.0, "d": float(rng.uniform(0, 0.3))} for k in range(links)]
    robot = Robot.from_mdh(rows, name="arm", notation="craig").with_inertias(
        np.array([random_body(rng) for _ in range(links)]))
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb")))
    theta = np.array([0.3 if p.nominal is None else p.nominal for p in model.parameters])
    q = rng.uniform(-3, 3, (samples, links))
    dq, ddq = rng.normal(size=(2, samples, links)) * [[[1.0]], [[2.0]]]
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    tau += noise * tau.std(axis=0) * rng.normal(size=tau.shape)
    base = base_parameters(model)
    return model, theta, base, fold(TorqueEquations.from_model(model, Samples.from_arrays(q, dq, ddq, tau), base))


def oracle(consistency: Consistency, matrix: np.ndarray, rho: np.ndarray) -> float:
    """The least |matrix theta - rho|^2 over the set, by cvxpy."""
    scale = np.ones(matrix.shape[1])  # kilograms and decimetres: cvxpy passes numbers on as they are
    for columns in consistency.bodies.values():
        scale[columns] = [1e-2] * 6 + [1e-1] * 3 + [1.0]
    theta = cp.multiply(scale, cp.Variable(matrix.shape[1]))
    size = max(float(np.linalg.norm(rho)) * 1e-2, 1e-12)
    conditions = []
    for columns in consistency.bodies.values():
        p = sum(theta[int(c)] * consistency.basis[k] for k, c in enumerate(columns))
        conditions.append(p - consistency.margin * np.eye(len(consistency.basis[0])) >> 0)
    conditions += [theta[int(k)] >= 0 for k in np.flatnonzero(consistency.parameters.positive)]
    conditions.append(sum(theta[int(c[9])] for c in consistency.bodies.values()) <= consistency.heaviest)
    for body, limit in consistency.centres.items():
        c = consistency.bodies[body]
        for axis in range(3):
            conditions += [theta[int(c[6 + axis])] >= limit.low[axis] * theta[int(c[9])],
                           theta[int(c[6 + axis])] <= limit.high[axis] * theta[int(c[9])]]
    for limit in consistency.masses:
        mass = sum(theta[int(consistency.bodies[body][9])] for body in limit.bodies or consistency.bodies)
        conditions += [mass == limit.low] if limit.equal else [mass <= limit.high]
    conditions += [rows @ theta >= 0 for rows in consistency.dissipating.values()]
    for name, high in consistency.largest.items():
        conditions.append(cp.abs(theta[consistency.parameters.index(name)]) <= high)
    problem = cp.Problem(cp.Minimize(cp.sum_squares((matrix @ theta - rho) / size)), conditions)
    problem.solve(solver=cp.CLARABEL, static_regularization_constant=1e-12, tol_gap_abs=1e-9, tol_gap_rel=1e-9,
                  tol_feas=1e-9)
    return float(problem.value) * size ** 2
