"""Trajectory of base and joints of a robot whose feet stand still, from the trajectory of its driving coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.excitation.standing.stance import WholeBodyStates
from dynid.excitation.standing.standing_limit import StandingLimit
from dynid.excitation.trajectories.trajectory import Motion, Trajectory
from dynid.robot import FREE_COORDINATES as SIX

_JERK_STEP = 1e-4  # s, step of central differences for the jerk


@dataclass(frozen=True, eq=False)
class WholeBodyTrajectory:
    """Motion of a robot whose feet stand still. Its 6 + n coordinates are displacement and rotation vector of the base,
    and all joints.

    Attributes:
        driving: trajectory of the driving coordinates.
        limit: limits of the standing feet, with the stance and the nominal model.
    """

    driving: Trajectory
    limit: StandingLimit

    @property
    def duration(self) -> float:
        return self.driving.duration

    @property
    def dof(self) -> int:
        return self.limit.limits.dof

    def at(self, t: ArrayLike) -> Motion:
        """Return the coordinates of base and joints (m, 6 + n), and their derivatives, at times t (m,), s."""
        times = np.atleast_1d(np.asarray(t, dtype=float))
        ahead, behind = np.minimum(times + _JERK_STEP, self.duration), np.maximum(times - _JERK_STEP, 0.0)
        change = self._coordinates(ahead)[2] - self._coordinates(behind)[2]
        return Motion(*self._coordinates(times), change / (ahead - behind)[:, None])

    def _coordinates(self, t: Array) -> tuple[Array, Array, Array]:
        signals = self._signals(t)
        stance = self.limit.support.stance
        return stance.coordinates(stance.states(*signals), *signals)

    def _signals(self, t: Array) -> tuple[Array, Array, Array]:
        motion = self.driving.at(t)
        return (np.ascontiguousarray(motion.q), np.ascontiguousarray(motion.dq), np.ascontiguousarray(motion.ddq))

    def states(self, t: ArrayLike) -> WholeBodyStates:
        """Return configurations, velocities and accelerations of base and joints at times t (m,), s."""
        return self.limit.support.stance.states(*self._signals(np.atleast_1d(np.asarray(t, dtype=float))))

    @property
    def joints(self) -> JointTrajectory:
        """Trajectory of the joints without the base, for a controller."""
        return JointTrajectory(self)

    def torques(self, t: ArrayLike) -> Array:
        """Return joint torques (m, n) of the nominal model at times t (m,), s, with the contact forces of `Support`."""
        return self.limit.contact_forces(self.states(t)).torques

    def columns(self, t: ArrayLike) -> dict[str, Array]:
        """Return columns (m,) with the pose of the base and the joint torques at times t (m,), s, by the column names
        of logs."""
        states, torques = self.states(t), self.torques(t)
        columns = {f"base_pos_{axis}": states.q[:, k] for k, axis in enumerate("xyz")}
        columns |= {f"base_quat_{axis}": states.q[:, 3 + k] for k, axis in enumerate("xyzw")}
        return columns | {f"tau_{name}": torques[:, k] for k, name in enumerate(self.limit.limits.names[SIX:])}


@dataclass(frozen=True, eq=False)
class JointTrajectory:
    """Trajectory of the joints (n) of a whole-body motion, without the base."""

    whole: WholeBodyTrajectory

    @property
    def duration(self) -> float:
        return self.whole.duration

    @property
    def dof(self) -> int:
        return self.whole.dof - SIX

    def at(self, t: ArrayLike) -> Motion:
        return Motion(*(signal[:, SIX:] for signal in self.whole.at(t)))
