"""Simulated robots with encoders, which produce recordings for tests with known parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.dynamics import Wrench
from dynid.dynamics.following import tree_motion
from dynid.errors import ModelError
from dynid.model import LinearModel, complete, flexible_joint_model
from dynid.quantities import SIGNAL_TO_NOISE, check_quantity
from dynid.recording import Recording
from dynid.recording.measured import recording_from_joints
from dynid.robot import Robot
from dynid.simulation.controllers import Controller
from dynid.simulation.plant import Flexible, LuGre, Ripple, flexible_machine, per_joint
from dynid.simulation.reference import Reference, resampled
from dynid.simulation.sensors import Sensors
from dynid.simulation.simulation import Simulation, simulate


@dataclass(frozen=True, eq=False)
class VirtualRobot:
    """A simulated robot with known parameters, sensors and a controller. Values are one number or one per joint.

    Attributes:
        encoder: resolution, rad or m per count; 0 for none.
        position_noise, torque_noise: standard deviation of white noise, rad or m and N m or N.
        position_snr, torque_snr: signal-to-noise ratio of logged positions and torques, dB of mean squares (Simionato,
            s. 5.2), or None. The controller's signals do not contain this noise.
        speed: velocity that the controller uses: "true", or "difference" for backward differences of the encoder.
        speed_cutoff: low-pass filter of these differences, Hz, or None.
        jitter: standard deviation of the sampling instant, s. The time stamp stays on the grid.
        delay: delay of the logged torques relative to the positions, s.
        thin: decimation factor of the log.
        lugre, ripple, flexible: LuGre friction, torque ripple and joint flexibility, see their classes.
        step: step of the integrator, s. Default: a quarter of the period of the controller, less for stiff flexible
            joints.
        link_encoders: with flexible joints, whether the links have encoders as well as the motors. The logged
            positions are those of the links, or without link encoders those of the motors.
        skew: delay of the motor positions relative to the link positions, s.
        sensor_noise: standard deviation of torque sensors between gear and link, N m, or None for no sensors.
        smooth: treatment of dry friction, see `Settings`. Light joints with much dry friction need "stick".
        wrenches: external forces and moments.
    """

    model: LinearModel
    theta: ArrayLike
    controller: Controller
    encoder: ArrayLike = 0.0
    position_noise: ArrayLike = 0.0
    torque_noise: ArrayLike = 0.0
    speed: str = "true"
    speed_cutoff: float | None = None
    jitter: float = 0.0
    delay: float = 0.0
    thin: int = 1
    lugre: LuGre | None = None
    ripple: Ripple | None = None
    flexible: Flexible | None = None
    step: float | str | None = None
    smooth: ArrayLike | str | None = None
    link_encoders: bool = True
    skew: float = 0.0
    sensor_noise: ArrayLike | None = None
    wrenches: Sequence[Wrench] = ()
    position_snr: ArrayLike | None = None
    torque_snr: ArrayLike | None = None

    def run(self, reference: Reference, *, seed: int = 0) -> Simulation:
        """Return the simulated motion of the robot, including noise in the loop."""
        return self._run(reference, np.random.default_rng(seed))

    def record(self, reference: Reference, *, seed: int = 0) -> Recording:
        """Return a log of the robot while it follows the reference; equal seeds give equal logs.

        The torque of a row is the mean of the torques before and after its tick, as from a current sensor. If the
        encoders are on other joints (`Robot.measured`), only these joints have quantisation and noise; the controller
        measures exact positions.
        """
        robot = complete(self._links).robot
        if robot is not None and (robot.measured or robot.driven):
            return recorded_elsewhere(robot, replace(self, encoder=0.0, position_noise=0.0)._record(reference, seed),
                                      self.encoder, self.position_noise, seed)
        return self._record(reference, seed)

    def _record(self, reference: Reference, seed: int) -> Recording:
        """Return a log with the positions of the robot's independent joints."""
        n, rng = self._links.dof, np.random.default_rng(seed)
        motion = self._run(reference, rng)
        before = np.vstack([motion.tau[:1], motion.tau[:-1]])
        q, tau = motion.measured, 0.5 * (before + motion.tau)
        notes = ["simulated"]
        more = self._far_side(motion, rng)
        if self.delay:
            tau = resampled(motion.t, tau, motion.t - self.delay)
            notes.append(f"torques lag by {1e3 * self.delay:.4g} ms")
        if self.jitter:
            when = motion.t + rng.normal(0.0, self.jitter, len(motion))
            q, tau = resampled(motion.t, q, when), resampled(motion.t, tau, when)
            notes.append(f"rows jitter by {1e3 * self.jitter:.4g} ms")
            q = in_counts(q, per_joint(self.encoder, n, "encoder"))
            more = {name: resampled(motion.t, signal, when) for name, signal in more.items()}
        tau = tau + rng.normal(size=tau.shape) * per_joint(self.torque_noise, n, "torque noise")
        q = q + _by_ratio(q, self.position_snr, "position signal-to-noise ratio", rng)
        tau = tau + _by_ratio(tau, self.torque_snr, "torque signal-to-noise ratio", rng)
        if "q" in more:
            late = resampled(motion.t, q, motion.t - self.skew) if self.skew else q
            q, more["motor_position"] = more.pop("q"), late
        rows = slice(None, None, self.thin)
        more_signals: dict[str, Any] = {name: np.ascontiguousarray(signal[rows]) for name, signal in more.items()}
        return Recording(motion.t[rows], np.ascontiguousarray(q[rows]), np.ascontiguousarray(tau[rows]),
                         reference=reference.q[rows].copy(), reference_velocity=reference.dq[rows].copy(),
                         joints=complete(self._links).joint_names, source=f"virtual robot, seed {seed}",
                         notes=("; ".join(notes),), **more_signals)

    @property
    def _links(self) -> LinearModel:
        flexible = flexible_joint_model(self.model)
        return self.model if flexible is None else flexible.links

    def _far_side(self, motion: Simulation, rng: np.random.Generator) -> dict[str, Array]:
        """Return the signals on the link side of flexible joints (ticks, dof), by their names in a recording."""
        if motion.motors is None:
            return {}
        n, found = self._links.dof, {}
        if self.link_encoders:
            noise = rng.normal(size=motion.q.shape) * per_joint(self.position_noise, n, "position noise")
            found["q"] = in_counts(motion.q + noise, per_joint(self.encoder, n, "encoder"))
        if self.sensor_noise is not None:
            model = flexible_joint_model(self.model)
            flexible = self.flexible if model is None else flexible_machine(model, self.theta)[2]
            assert flexible is not None
            stiffness, damping = flexible.array(n, np.ones(n))[:, :2].T
            if not np.isfinite(stiffness).all():
                raise ModelError("torque sensors need all joints of the virtual robot to be flexible")
            sensed = stiffness * (motion.motors[0] - motion.q) + damping * (motion.motors[1] - motion.dq)
            found["sensed_torque"] = sensed + rng.normal(size=sensed.shape) * per_joint(self.sensor_noise, n,
                                                                                       "sensor noise")
        return found

    def _run(self, reference: Reference, rng: np.random.Generator) -> Simulation:
        n = self._links.dof
        if self.speed not in ("true", "difference"):
            raise ModelError(f"the velocity feedback of a virtual robot is 'true' or 'difference', got '{self.speed}'",
                             code="unknown-velocity-feedback")
        if self.thin < 1 or self.jitter < 0:
            raise ModelError("a virtual robot needs thin of at least 1 and a jitter that is not negative")
        noise = per_joint(self.position_noise, n, "position noise")
        smooth = 0.0
        if self.speed == "difference":
            share = np.inf if self.speed_cutoff is None else self.speed_cutoff / reference.rate
            smooth = 1.0 - np.exp(-2.0 * np.pi * share)
        series = rng.normal(size=reference.q.shape) * noise if np.any(noise > 0) else np.zeros((0, n))
        sensors = Sensors(series, per_joint(self.encoder, n, "encoder"), float(smooth))
        options: dict[str, Any] = {"lugre": self.lugre, "ripple": self.ripple, "flexible": self.flexible,
                                   "smooth": self.smooth, "sensors": sensors, "wrenches": tuple(self.wrenches)}
        bends = self.flexible is not None or flexible_joint_model(self.model) is not None
        step = 0.25 / reference.rate if self.step is None and not bends else self.step
        return simulate(self.model, self.theta, self.controller, reference, step=step, **options)


def _by_ratio(signal: Array, ratio: ArrayLike | None, what: str, rng: np.random.Generator) -> Array:
    """Return white noise (samples, dof) with a mean square `ratio` dB below that of the signal; zero without a
    ratio."""
    if ratio is None:
        return np.zeros_like(signal)
    each = np.broadcast_to(np.asarray(ratio, dtype=float), (signal.shape[1],)) if np.size(ratio) in (
        1, signal.shape[1]) else None
    if each is None or not np.isfinite(each).all():
        raise ModelError(f"the {what} of a virtual robot is one number or one per joint, in dB, got {ratio}",
                         code="wrong-count")
    for value in each.tolist():
        check_quantity(SIGNAL_TO_NOISE, value, f"the {what} of a virtual robot", ModelError)
    deviation = np.sqrt(np.mean(signal ** 2, axis=0) / 10.0 ** (each / 10.0))
    return np.asarray(rng.normal(size=signal.shape) * deviation)


def in_counts(x: Array, step: Array) -> Array:
    """Return positions (samples, joints) rounded to the steps (joints,) of their encoders; a zero step does not
    round."""
    return np.where(step > 0, np.where(step > 0, step, 1.0) * np.floor(x / np.where(step > 0, step, 1.0) + 0.5), x)


def recorded_elsewhere(robot: Robot, exact: Recording, encoder: ArrayLike, noise: ArrayLike, seed: int) -> Recording:
    """Return the log of a robot whose encoders are on other joints than the independent joints.

    exact: log with exact positions of the independent joints. encoder, noise: resolution and standard deviation of the
    noise of the measured joints, rad or m; one number or one per joint.
    """
    if robot.driven or robot.followers is None or exact.motor_position is not None:
        raise ModelError("a virtual robot whose encoders are on dependent joints must drive its independent joints, "
                         f"{', '.join(robot.joint_names)}, and these joints must be rigid; remove the other drives")
    tree, count = robot.followers.tree, len(robot.measured)
    places = [tree.joint_index(name) for name in robot.measured]
    true = tree_motion(robot, exact.q).q[:, places]
    spread = np.random.default_rng([seed, 1]).normal(size=true.shape) * per_joint(noise, count, "position noise")
    read = in_counts(true + spread, per_joint(encoder, count, "encoder"))
    made = recording_from_joints(robot, exact.t, read, exact.tau)
    return replace(exact, q=made.q, measured=made.measured, measured_position=made.measured_position,
                   notes=(*exact.notes, *made.notes))
