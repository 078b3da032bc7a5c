"""Control laws: what turns a reference and the measured motion into torques.

All have limit: largest torque, one number or one a joint; delay: ticks until a torque reaches the motor; speed_lag:
ticks by which the speed they use is old, 1 for a central difference of positions, 0.5 for a backward one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model import Model
from dynid.simulation.kernels import Law
from dynid.simulation.plant import can_compile, make_plant, per_joint


@dataclass(frozen=True, eq=False)
class PD:
    """tau = kp (qr - q) + kd (dqr - dq), gains one number or one a joint."""

    kp: ArrayLike
    kd: ArrayLike
    limit: ArrayLike = np.inf
    delay: int = 0
    speed_lag: float = 0.0

    def law(self, dof: int) -> Law:
        return _law(dof, self, kp=self.kp, kd=self.kd, follow=1.0)

    def scaled(self, ratio: Array) -> PD:
        """The same law for an inertia `ratio` times as large, one ratio a joint."""
        return replace(self, kp=np.multiply(self.kp, ratio), kd=np.multiply(self.kd, ratio))


@dataclass(frozen=True, eq=False)
class PID:
    """tau = kp (qr - q) + ki int (qr - q) + kd (dqr - dq); the integral waits while the torque is cut to the limit."""

    kp: ArrayLike
    ki: ArrayLike
    kd: ArrayLike
    limit: ArrayLike = np.inf
    delay: int = 0
    speed_lag: float = 0.0

    def law(self, dof: int) -> Law:
        return _law(dof, self, kp=self.kp, ki=self.ki, kd=self.kd, follow=1.0)

    def scaled(self, ratio: Array) -> PID:
        return replace(self, kp=np.multiply(self.kp, ratio), ki=np.multiply(self.ki, ratio),
                       kd=np.multiply(self.kd, ratio))


@dataclass(frozen=True, eq=False)
class Cascade:
    """A speed loop inside a position loop, both proportional: tau = gain kv (kp (qr - q) - dq).

    Janot, Vandanjon, Gautier, eq. 40-41; the TX40 and the EMPS. gain: drive gain, N m or N per unit of command.
    feedforward: add the reference velocity inside the speed loop.
    """

    kp: ArrayLike
    kv: ArrayLike
    gain: ArrayLike = 1.0
    feedforward: bool = False
    limit: ArrayLike = np.inf
    delay: int = 0
    speed_lag: float = 0.0

    def law(self, dof: int) -> Law:
        drive = np.multiply(self.gain, self.kv)
        return _law(dof, self, kp=drive * np.asarray(self.kp), kd=drive, follow=float(self.feedforward))

    def scaled(self, ratio: Array) -> Cascade:
        return replace(self, kv=np.multiply(self.kv, ratio))


@dataclass(frozen=True, eq=False)
class Poles:
    """A cascade known by its closed-loop poles: kp = omega / (2 damping), kv = 2 damping omega J.

    Janot, Vandanjon, Gautier, eq. 46: J is the largest inertia of each joint with the parameters at hand, so the loop
    keeps its poles whatever they are. omega: rad/s, one number or one a joint.
    """

    omega: ArrayLike
    damping: ArrayLike = 1.0
    limit: ArrayLike = np.inf
    delay: int = 0
    speed_lag: float = 0.0

    def tuned(self, inertia: Array) -> Cascade:
        """The cascade for joints of the given inertia (dof,)."""
        omega, damping = (np.asarray(x, dtype=float) for x in (self.omega, self.damping))
        if np.any(omega <= 0) or np.any(damping <= 0):
            raise ModelError("poles need omega and damping above zero")
        return Cascade(omega / (2.0 * damping), 2.0 * damping * omega * inertia, limit=self.limit, delay=self.delay,
                       speed_lag=self.speed_lag)

    def slower(self, factor: float) -> Poles:
        """The same damping at `factor` times the bandwidth."""
        return replace(self, omega=np.multiply(self.omega, factor))


@dataclass(frozen=True, eq=False)
class ComputedTorque:
    """tau = M(q) a + c(q, dq) + g(q), a = ddqr + kp (qr - q) + kd (dqr - dq) (Sousa, eq. 5.8), friction left alone.

    model, theta: what the controller believes of the machine. rotors: with the inertia of the rotors.
    feedforward False: a = kp (qr - q) - kd dq, positions alone, as the document has it.
    """

    model: Model
    theta: ArrayLike
    kp: ArrayLike
    kd: ArrayLike
    feedforward: bool = True
    rotors: bool = True
    limit: ArrayLike = np.inf
    delay: int = 0
    speed_lag: float = 0.0

    def law(self, dof: int) -> Law:
        if not can_compile(self.model):
            raise ModelError("computed torque needs a model all of whose terms give their elements; give a function "
                             "instead")
        if self.model.dof != dof:
            raise ModelError(f"the model of the computed torque has {self.model.dof} joints, the machine has {dof}")
        plant = make_plant(self.model, self.theta)
        law = _law(dof, self, kp=self.kp, kd=self.kd, follow=float(self.feedforward), ahead=float(self.feedforward))
        rotors = plant.extra if self.rotors and len(plant.extra) else np.zeros((dof, dof))
        return law._replace(rows=plant.rows, extra=rotors)

    def scaled(self, ratio: Array) -> ComputedTorque:
        return self  # its gains are in rad/s and know nothing of inertia


@dataclass(frozen=True, eq=False)
class TorqueDriven:
    """No feedback: the torques (ticks, dof) are applied as they stand."""

    torque: Array
    limit: ArrayLike = np.inf
    delay: int = 0
    speed_lag: float = 0.0

    def law(self, dof: int) -> Law:
        feed = np.ascontiguousarray(self.torque, dtype=float)
        if feed.ndim != 2 or feed.shape[1] != dof or not np.isfinite(feed).all():
            raise ModelError(f"driving torques must be (ticks, {dof}) finite numbers, got shape {feed.shape}")
        return _law(dof, self)._replace(feed=feed)

    def scaled(self, ratio: Array) -> TorqueDriven:
        return self


Function = Callable[[float, Array, Array, Array, Array, Array], ArrayLike]
Controller = PD | PID | Cascade | Poles | ComputedTorque | TorqueDriven | Function

KINDS: dict[str, Any] = {"pd": PD, "pid": PID, "cascade": Cascade, "poles": Poles}


def controller_from_table(table: Mapping[str, Any]) -> Controller:
    """A control law from a table of a run file: {kind = "cascade", kp = 160.2, kv = 243.5, gain = 35.15}."""
    options = dict(table)
    kind = options.pop("kind", None)
    if kind not in KINDS:
        raise ModelError(f"there is no controller of kind '{kind}'; there are {', '.join(KINDS)}")
    known = [f.name for f in fields(KINDS[kind])]
    for name in options:
        if name not in known:
            raise ModelError(f"controller '{kind}' has no option '{name}'; it has {', '.join(known)}")
    for name, value in options.items():
        numbers = value if isinstance(value, list) else [value]
        if name == "feedforward" and not isinstance(value, bool):
            raise ModelError(f"feedforward of controller '{kind}' is true or false, got {value!r}")
        if name != "feedforward" and any(isinstance(x, bool) or not isinstance(x, int | float) for x in numbers):
            raise ModelError(f"{name} of controller '{kind}' is a number or a list of numbers, got {value!r}")
    try:
        return KINDS[kind](**options)
    except TypeError:
        needed = [f.name for f in fields(KINDS[kind]) if f.name not in options]
        raise ModelError(f"controller '{kind}' needs {needed[0]}") from None


def check_controller(controller: Any) -> None:
    """Refuse what is neither a control law nor a function."""
    known = PD | PID | Cascade | Poles | ComputedTorque | TorqueDriven
    if not isinstance(controller, known) and not callable(controller):
        raise ModelError(f"a controller is PD, PID, Cascade, Poles, ComputedTorque, TorqueDriven or a function "
                         f"f(t, q, dq, qr, dqr, ddqr), got {type(controller).__name__}")


def _law(dof: int, controller: Any, **gains: ArrayLike) -> Law:
    arrays = {name: per_joint(gains.get(name, 0.0), dof, f"{name} of the controller")
              for name in ("kp", "ki", "kd", "follow", "ahead")}
    for name in ("kp", "ki", "kd"):
        if np.any(arrays[name] < 0):
            j = int(np.argmin(arrays[name]))
            raise ModelError(f"the controller of joint {j + 1} drives it away from its reference: its gain {name} is "
                             f"{arrays[name][j]:g} with the drive gain in it; give gains that are not negative")
    limit = np.atleast_1d(np.asarray(controller.limit, dtype=float))
    if limit.shape not in ((1,), (dof,)) or not np.all(limit > 0):
        raise ModelError(f"the torque limit of a controller must be one positive number or {dof}, one a joint")
    if not isinstance(controller.delay, int) or controller.delay < 0:
        raise ModelError(f"the delay of a controller is a whole number of ticks, got {controller.delay}")
    lag = float(controller.speed_lag)
    if not 0.0 <= lag <= 1000.0:
        raise ModelError(f"the speed lag of a controller is a number of ticks from 0, got {controller.speed_lag}")
    return Law(**arrays, rows=np.zeros(0), extra=np.zeros((dof, dof)), feed=np.zeros((0, dof)),
               limit=np.broadcast_to(limit, (dof,)).copy(), delay=controller.delay, speed_lag=lag)
