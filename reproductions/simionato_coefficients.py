"""3R arm and LWR IV+ (Simionato): coefficients identified from simulated logs, and the coverage of their intervals."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dynid.estimate import Problem, identify
from dynid.excitation import FourierSeries
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.regression import base_parameters
from dynid.robot import Robot

MASS_FIRST = ("M", "MX MY MZ", "XX XY XZ YY YZ ZZ")
PERIOD = 2.0 / 0.15  # s: the pulsation is 0.15 pi
REPETITIONS = 200
IN_ALL = {"repetitions": 15}  # the smaller study of `--all`
NOISE = 0.05  # N m

# Table 5.1: a1..a5, b1..b5, q0 of each joint, three trajectories.
TABLE_5_1 = np.array([
    [0.453, -0.194, 0.465, -0.265, 0.010, -0.209, -0.179, 0.381, 0.159, -0.251, 0.199],
    [0.402, 0.182, 0.061, -0.295, 0.054, -0.254, -0.155, 0.001, -0.085, 0.244, 0.390],
    [-0.323, -0.450, 0.118, 0.313, -0.146, 0.223, 0.337, -0.459, 0.276, -0.006, 0.459],
    [-0.047, 0.242, -0.314, 0.150, -0.116, -0.331, -0.417, -0.254, 0.424, -0.279, 0.069],
    [0.361, -0.341, 0.256, 0.303, 0.027, -0.085, 0.214, 0.119, 0.446, -0.434, -0.031],
    [0.351, 0.246, -0.429, 0.249, 0.148, -0.049, -0.257, -0.068, -0.031, 0.370, -0.488],
    [0.318, 0.364, -0.049, -0.122, 0.098, 0.376, 0.082, -0.444, 0.162, 0.389, -0.258],
    [0.236, -0.369, 0.355, 0.149, 0.424, 0.316, 0.450, 0.009, -0.400, -0.2802, -0.0960],
    [0.354, -0.079, -0.353, -0.013, 0.260, 0.260, -0.402, 0.010, 0.130, 0.110, -0.403]]).reshape(3, 3, 11)


def run(progress: Callable[[str], None], repetitions: int = REPETITIONS) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    found: dict[str, Any] = {"repetitions": repetitions, "checks": {}}
    seven = series_inside_limits(Robot.builtin("kuka-lwr4"), 6, rng)
    for name, trajectories in (("arm3r", TABLE_5_1), ("kuka-lwr4", seven)):
        progress(f"{name}: folding {len(trajectories)} trajectories")
        result = found[name] = _study(name, trajectories, repetitions, progress)
        checks = found["checks"]
        checks[f"{name}: coefficients come back to 1e-9 without noise: {result['largest_error']:.1e}"] = \
            result["largest_error"] < 1e-9
        checks[f"{name}: 99 % inside three stated deviations: {100 * result['inside']:.2f} %"] = \
            result["inside"] >= 0.99
    return found


def series_inside_limits(robot: Robot, count: int, rng: np.random.Generator) -> np.ndarray:
    """Coefficients (count, joints, 11) of Fourier series as table 5.1 has them, inside a robot's limits of position,
    speed and acceleration: those of a joint are drawn again until they are."""
    t, found = np.arange(0.0, 20.0, 0.01), np.zeros((count, robot.dof, 11))
    limits = np.array([robot.limit(name) for name in ("upper", "velocity", "acceleration")])
    for k in range(count):
        for j in range(robot.dof):
            while True:
                c = found[k, j] = rng.uniform(-0.5, 0.5, 11)
                motion = FourierSeries(c[None, :5], c[None, 5:10], c[10:], PERIOD, 1.5).at(t)
                if all(np.abs(one).max() < most for one, most in zip((motion.q, motion.dq, motion.ddq), limits[:, j],
                                                                     strict=True)):
                    break
    return found


def _study(name: str, trajectories: np.ndarray, repetitions: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """Return the largest error of a coefficient without noise, and the share within three standard errors with
    noise."""
    robot = Robot.builtin(name)
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))
    base = base_parameters(model, MASS_FIRST)
    t = np.arange(2001) * 0.01
    motions = [FourierSeries(c[:, :5], c[:, 5:10], c[:, 10], PERIOD, 1.5).at(t) for c in trajectories]
    q, dq, ddq = (np.concatenate([getattr(motion, part) for motion in motions]) for part in ("q", "dq", "ddq"))
    theta, start = model.parameters.vector(model.parameters.nominal), time.perf_counter()
    tau, truth = model.inverse_dynamics(theta, q, dq, ddq), base.reduce(theta)
    clean = identify(Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=100), base=base), method="ols")
    seconds, inside = time.perf_counter() - start, []
    for k in range(repetitions):
        if k % 20 == 0:
            progress(f"{name}: noisy repetition {k + 1} of {repetitions}")
        noisy = tau + NOISE * np.random.default_rng([1, k]).normal(size=tau.shape)
        estimate = identify(Problem.from_model(model, Samples.from_arrays(q, dq, ddq, noisy, rate=100), base=base),
                            method="wls")
        inside.append(np.mean(np.abs(estimate.values - truth) < 3.0 * estimate.std))
    return {"coefficients": len(base), "samples": len(q), "largest_error": float(np.abs(clean.values - truth).max()),
            "inside": float(np.mean(inside)), "seconds_model_regressor_and_fit": seconds}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("robot", "samples", "coefficients", "largest error", "inside 3 deviations, %", "s, regressor and fit")]
    for name in ("arm3r", "kuka-lwr4"):
        one = result[name]
        rows.append((name, str(one["samples"]), str(one["coefficients"]), f"{one['largest_error']:.1e}",
                     f"{100 * one['inside']:.2f}", f"{one['seconds_model_regressor_and_fit']:.2f}"))
    return rows
