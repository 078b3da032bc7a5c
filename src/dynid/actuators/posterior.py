"""Identified actuators with their covariance, for export to simulators and for random draws."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.actuators import columns as c
from dynid.actuators.laws import LAWS, drive_law
from dynid.actuators.parameters import MAX_RELATIVE_STD, MAX_TYPICAL_STD, MECHANICAL_PARAMETERS
from dynid.actuators.problem import ActuatorLog, ChainProblem, joint_numbers
from dynid.actuators.refinement import Refinement
from dynid.arrays import Array, Bools
from dynid.errors import ModelError, RecordingError
from dynid.estimate.draws.posterior import check_draws
from dynid.estimate.simulators.friction_fit import PASSIVE, SimulatedJoint, TorqueLoss, best_fit
from dynid.files import read_small, write_json
from dynid.model import Model
from dynid.robot import Robot

DEFAULT_SPREAD = 0.2  # relative standard deviation of undetermined parameters, the same as for links
SHORTEST_DELAY = 2e-4  # s, smallest delay of an exported drive: a tenth of MuJoCo's time step
_MAX_STATES = 200  # rows of the motion that are kept: more of them change the approximated friction little
_MOVING_SHARE = 0.02  # share of a joint's greatest speed, above which its friction opposes the motion and is not static
_LOAD_ROUNDS = 4  # fixed-point iterations of motor torque and load-dependent friction, which converge
_MAX_REDRAWS = 200  # attempts to replace a draw outside the bounds; afterwards values outside are clipped
_MIN_EIGENVALUE_SHARE = 1e-9  # of a correlation matrix: combinations with less variance do not change values
_SLOPE_STEP = 1e-4  # step of numerical derivatives, relative to a parameter or, for small parameters, to itself
# Typical size of each value of a simulated joint: that of the parameter from which it is computed.
_TYPICAL_VALUES = {"armature": MECHANICAL_PARAMETERS["armature"].typical,
                   "damping": MECHANICAL_PARAMETERS["viscous"].typical,
                   "frictionloss": MECHANICAL_PARAMETERS["coulomb"].typical, "bias": MECHANICAL_PARAMETERS[
                       "offset"].typical, "delay": MECHANICAL_PARAMETERS["delay"].typical, **{
                       name: next(item.typical for item in LAWS["pid"].parameters if item.name == own)
                       for name, own in (("stiffness", "kp"), ("kd", "kd"), ("ki", "ki"), ("force_limit",
                                                                                          "torque_limit"))}}
_ARRAYS = ("values", "covariance", "identified", "lower", "upper", "supply")  # arrays of a saved posterior
_STATES = ("speed", "motor", "external")  # arrays of its states
# Columns of friction that is neither Coulomb nor viscous; joints of simulators lack such friction.
_RICHER_FRICTION = (c.STRIBECK, c.LOAD_MOTOR, c.LOAD_EXTERNAL, c.STRIBECK_LOAD_MOTOR, c.STRIBECK_LOAD_EXTERNAL,
                    c.QUADRATIC_MOTOR, c.QUADRATIC_EXTERNAL)


@dataclass(frozen=True, eq=False)
class DriveStates:
    """States of the joints along the simulated logs, over which friction is approximated; all (rows, joints).

    Attributes:
        speed: velocity, rad/s or m/s.
        motor: torque of the motor, N m or N.
        external: torque of gravity and of Coriolis forces on the joint, N m or N.
    """

    speed: Array
    motor: Array
    external: Array


@dataclass(frozen=True)
class UndeterminedValue:
    """A value of a simulated joint that the data do not determine.

    Attributes:
        joint: name of the joint.
        name: name of the value, see `SimulatedJoint`.
        parameters: names and estimates of the parameters that are not determined, on which the value depends.
    """

    joint: str
    name: str
    parameters: tuple[tuple[str, float], ...]


@dataclass(frozen=True, eq=False)
class ActuatorPosterior:
    """Estimated actuator parameters with their covariance, and further data for simulators.

    Attributes:
        law: name of the drive law.
        joints: names of the joints.
        names: names of the unknowns (k,), such as "armature".
        owners: indices of the joints of each unknown; several joints share one delay.
        values, covariance: estimates of the unknowns (k,) and their covariance (k, k).
        identified: mask of the unknowns that the data determine (k,).
        lower, upper: bounds of the unknowns (k,).
        known: given values by name, one table per joint, with the gains of the first log.
        supply: mean logged supply voltage of each joint (joints,), V; 1 if the law needs none.
        states: joint states along the simulated logs.
        notes: sentences on effects that an exported actuator does not represent.
        unusable: why the actuators are not usable in a simulator; empty if they are.
    """

    law: str
    joints: tuple[str, ...]
    names: tuple[str, ...]
    owners: tuple[tuple[int, ...], ...]
    values: Array
    covariance: Array
    identified: Bools
    lower: Array
    upper: Array
    known: tuple[Mapping[str, float], ...]
    supply: Array
    states: DriveStates
    notes: tuple[str, ...] = ()
    unusable: str = ""

    def tables(self, x: Array) -> list[dict[str, float]]:
        """Return all parameter values of each joint by name, from values (k,) of the unknowns."""
        tables = [dict(table) for table in self.known]
        for name, owners, value in zip(self.names, self.owners, x, strict=True):
            for j in owners:
                tables[j][name] = float(value)
        return tables

    def link_scales(self, x: Array | None = None) -> Array:
        """Return the factor on the inertial parameters of each joint's link (joints,), from values x (k,) of the
        unknowns; the estimate by default."""
        return np.array([table.get("link_scale", 1.0) for table in self.tables(self.values if x is None else x)])

    def simulated(self, x: Array | None = None, *, holds_bias: bool = False
                  ) -> tuple[tuple[SimulatedJoint, ...], tuple[TorqueLoss, ...]]:
        """Return the joints with drives as simulators model them, and the torque that simulators cannot represent.

        Friction beyond Coulomb and viscous friction is replaced by the damping and frictionloss that predict the
        friction torque best along the logs. A constant offset is the bias of a drive.

        Args:
            x: values (k,) of the unknowns; the estimate by default.
            holds_bias: whether the simulator has a bias of position drives. Otherwise the offset is lost.
        """
        law, joints, losses = drive_law(self.law), [], []
        for j, table in enumerate(self.tables(self.values if x is None else x)):
            joint, loss = self._joint(j, joint_numbers(law, table), holds_bias)
            joints.append(joint)
            losses.append(loss)
        return tuple(joints), tuple(losses)

    def undetermined(self) -> tuple[UndeterminedValue, ...]:
        """Return the values of simulated joints that the data do not determine, of those that would be written.

        A value that depends on one unknown is determined if the unknown is. A passive value at its lower bound counts
        as determined, because the data are consistent with that bound. A value that depends on several unknowns, such
        as the friction that replaces a richer model, is determined if its standard error is small enough, by the rule
        for unknowns; an unknown at a bound counts as fixed there.
        """
        law, found = drive_law(self.law), list[UndeterminedValue]()
        tables, errors = self.tables(self.values), np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        # Not determined for another reason than a bound, where the standard error is zero, or a large standard error.
        hidden = ~self.identified & (errors > 0.0) & (errors <= MAX_RELATIVE_STD * np.abs(self.values))
        for j, table in enumerate(tables):
            places = [k for k, own in enumerate(self.owners) if j in own]
            joint = self._joint(j, joint_numbers(law, table))[0]
            slopes: dict[str, dict[int, float]] = {name: {} for name in _TYPICAL_VALUES}
            for k in places:
                step = _SLOPE_STEP * max(abs(float(self.values[k])), _SLOPE_STEP)
                step = step if self.values[k] + step <= self.upper[k] else -step
                moved = self._joint(j, joint_numbers(law, {**table, self.names[k]: float(self.values[k]) + step}))[0]
                for name, own in slopes.items():
                    if (change := (getattr(moved, name) or 0.0) - (getattr(joint, name) or 0.0)) != 0.0:
                        own[k] = change / step
            for name, own in slopes.items():
                value = getattr(joint, name)
                if not own or value is None or not np.isfinite(value) or (value == 0.0 and name not in PASSIVE):
                    continue
                at, slope = np.array(list(own)), np.array(list(own.values()))
                error = float(np.sqrt(max(slope @ self.covariance[np.ix_(at, at)] @ slope, 0.0)))
                if len(at) == 1:
                    is_at_bound = name in PASSIVE and self.values[at[0]] <= self.lower[at[0]]
                    known = bool(self.identified[at[0]]) or bool(is_at_bound)
                else:
                    known = not hidden[at].any() and error <= max(MAX_TYPICAL_STD * _TYPICAL_VALUES[name],
                                                                  MAX_RELATIVE_STD * abs(value))
                if not known:
                    found.append(UndeterminedValue(self.joints[j], name, tuple(
                        (self.names[k], float(self.values[k])) for k in at if len(at) == 1 or not self.identified[k])))
        return tuple(found)

    def conditional(self, x: Array, given: Mapping[tuple[str, str], float]) -> Array:
        """Return values x (k,) of the unknowns with some of them given, and the others changed by their covariance with
        these, so that the motion changes little. given: values by joint and name of an unknown of one joint."""
        at = np.array([k for k, (name, own) in enumerate(zip(self.names, self.owners, strict=True))
                       if len(own) == 1 and (self.joints[own[0]], name) in given], dtype=int)
        if not len(at):
            return x
        moved = np.array([given[self.joints[self.owners[k][0]], self.names[k]] for k in at]) - x[at]
        error = np.sqrt(np.maximum(np.diag(self.covariance), 1e-300))
        scaled = self.covariance / np.outer(error, error)
        inverse = np.linalg.pinv(scaled[np.ix_(at, at)], hermitian=True, rcond=_MIN_EIGENVALUE_SHARE)
        changed = x + error * (scaled[:, at] @ (inverse @ (moved / error[at])))
        changed[at] = x[at] + moved
        return np.clip(changed, self.lower, self.upper)

    def _joint(self, j: int, own: Array, holds_bias: bool = False) -> tuple[SimulatedJoint, TorqueLoss]:
        gain = float(own[c.TORQUE_GAIN] * self.supply[j])
        damping, dry, offset = float(own[c.VISCOUS]), float(own[c.COULOMB]), float(own[c.OFFSET])
        left, lost = np.zeros(1), tuple[str, ...]()
        speed, motor = self.states.speed[:, j], self.states.motor[:, j]
        moving = np.abs(speed) > _MOVING_SHARE * max(float(np.abs(speed).max(initial=0.0)), 1e-12)
        if np.any(own[list(_RICHER_FRICTION)] != 0.0) and moving.any():
            speed, motor = speed[moving], motor[moving]
            budget = friction_torque(own, motor, self.states.external[moving, j], speed)
            torque = np.sign(speed) * budget + damping * speed
            fitted = best_fit(torque, {"damping": speed, "frictionloss": np.sign(speed)})
            damping, dry = fitted["damping"], fitted["frictionloss"]
            left, lost = torque - damping * speed - dry * np.sign(speed), ("friction",)
        has_loop = own[c.KP] > 0.0
        limit = min(gain * float(own[c.U_LIMIT]), float(own[c.TORQUE_LIMIT]))
        integral = gain * float(own[c.KI] * own[c.INTEGRAL_ERROR])
        joint = SimulatedJoint(
            self.joints[j], armature=float(own[c.ARMATURE]), damping=damping + float(own[c.BACK_EMF]), frictionloss=dry,
            stiffness=gain * float(own[c.KP]) if has_loop else None, kd=gain * float(own[c.KD]) if has_loop else None,
            ki=integral if has_loop and integral > 0.0 else None, force_limit=limit,
            delay=float(own[c.DELAY]) if own[c.DELAY] >= SHORTEST_DELAY else 0.0, bias=-offset if has_loop else 0.0)
        if offset and not (holds_bias and joint.has_position_loop):
            left, lost = left + offset, (*lost, "offset")
        error = float(np.sqrt(np.mean(left ** 2)))
        size = float(np.sqrt(np.mean(motor ** 2))) if len(motor) else 0.0
        return joint, TorqueLoss(self.joints[j], error, size, lost)

    def draws(self, count: int, seed: int = 0, *, spread: float = DEFAULT_SPREAD) -> Array:
        """Return parameter values drawn from the posterior (count, k), inside their bounds.

        Unknowns that the data determine are normally distributed with the estimated covariance. Undetermined unknowns
        are independent, with the relative standard deviation `spread` about the estimate. Draws outside the bounds are
        drawn again.
        """
        check_draws(count, spread)
        size, vectors = np.linalg.eigh(self.drawn_covariance(spread))
        factor = vectors * np.sqrt(np.maximum(size, 0.0))
        rng = np.random.default_rng(seed)
        drawn = np.empty((count, len(self.values)))
        outside = np.arange(count)
        for _ in range(_MAX_REDRAWS):
            drawn[outside] = self.values + rng.standard_normal((len(outside), len(size))) @ factor.T
            outside = np.flatnonzero(np.any((drawn < self.lower) | (drawn > self.upper), axis=1))
            if not len(outside):
                break
        return np.clip(drawn, self.lower, self.upper)

    def drawn_covariance(self, spread: float = DEFAULT_SPREAD) -> Array:
        """Return the covariance (k, k) of random draws before bounds are applied; spread: relative standard deviation
        of undetermined unknowns."""
        wanted = np.outer(self.identified, self.identified) * self.covariance
        return wanted + np.diag(np.where(self.identified, 0.0, (spread * self.values) ** 2))

    def save(self, path: str | Path, settings: Mapping[str, Any] | None = None) -> None:
        """Write the posterior as JSON; settings: settings of the run, stored in the same file."""
        numbers = {**{name: getattr(self, name) for name in _ARRAYS}, **vars(self.states)}
        write_json(Path(path), {
            "law": self.law, "joints": self.joints, "names": self.names, "owners": self.owners,
            "known": [_texts(table) for table in self.known], "notes": self.notes, "unusable": self.unusable,
            "settings": dict(settings or {}),
            **{name: _nested(array) for name, array in numbers.items()}})

    @staticmethod
    def load(path: str | Path) -> tuple[ActuatorPosterior, dict[str, Any]]:
        """Return a saved posterior, and the settings of the run.

        Raises:
            RecordingError: if the file is damaged.
            ModelError: if the drive law is custom, so the file cannot restore it.
        """
        damaged = RecordingError(f"{path} is not a posterior of `dynid actuators`, or is damaged",
                                 "identify again with `dynid actuators ... -o`", "damaged-posterior")
        try:
            found = json.loads(read_small(Path(path)))
            texts = {name: tuple(map(str, found[name])) for name in ("joints", "names", "notes")}
            arrays = {name: np.array(found[name], dtype=float) for name in (*_ARRAYS, *_STATES)}
            known = tuple({str(key): float(value) for key, value in table.items()} for table in found["known"])
            owners = tuple(tuple(int(j) for j in own) for own in found["owners"])
            law, settings, unusable = str(found["law"]), dict(found["settings"]), str(found.get("unusable", ""))
        except (OSError, KeyError, ValueError, TypeError, AttributeError, RecursionError):
            raise damaged from None
        n, k = len(texts["joints"]), len(texts["names"])
        shapes = ((k,), (k, k), (k,), (k,), (k,), (n,))
        if (any(arrays[name].shape != shape for name, shape in zip(_ARRAYS, shapes, strict=True)) or len(known) != n
                or len(owners) != k
                or any(not 0 <= j < n for own in owners for j in own)
                or not all(np.isfinite(arrays[name]).all() for name in ("values", "covariance", "supply"))
                or len({arrays[name].shape for name in _STATES}) != 1
                or arrays["speed"].shape[1:] != (n,)):
            raise damaged
        if law not in LAWS:
            raise ModelError(f"the drive law '{law}' is custom, so the result cannot be exported from the folder alone",
                             "call `estimate.posterior.simulated()` in the script that defines the law", "unknown-law")
        states = DriveStates(*(arrays[name] for name in _STATES))
        return ActuatorPosterior(law, texts["joints"], texts["names"], owners, arrays["values"], arrays["covariance"],
                                 arrays["identified"] > 0.5, arrays["lower"], arrays["upper"], known, arrays["supply"],
                                 states, texts["notes"], unusable), settings


def _texts(table: Mapping[str, float]) -> dict[str, str]:
    """Return numbers as text, because JSON has no infinite or missing numbers."""
    return {name: repr(float(value)) for name, value in table.items()}


def _nested(array: Any) -> Any:
    """Return nested lists of an array, with infinite bounds as text."""
    if array.dtype == bool:
        return array.astype(int).tolist()
    return array.tolist() if np.isfinite(array).all() else [repr(float(value)) for value in array]


def friction_torque(own: Array, motor: Array, external: Array, speed: Array) -> Array:
    """Return the largest dry friction torque of a joint (rows,), N m, as the compiled simulation computes it.

    Args:
        own: parameters of the joint (JOINT_COLUMNS,), see `columns`.
        motor, external: torques of the motor and of the load (rows,), N m.
        speed: velocity (rows,), rad/s.
    """
    load = np.abs(own[c.LOAD_EXTERNAL] * external - own[c.LOAD_MOTOR] * motor)
    more = own[c.STRIBECK] + np.abs(own[c.STRIBECK_LOAD_EXTERNAL] * external - own[c.STRIBECK_LOAD_MOTOR] * motor)
    against = external * motor < 0.0
    more = more + against * np.where(np.abs(external) < np.abs(motor), own[c.QUADRATIC_EXTERNAL] * external ** 2,
                                     own[c.QUADRATIC_MOTOR] * motor ** 2)
    return own[c.COULOMB] + load + more * np.exp(-(np.abs(speed) / own[c.STRIBECK_SPEED]) ** own[c.STRIBECK_SHAPE])


def actuator_posterior(robot: Robot, entries: Sequence[ActuatorLog], problems: Sequence[ChainProblem],
                       fits: Sequence[Refinement], identified: Sequence[Bools], simulated: Sequence[Array]
                       ) -> ActuatorPosterior:
    """Return the posterior of all chains of a robot.

    Args:
        robot: the robot.
        entries: the logs.
        problems, fits, identified: estimation problem, solution and mask of determined unknowns of each chain.
        simulated: simulated positions (rows, joints) of each log.
    """
    names: list[str] = []
    owners: list[tuple[int, ...]] = []
    known: list[Mapping[str, float]] = [{} for _ in robot.joints]
    supply, count = np.ones(robot.dof), sum(len(fit.x) for fit in fits)
    covariance, at = np.zeros((count, count)), 0
    for problem, fit in zip(problems, fits, strict=True):
        log = problem.logs[0]
        places = tuple(int(j) for j in log.chain.joints)
        for j, table in zip(places, problem.known, strict=True):
            known[j] = {**table, **log.gains}
        supply[list(places)] = np.mean(log.signals.supply, axis=0)
        own = problem.unknowns[:len(fit.x)]
        names += [one.name for one in own]
        owners += [places if one.joint < 0 else (places[one.joint],) for one in own]
        covariance[at:at + len(own), at:at + len(own)] = fit.covariance
        at += len(own)
    values = np.concatenate([fit.x for fit in fits])
    pairs = list(zip(problems, fits, strict=True))
    found = ActuatorPosterior(
        problems[0].law.name, robot.joint_names, tuple(names), tuple(owners), values, covariance,
        np.concatenate(list(identified)), np.concatenate([problem.lower[:len(fit.x)] for problem, fit in pairs]),
        np.concatenate([problem.upper[:len(fit.x)] for problem, fit in pairs]), tuple(known), supply,
        DriveStates(*(np.zeros((0, robot.dof)) for _ in range(3))))
    fixed = [j for j in range(robot.dof) if not any(own == (j,) for own in owners)]
    tables = [table for j, table in enumerate(found.tables(values)) if j not in fixed]
    means = {name: float(np.mean([table[name] for table in tables if name in table]))
             for name in dict.fromkeys(name for table in tables for name in table)}
    found = replace(found, known=tuple({**means, **table} if j in fixed else table for j, table in enumerate(known)))
    numbers = np.array([joint_numbers(problems[0].law, table) for table in found.tables(values)])
    return replace(found, states=_states(robot, entries, simulated, numbers, found.link_scales()),
                   notes=(*_notes(problems, numbers),
                          *(f"{robot.joint_names[j]} does not move in the logs; it has the mean values of the other "
                            "joints" for j in fixed)))


def _states(robot: Robot, entries: Sequence[ActuatorLog], simulated: Sequence[Array], numbers: Array,
            link_scales: Array) -> DriveStates:
    """Return the joint states along the simulated positions of all logs, evenly decimated."""
    parts = []
    for entry, q in zip(entries, simulated, strict=True):
        own, t = entry.robot or robot, entry.recording.t
        model, theta = Model(own), (own.inertias[:own.dof] * link_scales[:, None]).ravel()
        speed = np.gradient(q, t, axis=0)
        push = np.gradient(speed, t, axis=0)
        external = -model.inverse_dynamics(theta, q, speed, np.zeros_like(q))
        needed = (model.inverse_dynamics(theta, q, speed, push) + numbers[:, c.ARMATURE] * push
                  + numbers[:, c.VISCOUS] * speed + numbers[:, c.OFFSET])
        motor = needed.copy()
        for _ in range(_LOAD_ROUNDS):
            dry = np.column_stack([friction_torque(one, motor[:, j], external[:, j], speed[:, j])
                                   for j, one in enumerate(numbers)])
            motor = needed + np.sign(speed) * dry
        parts.append((speed, motor, external))
    whole = [np.concatenate(column) for column in zip(*parts, strict=True)]
    kept = np.unique(np.linspace(0, len(whole[0]) - 1, min(_MAX_STATES, len(whole[0]))).round().astype(int))
    return DriveStates(*(one[kept] for one in whole))


def _notes(problems: Sequence[ChainProblem], numbers: Array) -> tuple[str, ...]:
    """Return sentences on properties of the actuators that exported files cannot represent."""
    notes = []
    gains = [dict(log.gains) for log in problems[0].logs]
    if any(one != gains[0] for one in gains):
        notes.append("the logs have different gains; the exported drives have the gains of the first log")
    if np.any(numbers[:, c.BIAS] != 0.0):
        notes.append("encoder biases are not part of the exported files; subtract the biases from commands and "
                     "positions")
    if np.any(numbers[:, c.BACKLASH] != 0.0):
        notes.append("backlash is not part of the exported files")
    if np.any(numbers[:, c.KI] * numbers[:, c.INTEGRAL_SPEED] != 0.0):
        notes.append("the integral of the velocity loop acts on the position error only in the exported drives")
    if np.all(numbers[:, c.KP] == 0.0):
        notes.append("the drive law has no position loop, so no actuators are exported; give gains with --drives")
    return tuple(notes)


def draw_table(posterior: ActuatorPosterior, drawn: Array,
               change: Callable[[tuple[SimulatedJoint, ...]], tuple[SimulatedJoint, ...]] = lambda joints: joints
               ) -> dict[str, Any]:
    """Return drawn actuators as arrays by name.

    `theta` is (draws, unknowns) in the order of `names` (joint and parameter). `armature`, `damping`, `frictionloss`,
    `stiffness`, `kd`, `ki`, `force_limit` and `delay` are (draws, joints) in the order of `joints`, NaN for a missing
    value. change: function that is applied to the joints of each draw.
    """
    fields = ("armature", "damping", "frictionloss", "stiffness", "kd", "ki", "force_limit", "delay")
    rows = np.array([[[np.nan if getattr(joint, name) is None else getattr(joint, name) for joint in
                       change(posterior.simulated(x)[0])] for name in fields] for x in drawn])
    return {"names": np.array(labels(posterior)), "theta": drawn, "joints": np.array(posterior.joints),
            **{name: rows[:, k] for k, name in enumerate(fields)}}


def labels(posterior: ActuatorPosterior) -> list[str]:
    """Return a label of each unknown with its joint, such as "hip.armature", or with all joints that share the
    unknown."""
    return [f"{'+'.join(posterior.joints[j] for j in own)}.{name}"
            for name, own in zip(posterior.names, posterior.owners, strict=True)]
