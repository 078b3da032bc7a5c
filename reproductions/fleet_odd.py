"""A fleet of 200 virtual arms with five short logs each: ten with a changed link or drive are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.datasets.log_fold import LogFold, ManifestEntry
from dynid.excitation import FourierSeries
from dynid.fleet.change_detection import LogEstimates
from dynid.fleet.outliers import changes_prior, standing_out
from dynid.fleet.pooling import RobotInformation
from dynid.fleet.robot_fold import RobotFold, level_noise, log_noise
from dynid.fleet.robot_scatter import scatter
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.regression import BaseParameters, base_parameters, fold, prepared_equations
from dynid.robot import Robot
from dynid.robot import inertia as ten

OWN_STUDY = True  # no document prints it
ROBOTS, LOGS, ODD = 200, 5, 10
RATE, CUTOFF = 100.0, 10.0  # Hz, of the samples, and up to which torques are noisy
SECONDS = {"short": 0.4, "usual": 2.0, "long": 12.0}  # of a log; 20 robots have short ones, 20 long ones
SPREAD = 0.1  # natural, of friction from robot to robot
LOAD, ASIDE = 0.5, 0.05  # kg and m, of what hangs on a link that is changed
WORN = 2.0  # factor on the friction of a drive that is changed
FRICTION = {"Fc": (1.0, 1.1, 0.35, 0.35, 0.3, 0.35, 0.25), "Fv": (0.3, 0.4, 0.1, 0.15, 0.05, 0.05, 0.03),
            "Fo": (0.1, -0.1, 0.05, 0.05, -0.03, 0.03, 0.02)}


@dataclass(frozen=True, eq=False)
class Type:
    """A type of robot: model, usual parameters (parameters,), noise (dof,) of the torques, N m."""

    model: Model
    base: BaseParameters
    theta: Array
    noise: Array

    def motion(self, seconds: float, seed: int) -> tuple[Array, Array, Array]:
        """Positions, velocities, accelerations (samples, dof) of a random motion of up to 1.5 rad/s."""
        rng, dof = np.random.default_rng(seed), self.model.dof
        a, b = rng.normal(size=(2, dof, 5))
        period = float(np.clip(seconds, 2.0, 10.0))
        t = np.arange(round(seconds * RATE)) / RATE
        long = FourierSeries(a, b, np.zeros(dof), period).at(np.linspace(0.0, period, 400))
        size = 1.5 / np.abs(long.dq).max(axis=0)
        found = FourierSeries(a * size[:, None], b * size[:, None], rng.uniform(-0.5, 0.5, dof), period).at(t)
        return found.q, found.dq, found.ddq

    def log(self, theta: Array, seconds: float, seed: int, robot: str) -> LogFold:
        """Return the compressed regression of one log."""
        q, dq, ddq = self.motion(seconds, seed)
        noise = coloured(np.random.default_rng(seed), q.shape, self.noise)
        tau = self.model.inverse_dynamics(theta, q, dq, ddq) + noise
        samples = Samples.from_arrays(q, dq, ddq, tau, rate=RATE)
        equations = prepared_equations(self.model, samples, self.base)
        found = fold(equations, blocks=1, threads=1)
        entry = ManifestEntry(f"{robot}-{seed}", f"{robot}-{seed}", len(samples), 0.0, seconds, robot)
        return LogFold(entry, found, log_noise(equations, found))


def coloured(rng: np.random.Generator, shape: tuple[int, ...], deviation: Array) -> Array:
    """Return noise (samples, joints) of torques after a zero-phase low-pass."""
    from scipy.signal import butter, sosfiltfilt

    sos, edge = butter(2, CUTOFF, fs=RATE, output="sos"), 200
    noise = sosfiltfilt(sos, rng.normal(size=(shape[0] + 2 * edge, *shape[1:])), axis=0)[edge:-edge]
    pulse = np.zeros(4001)
    pulse[2000] = 1.0
    return noise / np.linalg.norm(sosfiltfilt(sos, pulse)) * deviation


def the_type() -> Type:
    robot = Robot.builtin("kuka-iiwa14")
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))
    theta = np.array([parameter.nominal or 0.0 for parameter in model.parameters])
    for symbol, values in FRICTION.items():
        for j, value in enumerate(values):
            theta[model.parameters.index(f"{symbol}{j + 1}")] = value
    made = Type(model, base_parameters(model), theta, np.ones(model.dof))
    torque = model.inverse_dynamics(theta, *made.motion(10.0, 12345))
    return Type(model, made.base, theta, 0.02 + 0.02 * np.sqrt(np.mean(torque ** 2, axis=0)))


def truths(made: Type, rng: np.random.Generator) -> tuple[list[Array], dict[int, str]]:
    """Return the parameters of every robot, and the changes of ten of them."""
    own = ~made.model.parameters.of_group("body", "rotor")
    found = [np.where(own, made.theta * np.exp(SPREAD * rng.normal(size=len(made.theta))), made.theta)
             for _ in range(ROBOTS)]
    changed = {}
    for n, k in enumerate(rng.choice(np.arange(20, ROBOTS), ODD, replace=False)):
        if n % 2:
            j = int(rng.integers(2, made.model.dof))
            body = list(made.model.parameters.bodies.values())[j]
            direction = rng.normal(size=3)
            place = ASIDE * direction / np.linalg.norm(direction)
            found[k][body] += ten.from_central(LOAD, place, np.zeros((3, 3)))
            changed[int(k)] = f"link {j + 1}"
        else:
            j = int(rng.integers(made.model.dof))
            for symbol in ("Fv", "Fc"):
                found[k][made.model.parameters.index(f"{symbol}{j + 1}")] *= WORN
            changed[int(k)] = f"drive of joint {j + 1}"
    return found, changed


def run(progress: Callable[[str], None], seed: int = 0) -> dict[str, Any]:
    made, rng = the_type(), np.random.default_rng(seed)
    theta, changed = truths(made, rng)
    kinds = ["short"] * 20 + ["long"] * 20 + ["usual"] * (ROBOTS - 40)
    folds = []
    for k, kind in enumerate(kinds):
        if k % 20 == 0:
            progress(f"{k} of {ROBOTS} robots move")
        folds.append([made.log(theta[k], SECONDS[kind], 1_000_000 * seed + 100 * k + n, f"robot {k}")
                      for n in range(LOGS)])
    progress("comparing robots")
    alone = [RobotFold.from_folds(f"robot {k}", own) for k, own in enumerate(folds)]
    robots = level_noise(alone)
    scattered = scatter(robots, [LogEstimates.from_folds(one, own) for one, own in zip(robots, folds, strict=True)])
    known = [RobotInformation.from_fold(one, scattered.inflation) for one in robots]
    out = standing_out(robots, known)
    called = {int(name.split()[1]): next(one.part for one in out.differences if one.robot == name)
              for name in out.robots}
    pooled = [out.pooling.member(what, changes_prior(free, out.pooling.size) if free.shape[1] else None)
              for what, free in zip(known, out.free, strict=True)]
    errors = new_errors(made, theta, [[one.solution.beta for one in alone], [one.values for one in pooled]])
    ratio = {kind: [float(np.sqrt(np.mean(errors[way, np.array(kinds) == kind] ** 2))) for way in range(2)]
             for kind in SECONDS}
    missed, wrong = sorted(set(changed) - set(called)), sorted(set(called) - set(changed))
    named = sum(called[k].startswith(what) for k, what in changed.items() if k in called)
    return {
        "changed": {str(k): what for k, what in changed.items()}, "called": {str(k): p for k, p in called.items()},
        "missed": missed, "false": wrong, "named": named, "errors_alone_and_pooled": ratio,
        "inflation": scattered.inflation,
        "checks": {
            f"at most 5 % of {ODD} changed robots are missed": len(missed) <= 0.05 * ODD,
            "at most 5 % of those called are not changed": len(wrong) <= 0.05 * max(len(called), 1),
            "of 2 s in all, pooled estimates have at most half the error on new data": (
                ratio["short"][1] <= 0.5 * ratio["short"][0]),
            "of 60 s in all, at most 2 % more": ratio["long"][1] <= 1.02 * ratio["long"][0]}}


def new_errors(made: Type, theta: list[Array], values: list[list[Array]]) -> Array:
    """Return RMS errors (methods, robots) of the torques along a new motion, in units of the noise."""
    columns = made.model.regressor(*made.motion(20.0, 777))[:, :, made.base.independent] / made.noise[:, None]
    return np.array([[float(np.sqrt(np.mean((columns @ (one - made.base.reduce(true))) ** 2)))
                      for one, true in zip(way, theta, strict=True)] for way in values])


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("robot", "changed", "called")]
    every = sorted({*result["changed"], *result["called"]}, key=int)
    rows += [(name, result["changed"].get(name, "-"), result["called"].get(name, "-")) for name in every]
    rows += [(f"error, {kind}", f"alone {a:.3f}", f"pooled {b:.3f}")
             for kind, (a, b) in result["errors_alone_and_pooled"].items()]
    return rows
