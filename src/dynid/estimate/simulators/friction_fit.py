"""Approximation of friction and rotor inertia by the joint parameters of simulators: armature, damping, frictionloss.

A target simulator has armature, damping and frictionloss of a joint, or some of these. A joint may have other terms:
load-dependent or Stribeck friction, presliding, an offset, a coupling. It then gets the non-negative values that
predict the torque of all its terms best along the motion, by least squares. The rotor inertia is unchanged if only
friction is approximated, and friction is unchanged if only a rotor inertia is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.following import random_postures
from dynid.errors import ModelError
from dynid.estimate.estimate import Estimate
from dynid.model import Model, required_robot_model
from dynid.model.term import MotionSegment
from dynid.recording import Samples
from dynid.robot import Robot

PASSIVE = ("armature", "damping", "frictionloss")
_RANDOM_STATES = 2000  # for a fit without a log
_DEFAULT_SPEED = 1.0  # rad/s or m/s, of a joint without a velocity limit
_DEFAULT_ACCELERATION = 5.0  # rad/s^2 or m/s^2, of a joint without an acceleration limit
_MAX_FIT_ROWS = 20000  # rows of a log that a fit uses; more rows hardly change it


@dataclass(frozen=True)
class TorqueLoss:
    """Torque that a target cannot represent at one joint, along the motion.

    Attributes:
        joint: name of the joint.
        error: RMS of the torque that is not represented, N m or N.
        torque: RMS of the joint's torque, N m or N.
        terms: names of the parameters that were approximated.
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
    """Motion for approximating friction: positions, velocities, accelerations (samples, dof), times (samples,)."""

    q: Array
    dq: Array
    ddq: Array
    t: Array | None = None
    is_logged: bool = True

    @staticmethod
    def from_samples(samples: Sequence[Samples]) -> JointMotion:
        """Return the motion of logs, at most `_MAX_FIT_ROWS` rows; times are included only if all rows are used."""
        rows = sum(len(one.q) for one in samples)
        step = -(-rows // _MAX_FIT_ROWS)
        q, dq, ddq = (np.vstack([getattr(one, name)[::step] for one in samples]) for name in ("q", "dq", "ddq"))
        alone = len(samples) == 1 and step == 1 and len(samples[0].segments) == 1
        return JointMotion(q, dq, ddq, samples[0].t if alone else None)

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
        return JointMotion(q, dq, ddq, is_logged=False)


def simulated_joints(model: Model, theta: Array, motion: JointMotion, holds: Collection[str]
                     ) -> tuple[tuple[SimulatedJoint, ...], tuple[TorqueLoss, ...]]:
    """Return the passive values of every joint in a target, and the torque that the target cannot represent.

    Args:
        model: model of the estimate.
        theta: standard parameters (parameters,).
        motion: motion along which the torques are fitted.
        holds: values that the target represents: "armature", "damping", "frictionloss".
    """
    torque, total = _torques(model, theta, motion)
    found, losses = [], []
    for j, name in enumerate(model.joint_names):
        values, rest = _exact(model, theta, j, holds)
        error = 0.0
        if rest:
            columns = {"armature": motion.ddq[:, j], "damping": motion.dq[:, j],
                       "frictionloss": np.sign(motion.dq[:, j])}
            values = _approximated(torque[:, j], columns, values, _kept(model, rest))
            error = _rms(torque[:, j] - _combined(columns, values))
        losses.append(TorqueLoss(name, error, _rms(total[:, j]), rest))
        found.append(SimulatedJoint(name, **values))
    return tuple(found), tuple(losses)


def _approximated(torque: Array, columns: Mapping[str, Array], values: Mapping[str, float],
                  keep: Collection[str]) -> dict[str, float]:
    """Return the passive values of a joint that predict a torque (samples,) best, with those in `keep` fixed."""
    kept = {one: value for one, value in values.items() if one in keep}
    fitted = {one: columns[one] for one in values if one not in kept}
    return {**kept, **best_fit(torque - _combined(columns, kept), fitted)}


def _combined(columns: Mapping[str, Array], values: Mapping[str, float]) -> Array:
    """Return the torque (samples,): the sum of columns times their values."""
    start = np.zeros(len(next(iter(columns.values()))))
    return sum((value * columns[one] for one, value in values.items()), start)


def _rms(signal: Array) -> float:
    return float(np.sqrt(np.mean(signal ** 2)))


def _kept(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """Return the passive values of a joint that stay unchanged when some parameters are approximated."""
    rotors = {model.parameters.items[model.parameters.index(one)].kind.group == "rotor" for one in names}
    return ("damping", "frictionloss") if rotors == {True} else ("armature",) if rotors == {False} else ()


def _torques(model: Model, theta: Array, motion: JointMotion) -> tuple[Array, Array]:
    """Return torques along a motion (samples, dof): of all terms except the rigid bodies, and of the whole model."""
    whole, signals = model.with_bodies_if_unset(theta), (motion.q, motion.dq, motion.ddq)
    is_body = np.array([item.body is not None for item in model.parameters])
    in_log = np.array([item.unit == "s" for item in model.parameters])  # delays describe the log, not the robot
    links, others = np.where(is_body, theta, 0.0), np.where(is_body | in_log, 0.0, theta)
    if whole.channels and motion.t is not None:
        columns = whole.regressor(*signals, memory=whole.memory(MotionSegment(motion.t, *signals)))
        torque = np.asarray(columns @ others)
    else:
        torque = whole.inverse_dynamics(others, *signals)
    return torque, torque + whole.inverse_dynamics(links, *signals)


def _exact(model: Model, theta: Array, joint: int, holds: Collection[str]) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return the passive values of a joint that a target represents exactly, and the names of other parameters."""
    values = dict.fromkeys((name for name in PASSIVE if name in holds), 0.0)
    rest = []
    for place in np.flatnonzero(model.structure[joint]):
        item, value = model.parameters.items[place], float(theta[place])
        if item.body is not None or item.unit == "s" or value == 0.0:
            continue
        attribute = item.kind.mjcf
        alone = int(np.count_nonzero(model.structure[:, place])) == 1
        if attribute in values and value > 0.0 and alone and values[attribute] == 0.0:
            values[attribute] = value
        else:
            rest.append(item.name)
    return values, tuple(rest)


def best_fit(torque: Array, columns: Mapping[str, Array]) -> dict[str, float]:
    """Return factors, none negative, of columns (samples,) by name whose sum predicts a torque (samples,) best."""
    from scipy.optimize import nnls

    if not columns:
        return {}
    stacked = np.column_stack(list(columns.values()))
    size = np.linalg.norm(stacked, axis=0)
    size[size == 0.0] = 1.0
    return dict(zip(columns, map(float, nnls(stacked / size, torque)[0] / size), strict=True))


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
    in_fit = [item.body is None and item.unit != "s" for item in model.parameters]
    for j in range(model.dof):
        places = np.flatnonzero(model.structure[j] & in_fit)
        factor: Array | None = None
        for k, theta in enumerate(thetas):
            values, rest = _exact(model, theta, j, PASSIVE)
            if rest and factor is None:
                if regressor is None:
                    regressor = model.with_bodies_if_unset(theta).regressor(motion.q, motion.dq, motion.ddq)
                own = np.column_stack([motion.ddq[:, j], motion.dq[:, j], np.sign(motion.dq[:, j])])
                factor = np.asarray(np.linalg.qr(np.hstack([own, regressor[:, j, places]]), mode="r"))
            if rest and factor is not None:
                columns = dict(zip(PASSIVE, factor[:, :3].T, strict=True))
                values = _approximated(factor[:, 3:] @ theta[places], columns, values, _kept(model, rest))
            for name, value in values.items():
                found[name][k, j] = value
    return found


def approximated_terms(model: Model, theta: Array, holds: Collection[str]) -> tuple[str, ...]:
    """Return the names of parameters that a target with these passive joint values cannot represent."""
    return tuple(dict.fromkeys(name for j in range(model.dof) for name in _exact(model, theta, j, holds)[1]))


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
