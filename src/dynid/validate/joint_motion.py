"""Range, speed and acceleration of each joint in the data, compared with its limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Bools, true_ranges
from dynid.estimate.friction_choice import ONE_WAY_SHARE
from dynid.findings import Note
from dynid.model import LinearModel, complete
from dynid.order_statistics import quantile
from dynid.plain import PlainFields
from dynid.recording import Samples
from dynid.recording.preparation.selection import AT_REST
from dynid.validate.words import joint_label, listed

_USED_LIMIT_SHARE = 0.9  # share of a limit above which it counts as fully used
STANDSTILL_SPEED = 0.03  # share of a joint's RMS speed below which it is at rest
STANDSTILL_SECONDS = 0.1  # s: shortest time below that speed that counts as standstill; a reversal is shorter
MIN_MOVING_SHARE = 0.2  # share of the rows in motion below which a joint is tested on all its rows
_ONE_SPEED = 1.3  # ratio of fast to slow speed below which a joint moved at one speed only


@dataclass(frozen=True)
class JointMotion(PlainFields, also=("moves",)):
    """Motion of one joint over all samples.

    Attributes:
        joint: name of the joint.
        low, high: range of its position, rad or m.
        speed, acceleration, torque: 99.5 % quantiles of the magnitude; torque in N m or N.
        forward: share of the motion in the positive direction.
        spread: ratio of fast and slow speed (90 % and 25 % quantiles of the moving rows).
        lower, upper, velocity_limit, acceleration_limit, torque_limit: limits of the robot, None if it has none.
        unit: rad, m, or empty without a robot.
        usual: range, speed and acceleration to recommend if the robot has no limits.
        is_base: whether it is a coordinate of a free base, which has no position of its own.
    """

    joint: str
    low: float
    high: float
    speed: float
    acceleration: float
    forward: float
    spread: float
    lower: float | None
    upper: float | None
    velocity_limit: float | None
    acceleration_limit: float | None
    unit: str
    usual: tuple[float, float, float]
    torque: float = 0.0
    torque_limit: float | None = None
    is_base: bool = False

    @property
    def range(self) -> float:
        return self.high - self.low

    @property
    def moves(self) -> bool:
        """Whether the joint moves: its range exceeds a milliradian or millimetre, and it has a velocity above zero."""
        return self.is_base or (self.range > AT_REST and self.speed > 0.0)

    @property
    def possible_positions(self) -> tuple[float, float]:
        """Lowest and highest position that the joint can reach."""
        if self.lower is not None and self.upper is not None and self.lower < self.upper:
            return self.lower, self.upper
        middle = 0.5 * (self.low + self.high)
        return middle - self.usual[0], middle + self.usual[0]

    @property
    def speeds(self) -> tuple[float, float]:
        top = self.velocity_limit or self.usual[1]
        return -top, top

    @property
    def accelerations(self) -> tuple[float, float]:
        top = self.acceleration_limit or self.usual[2]
        return -top, top

    def room(self, kind: str) -> bool:
        """Whether the robot's limits allow a wider, faster or harder motion of the joint; 'more' means any of these.

        A limit that is used to nine tenths counts as fully used.
        """
        def below(used: float, limit: float | None) -> bool:
            return limit is None or used < _USED_LIMIT_SHARE * limit

        possible = {"wider": below(self.range, self._width()), "faster": below(self.speed, self.velocity_limit),
                    "harder": below(self.acceleration, self.acceleration_limit) and below(self.torque,
                                                                                          self.torque_limit)}
        return possible.get(kind, any(possible.values()))

    def advice(self, kind: str) -> Note:
        """Return the advice to move the joint wider, faster, with more acceleration ('harder'), or all of these
        ('more'), with the recorded values. If a limit of the robot forbids this, the advice names another motion."""
        who = joint_label(self.joint)
        if not self.moves:
            return Note("move-at-all", f"{who} did not move; move it over its range, at several speeds and in both "
                                       "directions")
        reached = {"wider": (self.range, self._width(), ""), "faster": (self.speed, self.velocity_limit, "/s"),
                   "harder": (self.acceleration, self.acceleration_limit, "/s^2")}
        words = {name: self._reached(*numbers) for name, numbers in reached.items()}
        if not self.room(kind):
            return self._at_its_limit(kind)
        if kind not in reached:
            labels = {"wider": "wider", "faster": "faster", "harder": "with more acceleration"}
            free = [name for name in labels if self.room(name)]
            return Note("move-more", f"move {who} {listed([labels[name] for name in free])}; it used "
                                     f"{listed([words[name] for name in free])}",
                        {name: used for name, (used, _, _) in reached.items()})
        code, text = {"wider": ("move-wider", "move through a wider range; it used"),
                      "faster": ("move-faster", "move faster; it reached"),
                      "harder": ("accelerate-harder", "accelerate harder; it reached")}[kind]
        used, limit, _ = reached[kind]
        return Note(code, f"{who} should {text} {words[kind]}",
                    {"reached": used} if limit is None else {"reached": used, "limit": limit})

    def _at_its_limit(self, kind: str) -> Note:
        """Return advice for a joint that already reaches its limits."""
        used, limit = {"wider": (self.range, self._width()), "faster": (self.speed, self.velocity_limit),
                       "harder": (self.torque, self.torque_limit)}.get(kind, (0.0, None))
        if kind == "harder" and limit is not None and used < _USED_LIMIT_SHARE * limit:
            used, limit = self.acceleration, self.acceleration_limit
        evidence = {} if limit is None else {"reached": used, "limit": limit}
        return Note("record-longer", f"{joint_label(self.joint)} already uses its limits; record longer, in "
                                     "other postures and with more joints moving at once", evidence)

    @property
    def is_one_way(self) -> bool:
        """Whether the joint hardly reverses, so that Coulomb friction cannot be distinguished from an offset."""
        return self.moves and min(self.forward, 1.0 - self.forward) <= ONE_WAY_SHARE

    def both_ways(self, shown: str = "") -> Note:
        """Return the advice to move the joint in both directions. shown: text on the quantity that motion in one
        direction determines."""
        way = "forward" if self.forward > 0.5 else "backward"
        return Note("move-both-ways", f"move {joint_label(self.joint)} in both directions; it moved only {way}{shown}",
                    {"forward": self.forward})

    def advice_for_friction(self) -> Note:
        """Return advice for identifying the joint's own friction and rotor inertia."""
        who = joint_label(self.joint)
        if not self.moves:
            return self.advice("more")
        if self.is_one_way:
            return self.both_ways()
        if self.spread < _ONE_SPEED:
            return Note("move-at-several-speeds",
                        f"move {who} at several speeds; it had only {self._reached(self.speed, None, '/s')}",
                        {"speed": self.speed})
        if self.room("faster"):
            return self.advice("faster")
        return Note("hold-speeds", f"{who} reaches its velocity limit; move it at several constant speeds, slow and "
                                   "fast, in both directions",
                    {"reached": self.speed, "limit": self.velocity_limit or self.speed})

    def _width(self) -> float | None:
        return None if self.lower is None or self.upper is None else self.upper - self.lower

    def _reached(self, used: float, limit: float | None, per: str = "") -> str:
        unit = f" {self.unit}{per}" if self.unit else ""
        return f"{used:.2g}{unit}" if limit is None else f"{used:.2g} of {limit:.3g}{unit}"


def joint_motions(model: LinearModel, samples: Sequence[Samples], joints: Sequence[str]) -> tuple[JointMotion, ...]:
    """Return the motion of each joint in some logs; empty without samples."""
    if not samples:
        return ()
    def column(name: str, j: int) -> Array:
        """Return a signal of one joint (rows,), concatenated over all logs; this needs less memory than all joints."""
        return np.concatenate([getattr(s, name)[start:stop, j] for s in samples for start, stop in s.segments])

    ranges = np.array([[(x := column("q", j)).min(), x.max()] for j in range(len(joints))])
    top = [np.array([quantile(np.abs(column(name, j)), 0.995) for j in range(len(joints))])
           for name in ("dq", "ddq", "tau")]
    robot = complete(model).robot
    # Without limits: three times the largest value of any joint, and more than zero.
    usual = tuple(3.0 * float(np.max(x)) if np.max(x) > 0 else 1.0
                  for x in (0.5 * (ranges[:, 1] - ranges[:, 0]), *top[:2]))
    found = []
    for j, name in enumerate(joints):
        dq = column("dq", j)
        moving = dq[np.abs(dq) > 0.05 * top[0][j]] if top[0][j] > 0 else np.zeros(0)
        slow, fast = (quantile(np.abs(moving), share) if len(moving) else 0.0 for share in (0.25, 0.9))
        lower, upper, velocity, acceleration, effort = (
            None if robot is None or not np.isfinite(value := robot.limit(which)[j]) or value == 0 else float(value)
            for which in ("lower", "upper", "velocity", "acceleration", "effort"))
        unit = "" if robot is None else "m" if robot.joints[j].prismatic else "rad"
        found.append(JointMotion(
            name, float(ranges[j, 0]), float(ranges[j, 1]), float(top[0][j]), float(top[1][j]),
            float(np.mean(moving > 0)) if len(moving) else 0.5, float(fast / slow) if slow > 0 else 1.0, lower, upper,
            velocity, acceleration, unit, (usual[0], usual[1], usual[2]), float(top[2][j]), effort,
            robot is not None and j < robot.free_coordinates))
    return tuple(found)


def in_motion(samples: Samples) -> Bools:
    """Return for each row and joint whether the joint moves (samples, dof); all true if it moves in few rows.

    At rest the torque is anywhere between plus and minus the static friction, so no model predicts it.
    """
    speed = np.abs(samples.dq)
    slow = speed < STANDSTILL_SPEED * np.sqrt(np.mean(speed ** 2, axis=0))
    least, moving = max(2, round(STANDSTILL_SECONDS * samples.rate)), np.ones(slow.shape, dtype=bool)
    beside = 2 * samples.decimated_by
    for j in range(samples.dof):
        for start, stop in true_ranges(slow[:, j]):
            if stop - start >= least:  # decimation mixes its torques with those of neighbouring rows
                moving[max(start - beside, 0):stop + beside, j] = False
        if np.mean(moving[:, j]) < MIN_MOVING_SHARE:
            moving[:, j] = True
    return moving
