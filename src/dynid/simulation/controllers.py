"""Control laws: torques from a reference and the measured motion, and properties of their closed loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model import Model
from dynid.model.completion import can_compile
from dynid.simulation.kernels import Law
from dynid.simulation.plant import make_plant, per_joint
from dynid.simulation.reference import Reference

_TIME_CONSTANTS = 5.0  # time constants in which an initial error decays (Janot, Vandanjon, Gautier, s. 3.4)
_UNKNOWN_SETTLING = 0.5  # s: settling time of a loop with unknown poles


@dataclass(frozen=True, eq=False, kw_only=True)
class ControlLaw:
    """Base class of control laws, with default properties.

    Attributes:
        limit: largest torque, one number or one per joint, N m or N.
        delay: sampling periods until a torque reaches the motor.
        speed_lag: delay of the velocity in sampling periods: 1 for a central difference of positions, 0.5 for a
            backward difference.
    """

    needs_inertia: ClassVar[bool] = False  # whether gains and inertia have to match
    limit: ArrayLike = np.inf
    delay: int = 0
    speed_lag: float = 0.0

    def law(self, dof: int) -> Law | None:
        """Return the compiled form of the law; None for a law that is a Python function."""
        return None

    def gains(self, dof: int) -> Law | None:
        """Return the gains of independent linear joint loops; None for a law without such gains."""
        return None

    def scaled(self, ratio: Array) -> Self:
        """Return the control law with gains for joints whose inertia is `ratio` (dof,) times as large."""
        return self

    def tuned(self, inertia: Array) -> ControlLaw:
        """Return the law for joints of the given inertia (dof,); only laws with gains that depend on inertia change."""
        return self

    def with_poles(self, inertia: Array, machine: Array | None) -> ControlLaw:
        """Return the law that gives joints of the given inertia (dof,) the same closed-loop poles as joints of the
        inertia `machine` (dof,)."""
        raise ModelError("start = 'regular' needs a controller whose gains can be rescaled",
                         "use start = 'nominal' or 'wls' for this controller", "gains-not-known")

    def settling(self, inertia: Array | None) -> float:
        """Return the settling time, s, from the slowest pole; inertia (dof,): inertia of the robot's joints."""
        return _UNKNOWN_SETTLING

    def follows(self, motion: Reference) -> Reference:
        """Return the reference with which the closed loop follows a motion; the motion itself if unknown."""
        return motion

    def follows_with(self, motion: Reference, torque: Array) -> Reference | None:
        """Return the reference with which the law gives torques (ticks, dof) along a motion; None if unknown."""
        return None

    def lagging(self, ticks: float) -> Self:
        """Return the law for a velocity signal that is delayed by `ticks` sampling periods."""
        return replace(self, speed_lag=ticks)


@dataclass(frozen=True, eq=False, kw_only=True)
class JointGains(ControlLaw):
    """Base class of control laws with known gains of independent linear joint loops."""

    needs_inertia: ClassVar[bool] = True

    def gains(self, dof: int) -> Law | None:
        return self.law(dof)

    def with_poles(self, inertia: Array, machine: Array | None) -> ControlLaw:
        return super().with_poles(inertia, machine) if machine is None else self.scaled(inertia / machine)

    def settling(self, inertia: Array | None) -> float:
        gains = None if inertia is None else self.gains(len(inertia))
        if inertia is None or gains is None:
            return _UNKNOWN_SETTLING
        slowest = [np.min(-np.roots([J, kd, kp]).real) for J, kd, kp in zip(inertia, gains.kd, gains.kp, strict=True)]
        return float(_TIME_CONSTANTS / max(min(slowest), 1e-3))


@dataclass(frozen=True, eq=False)
class PD(JointGains):
    """PD law tau = kp (qr - q) + kd (dqr - dq); gains are one number or one per joint."""

    kp: ArrayLike
    kd: ArrayLike

    def law(self, dof: int) -> Law:
        return _law(dof, self, kp=self.kp, kd=self.kd, follow=1.0)

    def scaled(self, ratio: Array) -> Self:
        return replace(self, kp=np.multiply(self.kp, ratio), kd=np.multiply(self.kd, ratio))


@dataclass(frozen=True, eq=False)
class PID(JointGains):
    """PID law tau = kp (qr - q) + ki int (qr - q) + kd (dqr - dq); the integral stops while the torque is limited."""

    kp: ArrayLike
    ki: ArrayLike
    kd: ArrayLike

    def law(self, dof: int) -> Law:
        return _law(dof, self, kp=self.kp, ki=self.ki, kd=self.kd, follow=1.0)

    def scaled(self, ratio: Array) -> Self:
        return replace(self, kp=np.multiply(self.kp, ratio), ki=np.multiply(self.ki, ratio),
                       kd=np.multiply(self.kd, ratio))


@dataclass(frozen=True, eq=False)
class Cascade(JointGains):
    """A proportional velocity loop inside a proportional position loop: tau = gain kv (kp (qr - q) - dq).

    Janot, Vandanjon, Gautier, eq. 40-41; used by the TX40 and the EMPS. `gain` is the drive gain, N m or N per unit of
    command. With `feedforward`, the reference velocity is added inside the velocity loop.
    """

    kp: ArrayLike
    kv: ArrayLike
    gain: ArrayLike = 1.0
    feedforward: bool = False

    def law(self, dof: int) -> Law:
        drive = np.multiply(self.gain, self.kv)
        return _law(dof, self, kp=drive * np.asarray(self.kp), kd=drive, follow=float(self.feedforward))

    def scaled(self, ratio: Array) -> Self:
        return replace(self, kv=np.multiply(self.kv, ratio))

    def follows_with(self, motion: Reference, torque: Array) -> Reference | None:
        """Return the reference qr = q + (tau + kd dq) / kp of a given motion and torque, or None with feedforward."""
        if self.feedforward:
            return None
        gains = self.law(motion.q.shape[1])
        return Reference.from_arrays(motion.q + (torque + gains.kd * motion.dq) / gains.kp, rate=motion.rate,
                                     start=motion.start)


@dataclass(frozen=True, eq=False)
class Poles(ControlLaw):
    """A cascade given by its closed-loop poles: kp = omega / (2 damping), kv = 2 damping omega J.

    J is the largest inertia of each joint with the current parameters, so that the poles do not depend on parameters
    (Janot, Vandanjon, Gautier, eq. 46). omega: rad/s, one number or one per joint.
    """

    needs_inertia: ClassVar[bool] = True
    omega: ArrayLike
    damping: ArrayLike = 1.0

    def tuned(self, inertia: Array) -> Cascade:
        """Return the cascade for joints of the given inertia (dof,)."""
        omega, damping = self._poles()
        if np.any(omega <= 0) or np.any(damping <= 0):
            raise ModelError("the poles of a controller need an omega above zero, rad/s, and a damping above zero, got "
                             f"{omega} and {damping}")
        return Cascade(omega / (2.0 * damping), 2.0 * damping * omega * inertia, limit=self.limit, delay=self.delay,
                       speed_lag=self.speed_lag)

    def with_poles(self, inertia: Array, machine: Array | None) -> Cascade:
        return self.tuned(inertia)

    def settling(self, inertia: Array | None) -> float:
        omega, damping = self._poles()
        return float(_TIME_CONSTANTS / np.min(omega * np.minimum(1.0, damping)))

    def follows(self, motion: Reference) -> Reference:
        """Return the reference of a motion, q + 2 damping/omega dq + ddq/omega^2: inverse of Janot et al., eq. 42."""
        omega, damping = self._poles()
        q = motion.q + 2.0 * damping / omega * motion.dq + motion.ddq / omega ** 2
        return Reference.from_arrays(q, rate=motion.rate, start=motion.start)

    def computed_torque(self, model: Model, theta: ArrayLike) -> ComputedTorque:
        """Return a computed-torque law with the same poles and parameters theta (parameters,)."""
        omega, damping = self._poles()
        return ComputedTorque(model, theta, omega ** 2, 2.0 * damping * omega, feedforward=False)

    def slower(self, factor: float) -> Poles:
        """Return the controller with the same damping and `factor` times the bandwidth."""
        return replace(self, omega=np.multiply(self.omega, factor))

    def _poles(self) -> tuple[Array, Array]:
        return np.asarray(self.omega, dtype=float), np.asarray(self.damping, dtype=float)


@dataclass(frozen=True, eq=False)
class ComputedTorque(ControlLaw):
    """Computed torque tau = M(q) a + c(q, dq) + g(q), a = ddqr + kp (qr - q) + kd (dqr - dq) (Sousa, eq. 5.8).

    Friction is not compensated. `model` and `theta` are the controller's model, `rotors` includes the rotor inertias.
    Without `feedforward`, a = kp (qr - q) - kd dq. The gains are independent of inertia, so they are never scaled.
    """

    model: Model
    theta: ArrayLike
    kp: ArrayLike
    kd: ArrayLike
    feedforward: bool = True
    rotors: bool = True

    def law(self, dof: int) -> Law:
        law = _law(dof, self, kp=self.kp, kd=self.kd, follow=float(self.feedforward), ahead=float(self.feedforward))
        return _with_model(law, self.model, self.theta, self.rotors)

    def with_poles(self, inertia: Array, machine: Array | None) -> Cascade:
        root = np.sqrt(np.asarray(self.kp, dtype=float))
        return Poles(root, np.asarray(self.kd, dtype=float) / (2.0 * root)).tuned(inertia)

    def settling(self, inertia: Array | None) -> float:
        return float(_TIME_CONSTANTS / np.sqrt(np.min(np.asarray(self.kp, dtype=float))))


@dataclass(frozen=True, eq=False)
class CompensatedPD(ControlLaw):
    """PD law with model compensation: tau = M(q) ddqr + c(q, dq) + g(q) + kp (qr - q) + kd (dqr - dq) (Sousa, eq.
    4.16).

    Friction is not compensated. Unlike in `ComputedTorque`, the feedback is not multiplied by the inertia matrix. The
    gains are in N m/rad and N m s/rad, or N/m and N s/m, and the response of a joint depends on its inertia.
    """

    needs_inertia: ClassVar[bool] = True
    model: Model
    theta: ArrayLike
    kp: ArrayLike
    kd: ArrayLike
    rotors: bool = True

    def law(self, dof: int) -> Law:
        law = _law(dof, self, kp=self.kp, kd=self.kd, follow=1.0, ahead=1.0)
        return _with_model(law, self.model, self.theta, self.rotors)._replace(beside=True)

    def with_poles(self, inertia: Array, machine: Array | None) -> ControlLaw:
        return PD(self.kp, self.kd, limit=self.limit).with_poles(inertia, machine)

    def settling(self, inertia: Array | None) -> float:
        return PD(self.kp, self.kd).settling(inertia)


@dataclass(frozen=True, eq=False)
class TorqueDriven(ControlLaw):
    """Control law without feedback: the given torques (ticks, dof) are applied."""

    torque: Array

    def law(self, dof: int) -> Law:
        feed = np.ascontiguousarray(self.torque, dtype=float)
        if feed.ndim != 2 or feed.shape[1] != dof or not np.isfinite(feed).all():
            raise ModelError(f"driving torques must be finite numbers of shape (samples, {dof}), got shape "
                             f"{feed.shape}")
        return _law(dof, self)._replace(feed=feed)


Function = Callable[[float, Array, Array, Array, Array, Array], ArrayLike]


@dataclass(frozen=True, eq=False)
class ControlFunction(ControlLaw):
    """A user's function f(t, q, dq, qr, dqr, ddqr) -> torques (dof,) as a law, applied without limit, delay or lag."""

    function: Function

    def __call__(self, t: float, q: Array, dq: Array, qr: Array, dqr: Array, ddqr: Array) -> ArrayLike:
        return self.function(t, q, dq, qr, dqr, ddqr)


Controller = ControlLaw | Function

KINDS: dict[str, Any] = {"pd": PD, "pid": PID, "cascade": Cascade, "poles": Poles}


def control_law(controller: Any) -> ControlLaw:
    """Return a controller as a control law: a control law unchanged, or a function as a law that calls it."""
    if isinstance(controller, ControlLaw):
        return controller
    if not callable(controller):
        raise ModelError("a controller is PD, PID, Cascade, Poles, ComputedTorque, CompensatedPD, TaskSpace, "
                         "Impedance, TorqueDriven or a function f(t, q, dq, qr, dqr, ddqr), got "
                         f"{type(controller).__name__}", code="unknown-controller")
    return ControlFunction(controller)


def controller_from_table(table: Mapping[str, Any]) -> Controller:
    """Return a control law from a table of a run file: {kind = "cascade", kp = 160.2, kv = 243.5, gain = 35.15}."""
    options = dict(table)
    kind = options.pop("kind", None)
    if kind not in KINDS:
        raise ModelError(f"there is no controller of kind '{kind}'; there are {', '.join(KINDS)}",
                         code="unknown-controller")
    known = [f.name for f in fields(KINDS[kind])]
    for name in options:
        if name not in known:
            raise ModelError(f"controller '{kind}' has no option '{name}'; it has {', '.join(known)}")
    for name, value in options.items():
        numbers = value if isinstance(value, list) else [value]
        if name == "feedforward" and not isinstance(value, bool):
            raise ModelError(f"feedforward of controller '{kind}' is true or false, got {value!r}", code="wrong-gain")
        if name != "feedforward" and any(isinstance(x, bool) or not isinstance(x, int | float) for x in numbers):
            raise ModelError(f"{name} of controller '{kind}' is a number or a list of numbers, got {value!r}",
                             code="wrong-gain")
    try:
        return KINDS[kind](**options)
    except TypeError:
        needed = [f.name for f in fields(KINDS[kind]) if f.default is MISSING and f.name not in options]
        raise ModelError(f"controller '{kind}' needs {needed[0]}", code="missing-gain") from None


def _with_model(law: Law, model: Model, theta: ArrayLike, rotors: bool) -> Law:
    """Return the compiled control law with the controller's model of the bodies, and of the rotors if requested."""
    dof = len(law.kp)
    if not can_compile(model):
        raise ModelError("computed torque needs a model all of whose terms have a method `elements`; give a function "
                         "instead")
    if model.dof != dof:
        raise ModelError(f"the model of the computed torque has {model.dof} joints, but the robot has {dof}")
    plant = make_plant(model, theta)
    return law._replace(rows=plant.rows, extra=plant.extra if rotors and len(plant.extra) else np.zeros((dof, dof)))


def _law(dof: int, controller: ControlLaw, **gains: ArrayLike) -> Law:
    arrays = {name: per_joint(gains.get(name, 0.0), dof, f"{name} of the controller")
              for name in ("kp", "ki", "kd", "follow", "ahead")}
    for name in ("kp", "ki", "kd"):
        if np.any(arrays[name] < 0):
            j = int(np.argmin(arrays[name]))
            raise ModelError(f"the controller of joint {j + 1} is unstable: its gain {name} is {arrays[name][j]:g} "
                             "including the drive gain; give gains that are not negative", code="unstable-controller")
    limit = np.atleast_1d(np.asarray(controller.limit, dtype=float))
    if limit.shape not in ((1,), (dof,)) or not np.all(limit > 0):
        raise ModelError(f"the torque limit of a controller must be one positive number or {dof}, one per joint")
    if not isinstance(controller.delay, int) or controller.delay < 0:
        raise ModelError("the delay of a controller must be a whole number of sampling periods, got "
                         f"{controller.delay}")
    lag = float(controller.speed_lag)
    if not 0.0 <= lag <= 1000.0:
        raise ModelError("the speed lag of a controller must be a number of sampling periods, zero or more, got "
                         f"{controller.speed_lag}")
    return Law(**arrays, rows=np.zeros(0), extra=np.zeros((0, dof)), feed=np.zeros((0, dof)),
               limit=np.broadcast_to(limit, (dof,)).copy(), delay=controller.delay, speed_lag=lag, beside=False)
