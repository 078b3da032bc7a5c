"""Friction as a curve over velocity: a sum of smooth steps of several widths, or a spline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model.elements import Curve, Dry, Element, Linear, axis, curve, on_joints
from dynid.model.friction import two_slopes
from dynid.model.parameters import DRY, FRICTION, VISCOUS, Parameter
from dynid.model.sign import Sign
from dynid.model.term import Entries
from dynid.model.terms import ANY_VALUE, NOT_NEGATIVE, RATE, TORQUE, chosen, joint_parameter, joint_parameters
from dynid.robot import Robot

_STEP_WIDTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # default widths of steps, relative to the largest speed
_SPLINE_KNOTS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # default points of a spline, relative to the largest speed
_FREE_STEPS = (0.02, 0.06, 0.2, 0.6)  # widths of a free curve, relative to the largest speed
_DISSIPATION_SPEEDS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # of the largest speed: checks that a free curve dissipates
_SIGNS = ("hard", "tanh", "arctan")


@curve
def hats_above_first(q: float, dq: float, values: Sequence[float]) -> float:
    """Return (g(|dq|) - g(0)) S, where g is piecewise linear and S is the sign of dq.

    `values` are the kind of sign (0 hard, 1 tanh, 2 arctan) and its width, the number of points, their speeds and
    heights.
    """
    kind, width, count, v = values[0], values[1], int(values[2]), abs(dq)
    first = 3 + count
    height = values[first + count - 1]
    for k in range(count - 1):
        low, high = values[3 + k], values[4 + k]
        if v < high:
            share = (v - low) / (high - low)
            height = (1.0 - share) * values[first + k] + share * values[first + k + 1]
            break
    sign = 1.0 if dq > 0.0 else -1.0
    if kind == 1.0:
        sign = math.tanh(dq / width)
    elif kind == 2.0:
        sign = 2.0 / math.pi * math.atan(dq / width)
    return (height - values[first]) * sign


@curve
def smooth_steps(q: float, dq: float, values: Sequence[float]) -> float:
    """Return the sum of heights times tanh(dq / width); values: number of steps, their widths, their heights."""
    count, torque = int(values[0]), 0.0
    for k in range(count):
        torque += values[1 + count + k] * math.tanh(dq / values[1 + k])
    return torque


@dataclass(frozen=True)
class ViscousDifference:
    """Difference Fvd |dq| of viscous friction between the directions, in addition to `Viscous`.

    Fvd is half of the difference between forward and backward motion. `ridge` is the penalty relative to the column's
    squared norm that regularises Fvd toward zero.
    """

    kind = "viscous-difference"
    joints: tuple[str | int, ...] | None = None
    ridge: float = 0.0

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return joint_parameters(robot, self.joints, ("Fvd", RATE, FRICTION), ridge=self.ridge)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, k, np.abs(dq[:, j])

    def elements(self, robot: Robot, values: Array) -> Iterator[Element]:
        for j, value in zip(chosen(robot, self.joints), values, strict=True):
            yield Curve(axis(robot.dof, j), two_slopes, (value, -value))


@dataclass(frozen=True, eq=False)
class FrictionCurve:
    """Friction as a free function of velocity, linear in its parameters, none of which is negative.

        steps:   Fv dq + Fc sign(dq) + sum_k Ftk tanh(dq / w_k)
        spline:  Fv dq + sum_k Ftk hat_k(|dq|) sign(dq), linear between its points and constant after the last

    Both forms dissipate energy at every speed. Friction of steps increases with speed; friction of a spline may
    decrease at first, like Stribeck friction.

    Attributes:
        shape: "steps" or "spline".
        asymmetric: whether to use Fvp dq forward and Fvn dq backward instead of Fv dq.
        widths: w_k, or the points of a spline after zero, relative to the largest speed.
        speed: largest speed of each joint, rad/s or m/s, one number or one per joint. Default: from the data, or from
            the joint limits without data.
        ridge: penalty relative to a column's squared norm, by which each parameter is regularised toward zero. It
            distributes friction evenly over steps that data at low speed do not distinguish.
        free: whether steps may have either sign, so that friction may decrease with speed. No parameter is then
            bounded, and only the steps Ftk are regularised.
        joints, sign: joints with this friction, and the sign function.
    """

    kind = "curve"
    learned: ClassVar[Mapping[str, str]] = {"speed": "speeds"}
    shape: Literal["steps", "spline"] = "steps"
    widths: tuple[float, ...] = ()
    speed: ArrayLike | None = None
    ridge: float = 1e-3
    asymmetric: bool = False
    free: bool = False
    joints: tuple[str | int, ...] | None = None
    sign: Sign = field(default_factory=Sign)

    def __post_init__(self) -> None:
        if self.shape not in ("steps", "spline"):
            raise ModelError(f"a friction curve is made of 'steps' or is a 'spline', not '{self.shape}'")
        widths = np.array(self.widths, dtype=float)
        if not (np.all(np.isfinite(widths)) and np.all(widths > 0) and np.all(np.diff(widths) > 0)):
            raise ModelError("the widths of a friction curve must be positive shares of the top speed in ascending "
                             f"order, got {self.widths}")
        if not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise ModelError(f"the ridge of a friction curve must not be negative, got {self.ridge}")
        if self.free and (self.shape != "steps" or self.asymmetric):
            raise ModelError("a free friction curve is made of 'steps' that are the same forward and backward")

    @property
    def _shares(self) -> tuple[float, ...]:
        usual = _STEP_WIDTHS if self.shape == "steps" else _SPLINE_KNOTS
        return self.widths or (_FREE_STEPS if self.free else usual)

    @property
    def _symbols(self) -> tuple[str, ...]:
        """Symbols of the parameters of one joint, viscous friction first."""
        viscous = ("Fvp", "Fvn") if self.asymmetric else ("Fv",)
        first = "Fc" if self.shape == "steps" else "Ft0_"
        return (*viscous, first, *(f"Ft{k + 1}_" for k in range(len(self._shares))))

    def _viscous(self, velocity: Array) -> tuple[Array, ...]:
        """Return the regressor columns (samples,) of the viscous friction parameters."""
        return (np.maximum(velocity, 0.0), np.minimum(velocity, 0.0)) if self.asymmetric else (velocity,)

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        kinds = {"Fc": DRY.unwritten(), **dict.fromkeys(("Fv", "Fvp", "Fvn"), VISCOUS.unwritten())}
        return tuple(joint_parameter(
            robot, symbol, j, RATE if symbol[1] == "v" else TORQUE, kind=kinds.get(symbol, FRICTION),
            positive=not self.free, bounds=ANY_VALUE if self.free else NOT_NEGATIVE,
            ridge=0.0 if self.free and symbol in kinds else self.ridge)
            for j in chosen(robot, self.joints) for symbol in self._symbols)

    def dissipating(self, robot: Robot, speeds: Array) -> Array:
        """Return conditions rows @ parameters >= 0 for dissipation, rows (k, parameters): friction of a free curve must
        not be negative at several speeds. There are no rows if all parameters are non-negative anyway."""
        joints, count = chosen(robot, self.joints), len(self._symbols)
        rows = np.zeros((len(joints), len(_DISSIPATION_SPEEDS) if self.free else 0, count * len(joints)))
        for k, j in enumerate(joints if self.free else ()):
            rows[k, :, count * k:count * (k + 1)] = self.columns(robot, j, speeds[j] * np.array(_DISSIPATION_SPEEDS)).T
        return rows.reshape(-1, count * len(joints))

    def _speeds(self, robot: Robot) -> Array:
        """Return the largest speed of every joint (dof,), rad/s or m/s."""
        if self.speed is None:
            limit = robot.limit("velocity")
            return np.where(np.isfinite(limit) & (limit > 0), limit, 1.0)
        given = np.atleast_1d(np.asarray(self.speed, dtype=float))
        if given.shape not in ((1,), (robot.dof,)) or not (np.all(np.isfinite(given)) and np.all(given > 0)):
            raise ModelError(f"the speed of a friction curve must be one number above zero or {robot.dof}, one per "
                             f"joint, got {given}", code="wrong-count")
        return np.broadcast_to(given, (robot.dof,))

    def columns(self, robot: Robot, joint: int, velocity: Array) -> Array:
        """Return the regressor columns (parameters of a joint, samples) at velocities (samples,)."""
        return np.stack(list(self._columns(joint, velocity, np.array(self._shares) * self._speeds(robot)[joint])))

    def _columns(self, joint: int, velocity: Array, widths: Array) -> Iterator[Array]:
        sign = self.sign.of_joint(joint)(velocity)
        yield from self._viscous(velocity)
        if self.shape == "steps":
            yield sign
            for width in widths:
                yield np.tanh(velocity / width)
            return
        size, points = np.abs(velocity), [0.0, *widths.tolist()]
        for k, point in enumerate(points):
            rise = (size - points[k - 1]) / (point - points[k - 1]) if k else 1.0
            down = (points[k + 1] - size) / (points[k + 1] - point) if k + 1 < len(points) else 1.0
            yield sign * np.maximum(np.minimum(np.minimum(rise, down), 1.0), 0.0)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        count, widths = len(self._symbols), np.outer(self._speeds(robot), self._shares)
        for k, j in enumerate(chosen(robot, self.joints)):
            for c, values in enumerate(self._columns(j, dq[:, j], widths[j])):
                yield j, count * k + c, values

    def elements(self, robot: Robot, values: Array) -> Iterator[Element]:
        n, joints = robot.dof, chosen(robot, self.joints)
        own, speeds = values.reshape(len(joints), -1), self._speeds(robot)
        if self.asymmetric:
            for j, both in zip(joints, own[:, :2], strict=True):
                yield Curve(axis(n, j), two_slopes, both)
        else:
            yield Linear(viscous=np.diag(on_joints(n, joints, own[:, 0])))
        for j, (dry, *heights) in zip(joints, own[:, 2 if self.asymmetric else 1:], strict=True):
            sign = self.sign.of_joint(j)
            yield Dry(axis(n, j), dry, dry, sign)
            widths = np.array(self._shares) * speeds[j]
            if self.free:
                yield Curve(axis(n, j), smooth_steps, [len(widths), *widths, *heights])
                continue
            if self.shape == "spline":
                points = [0.0, *widths]
                yield Curve(axis(n, j), hats_above_first,
                            [_SIGNS.index(sign.kind), sign.one_width, len(points), *points, dry, *heights])
                continue
            for width, height in zip(widths, heights, strict=True):
                yield Dry(axis(n, j), height, height, Sign("tanh", width), widened=True)
