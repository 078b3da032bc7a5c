"""Limits of a motion with standing feet that are nonlinear in the driving coordinates.

The limits concern support, load and friction of the feet, leg joints, torques, the height of other feet, and collisions
of the robot with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dynid import dynamics
from dynid.arrays import Array, Ints
from dynid.excitation.limits.limit_check import Usage, peaks
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.limits.nonlinear import OVERLAP
from dynid.excitation.standing.options import Standing
from dynid.excitation.standing.stance import LEG_GAIN, WholeBodyStates
from dynid.excitation.standing.support import ContactForces, Support
from dynid.floating.virtual_walker import FOOT_TOLERANCE
from dynid.model import CompleteModel
from dynid.robot import FREE_COORDINATES as SIX

_DIFFERENCE_STEPS = (1e-5, 1e-4, 1e-2)  # steps of central differences in driving coordinates and their two derivatives
_SAMPLES_AT_ONCE = 2048  # samples whose values are held at a time
MIN_LOAD = 0.3  # smallest load on the feet, as a share of the weight, because a robot with little load slips
FOOT_CLEARANCE = 0.03  # m: smallest height of lifted feet above the ground
_FEET_OFF = 0.05  # m or rad: position error of the feet that counts as a violation of 1
_SMALL_FRICTION = 1e-3  # N^2, added to a squared tangential force, so that its norm is smooth at zero


class LimitGroup(NamedTuple):
    """Limits of one kind at several joints or feet.

    Attributes:
        kind, where: kind of the limits, and names of the joints or feet.
        values, bounds: values (samples, k) and their bounds (k,).
        excess: relative excess over the bounds (samples, k)."""

    kind: str
    where: tuple[str, ...]
    values: Array
    bounds: Array
    excess: Array


@dataclass(frozen=True, eq=False)
class StandingLimit:
    """All nonlinear limits of a motion with standing feet.

    Attributes:
        support: contact points and support polygon.
        standing: options of the standing feet, with friction coefficient and support margin.
        limits: limits of all 6 + n coordinates; limits of the driving coordinates are checked elsewhere.
        model: model of the robot, with discontinuous or smooth signs.
        theta: nominal parameters (parameters,).
        lifted: frames of feet that do not stand.
        gain: gain of the legs in the home posture, see `Postures`.
        margin: share of every limit that is kept free.
    """

    support: Support
    standing: Standing
    limits: Limits
    model: CompleteModel
    theta: Array
    lifted: tuple[str, ...]
    gain: float
    margin: float = 0.0
    refinement = 1

    def tightened(self, excess: float) -> StandingLimit:
        return replace(self, margin=min(self.margin + excess, 0.5))

    def contact_forces(self, states: WholeBodyStates) -> ContactForces:
        """Return the contact forces and joint torques of whole-body states, by inverse dynamics."""
        motion = dynamics.root_motion(self.support.stance.robot, states.q, states.v, states.a)
        return self.support.forces(states.q, self.model.inverse_dynamics(self.theta, *motion))

    def groups(self, x: Array, dx: Array, ddx: Array) -> list[LimitGroup]:
        """Return the values of all limits along driving coordinates and their two derivatives (samples, m)."""
        stance, limits, support = self.support.stance, self.limits, self.support
        states = stance.states(x, dx, ddx)
        forces, off = self.contact_forces(states), states.postures.off
        missed = np.where(off < FOOT_TOLERANCE, -1.0, 1.0 + np.minimum(off, 1.0) / _FEET_OFF)[:, None]
        groups = [LimitGroup("reach", ("feet",), off[:, None], np.array([FOOT_TOLERANCE]), missed)]
        groups.append(LimitGroup(
            "support", tuple(f"edge {k + 1}" for k in range(len(support.normals))), forces.distances,
            np.full(len(support.normals), self.standing.margin),
            (self.standing.margin - forces.distances) / (support.radius - self.standing.margin)))
        load = (forces.load / support.weight)[:, None]
        groups.append(LimitGroup("load", ("feet",), load, np.array([MIN_LOAD]), (MIN_LOAD - load) / (1.0 - MIN_LOAD)))
        tangential = np.sqrt(np.sum(forces.forces[:, :, :2] ** 2, axis=2) + _SMALL_FRICTION)
        share = tangential / np.maximum(forces.forces[:, :, 2], 1e-3)
        groups.append(LimitGroup("friction", self._point_names, share, np.full(share.shape[1], self.standing.friction),
                                 share / self.standing.friction - 1.0))
        gain = (states.postures.gain / self.gain)[:, None]
        # The inverse of the gain is smooth at postures with straight legs; the gain itself is not.
        groups.append(LimitGroup("legs", ("feet",), gain, np.array([LEG_GAIN]),
                                 (1.0 / LEG_GAIN - 1.0 / gain) / (1.0 - 1.0 / LEG_GAIN)))
        groups += self._joints(states, forces.torques)
        if self.lifted:
            height = np.stack([dynamics.frame_pose(stance.robot, frame, states.q)[:, 2, 3] for frame in self.lifted], 1)
            groups.append(LimitGroup("height", self.lifted, height, np.full(len(self.lifted), FOOT_CLEARANCE),
                                     (FOOT_CLEARANCE - height) / OVERLAP))
        if limits.space is not None and len(limits.space.names):
            slack = limits.space.slack(np.hstack([np.zeros((len(x), SIX)), states.q[:, 7:]]))
            groups.append(LimitGroup("space", limits.space.names, slack, np.zeros(slack.shape[1]), -slack / OVERLAP))
        return groups

    @property
    def _point_names(self) -> tuple[str, ...]:
        feet = [self.standing.feet[k] for k in self.support.owners]
        if self.standing.sole is None:
            return tuple(feet)
        return tuple(f"{foot}, corner {k % 4 + 1}" for k, foot in enumerate(feet))

    def _joints(self, states: WholeBodyStates, torques: Array) -> Iterator[LimitGroup]:
        """Yield limits of the dependent leg joints, and torque limits of all joints."""
        limits, legs = self.limits, self.support.stance.legs
        names = tuple(limits.names[j] for j in legs)
        span = limits.upper[legs] - limits.lower[legs]
        unit = np.where(np.isfinite(span), 0.5 * span, 1.0)
        q = states.q[:, legs + 1]
        for sign, bound in ((1.0, limits.upper[legs]), (-1.0, limits.lower[legs])):
            yield _bounded("position", names, q, bound, sign * (q - bound) / unit)
        for kind, signal, bound in (("velocity", states.v[:, legs], limits.velocity[legs]),
                                    ("acceleration", states.a[:, legs], limits.acceleration[legs])):
            yield _bounded(kind, names, np.abs(signal), bound, np.abs(signal) / bound - 1.0)
        bound = limits.torque[SIX:]
        yield _bounded("torque", limits.names[SIX:], np.abs(torques), bound, np.abs(torques) / bound - 1.0)

    def values(self, x: Array, dx: Array, ddx: Array) -> Array:
        """Return the excess of every limit (samples, K), positive if it is violated."""
        return np.hstack([group.excess for group in self.groups(x, dx, ddx)]) + self.margin

    def gradient(self, x: Array, dx: Array, ddx: Array, columns: Ints) -> Array:
        """Return the derivative (rows, 3, m) of one limit per row, by finite differences."""
        rows = np.arange(len(x))

        def chosen(*signals: Array) -> Array:
            values = self.values(*signals)
            return values.reshape(-1, len(x), values.shape[1])[:, rows, columns]

        return np.swapaxes(differences(chosen, x, dx, ddx), 0, 1)

    def describe(self, column: int) -> str:
        x = self.support.stance.home_coordinates[None]
        for group in self.groups(x, np.zeros_like(x), np.zeros_like(x)):
            if column < len(group.where):
                return str(self._usage(group, column, 0, float(group.excess[0, column]), 0.0))
            column -= len(group.where)
        raise IndexError(column)

    @staticmethod
    def _usage(group: LimitGroup, column: int, row: int, excess: float, time: float) -> Usage:
        return Usage(group.kind, group.where[column], float(group.values[row, column]), float(group.bounds[column]),
                     time, excess)

    def usages(self, t: Array, x: Array, dx: Array, ddx: Array) -> Iterator[Usage]:
        """Yield the largest use of every limit over a motion, also between its samples at times t."""
        ends = np.zeros(len(t), dtype=bool)
        ends[[0, -1]] = True
        for group in self.groups(x, dx, ddx):
            excess, rows = peaks(group.excess, ends)
            shown = range(len(group.where))
            if group.kind == "support":  # one number for the whole polygon
                shown = range(int(np.argmax(excess)), int(np.argmax(excess)) + 1)
                group = group._replace(where=("centre of pressure",) * len(group.where))
            for k in shown:
                yield self._usage(group, k, int(rows[k]), float(excess[k]), float(t[rows[k]]))


def _bounded(kind: str, names: tuple[str, ...], values: Array, bounds: Array, excess: Array) -> LimitGroup:
    """Return a group of limits without the infinite limits; the arguments are the fields of `LimitGroup`."""
    finite = np.flatnonzero(np.isfinite(bounds))
    return LimitGroup(kind, tuple(names[k] for k in finite), values[:, finite], bounds[finite], excess[:, finite])


def differences(function: Callable[[Array, Array, Array], Array], x: Array, dx: Array, ddx: Array) -> Array:
    """Return derivatives (3, samples, m) of a function by driving coordinates and their two derivatives.

    Args:
        function: function that returns values (copies, samples) for signals (copies * samples, m), which are several
            copies of all samples.
        x, dx, ddx: driving coordinates and their two derivatives (samples, m).
    """
    samples, m = x.shape
    moves = [(order, j) for order in range(3) for j in range(m)]
    out = np.empty((3, samples, m))
    at_once = max(1, _SAMPLES_AT_ONCE // (2 * samples))
    for start in range(0, len(moves), at_once):
        part = moves[start:start + at_once]
        signals = np.broadcast_to(np.stack([x, dx, ddx])[:, None, None], (3, 2, len(part), samples, m)).copy()
        for k, (order, j) in enumerate(part):
            signals[order, 0, k, :, j] += _DIFFERENCE_STEPS[order]
            signals[order, 1, k, :, j] -= _DIFFERENCE_STEPS[order]
        ahead, behind = function(*signals.reshape(3, -1, m)).reshape(2, len(part), samples)
        for k, (order, j) in enumerate(part):
            out[order, :, j] = (ahead[k] - behind[k]) / (2.0 * _DIFFERENCE_STEPS[order])
    return out
