"""Result of actuator identification: parameters of each joint with confidence intervals, and findings on the logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dynid.actuators.posterior import ActuatorPosterior
from dynid.arrays import Array
from dynid.files import write_json
from dynid.findings import Finding, Note
from dynid.html_tables import card, listed, table
from dynid.output_fields import array_of, output_fields, record
from dynid.plain import PlainFields, finite, plain

_LONGEST_DELAY, _MAX_DELAYS = 0.5, 200  # s, and number, of the delays that are tried for the trivial model
INTERVAL_SIGMAS = 1.96  # half width of a 95 % interval in standard errors


@dataclass(frozen=True)
class ActuatorValue:
    """One parameter of one joint.

    Attributes:
        joint: name of the joint.
        name, unit: name and unit of the parameter.
        value: estimate, or the value that was given.
        std: standard error, NaN if the parameter has none.
        identified: whether the data determine the parameter. Only identified parameters have an interval.
        is_given: whether the value was given and not estimated.
        linear, linear_std: value and standard error from the linear first stage, NaN if that stage does not estimate
            the parameter.
    """

    joint: str
    name: str
    unit: str
    value: float
    std: float
    identified: bool
    is_given: bool = False
    linear: float = float("nan")
    linear_std: float = float("nan")

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % confidence interval of the parameter; None if the data do not determine it."""
        if not self.identified:
            return None
        return self.value - INTERVAL_SIGMAS * self.std, self.value + INTERVAL_SIGMAS * self.std

    @output_fields(joint=str, name=str, unit=str, value=float | None, std=float | None, identified=bool,
                   interval=list[float | None] | None, given=bool, linear=float | None, linear_std=float | None)
    def to_dict(self) -> dict[str, Any]:
        """Return the parameter as plain data for JSON."""
        return {"joint": self.joint, "name": self.name, "unit": self.unit, "value": finite(self.value),
                "std": finite(self.std) if self.identified else None, "identified": self.identified,
                "interval": plain(self.interval), "given": self.is_given, "linear": finite(self.linear),
                "linear_std": finite(self.linear_std)}


@dataclass(frozen=True)
class FrictionTrial(PlainFields):
    """Result of one friction model in the comparison of friction models.

    Attributes:
        model: "m1" to "m6".
        title: description of the model.
        error: mean absolute position error in cross-validation, rad.
        better: mean improvement over the best simpler model, in standard errors.
        chosen: whether this model was chosen.
    """

    model: str
    title: str
    error: float
    better: float
    chosen: bool


@dataclass(frozen=True, eq=False)
class SimulatedLog:
    """Measured and simulated positions of one log.

    Attributes:
        source: name of the log.
        t: time stamps (rows,), s.
        measured, simulated: positions (rows, joints), rad.
        command: commanded positions (rows, joints), rad; None if the drive law uses no commands.
    """

    source: str
    t: Array
    measured: Array
    simulated: Array
    command: Array | None

    @property
    def mean_error(self) -> Array:
        """Mean absolute error of the simulated positions of each joint (joints,), rad."""
        return np.mean(np.abs(self.measured - self.simulated), axis=0)


_DELAYED_COMMAND = record("DelayedCommand", mean_error=float, delay=dict[str, float], offset=dict[str, float],
                          joint_errors=dict[str, float])


@dataclass(frozen=True, eq=False)
class DelayedCommand:
    """The trivial model of a drive: the command, delayed, plus an offset. Without commands it is a constant position.

    A simulation that is worse than this model is not usable, because the model needs no parameter of the robot.

    Attributes:
        delay: delay of each joint (joints,), s.
        offset: offset of each joint (joints,), rad.
        error: mean absolute error of each joint over all logs (joints,), rad.
        is_constant: whether there are no commands.
    """

    delay: Array
    offset: Array
    error: Array
    is_constant: bool = False

    @property
    def text(self) -> str:
        return "a constant position" if self.is_constant else "the command, delayed, plus an offset"

    @staticmethod
    def from_logs(logs: Sequence[SimulatedLog]) -> DelayedCommand:
        """Return the model with the smallest mean absolute error over some logs."""
        interval = float(np.median(np.concatenate([np.diff(log.t) for log in logs])))
        delays = np.linspace(0.0, _LONGEST_DELAY, min(int(2.0 * _LONGEST_DELAY / interval), _MAX_DELAYS) + 1)
        found, is_constant = np.zeros((3, logs[0].measured.shape[1])), any(log.command is None for log in logs)
        for j in range(found.shape[1]):
            trials = []
            for delay in [0.0] if is_constant else delays:
                left = np.concatenate([log.measured[:, j] - (0.0 if log.command is None else np.interp(
                    log.t - delay, log.t, log.command[:, j])) for log in logs])
                offset = float(np.median(left))
                trials.append((float(np.mean(np.abs(left - offset))), float(delay), offset))
            error, delay, offset = min(trials)
            found[:, j] = delay, offset, error
        return DelayedCommand(found[0], found[1], found[2], is_constant)

    @property
    def mean_error(self) -> float:
        """Mean absolute error over all joints and rows, rad."""
        return float(np.mean(self.error))

    def to_dict(self, joints: Sequence[str]) -> dict[str, Any]:
        """Return the model as plain data for JSON; joints: names of the joints."""
        return {"mean_error": self.mean_error, **{
            name: dict(zip(joints, values.tolist(), strict=True))
            for name, values in (("delay", self.delay), ("offset", self.offset), ("joint_errors", self.error))}}


_SIMULATED_LOG = record("SimulatedActuatorLog", log=str, rows=int, mean_error=dict[str, float | None])
_SIMULATION_RECORD = record("ActuatorSimulation", mean_error=float | None, linear_stage=float | None,
                            delayed_command=_DELAYED_COMMAND, logs=array_of(_SIMULATED_LOG))


@dataclass(frozen=True, eq=False)
class ActuatorEstimate:
    """Actuators of a robot, identified from positions and commands.

    Attributes:
        robot: name of the robot.
        joints: names of its joints.
        law: name of the drive law.
        friction: friction model, "m1" to "m6".
        parameters: all parameters of all joints.
        notes: parameters that the data cannot distinguish, and experiments that would distinguish these parameters.
        findings: probable errors in the logs, the gains or the robot file.
        comparison: results of the friction models that were compared.
        logs: measured and simulated positions.
        linear_error: mean absolute position error of the linear first stage, rad.
        iterations: number of iterations, the largest over the joint chains.
        gradient_error: relative difference between derivatives with two step sizes, the largest over the joint chains.
        posterior: values and covariance of all unknowns, for export to simulators and random draws.
    """

    robot: str
    joints: tuple[str, ...]
    law: str
    friction: str
    parameters: tuple[ActuatorValue, ...]
    notes: tuple[Note, ...]
    findings: tuple[Finding, ...]
    comparison: tuple[FrictionTrial, ...]
    logs: tuple[SimulatedLog, ...]
    linear_error: float
    iterations: int
    gradient_error: float
    posterior: ActuatorPosterior | None = None

    def __getitem__(self, key: tuple[str, str]) -> ActuatorValue:
        """Return a parameter by joint and name, such as estimate["FL_hip_joint", "armature"]."""
        for one in self.parameters:
            if (one.joint, one.name) == key:
                return one
        raise KeyError(key)

    def values(self, joint: str) -> dict[str, float]:
        """Return the values of all parameters of a joint by name."""
        return {one.name: one.value for one in self.parameters if one.joint == joint}

    @property
    def mean_error(self) -> float:
        """Mean absolute error of the simulated positions over all joints and rows, rad."""
        return float(np.mean(np.concatenate([np.abs(log.measured - log.simulated) for log in self.logs])))

    @cached_property
    def delayed_command(self) -> DelayedCommand:
        """The trivial model with which the simulation is compared, fitted to the same logs."""
        return DelayedCommand.from_logs(self.logs)

    @property
    def unusable(self) -> str:
        """Sentence on why the actuators are not usable in a simulator; empty if they are."""
        simulated, trivial = self.mean_error, self.delayed_command.mean_error
        if simulated <= trivial:
            return ""
        return (f"simulated positions have a mean error of {1e3 * simulated:.3g} mrad, which is more than the "
                f"{1e3 * trivial:.3g} mrad of {self.delayed_command.text}")

    @output_fields(robot=str, joints=list[str], law=str, friction=str, usable=bool, parameters=list[ActuatorValue],
                   notes=list[Note], findings=list[Finding], friction_models=list[FrictionTrial],
                   simulation=_SIMULATION_RECORD, iterations=int, gradient_error=float | None)
    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as plain data for JSON, without the positions."""
        return dict(plain({
            "robot": self.robot, "joints": self.joints, "law": self.law, "friction": self.friction,
            "usable": not self.unusable, "parameters": self.parameters, "notes": self.notes, "findings": self.findings,
            "friction_models": self.comparison,
            "simulation": {"mean_error": self.mean_error, "linear_stage": self.linear_error,
                           "delayed_command": self.delayed_command.to_dict(self.joints),
                           "logs": [{"log": log.source, "rows": len(log.t),
                                     "mean_error": dict(zip(self.joints, log.mean_error, strict=True))}
                                    for log in self.logs]},
            "iterations": self.iterations, "gradient_error": self.gradient_error}))

    def save(self, path: str | Path) -> Path:
        """Write the actuator estimate to a JSON file."""
        write_json(Path(path), self.to_dict())
        return Path(path)

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return the rows of a table: joint, parameter with unit, value, 95 % interval, remark."""
        return [(one.joint, f"{one.name}, {one.unit}" if one.unit else one.name, f"{one.value:.4g}",
                 "-" if one.interval is None else f"{one.interval[0]:.4g} to {one.interval[1]:.4g}",
                 "" if one.identified else "not determined") for one in self.parameters if not one.is_given]

    def joint_rows(self) -> list[list[str]]:
        """Return one row per joint: its name and its estimated parameters, in brackets if they are not determined."""
        fitted = [one for one in self.parameters if not one.is_given]
        cells: dict[str, dict[tuple[str, str], str]] = {}
        for one in fitted:
            cells.setdefault(one.joint, {})[one.name, one.unit] = f"{one.value:.3g}" if one.identified \
                else f"({one.value:.2g})"
        return [[joint, *(own.get(key, "") for key in dict.fromkeys((one.name, one.unit) for one in fitted))]
                for joint, own in cells.items()]

    def _repr_html_(self) -> str:
        head = ("joint", "parameter", "value", "95 %", "")
        return card(f"Actuators of {self.robot}", table(head, self.rows(), (0, 1, 4)),
                    listed([(one.title, one.text) for one in self.findings]))
