"""Approximation of friction and rotor inertia by the joint parameters of files: armature, damping, frictionloss.

A file or simulator has armature, damping and frictionloss of a joint, or some of these. Parameters of the estimate that
it has are written unchanged. Other friction (curves, Stribeck, load-dependent, presliding, asymmetric, coupled) is
replaced by the non-negative damping and frictionloss that are nearest to it over the logged motion, by least squares
over the rows of the regression. Torque that is no friction, such as offsets and cables, is not replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.dynamics.following import random_postures
from dynid.errors import ModelError
from dynid.estimate.estimate import Estimate
from dynid.model import Model, required_robot_model
from dynid.recording import Samples
from dynid.recording.excerpts import excerpt
from dynid.regression.equations import memory_states
from dynid.robot import Robot

PASSIVE = ("armature", "damping", "frictionloss")
_REPLACED_BY = {"friction": ("damping", "frictionloss"), "rotor": ("armature",)}  # by group of the parameters
_RANDOM_STATES = 2000  # for a fit without a log
_DEFAULT_SPEED = 1.0  # rad/s or m/s, of a joint without a velocity limit
_DEFAULT_ACCELERATION = 5.0  # rad/s^2 or m/s^2, of a joint without an acceleration limit
_MAX_FIT_ROWS = 20000  # rows of the logs that a fit uses; more rows hardly change it
# Weight of a column of norm one by which values that the motion does not determine stay at those of the estimate: its
# square is far above rounding errors and far below any determined direction.
_START_WEIGHT = 1e-6


@dataclass(frozen=True)
class TorqueLoss:
    """Torque that a target cannot represent at one joint, along the motion.

    Attributes:
        joint: name of the joint.
        error: RMS of the torque that is not represented, N m or N.
        torque: RMS of the joint's torque, N m or N.
        terms: names of the parameters that were approximated or omitted.
    """

    joint: str
    error: float
    torque: float
    terms: tuple[str, ...] = ()

    @property
    def percent(self) -> float:
        """RMS torque that is not represented, in percent of the RMS joint torque; 0 without torque."""
        return 100.0 * self.error / self.torque if self.torque > 0 else 0.0


@dataclass(frozen=True, eq=False)
class JointMotion:
    """Motion over which friction is approximated: samples of logs, or random states if `is_logged` is False."""

    logs: tuple[Samples, ...]
    is_logged: bool = True

    @staticmethod
    def from_samples(samples: Sequence[Samples]) -> JointMotion:
        """Return the motion of logs, as an excerpt of at most about `_MAX_FIT_ROWS` rows."""
        return JointMotion(excerpt(samples, _MAX_FIT_ROWS))

    @staticmethod
    def random(robot: Robot) -> JointMotion:
        """Return random states within the limits of the robot, for an estimate without its log."""
        rng = np.random.default_rng(0)
        lower, upper = np.maximum(robot.limit("lower"), -np.pi), np.minimum(robot.limit("upper"), np.pi)
        q = rng.uniform(lower, np.maximum(upper, lower), (_RANDOM_STATES, robot.dof))
        if robot.followers is not None and robot.followers.loops is not None:
            q = random_postures(robot, _RANDOM_STATES, rng)
        speed, push = robot.limit("velocity"), robot.limit("acceleration")
        dq = rng.uniform(-1.0, 1.0, q.shape) * np.where(np.isfinite(speed), speed, _DEFAULT_SPEED)
        ddq = rng.uniform(-1.0, 1.0, q.shape) * np.where(np.isfinite(push), push, _DEFAULT_ACCELERATION)
        return JointMotion((Samples.from_arrays(q, dq, ddq, np.zeros_like(q)),), is_logged=False)

    @cached_property
    def rows(self) -> Bools:
        """Mask (samples, dof) of the rows of each joint: those that the regression uses, or all if it uses none."""
        keep = np.concatenate([log.keep for log in self.logs])
        return np.asarray(keep | ~keep.any(axis=0))

    @cached_property
    def _columns(self) -> dict[str, Array]:
        dq, ddq = (np.concatenate([getattr(log, name) for log in self.logs]) for name in ("dq", "ddq"))
        return {"armature": ddq, "damping": dq, "frictionloss": np.sign(dq)}

    def columns(self, joint: int) -> dict[str, Array]:
        """Return the torques (rows,) of a joint's armature, damping and frictionloss of one, in the rows of the joint.
        """
        return {name: signal[self.rows[:, joint], joint] for name, signal in self._columns.items()}

    def torques(self, model: Model, theta: Array) -> Array:
        """Return the torques (samples, dof) of a model with parameters theta."""
        return np.concatenate([model.inverse_dynamics(theta, log.q, log.dq, log.ddq) if memory is None else
                               model.regressor(log.q, log.dq, log.ddq, memory=memory) @ theta
                               for log, memory in zip(self.logs, self._memories(model), strict=True)])

    def regressor(self, model: Model) -> Array:
        """Return the regressor (samples, dof, parameters) of a model."""
        return np.concatenate([model.regressor(log.q, log.dq, log.ddq, memory=memory)
                               for log, memory in zip(self.logs, self._memories(model), strict=True)])

    def _memories(self, model: Model) -> list[Array | None]:
        """Return the states of the model's terms with memory in each log; None for random states, which have no order.
        """
        return [memory_states(model, log, slice(None)) if self.is_logged else None for log in self.logs]


@dataclass(frozen=True)
class _JointParameters:
    """Parameters of one joint, seen from a target.

    Attributes:
        values: passive values that the target has, from parameters that it represents exactly.
        replaced: by group, indices of the parameters that these values replace.
        rest: indices of all parameters that are not represented exactly.
    """

    values: dict[str, float]
    replaced: dict[str, list[int]]
    rest: tuple[int, ...]

    @staticmethod
    def of_joint(model: Model, theta: Array, joint: int, holds: Collection[str]) -> _JointParameters:
        """Return the parameters theta (parameters,) of a joint for a target that has the values `holds`."""
        values = dict.fromkeys((name for name in PASSIVE if name in holds), 0.0)
        replaced, rest = dict[str, list[int]](), list[int]()
        for place in np.flatnonzero(model.structure[joint]).tolist():
            item, value = model.parameters.items[place], float(theta[place])
            if item.body is not None or item.unit == "s" or value == 0.0:  # a delay describes the log, not the robot
                continue
            attribute = item.kind.mjcf
            alone = int(np.count_nonzero(model.structure[:, place])) == 1
            if attribute in values and value > 0.0 and alone and values[attribute] == 0.0:
                values[attribute] = value
                continue
            rest.append(place)
            if any(name in values for name in _REPLACED_BY.get(item.kind.group, ())):
                replaced.setdefault(item.kind.group, []).append(place)
        return _JointParameters(values, replaced, tuple(rest))

    def fitted(self, columns: Mapping[str, Array], torques: Mapping[str, Array]) -> dict[str, float]:
        """Return the passive values that are nearest to all parameters they represent. columns: torques (rows,) of
        values of one; torques: torque (rows,) of the replaced parameters of each group."""
        values = dict(self.values)
        for group, torque in torques.items():
            start = {name: values[name] for name in _REPLACED_BY[group] if name in values}
            own = {name: columns[name] for name in start}
            values |= best_fit(torque + _combined(own, start), own, start)
        return values


def nearest_values(model: Model, theta: Array, motion_of: Callable[[], JointMotion], holds: Collection[str]
                   ) -> tuple[tuple[dict[str, float], tuple[str, ...]], ...]:
    """Return, for every joint, the passive values nearest to an estimate, and the parameters that they do not equal.

    Args:
        model: model of the estimate.
        theta: standard parameters (parameters,).
        motion_of: function that returns the motion over which friction is approximated; called only if there is such
            friction.
        holds: values that the target represents: "armature", "damping", "frictionloss".
    """
    joints = [_JointParameters.of_joint(model, theta, j, holds) for j in range(model.dof)]
    rests = [tuple(model.parameters.names[place] for place in one.rest) for one in joints]
    if not any(one.replaced for one in joints):
        return tuple((one.values, rest) for one, rest in zip(joints, rests, strict=True))
    motion, torques = motion_of(), dict[str, Array]()
    for group in _REPLACED_BY:
        places = sorted({place for one in joints for place in one.replaced.get(group, ())})
        if places:
            chosen = np.zeros(len(theta))
            chosen[places] = theta[places]
            torques[group] = motion.torques(model.with_bodies_if_unset(theta), chosen)
    found = []
    for j, (one, rest) in enumerate(zip(joints, rests, strict=True)):
        own = {group: torques[group][motion.rows[:, j], j] for group in one.replaced}
        found.append((one.fitted(motion.columns(j), own) if own else one.values, rest))
    return tuple(found)


def simulated_joints(model: Model, theta: Array, motion: JointMotion, holds: Collection[str]
                     ) -> tuple[tuple[SimulatedJoint, ...], tuple[TorqueLoss, ...]]:
    """Return the passive values of every joint in a target, and the torque that the target cannot represent.

    Args:
        model, theta, holds: see `nearest_values`.
        motion: motion over which friction is approximated and torques are compared.
    """
    others, total = _torques(model, theta, motion)
    found, losses = [], []
    for j, (values, rest) in enumerate(nearest_values(model, theta, lambda: motion, holds)):
        own = motion.rows[:, j]
        left = others[own, j] - _combined(motion.columns(j), values) if rest else np.zeros(1)
        losses.append(TorqueLoss(model.joint_names[j], _rms(left), _rms(total[own, j]), rest))
        found.append(SimulatedJoint(model.joint_names[j], **values))
    return tuple(found), tuple(losses)


def _combined(columns: Mapping[str, Array], values: Mapping[str, float]) -> Array:
    """Return the torque (samples,): the sum of columns times their values."""
    start = np.zeros(len(next(iter(columns.values()))))
    return sum((value * columns[one] for one, value in values.items()), start)


def _rms(signal: Array) -> float:
    return float(np.sqrt(np.mean(signal ** 2)))


def _torques(model: Model, theta: Array, motion: JointMotion) -> tuple[Array, Array]:
    """Return torques along a motion (samples, dof): of all terms except the rigid bodies, and of the whole model."""
    whole = model.with_bodies_if_unset(theta)
    is_body = np.array([item.body is not None for item in model.parameters])
    in_log = np.array([item.unit == "s" for item in model.parameters])  # delays describe the log, not the robot
    others = motion.torques(whole, np.where(is_body | in_log, 0.0, theta))
    links = np.where(is_body, theta, 0.0)
    return others, others + np.concatenate([whole.inverse_dynamics(links, log.q, log.dq, log.ddq)
                                            for log in motion.logs])


def best_fit(torque: Array, columns: Mapping[str, Array], start: Mapping[str, float] | None = None
             ) -> dict[str, float]:
    """Return factors, none negative, of columns (samples,) by name whose sum predicts a torque (samples,) best.

    start: factors that are kept where the columns do not determine them; zero by default.
    """
    if not columns:
        return {}
    stacked = np.column_stack(list(columns.values()))
    size = np.linalg.norm(stacked, axis=0)
    size[size == 0.0] = 1.0
    first = np.array([0.0 if start is None else start[name] for name in columns]) * size
    factor: Array = np.asarray(np.linalg.qr(np.column_stack([stacked / size, torque]), mode="r"))
    matrix = np.vstack([factor[:, :-1], _START_WEIGHT * np.eye(len(size))])
    target = np.append(factor[:, -1], _START_WEIGHT * first)
    # A non-negative optimum is the least-squares solution with its own non-zero factors, so the best of these is it.
    best, least = np.zeros(len(size)), np.inf
    for count in range(len(size) + 1):
        for chosen in map(list, combinations(range(len(size)), count)):
            x = np.zeros(len(size))
            x[chosen] = np.linalg.lstsq(matrix[:, chosen], target, rcond=None)[0]
            misfit = float(np.sum((matrix @ x - target) ** 2))
            if x.min(initial=0.0) >= 0.0 and misfit < least:
                best, least = x, misfit
    return dict(zip(columns, map(float, best / size), strict=True))


def motion_for(estimate: Estimate, samples: Sequence[Samples]) -> JointMotion:
    """Return the motion of the logs along which friction is approximated, or random states without logs."""
    if samples:
        return JointMotion.from_samples(samples)
    return JointMotion.random(required_robot_model(estimate.model, "a simulator's model").robot)


def passive_table(model: Model, thetas: Array, motion: JointMotion) -> dict[str, Array]:
    """Return armature, damping and frictionloss (draws, dof) by name, for many parameter vectors (draws, parameters).

    The values equal those of `simulated_joints` for each vector, for a target that has all three. The motion is
    compressed to a triangular factor once for all vectors, which does not change any least-squares fit.
    """
    found = {name: np.zeros((len(thetas), model.dof)) for name in PASSIVE}
    regressor: Array | None = None
    for j in range(model.dof):
        factor: Array | None = None
        for k, theta in enumerate(thetas):
            one = _JointParameters.of_joint(model, theta, j, PASSIVE)
            values = one.values
            if one.replaced:
                if regressor is None:
                    regressor = motion.regressor(model.with_bodies_if_unset(theta))
                if factor is None:
                    own = motion.rows[:, j]
                    factor = np.asarray(np.linalg.qr(np.column_stack([*motion.columns(j).values(), regressor[own, j]]),
                                                     mode="r"))
                values = one.fitted(dict(zip(PASSIVE, factor[:, :3].T, strict=True)), {
                    group: factor[:, 3:][:, places] @ theta[places] for group, places in one.replaced.items()})
            for name, value in values.items():
                found[name][k, j] = value
    return found


def unrepresented(model: Model, theta: Array, holds: Collection[str]) -> tuple[tuple[str, ...], ...]:
    """Return, for every joint, the parameters that a target with these passive values does not represent exactly."""
    return tuple(tuple(model.parameters.names[place] for place in
                       _JointParameters.of_joint(model, theta, j, holds).rest) for j in range(model.dof))


@dataclass(frozen=True)
class SimulatedJoint:
    """One joint in a simulator: passive values, and its drive where it has one. SI units, on the joint side.

    A passive value of None is not written, so that the joint keeps the value of the file.

    Attributes:
        name: name of the joint.
        armature: reflected rotor inertia, kg m^2 or kg.
        damping: viscous friction, N m s/rad or N s/m.
        frictionloss: Coulomb friction, N m or N.
        stiffness: proportional gain of a position controller, N m/rad or N/m, or None.
        kd: derivative gain, N m s/rad or N s/m, or None.
        ki: integral gain, N m/(rad s) or N/(m s), or None.
        force_limit: largest torque or force of the drive, N m or N; infinite where unknown.
        velocity_limit: no-load speed of the drive, rad/s or m/s; infinite where unknown.
        delay: delay from command to torque, s.
        torque_constant: torque per current, N m/A or N/A, or None.
        resistance: resistance of the winding, ohm, or None.
        bias: constant torque that the drive adds, N m or N.
    """

    name: str
    armature: float | None = 0.0
    damping: float | None = 0.0
    frictionloss: float | None = 0.0
    stiffness: float | None = None
    kd: float | None = None
    ki: float | None = None
    force_limit: float = np.inf
    velocity_limit: float = np.inf
    delay: float = 0.0
    torque_constant: float | None = None
    resistance: float | None = None
    bias: float = 0.0

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name == "name" or value is None:
                continue
            endless = one.name in ("force_limit", "velocity_limit")
            if np.isnan(value) or (value < 0.0 and one.name != "bias") or (np.isinf(value) and not endless):
                raise ModelError(f"{one.name} of joint '{self.name}' must be a non-negative number, got {value:g}",
                                 code="wrong-joint-value")

    @property
    def is_driven(self) -> bool:
        """Whether a controller or a motor of this joint is known."""
        return self.stiffness is not None or self.kd is not None or self.resistance is not None

    @property
    def has_position_loop(self) -> bool:
        """Whether the drive takes a position as its command, by gains without an integral term or a winding."""
        return self.stiffness is not None and not self.ki and self.resistance is None

    def passive(self) -> dict[str, float]:
        """Return the passive values that are written, by name."""
        return {name: value for name in PASSIVE if (value := getattr(self, name)) is not None}

    def with_drive(self, drive: Any) -> SimulatedJoint:
        """Return the joint with the values of a drive: a mapping, or an object with attributes of these names.

        Values that the drive does not give, or gives as None, are not changed.
        """
        given = drive if isinstance(drive, Mapping) else {
            one.name: getattr(drive, one.name) for one in fields(self) if hasattr(drive, one.name)}
        known = {one.name for one in fields(self)} - {"name"}
        for name in given:
            if name not in known and name != "name":
                raise ModelError(f"the drive of joint '{self.name}' has an unknown value '{name}'; known are "
                                 f"{', '.join(sorted(known))}", code="unknown-drive-value")
        try:
            values: dict[str, Any] = {name: float(value) for name, value in given.items()
                                      if name in known and value is not None}
        except (TypeError, ValueError):
            raise ModelError(f"the drive of joint '{self.name}' has a value that is not a number",
                             code="wrong-joint-value") from None
        return replace(self, **values)


def with_drives(joints: tuple[SimulatedJoint, ...], drives: Mapping[str, Any]) -> tuple[SimulatedJoint, ...]:
    """Return the joints with the values of their drives. drives: drive values by name of the joint.

    Raises:
        ModelError: if a drive names a joint that the robot does not have.
    """
    names = [joint.name for joint in joints]
    for name in drives:
        if name not in names:
            raise ModelError(f"a drive is given for joint '{name}', which the robot does not have; it has "
                             f"{', '.join(names)}", code="unknown-joint")
    return tuple(joint.with_drive(drives[joint.name]) if joint.name in drives else joint for joint in joints)
