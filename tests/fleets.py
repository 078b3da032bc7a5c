"""Virtual fleets for tests: compressed regressions of short logs of robots with known parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from motions import arm, fourier, low_passed

from dynid.arrays import Array
from dynid.datasets.log_fold import LogFold, ManifestEntry
from dynid.estimate import Estimate
from dynid.fleet.pooling import Pooling, RobotInformation, parameter_groups, pool_known
from dynid.fleet.robot_fold import RobotFold, level_noise, log_noise
from dynid.model import Model
from dynid.recording import Samples
from dynid.regression import BaseParameters, base_parameters, fold, prepared_equations

RATE = 100.0


def pool(robots: list[RobotFold]) -> Pooling:
    """Mean and spread of a fleet, with the stated standard errors of each robot."""
    base = robots[0].regression.base
    return pool_known(base, [RobotInformation.from_fold(robot) for robot in robots],
                      parameter_groups(base, len(robots)))


@dataclass(frozen=True, eq=False)
class Fleet:
    """A type of robot: its model and its usual parameters (parameters,). noise (dof,): N m, low-passed at 10 Hz."""

    model: Model
    theta: Array
    base: BaseParameters
    noise: Array

    @staticmethod
    def of_arms() -> Fleet:
        model, theta = arm()
        torque = model.inverse_dynamics(theta, *fourier(model.dof, seconds=10.0, rate=50.0))
        return Fleet(model, theta, base_parameters(model), 0.02 + 0.02 * np.sqrt(np.mean(torque ** 2, axis=0)))

    def own(self, rng: np.random.Generator, spread: float = 0.1) -> Array:
        """Parameters of a robot with friction of its own."""
        loss = ~self.model.parameters.of_group("body", "rotor")
        return np.where(loss, self.theta * np.exp(spread * rng.normal(size=len(self.theta))), self.theta)

    def log(self, theta: Array, seconds: float, seed: int, robot: str = "", date: str = "",
            machine: Model | None = None) -> LogFold:
        """Return the compressed regression of one log. machine: the robot of the log, if its geometry differs."""
        rng = np.random.default_rng(seed)
        q, dq, ddq = fourier(self.model.dof, seconds=seconds, seed=seed, rate=RATE, period=max(2.0, min(seconds, 10.0)))
        tau = (machine or self.model).inverse_dynamics(theta, q, dq, ddq)
        samples = Samples.from_arrays(q, dq, ddq, tau + low_passed(rng, tau.shape, self.noise, 10.0, RATE), rate=RATE)
        equations = prepared_equations(self.model, samples, self.base)
        found = fold(equations, blocks=1, threads=1)
        entry = ManifestEntry(f"{robot}-{seed}", f"{robot}-{seed}", len(samples), 0.0, seconds, robot, date)
        return LogFold(entry, found, log_noise(equations, found))

    def robots(self, logs: list[list[LogFold]]) -> tuple[RobotFold, ...]:
        """Return robots from the compressed regressions of their logs, with the common noise of the fleet."""
        return level_noise([RobotFold.from_folds(f"robot {k}", folds) for k, folds in enumerate(logs)])

    def new_errors(self, values: Array, theta: Array) -> float:
        """Root mean square of the error of torques along a new motion, in units of the noise."""
        q, dq, ddq = fourier(self.model.dof, seconds=20.0, rate=50.0, seed=4711)
        columns = self.model.regressor(q, dq, ddq)[:, :, self.base.independent]
        return float(np.sqrt(np.mean((columns @ (values - self.base.reduce(theta)) / self.noise) ** 2)))

    def new_errors_of(self, found: Estimate, theta: Array) -> float:
        """The same of an estimate whose model may have more terms than that of the fleet."""
        q, dq, ddq = fourier(self.model.dof, seconds=20.0, rate=50.0, seed=4711)
        error = found.predict(q, dq, ddq) - self.model.inverse_dynamics(theta, q, dq, ddq)
        return float(np.sqrt(np.mean((error / self.noise) ** 2)))

    def truth_of(self, found: Estimate, theta: Array) -> Array:
        """Base parameters (base,) of such an estimate; its further terms are zero."""
        own = dict(zip(self.model.parameters.names, theta, strict=True))
        return found.base.reduce(np.array([own.get(name, 0.0) for name in found.model.parameters.names]))
