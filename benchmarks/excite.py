"""Exciting motions for the WAM of Sousa's thesis: exact gradients, finite differences and other searches."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from benchmarks._peers import best
from dynid.arrays import Array
from dynid.excitation import Criterion, Fourier, FourierSeries, Limits, Measurement, PriorKnowledge, Search, excite
from dynid.excitation.search.experiment_design import ExperimentDesign, design_experiment
from dynid.excitation.search.starts import Anchor, random_motion, safe_posture
from dynid.model import Model, make_terms
from dynid.robot import Robot
from dynid.threads import side_by_side
from reproductions._sousa import TRAJECTORY_A

SEEDS = range(5)
WAM_BUDGET, ROBOT_BUDGET = 20.0, 8.0  # s; the WAM is asked for within 60
ROBOTS = ("kuka-lwr4", "franka-panda", "ur10", "staubli-tx40")
RANDOM = 200


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    return {**wam(progress), **gradient(progress), "robots": [other_searches(name, progress) for name in ROBOTS]}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("what", "ours", "compared", "ratio"),
            ("WAM condition number, thesis 107.9", f"{result['wam_condition_median']:.1f}", "107.9",
             f"{107.9 / result['wam_condition_median']:.1f}"),
            ("seconds to 70", f"{result['seconds_to_70_median']:.1f}", "60", ""),
            ("value and gradient, ms; differences", f"{result['gradient_ms']:.2f}", f"{result['differences_ms']:.0f}",
             f"{result['gradient_speedup']:.0f}")]
    for robot in result["robots"]:
        for peer in ("random_median", "random_at_limits_median", "cobyla", "genetic"):
            rows.append((f"{robot['robot']}: largest deviation, {peer.replace('_', ' ')}", f"{robot['ours']:.3g}",
                         f"{robot[peer]:.3g}", f"{robot[peer] / robot['ours']:.1f}"))
    return rows


def default_model(name: str) -> Model:
    robot = Robot.builtin(name)
    return Model(robot, make_terms(robot, defaults=True))


def wam(progress: Callable[[str], None]) -> dict[str, Any]:
    """Return the limits of the WAM: a period of 12.5 s, six harmonics, the joint ranges, and the largest speed and
    acceleration of trajectory A per joint."""
    peaks = FourierSeries(TRAJECTORY_A[:, :6], TRAJECTORY_A[:, 6:12], TRAJECTORY_A[:, 12], 12.5).at(
        np.linspace(0, 12.5, 20001))
    limits = Limits.from_robot(Robot.builtin("barrett-wam"), lower=[-2.6, -2.0, -2.8, -0.9, -4.8, -1.6, -2.2],
                               upper=[2.6, 2.0, 2.8, 3.1, 1.3, 1.6, 2.2], velocity=np.abs(peaks.dq).max(axis=0),
                               acceleration=np.abs(peaks.ddq).max(axis=0), torque=np.inf)
    found = []
    for seed in SEEDS:
        progress(f"WAM, seed {seed}")
        found.append(excite(default_model("barrett-wam"), limits, family=Fourier(12.5, 6, rest=False),
                            measurement=Measurement(rate=32.0), search=Search(WAM_BUDGET, seed=seed)))
        assert found[-1].report.ok
    to_70 = [next((seconds for seconds, value in one.history if value <= 70.0), np.inf) for one in found]
    return {"wam_condition_median": float(np.median([one.condition for one in found])),
            "wam_conditions": [one.condition for one in found],
            "wam_base_parameters": len(found[0].base),
            "seconds_median": float(np.median([one.elapsed for one in found])),
            "seconds_to_70_median": float(np.median(to_70))}


def gradient(progress: Callable[[str], None]) -> dict[str, Any]:
    """Measure gradients for seven joints, 500 samples and 11 coefficients per joint."""
    progress("gradient")
    limits = Limits.from_robot(Robot.builtin("barrett-wam"), velocity=2.0, acceleration=5.0, torque=np.inf)
    problem = design_experiment(default_model("barrett-wam"), limits, Fourier(12.5, rest=False), Criterion("condition"),
                                Measurement(), PriorKnowledge()).problem
    problem = replace(problem, t=np.linspace(0, 12.5, 500))
    z = 0.3 * np.random.default_rng(0).normal(size=(7, 11))
    problem.value_and_gradient(z)

    def differences() -> Array:
        base, out = problem.value(z), np.empty_like(z)
        for index in np.ndindex(z.shape):
            moved = z.copy()
            moved[index] += 1e-7
            out[index] = (problem.value(moved) - base) / 1e-7
        return out

    # One thread of the BLAS, as in the search itself.
    exact, = side_by_side(lambda work: best(work, 30), [lambda: problem.value_and_gradient(z)], 1)
    slow, = side_by_side(lambda work: best(work, 3), [differences], 1)
    return {"gradient_ms": 1e3 * exact, "differences_ms": 1e3 * slow, "gradient_speedup": slow / exact}


def other_searches(name: str, progress: Callable[[str], None]) -> dict[str, Any]:
    """Largest expected deviation (noise 30 dB below the torques) after the same time, and of random motions."""
    progress(f"{name}, random motions")
    model = default_model(name)
    family = Fourier(20.0, 10)
    rng = np.random.default_rng(7)
    plain = design_experiment(model, None, family, "largest", Measurement(), PriorKnowledge())
    theta = np.array([0.0 if p.nominal is None else p.nominal for p in model.parameters])
    safe = safe_posture(plain.problem, 0)
    torques = [model.inverse_dynamics(theta, *plain.samples(plain.problem.family.trajectory(
        random_series(plain, rng, safe, True)))) for _ in range(20)]
    measurement = Measurement(noise=np.sqrt(np.mean(np.square(torques), axis=(0, 1))) * 10 ** (-30 / 20))
    wanted = design_experiment(model, None, family, "largest", measurement, PriorKnowledge())
    result: dict[str, Any] = {"robot": name}
    for key, full in (("random_median", False), ("random_at_limits_median", True)):
        values = [wanted.value(wanted.problem.family.trajectory(random_series(wanted, rng, safe, full)))
                  for _ in range(RANDOM)]
        result[key] = float(np.median(values))
    for peer, search in (("cobyla", cobyla), ("genetic", genetic)):
        progress(f"{name}, {peer}")
        result[peer] = feasible(wanted, search(wanted, safe, rng), safe)
    progress(f"{name}, ours")
    ours = excite(model, family=family, criterion="largest", measurement=measurement, search=Search(ROBOT_BUDGET))
    assert ours.report.ok
    return result | {"ours": ours.value, "gain_over_random": result["random_median"] / ours.value}


def random_series(wanted: ExperimentDesign, rng: np.random.Generator, safe: Array, full: bool) -> Array:
    """A random series with rest at both ends and all velocity coefficients alike (Simionato, eq. 5.1), anywhere in the
    range. full: joint by joint as large as the limits allow, else any size below; smaller where torques need it."""
    problem, family = wanted.problem, wanted.problem.family
    low, high = problem.bounds
    while True:
        z = family.free(family.fixed + rng.uniform(-0.5, 0.5, family.fixed.shape) * (family.family.constant == 0))
        moved = problem.functions @ z.T
        size = np.min([high[s] / np.abs(moved[s]).max(axis=0) for s in (1, 2, 3)], axis=0)
        z *= 0.999 * np.minimum(size, (high[0] - low[0]) / np.ptp(moved[0], axis=0))[:, None]
        z *= 1.0 if full else rng.uniform(0.0, 1.0, (family.dof, 1))
        moved = problem.functions[0] @ z.T
        z += rng.uniform(low[0] - moved.min(axis=0), high[0] - moved.max(axis=0))[:, None] * family.constant_motion(
            np.ones(family.dof))
        resting = family.constant_motion(safe)
        for share in (1.0, 0.8, 0.6, 0.4):
            if problem.nonlinear_excess(resting + share * (z - resting)) <= 0:
                return resting + share * (z - resting)


def penalised(wanted: ExperimentDesign, z: Array) -> float:
    """Return the criterion of the thesis plus a penalty on violated limits."""
    problem = wanted.problem
    excess = max(0.0, problem.excess(problem.signals(z))) + max(0.0, problem.nonlinear_excess(z))
    return problem.value(z) + 10.0 * excess


class _TimeIsOver(Exception):
    pass


def cobyla(wanted: ExperimentDesign, safe: Array, rng: np.random.Generator) -> Array:
    """COBYLA with a penalty (Sousa, s. 4.3.2), from the best of 30 random motions."""
    problem, began = wanted.problem, time.monotonic()
    anchor = Anchor(problem, safe, None)
    z = min((random_motion(anchor, rng) for _ in range(30)), key=lambda one: penalised(wanted, one))
    found = [(penalised(wanted, z), z)]

    def target(x: Array) -> float:
        if time.monotonic() - began > ROBOT_BUDGET:
            raise _TimeIsOver
        moved = x.reshape(problem.unit.shape) * problem.unit
        value = penalised(wanted, moved)
        if value < found[0][0]:
            found[0] = (value, moved)
        return value

    try:
        minimize(target, (z / problem.unit).ravel(), method="COBYLA", options={"rhobeg": 0.1, "maxiter": 10 ** 7})
    except _TimeIsOver:
        pass
    return found[0][1]


def genetic(wanted: ExperimentDesign, safe: Array, rng: np.random.Generator) -> Array:
    """A genetic algorithm with real numbers: tournaments, blends of two parents, mutation, the best two survive."""
    problem, began, size = wanted.problem, time.monotonic(), 40
    anchor = Anchor(problem, safe, None)
    population = [random_motion(anchor, rng) for _ in range(size)]
    scores = np.array([penalised(wanted, z) for z in population])
    while time.monotonic() - began < ROBOT_BUDGET:
        order = np.argsort(scores)
        young = [population[order[0]], population[order[1]]]
        while len(young) < size:
            pairs = rng.integers(size, size=(2, 3))
            mother, father = (population[row[np.argmin(scores[row])]] for row in pairs)
            share = rng.uniform(-0.2, 1.2, mother.shape)
            child = share * mother + (1 - share) * father
            mutate = rng.random(child.shape) < 0.05
            young.append(child + mutate * rng.normal(size=child.shape) * 0.1 * problem.unit)
        population = young
        scores = np.array([penalised(wanted, z) for z in population])
    return population[int(np.argmin(scores))]


def feasible(wanted: ExperimentDesign, z: Array, safe: Array) -> float:
    """Return the value of a motion that is scaled toward rest until it respects every limit."""
    family = wanted.problem.family
    resting = family.constant_motion(safe)
    for share in np.linspace(1.0, 0.02, 50):
        trajectory = family.trajectory(resting + share * (z - resting))
        if wanted.check(trajectory).ok:
            return wanted.value(trajectory)
    return float("inf")
