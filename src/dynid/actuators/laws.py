"""Drive laws, which convert a command to the torque of an actuator. A custom law has the methods of `DriveLaw`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from dynid.actuators import columns as c
from dynid.actuators.parameters import ActuatorParameter
from dynid.arrays import Array
from dynid.errors import ModelError, RecordingError
from dynid.recording import Recording

_NO_LIMIT = ActuatorParameter("torque_limit", "N m", 1e-3, typical=0.05, value=np.inf)
# Speed limit of the target inside the drive, which follows the command: a register of bus servos.
_NO_SPEED_LIMIT = ActuatorParameter("speed_limit", "rad/s", 0.05, typical=0.2, value=np.inf)
# 1 if the integral of a loop continues to grow while its output is limited, 0 if it stops (anti-windup).
_ANTI_WINDUP = ActuatorParameter("windup", "", value=0.0)


@dataclass(frozen=True, eq=False)
class DriveSignals:
    """Signals of one joint that a drive law uses, all (samples,).

    Attributes:
        error: command minus measured position, rad.
        integral: integral of `error` over time, rad s.
        rate: commanded velocity, rad/s.
        speed: velocity of the joint, rad/s.
        travel: position minus the first position, rad.
        feed, supply: feed-forward and supply, see `DriveLaw.signals`.
    """

    error: Array
    integral: Array
    rate: Array
    speed: Array
    travel: Array
    feed: Array
    supply: Array


class DriveLaw(Protocol):
    """Protocol of a drive law.

    Attributes:
        name: name of the law, such as "pd".
        parameters: parameters of the law.
        estimated: names of parameters that are estimated if no value is given; the others have default values.
    """

    name: ClassVar[str]
    estimated: ClassVar[tuple[str, ...]]
    parameters: ClassVar[tuple[ActuatorParameter, ...]]

    def numbers(self, values: Mapping[str, float]) -> dict[int, float]:
        """Return inputs of the compiled simulation by column (see `columns`), from parameter values by name."""
        ...

    def terms(self, known: Mapping[str, float], signals: DriveSignals) -> tuple[Array, dict[str, Array]]:
        """Return the torque (samples,) of the known parameters, and the regressors (samples,) of unknown factors by
        name."""
        ...

    def from_factors(self, known: Mapping[str, float], factors: Mapping[str, float]) -> dict[str, float]:
        """Return the values of the unknown parameters, from the factors estimated for the regressors of `terms`."""
        ...

    def signals(self, log: Recording) -> dict[str, Array]:
        """Return the signals that the law reads from a log: "feed" (feed-forward) and "supply", (samples, joints)
        each."""
        ...


class _Law:
    """Base class of built-in laws: feed-forward and supply of a log, and regression factors that are the parameters."""

    parameters: ClassVar[tuple[ActuatorParameter, ...]] = ()

    def signals(self, log: Recording) -> dict[str, Array]:
        found = {} if log.target_torque is None else {"feed": log.target_torque}
        if log.voltage is not None and np.any(log.voltage > 0) and not np.all(log.voltage > 0):
            found["supply"] = (log.voltage > 0).astype(float)  # zero means that the drive is switched off
        return found

    def from_factors(self, known: Mapping[str, float], factors: Mapping[str, float]) -> dict[str, float]:
        return {name: max(value, next(item.lower for item in self.parameters if item.name == name))
                for name, value in factors.items()}


def _split(known: Mapping[str, float], parts: Mapping[str, Array], fixed: Array) -> tuple[Array, dict[str, Array]]:
    """Return the torque (samples,) of the known parameters plus the torque `fixed`, and the regressors of the unknown
    parameters."""
    total = fixed + sum((known[name] * column for name, column in parts.items() if name in known), np.zeros(len(fixed)))
    return total, {name: column for name, column in parts.items() if name not in known}


@dataclass(frozen=True)
class PDLaw(_Law):
    """PD law: torque = kp (q_des - q) + kd (follow dq_des - dq) + target_torque of the log, limited to
    +-torque_limit."""

    name: ClassVar[str] = "pd"
    estimated: ClassVar[tuple[str, ...]] = ("kp", "kd")
    parameters: ClassVar[tuple[ActuatorParameter, ...]] = (
        ActuatorParameter("kp", "N m/rad", 1e-6, typical=0.1), ActuatorParameter("kd", "N m s/rad", typical=0.01),
        _NO_LIMIT, _NO_SPEED_LIMIT, ActuatorParameter("follow", "", value=0.0))

    def numbers(self, values: Mapping[str, float]) -> dict[int, float]:
        return {c.KP: values["kp"], c.KD: values["kd"], c.FOLLOW: values.get("follow", 0.0), c.FEED: 1.0,
                c.U_LIMIT: values.get("torque_limit", np.inf)}

    def terms(self, known: Mapping[str, float], signals: DriveSignals) -> tuple[Array, dict[str, Array]]:
        follow = known.get("follow", 0.0)
        return _split(known, {"kp": signals.error, "kd": follow * signals.rate - signals.speed}, signals.feed)


@dataclass(frozen=True)
class PIDLaw(PDLaw):
    """PID law: `PDLaw` plus ki times the integral of the error.

    The integral stops while the torque is limited, unless `windup` is 1.
    """

    name: ClassVar[str] = "pid"
    estimated: ClassVar[tuple[str, ...]] = ("kp", "ki", "kd")
    parameters: ClassVar[tuple[ActuatorParameter, ...]] = (
        ActuatorParameter("kp", "N m/rad", 1e-6, typical=0.1),
        ActuatorParameter("ki", "N m/(rad s)", typical=0.1), ActuatorParameter("kd", "N m s/rad", typical=0.01),
        _NO_LIMIT, _NO_SPEED_LIMIT, ActuatorParameter("follow", "", value=0.0), _ANTI_WINDUP)

    def numbers(self, values: Mapping[str, float]) -> dict[int, float]:
        return {**super().numbers(values), c.KI: values["ki"], c.INTEGRAL_ERROR: 1.0,
                c.WINDUP: values.get("windup", 0.0)}

    def terms(self, known: Mapping[str, float], signals: DriveSignals) -> tuple[Array, dict[str, Array]]:
        torque, columns = super().terms(known, signals)
        more, integral = _split(known, {"ki": signals.integral}, torque)
        return more, {**columns, **integral}


@dataclass(frozen=True)
class CascadeLaw(_Law):
    """Cascade of position, velocity and current loops: i = kv w + ki int w, w = kp (q_des - q) - dq, torque = kt i.

    The current is limited to +-current_limit; the integral stops while the current is limited, unless `windup` is 1.
    """

    name: ClassVar[str] = "cascade"
    estimated: ClassVar[tuple[str, ...]] = ("kp", "kv", "kt")
    parameters: ClassVar[tuple[ActuatorParameter, ...]] = (
        ActuatorParameter("kp", "1/s", 1e-6, typical=0.1), ActuatorParameter("kv", "A s/rad", 1e-9, typical=0.01),
        ActuatorParameter("ki", "A/rad", value=0.0), ActuatorParameter("kt", "N m/A", 1e-9, typical=0.01),
        ActuatorParameter("current_limit", "A", 1e-3, value=np.inf), _NO_SPEED_LIMIT, _ANTI_WINDUP)

    def numbers(self, values: Mapping[str, float]) -> dict[int, float]:
        kp, kv = values["kp"], values["kv"]
        return {c.KP: kv * kp, c.KD: kv, c.KI: values.get("ki", 0.0), c.INTEGRAL_ERROR: kp, c.INTEGRAL_SPEED: 1.0,
                c.TORQUE_GAIN: values["kt"], c.U_LIMIT: values.get("current_limit", np.inf),
                c.WINDUP: values.get("windup", 0.0)}

    def terms(self, known: Mapping[str, float], signals: DriveSignals) -> tuple[Array, dict[str, Array]]:
        zero = np.zeros(len(signals.error))
        ki = known.get("ki", 0.0)
        if {"kp", "kv"} <= known.keys():
            drive = known["kp"] * signals.error - signals.speed
            current = known["kv"] * drive + ki * (known["kp"] * signals.integral - signals.travel)
            return _split(known, {"kt": current}, zero)
        return zero, {"stiffness": signals.error, "damping": -signals.speed}

    def from_factors(self, known: Mapping[str, float], factors: Mapping[str, float]) -> dict[str, float]:
        if "stiffness" not in factors:
            return super().from_factors(known, factors)
        damping, stiffness = max(factors["damping"], 1e-6), max(factors["stiffness"], 1e-6)
        kt = known.get("kt", damping / known["kv"] if "kv" in known else 1.0)
        found = {"kp": stiffness / damping, "kv": damping / kt, "kt": kt}
        return {name: value for name, value in found.items() if name not in known}


@dataclass(frozen=True)
class VoltageLaw(_Law):
    """Voltage law of hobby and bus servos (BAM): V = vin clip(gain kp (q_des - q), +-limit), torque = kt V / R - kt^2
    dq / R.

    The supply voltage is that of the log, or `vin` if the log has none. A supply of zero means that the drive is
    switched off, with neither torque nor back-EMF. A logged duty cycle is not used, because the simulation needs the
    voltage at positions that were not measured.
    """

    name: ClassVar[str] = "voltage"
    estimated: ClassVar[tuple[str, ...]] = ("kt", "resistance")
    parameters: ClassVar[tuple[ActuatorParameter, ...]] = (
        ActuatorParameter("kp", "", 1e-6, typical=0.1), ActuatorParameter("gain", "1/rad", 1e-9, value=1.0),
        ActuatorParameter("limit", "", 1e-6, value=1.0), ActuatorParameter("vin", "V", 1e-3, value=np.nan),
        ActuatorParameter("kt", "N m/A", 1e-6, typical=0.01),
        ActuatorParameter("resistance", "Ohm", 1e-6, typical=0.01), _NO_SPEED_LIMIT)

    def numbers(self, values: Mapping[str, float]) -> dict[int, float]:
        kt, resistance = values["kt"], values["resistance"]
        vin = values.get("vin", np.nan)
        return {c.KP: values.get("gain", 1.0) * values["kp"], c.U_LIMIT: values.get("limit", 1.0),
                c.TORQUE_GAIN: kt / resistance * (vin if np.isfinite(vin) else 1.0), c.BACK_EMF: kt ** 2 / resistance}

    def terms(self, known: Mapping[str, float], signals: DriveSignals) -> tuple[Array, dict[str, Array]]:
        limit, vin = known.get("limit", 1.0), known.get("vin", np.nan)
        if "kp" not in known:
            raise ModelError("drive law 'voltage' needs the value of the gain kp, because the limit of the duty cycle "
                             "depends on kp", "add --gain kp=...", "missing-gain")
        duty = np.clip(known.get("gain", 1.0) * known["kp"] * signals.error, -limit, limit)
        volts = duty * signals.supply * (vin if np.isfinite(vin) else 1.0)
        if {"kt", "resistance"} <= known.keys():
            kt, resistance = known["kt"], known["resistance"]
            return kt / resistance * volts - kt ** 2 / resistance * signals.speed, {}
        return np.zeros(len(volts)), {"volts": volts, "speed": -signals.speed}

    def from_factors(self, known: Mapping[str, float], factors: Mapping[str, float]) -> dict[str, float]:
        if not factors:
            return {}
        volts, speed = max(factors["volts"], 1e-6), max(factors["speed"], 0.05 * factors["volts"], 1e-6)
        kt = known.get("kt", speed / volts)
        found = {"kt": kt, "resistance": known.get("resistance", kt / volts)}
        return {name: value for name, value in found.items() if name not in known}

    def signals(self, log: Recording) -> dict[str, Array]:
        return {} if log.voltage is None else {"supply": log.voltage}


@dataclass(frozen=True)
class CurrentLaw(_Law):
    """Current law: torque = kt times the measured current of the log, without a position loop."""

    name: ClassVar[str] = "current"
    estimated: ClassVar[tuple[str, ...]] = ("kt",)
    parameters: ClassVar[tuple[ActuatorParameter, ...]] = (ActuatorParameter("kt", "N m/A", 1e-9, typical=0.01),)

    def numbers(self, values: Mapping[str, float]) -> dict[int, float]:
        return {c.FEED: 1.0, c.TORQUE_GAIN: values["kt"], c.U_LIMIT: np.inf}

    def terms(self, known: Mapping[str, float], signals: DriveSignals) -> tuple[Array, dict[str, Array]]:
        return _split(known, {"kt": signals.feed}, np.zeros(len(signals.feed)))

    def signals(self, log: Recording) -> dict[str, Array]:
        if log.current is None:
            raise RecordingError(f"{log.source} has no measured currents, which drive law 'current' needs",
                                 "map their columns with --set 'log.motor_current=[...]'", "no-current")
        return {"feed": log.current}


LAWS: dict[str, DriveLaw] = {law.name: law for law in (PDLaw(), PIDLaw(), CascadeLaw(), VoltageLaw(), CurrentLaw())}


def drive_law(law: str | DriveLaw) -> DriveLaw:
    """Return the drive law of a name; a `DriveLaw` object is returned unchanged."""
    if not isinstance(law, str):
        return law
    if law not in LAWS:
        raise ModelError(f"there is no drive law '{law}'; there are {', '.join(LAWS)}", code="unknown-law")
    return LAWS[law]
