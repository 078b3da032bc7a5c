"""Online estimation of the external force and moment on a robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from dynid import dynamics
from dynid.arrays import Array, Bools, Ints
from dynid.contacts.contact_free_errors import FreeMotion, check_joints, free_motion
from dynid.contacts.observer import Observer, ObserverMethod, OutsideTorques
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Estimate
from dynid.model import required_robot_model
from dynid.online.motion_rows import fed_samples
from dynid.payloads.frames import mounting_frame
from dynid.quantities import FORCE, check_quantity
from dynid.recording import Recording
from dynid.robot import BASE, Robot
from dynid.threads import one_blas_thread

PRIOR = (100.0, 20.0)  # N and N m: typical wrenches of people and tools
_RELEASE_LEVEL_SHARE = 0.5  # share of the alarm level below which the statistic is low
_RELEASE_SECONDS = 0.1  # s: a contact ends if the statistic is low for this time
_AT_ONCE = 8192  # rows whose matrices are in memory at once
MAX_LINK_ROWS = 50  # rows from which the link in contact is determined


@dataclass(frozen=True, eq=False)
class WrenchRows:
    """External wrenches, one row per sample.

    Attributes:
        t: times (m,), s; each row is available `delay` s later.
        wrench: force and moment (m, 6) at the frame, N and N m.
        covariance: covariance of the wrench (m, 6, 6).
        statistic: squared Mahalanobis norm of the joint torques (m,).
        touched: contact flag (m,).
        torques: external joint torques.
        torque_covariance: covariance of the joint torques without contact (m, dof, dof).
    """

    t: Array
    wrench: Array
    covariance: Array
    statistic: Array
    touched: Bools
    torques: OutsideTorques = field(repr=False)
    torque_covariance: Array = field(repr=False)

    def __len__(self) -> int:
        return len(self.t)

    def rows(self, which: slice | Ints) -> WrenchRows:
        """Return the wrenches and all other signals of the selected rows."""
        return WrenchRows(self.t[which], self.wrench[which], self.covariance[which], self.statistic[which],
                          self.touched[which], self.torques.rows(which), self.torque_covariance[which])

    @property
    def std(self) -> Array:
        """Standard deviations (m, 6) of the wrenches."""
        return np.sqrt(np.diagonal(self.covariance, axis1=1, axis2=2))


class ExternalWrench:
    """Estimate the external wrench at a frame of a robot, and detect contact, sample by sample.

        outside = ExternalWrench(estimate, "flange", free=recording)     # a log without contact
        for t, q, tau in robot:
            rows = outside.feed(t, q, tau)
            if rows.touched.any(): ...

    Args:
        estimate: the identified robot.
        frame: frame of the wrench. Default: the flange, see `mounting_frame`.
        free: logs without contact, from which the torque errors are estimated, or statistics from such logs.
        axes: name of the frame in whose axes wrenches are expressed. Default: the base.
        method: "momentum" (momentum observer) or "inverse" (filtered inverse dynamics).
        window: filter window, s. The delay is about half the window; a longer window reduces standard deviations.
        prior: standard deviations of the expected forces (N) and moments (N m).
        alarms: number of false alarms allowed per hour.
    """

    def __init__(self, estimate: Estimate, frame: str | None = None, *,
                 free: Recording | Sequence[Recording] | FreeMotion, axes: str | None = None,
                 method: ObserverMethod = "momentum", window: float = 0.03, prior: tuple[float, float] = PRIOR,
                 alarms: float = 1.0) -> None:
        model = required_robot_model(estimate.model, "an estimate of forces on a frame")
        for size in prior:
            check_quantity(FORCE, size, "a standard deviation of the prior of a wrench", ModelError)
        self.estimate, self.robot, self.axes = estimate, model.robot, axes
        if frame is not None and model.robot.frame(frame).body == BASE:
            raise ModelError(f"a wrench on frame '{frame}' of the base causes no joint torque",
                             "choose a frame that moves", code="frame-of-the-base")
        self.frame = mounting_frame(model.robot, frame)
        if axes is not None:
            model.robot.frame(axes)
        self.prior = np.repeat(np.asarray(prior, dtype=float), 3)
        self.free = free if isinstance(free, FreeMotion) else free_motion(estimate, free, method, window, alarms)
        self._observer = Observer(estimate, self.free.options)
        self._touched, self._quiet_since = False, -np.inf

    @property
    def delay(self) -> float:
        """Delay between a sample and its wrench estimate, s; NaN before the first estimate."""
        return self._observer.delay

    @property
    def events(self) -> tuple[str, ...]:
        """Problems found in the samples of the stream, as sentences."""
        return self._observer.events

    def fresh(self) -> ExternalWrench:
        """Return an estimator without samples, for another stream with the same statistics of free motion."""
        return ExternalWrench(self.estimate, self.frame, free=self.free, axes=self.axes,
                              prior=(float(self.prior[0]), float(self.prior[3])))

    @one_blas_thread()
    def feed(self, t: ArrayLike, q: ArrayLike, tau: ArrayLike) -> WrenchRows:
        """Add positions (m, dof) and torques (m, dof) at times (m,), s, and return the wrenches that are then known."""
        torques = self._observer.push(*fed_samples(t, q, tau, self.robot.dof))
        blocks = [torques.rows(slice(k, k + _AT_ONCE)) for k in range(0, max(len(torques.t), 1), _AT_ONCE)]
        found = [self._wrenches(block) for block in blocks]
        wrench, covariance, statistic, spread = (np.concatenate(x) for x in zip(*found, strict=True))
        return WrenchRows(torques.t, wrench, covariance, statistic, self._alarm(torques.t, statistic), torques, spread)

    def of_log(self, log: Recording) -> tuple[WrenchRows, float]:
        """Return the external wrenches along a whole log, and the delay of a row, s."""
        check_joints(self.estimate, log)
        stream = self.fresh()
        rows = stream.feed(log.t, log.q, log.tau)
        if not len(rows):
            raise NotPossibleError(f"{log.source} is too short for a filter of {self.free.options.used_window:.3g} s",
                                   "give a longer log, or a shorter window", code="log-too-short")
        return rows, stream.delay

    def at_frame(self, rows: WrenchRows, frame: str, axes: str | None = None) -> tuple[Array, Array]:
        """Return the wrenches (m, 6) at another frame, in the axes of `axes`, and their covariances (m, 6, 6)."""
        jacobian = frame_jacobian(self.robot, frame, axes, rows.torques.q)
        return posterior(jacobian, rows.torques.tau, rows.torque_covariance, self.prior)

    def link_probabilities(self, rows: WrenchRows) -> Array:
        """Return the probability (links,) that each moving link is in contact, from external torques.

        All rows together count as one observation, because a longer constant push gives no more information.
        """
        few = slice(None, None, max(1, len(rows) // MAX_LINK_ROWS))
        evidence = link_evidence(self.robot, rows.torques.q[few], rows.torques.tau[few], rows.torque_covariance[few],
                                 self.prior).mean(axis=0)
        share = np.exp(evidence - evidence.max())
        return np.asarray(share / share.sum())

    def _wrenches(self, torques: OutsideTorques) -> tuple[Array, Array, Array, Array]:
        spread = self.free.covariance(torques)
        jacobian = frame_jacobian(self.robot, self.frame, self.axes, torques.q)
        wrench, covariance = posterior(jacobian, torques.tau, spread, self.prior)
        solved = np.linalg.solve(spread, torques.tau[:, :, None])[:, :, 0]
        return wrench, covariance, np.sum(solved * torques.tau, axis=1), spread

    def _alarm(self, t: Array, statistic: Array) -> Bools:
        """Return the contact flag (m,): true from the alarm until the statistic has been low for `_RELEASE_SECONDS`."""
        touched = np.zeros(len(t), dtype=bool)
        for k, (now, size) in enumerate(zip(t, statistic, strict=True)):
            if size > _RELEASE_LEVEL_SHARE * self.free.level:
                self._quiet_since = now
            if size > self.free.level:
                self._touched = True
            elif self._touched and now - self._quiet_since > _RELEASE_SECONDS:
                self._touched = False
            touched[k] = self._touched
        return touched


def frame_jacobian(robot: Robot, frame: str, axes: str | None, q: Array) -> Array:
    """Return the Jacobian (m, 6, dof) of a frame's origin, in the axes of the frame `axes`, by default the base."""
    jacobian = dynamics.jacobian(robot, frame, q)
    if axes is None:
        return jacobian
    turn = np.swapaxes(dynamics.frame_pose(robot, axes, q)[:, :3, :3], 1, 2)
    return np.concatenate([turn @ jacobian[:, :3], turn @ jacobian[:, 3:]], axis=1)


def posterior(jacobian: Array, tau: Array, covariance: Array, prior: Array) -> tuple[Array, Array]:
    """Return wrenches (m, 6) and their covariances (m, 6, 6) from joint torques (m, dof) by Bayes' rule.

    Args:
        jacobian: Jacobian (m, 6, dof) of the frame of the wrench.
        tau: external joint torques (m, dof), N m or N.
        covariance: covariances (m, dof, dof) of the joint torques.
        prior: standard deviations (6,) of the expected wrench, N and N m.
    """
    weighted = np.linalg.solve(covariance, np.swapaxes(jacobian, 1, 2))
    information = jacobian @ weighted + np.diag(prior ** -2.0)
    # In units of the prior: mixed units of forces and moments would make the inverse inaccurate.
    scaled = np.linalg.inv(information * np.outer(prior, prior)) * np.outer(prior, prior)
    spread = 0.5 * (scaled + np.swapaxes(scaled, 1, 2))
    return (spread @ (np.swapaxes(weighted, 1, 2) @ tau[:, :, None]))[:, :, 0], spread


def link_evidence(robot: Robot, q: Array, tau: Array, covariance: Array, prior: Array) -> Array:
    """Return the log evidence (m, links) that each moving link is in contact, from joint torques tau (m, dof).

    A wrench on a link affects only the joints that carry the link: tau ~ N(0, C + J' P0 J), with the link's Jacobian J,
    the covariance C (m, dof, dof) of the torques, and P0 = diag(prior^2); prior (6,): standard deviations of a wrench.
    """
    evidence = np.zeros((len(q), robot.dof))
    for i, name in enumerate(robot.body_names):
        jacobian = dynamics.jacobian(robot, name, q)
        spread = covariance + np.swapaxes(jacobian, 1, 2) @ (jacobian * (prior ** 2)[:, None])
        factor = np.linalg.cholesky(spread)
        unit = np.linalg.solve(factor, tau[:, :, None])[:, :, 0]
        log_root = np.sum(np.log(np.diagonal(factor, axis1=1, axis2=2)), axis=1)
        evidence[:, i] = -0.5 * np.sum(unit ** 2, axis=1) - log_root
    return evidence
