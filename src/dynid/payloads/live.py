"""Online estimation of a payload."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Bools, true_ranges
from dynid.errors import NotPossibleError
from dynid.estimate import Estimate
from dynid.estimate.recursive.recursion import Recursion
from dynid.lapack import solve_triangular
from dynid.model import Payload, required_robot_model
from dynid.online.causal import TimedRows
from dynid.online.feed import Feed, FeedOptions
from dynid.online.motion_rows import RowEntries, checked_motion, fed_samples, measured_joints, without_unmeasured
from dynid.online.streamed import Streamed
from dynid.payloads.body import Parts, nearest_body
from dynid.payloads.frames import mounting_frame
from dynid.payloads.judgement import judged
from dynid.payloads.load_recursion import LoadRecursion, Unknowns, largest_load, load_lever
from dynid.payloads.payload_methods import LABEL, LoadedModel
from dynid.payloads.result import PayloadEstimate
from dynid.recording.drive_gains import gain_covariance
from dynid.regression import Regression
from dynid.regression.base import dry_columns
from dynid.regression.equations import Layout
from dynid.threads import one_blas_thread

IDENTIFIED_SHARE_OF_PRIOR = 0.5  # share of the prior standard deviation below which a parameter is identified
_ASSUMED_SPEED_SHARE = 0.25  # share of the velocity limits in the robot file: initial top speeds
_MAX_REST_SHARE = 0.1  # share of a row in which its joint may be at rest
_REST_SPEED = 0.01  # rad/s or m/s below which `update` ignores a joint's row, if dry friction is modelled


class LivePayload(Streamed):
    """Estimate the payload at a frame of an identified robot from a stream of samples.

        live = LivePayload(estimate, "flange")
        for t, q, tau in robot:                 # one sample, or blocks of them
            live.feed(t, q, tau)
        live.estimate()                         # a PayloadEstimate, at any time

    Args:
        estimate: the robot, identified without the load.
        frame: frame on which the load is mounted. Default: the flange, see `dynid.payload`.
        pose: pose (4, 4) of the frame of the load in the mounting frame. Default: the identity.
        largest: standard deviations of the expected mass (kg) and of its distance from the frame (m). Default: the
            payload of the robot file, or the mass that its torques can carry, and a fifth of the robot's reach.
        memory: number of rows after which the weight of data falls by a factor of e. `feed` makes 2.5 rows per second
            and Hz of its cut-off. Without new information the estimate returns to no load.
        window, threshold: number of rows, and their mean squared innovation, above which the load has changed and
            earlier data are discarded.
        gain_std: relative standard deviation of the drive gains, as in `dynid.payload`.
        slow: speed below which the row of a joint is left out, rad/s or m/s, if dry friction is modelled. Default: one
            hundredth of its top speed; for `update`, 0.01.
        feeding: options of the filter by which `feed` prepares raw samples. A good cut-off is that of the robot's data.
        unmeasured: names of joints whose torque is not measured.
    """

    def __init__(self, estimate: Estimate, frame: str | None = None, *, pose: ArrayLike | None = None,
                 largest: tuple[float, float] | None = None, memory: float = 250.0, window: int = 25,
                 threshold: float = 4.0, gain_std: ArrayLike | None = None, slow: float | None = None,
                 feeding: FeedOptions | None = None, unmeasured: Sequence[str] = ()) -> None:
        robot = required_robot_model(estimate.model, "an estimate of a payload").robot
        feeding = FeedOptions() if feeding is None else feeding
        self.frame, self.robot_estimate = mounting_frame(robot, frame), estimate
        term = Payload(self.frame, np.eye(4) if pose is None else np.asarray(pose, dtype=float), LABEL)
        # Rows without accelerations do not contain the torque that gears transmit.
        self._made = LoadedModel.from_estimate(estimate, term, friction=feeding.equations == "torque")
        self._layout = Layout.from_model(self._made.model, self._made.base)
        self._entries, self.joint_names = RowEntries(self._layout, feeding.equations), self._made.model.joint_names
        unknowns = Unknowns.from_estimate(estimate, self._made, largest_load(estimate, robot, self.frame, largest))
        noise = np.array(estimate.diagnostics.residual_std_per_joint, dtype=float)
        if not (noise > 0.0).any():
            raise NotPossibleError("the estimate of the robot without load states no torque error, by which samples "
                                   "with a payload are weighted", "identify the robot from logs")
        self._gains, self._given = gain_covariance(gain_std, robot.dof), gain_std is not None
        self._load = LoadRecursion(self._layout, self.joint_names, unknowns, noise, memory, window, threshold,
                                   np.diag(self._gains))
        self._dry = bool(dry_columns(estimate.model, estimate.base).any())
        self._slow = slow if slow is not None or self._dry else 0.0
        self.left_out, self._paused = 0, False
        self._measured = measured_joints(self.joint_names, unmeasured)
        limit = robot.limit("velocity")
        self._feed = Feed(
            self.joint_names, self._entries, self._take, feeding, self._slow,
            np.where(np.isfinite(limit), _ASSUMED_SPEED_SHARE * limit, 0.0), _MAX_REST_SHARE if self._dry else np.inf)

    # -- data ------------------------------------------------------------------------------------
    @one_blas_thread()
    def feed(self, t: ArrayLike, q: ArrayLike, tau: ArrayLike, reference: ArrayLike | None = None) -> int:
        """Update with raw time stamps (s), positions and torques, one sample or a block, as in `Online.feed`. Returns
        the number of completed rows, which are `delay` seconds old. Commanded positions are not used."""
        return self._feed.push(*fed_samples(t, q, without_unmeasured(tau, self._measured), self._made.model.dof))

    @one_blas_thread()
    def update(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, tau: ArrayLike) -> None:
        """Update with positions, velocities, accelerations and torques of a sample (dof,) or a block (samples, dof)."""
        motion = checked_motion(self.joint_names, q, dq, ddq, without_unmeasured(tau, self._measured))
        slow = self._slow if self._slow is not None else _REST_SPEED
        untimed = np.full(len(motion[0]), np.nan)
        found = self._entries.torques(*motion, memory=self._entries.memory.along(*motion[:2]))
        self._take(TimedRows(untimed, found, np.abs(motion[1]) >= slow))

    def _take(self, found: TimedRows) -> None:
        rows, keep = found.entries, found.keep & self._measured
        used: Bools = np.asarray(keep.any(axis=1))
        self.left_out += int(np.sum(~used))
        if not used.any():
            self._paused = True
            return
        before, mass = len(self.restarts), self.mass
        for start, stop in true_ranges(used):
            if start > 0 or self._paused:
                self._load.pause()
            self._load.add(np.ascontiguousarray(rows[:, start:stop]), keep[start:stop])
        self._paused = not used[-1]
        if len(self.restarts) > before:
            self.remark("payload-changed", f"the payload changed: it was {mass:.3g} kg, and is estimated again")

    # -- results ------------------------------------------------------------------------------------
    @property
    def samples(self) -> int:
        """Number of samples so far that the estimate uses."""
        return self._load.samples

    @property
    def restarts(self) -> tuple[int, ...]:
        """Sample counts at which a change of the load was detected."""
        return tuple(self._load.restarts)

    @property
    def numbers(self) -> Array:
        """Current inertial parameters of the load (10,), not necessarily physically consistent."""
        return self._load.theta

    @property
    def mass(self) -> float:
        """Current mass of the load, kg."""
        return float(self._load.theta[9])

    def estimate(self, consistent: bool = False) -> PayloadEstimate:
        """Return the load with its covariance and the sources of its uncertainty, physically consistent on request."""
        if not self.samples:
            raise NotPossibleError("no sample in motion has arrived yet, so there is no payload estimate; move the "
                                   "robot", code="no-motion-yet")
        recursion, unknowns = self._load.settled(), self._load.unknowns
        data = recursion.memory.regression(self._made.base, self.joint_names)
        theta, parts = recursion.beta[unknowns.load], self._parts(recursion, data)
        total = np.sum(list(parts.values()), axis=0)
        identified: Bools = np.sqrt(np.diag(total - parts["gains"])) < IDENTIFIED_SHARE_OF_PRIOR * unknowns.sizes
        lever = load_lever(self._made.model.robot, self.frame)
        numbers = nearest_body(theta, total - parts["gains"], identified, lever=lever) if consistent else theta
        rows = [count for count in data.rows if count]
        degrees_of_freedom = min(rows, default=0) / (self._fading(recursion) * self._load.inflation)
        found = PayloadEstimate(
            self.frame, "live", numbers, theta, total, parts, identified, consistent,
            data.relative_error(recursion.beta), data.relative_error(unknowns.known),
            np.sqrt(np.diag(self._gains)), ("stream",), degrees_of_freedom=max(degrees_of_freedom, 3.0), lever=lever,
            facts={"samples": self.samples, "restarts": list(self.restarts)})
        return judged(found, self.robot_estimate, weighed=False, given=self._given)

    def _fading(self, recursion: Recursion) -> float:
        """Return the sum of the squared weights of the stored samples over the sum of the weights."""
        return (1.0 + self._load.factor ** recursion.done) / (1.0 + self._load.factor)

    def _parts(self, recursion: Recursion, data: Regression) -> Parts:
        """Return covariances (10, 10) of the load's ten parameters by source.

        Each source adds noise to the normal equations: prior variance of the robot, of friction and of the load; the
        rows' own noise; and gains, which multiply each joint's residual torque without load.
        """
        b, of = len(self._made.base), self._load.unknowns
        half = solve_triangular(recursion.r[:b, :b], np.eye(b))
        own = half[of.load] @ half.T
        noise, by_gain = np.zeros((b, b)), np.zeros((10, len(self.joint_names)))
        for j, (factor, scale) in enumerate(zip(data.factors, recursion.scale, strict=True)):
            rows, places = scale * factor.r[:, :-1], factor.columns
            noise[np.ix_(places, places)] += rows.T @ rows
            by_gain[:, j] = own[:, places] @ (rows.T @ (scale * factor.r[:, -1] - rows @ of.known[places]))
        prior = own @ of.prior.matrix.T
        robot, load, gears = prior[:, of.robot], prior[:, of.load], prior[:, of.friction]
        return {"noise": self._fading(recursion) * self._load.inflation * own @ noise @ own.T + load @ load.T,
                "robot": robot @ of.own @ robot.T, "gains": by_gain @ self._gains @ by_gain.T,
                "friction": robot @ (np.eye(len(of.robot)) - of.own) @ robot.T + gears @ gears.T}

    def __repr__(self) -> str:
        return f"<LivePayload on {self.frame}: {self.samples} samples, {self.mass:.4g} kg>"
