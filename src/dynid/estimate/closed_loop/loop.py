"""Closed control loops of the logs of a problem: control law, references, apparent inertias, and simulated motions.

The apparent inertia J of a joint is that of its linear loop: q / qr = (kd follow s^2 + kp s + ki) / (J s^3 + kd s^2 +
kp s + ki). Here qr is the reference and `follow` the share of velocity feed-forward. Friction, gravity and coupling are
neglected, so J is only a scale for gains. Mean positions are removed. A light joint in a stiff loop follows its
reference for any small inertia; J is at least kd T, the stability limit of a loop with sampling period T.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.closed_loop.speed_lag import with_speed_lag
from dynid.estimate.problem import Problem
from dynid.findings import Note
from dynid.model import LinearModel, complete, robot_model
from dynid.recording import Recording, Samples
from dynid.regression.equations import torques_along
from dynid.signals import at_times
from dynid.simulation import (
    ControlLaw,
    Controller,
    Poles,
    Reference,
    Simulation,
    control_law,
    dry_elements,
    joint_inertia,
    simulate,
)
from dynid.simulation.kernels import Law

DEFAULT_BANDWIDTH = 40.0  # Hz, of the simulated loop if no controller was given
_SHARE_OF_RATE = 0.15  # of the sampling rate (Hz): bandwidth of the fastest such loop, rad/s
_SIMILAR_INERTIA = 2.0  # within this factor of the apparent inertia, the gains of the robot are used unchanged
_MAX_SPEED_LOSS_PER_TICK = 1.0  # largest relative change of a speed by its feedback in one control period

LawOf = Callable[[Array], ControlLaw]  # parameters (parameters,) -> control law of their simulation


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """Simulated closed loop of every log: its motion with its torques at the times of the log's samples, and the
    control law as a function of the parameters."""

    motions: tuple[Samples, ...]
    law_of: LawOf


@dataclass(frozen=True, eq=False)
class Loop:
    """Simulated closed loop of a robot, with all logs of a problem.

    Attributes:
        model, logs, controller: model, logs with references, and control law.
        apparent_inertia: inertia of each joint from the logged loop (dof,); None for a law without gains.
        settling: settling time, s.
        step: integration step, s.
        notes: notes on assumptions.
        assumed: assumed poles if no controller was given, else None.
    """

    model: LinearModel
    logs: tuple[Log, ...]
    controller: ControlLaw
    apparent_inertia: Array | None
    settling: float
    step: float | None
    notes: tuple[Note, ...]
    assumed: Poles | None = None

    def machine_law(self, theta: Array) -> ControlLaw:
        """Return the robot's control law for parameters theta (parameters,): known gains, or gains from known poles."""
        return self.controller.tuned(self.inertia(theta))

    def rescaled_law(self, theta: Array) -> ControlLaw:
        """Return the robot's control law with gains scaled to keep its poles with parameters theta (parameters,)."""
        if self.apparent_inertia is None:
            return self.machine_law(theta)
        return self.controller.scaled(self.inertia(theta) / self.apparent_inertia)

    def inertia(self, theta: Array) -> Array:
        """Return the largest inertia of each joint along the references (dof,), kg m^2 or kg; ones for a law that does
        not need it. An error is raised for inertias that are not positive."""
        if not self.controller.needs_inertia:
            return np.ones(self.model.dof)
        found = np.max([joint_inertia(self.model, theta, log.reference.q) for log in self.logs], axis=0)
        if np.any(found <= 0):
            j = int(np.argmin(found))
            raise NotPossibleError(f"joint {j + 1} has an inertia of {found[j]:.3g}, so the robot cannot be simulated",
                                   "use --method pc-iv or pc-didim, drop parameters that the motion does not excite, "
                                   "or start from better values", "inertia-not-positive")
        return found

    def run(self, theta: Array) -> SimulatedRun:
        """Simulate the closed loop of every log with parameters theta (parameters,) along the given references, for
        instruments; an assumed law may be replaced by one that stabilises the robot better."""
        return self._closest(theta, self._stable_law, lambda log, law: log.reference)

    def run_following(self, theta: Array) -> SimulatedRun:
        """Simulate the closed loop of every log with parameters theta (parameters,) under its own law; references
        computed from positions are adapted to these parameters (`following_reference`)."""
        return self._closest(theta, lambda theta, law: law, lambda log, law: self.following_reference(log, theta, law))

    def _closest(self, theta: Array, adapted: Callable[[Array, ControlLaw], ControlLaw],
                 reference_of: Callable[[Log, ControlLaw], Reference]) -> SimulatedRun:
        """Return the simulation that follows the logged positions best, among those with the candidate control laws."""
        found: list[tuple[float, SimulatedRun]] = []
        failed: list[NotPossibleError] = []
        laws = self._laws(theta)
        for law_of in laws:
            try:
                law = adapted(theta, law_of(theta))
                motions = tuple(at_samples(log.samples, simulate(self.model, theta, law, reference_of(log, law),
                                                                 step=self.step)) for log in self.logs)
            except NotPossibleError as error:
                failed.append(error)
                continue
            found.append((tracking(self.logs, motions) if len(laws) > 1 else 0.0, SimulatedRun(motions, law_of)))
        if not found:
            raise failed[-1]
        return min(found, key=lambda one: one[0])[1]

    def _laws(self, theta: Array) -> tuple[LawOf, ...]:
        """Return candidate control laws for theta: the robot's own, and a rescaled one if the inertia differs much,
        since the known gains may then be unstable. The law that follows the log best is used."""
        if self.apparent_inertia is None:
            return (self.machine_law,)
        ratio = self.inertia(theta) / self.apparent_inertia
        close = np.all((ratio > 1.0 / _SIMILAR_INERTIA) & (ratio < _SIMILAR_INERTIA))
        return (self.machine_law,) if close else (self.machine_law, self.rescaled_law)

    def _stable_law(self, theta: Array, law: ControlLaw) -> ControlLaw:
        """Return the control law, or a computed-torque law with the assumed poles if joint loops would be unstable."""
        model = robot_model(self.model)
        if self.assumed is None or model is None or self._holds(theta, law):
            return law
        return self.assumed.computed_torque(model, theta)

    def _holds(self, theta: Array, law: ControlLaw) -> bool:
        """Return whether sampled velocity feedback is stable: eigenvalues of M^-1 kd times the period are below 1."""
        gains = law.gains(self.model.dof)
        if gains is None:
            return True
        for log in self.logs:
            few = log.reference.q[:: max(1, len(log.reference) // 50)]
            once = np.linalg.solve(complete(self.model).inertia_matrix(theta, few), np.diag(gains.kd))
            once = once / log.reference.rate
            if np.abs(np.linalg.eigvals(once)).max() > _MAX_SPEED_LOSS_PER_TICK:
                return False
        return True

    def following_reference(self, log: Log, theta: Array, law: ControlLaw) -> Reference:
        """Return the log's reference, or one with which a robot of parameters theta follows the logged positions.

        Without integral action, gravity and friction cause a steady error, which the computed reference compensates.
        """
        if not log.from_positions:
            return log.reference
        samples = log.samples
        found = law.follows_with(measured_motion(samples), torques_along(self.model, theta, samples))
        return log.reference if found is None else found

    def friction_sign_unclear(self, log: Log, theta: Array | None, speeds: Sequence[Array]) -> Bools:
        """Return the mask (samples, dof) of rows in which the sign of dry friction with parameters theta is uncertain.
        speeds (samples, dof), one array per motion: a row is masked if the sign is uncertain in any of these motions.
        """
        dof = self.model.dof
        directions, widths = (np.eye(dof), np.zeros(dof)) if theta is None else dry_elements(
            self.model, theta, log.reference, self.step, steps=False)
        return friction_sign_unclear(directions, widths, speeds)


def make_loop(problem: Problem, method: str, controller: Controller | None = None, step: float | None = None) -> Loop:
    """Return the simulated closed loop of a problem, with logged references or ones computed from positions."""
    parts, dof = problem.data, problem.model.dof
    given = controller or problem.controller
    # Poles of an unknown controller are as fast as the sampling rate allows.
    omega = min(2.0 * np.pi * DEFAULT_BANDWIDTH, _SHARE_OF_RATE * min(part.rate for part in parts))
    assumed = Poles(np.full(dof, omega)) if given is None else None
    law = control_law(given or assumed)
    logs, remarks = log_references(parts, problem.recordings, law)
    notes = [*remarks] if assumed is None else [
        Note("controller-assumed", f"no controller was given: a closed loop with two poles at {omega:.3g} rad/s is "
                                   "simulated", {"poles": omega}), *remarks]
    gains, inertia = law.gains(dof), None
    if gains is not None:
        if any(log.from_positions for log in logs):
            raise ModelError(f"method '{method}' needs the reference of the controller whose gains are given",
                             "give the reference, or the loop's poles instead of its gains", "no-reference")
        _refuse_open_loop(gains, method)
        law, of_law = with_speed_lag(law, gains, [(log.reference, recording) for log, recording
                                                  in zip(logs, problem.recordings, strict=True)])
        inertia = apparent_inertia(gains, logs)
        notes += [*of_law, Note("loop-inertia", "joint inertias estimated from the logged closed loop: "
                                + ", ".join(f"{x:.3g}" for x in inertia), {"inertia": tuple(inertia.tolist())})]
    return Loop(problem.model, logs, law, inertia, law.settling(inertia), step, tuple(notes), assumed)


def _refuse_open_loop(gains: Law, method: str) -> None:
    for name, values in (("position", gains.kp), ("speed", gains.kd)):
        if not np.all(values > 0):
            raise ModelError(f"method '{method}' needs a controller with feedback of position and speed, but joint "
                             f"{int(np.argmin(values)) + 1} has no {name} gain", "give its gains or the loop's poles",
                             "no-feedback")


def closed_loop_facts(loop: Loop, iterations: int, seconds_dropped: float) -> dict[str, Any]:
    """Return diagnostics of a closed-loop method: its number of iterations, and facts about the simulated loop."""
    return {"iterations": iterations, "converged": True, "notes": list(loop.notes),
            "transient_dropped": seconds_dropped,
            "reference": "positions" if any(log.from_positions for log in loop.logs) else "log"}


_INERTIA_SEARCH_RATIO = 1e3  # largest ratio to the inertia kd^2 / kp of a well-damped loop, in both directions
# numbers of inertias over the whole range, and between the neighbours of the best
_COARSE_GRID_POINTS, _FINE_GRID_POINTS = 49, 21


def loop_response(numerator: Sequence[float], denominator: Sequence[float], reference: Array, rate: float) -> Array:
    """Return the response (ticks,) of a linear loop of unit static gain to a reference (ticks,) at `rate` Hz.

    The transfer function has coefficients in descending powers of s. The loop starts at rest at its reference.
    """
    from scipy.signal import BadCoefficients, bilinear, lfilter, lfiltic

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BadCoefficients)  # of poles far above `rate`, which a search may try
        b, a = bilinear(numerator, denominator, rate)
    past = np.full(len(a) - 1, reference[0])
    y, _ = lfilter(b, a, reference, zi=lfiltic(b, a, past, past))
    return np.asarray(y)


def apparent_inertia(gains: Law, logs: Sequence[Log]) -> Array:
    """Return the apparent inertia of each joint (dof,), kg m^2 or kg. It is at least kd times the sampling period."""
    found = np.ones(len(gains.kp))
    for j, (kp, kd) in enumerate(zip(gains.kp, gains.kd, strict=True)):
        least = float(kd) / min(log.reference.rate for log in logs)
        found[j] = max(_smallest(partial(_miss, gains, logs, j), np.log(kd / max(kp / kd, 1e-12))), least)
    return found


def _smallest(miss: partial[float], middle: float) -> float:
    """Return the inertia near exp(middle) with the smallest error `miss`, on a coarse and a fine logarithmic grid."""
    grid = middle + np.linspace(-np.log(_INERTIA_SEARCH_RATIO), np.log(_INERTIA_SEARCH_RATIO), _COARSE_GRID_POINTS)
    values = [miss(x) for x in grid]
    best = int(np.nanargmin(np.where(np.isfinite(values), values, np.inf)))
    fine = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], _FINE_GRID_POINTS)
    return float(np.exp(fine[int(np.argmin([miss(x) for x in fine]))]))


def _miss(gains: Law, logs: Sequence[Log], joint: int, log_inertia: float) -> float:
    """Return the squared error of a joint's linear response with a given inertia, against its measured positions."""
    total, kp, ki, kd = 0.0, gains.kp[joint], gains.ki[joint], gains.kd[joint]
    integral = [ki] if ki else []
    above, below = [kd * gains.follow[joint], kp, *integral], [np.exp(log_inertia), kd, kp, *integral]
    for log in logs:
        y = loop_response(above, below, log.reference.q[:, joint], log.reference.rate)
        simulated = np.interp(log.samples.t, log.reference.t, y)
        total += float(np.sum((simulated - log.samples.q[:, joint]) ** 2))
    return total


_MAX_TICKS_OUTSIDE = 1.5  # control periods by which samples may extend beyond their reference


@dataclass(frozen=True, eq=False)
class Log:
    """Samples of one log and the reference of its simulated loop; `from_positions` is True if the reference was
    computed from the measured positions."""

    samples: Samples
    reference: Reference
    from_positions: bool


def log_references(parts: Sequence[Samples], recordings: Sequence[Recording], law: ControlLaw
                   ) -> tuple[tuple[Log, ...], tuple[Note, ...]]:
    """Return one `Log` for each set of samples, and notes on references that were computed from positions. recordings:
    one per set of samples, or none."""
    logs, notes = [], []
    for k, part in enumerate(parts):
        recording = recordings[k] if recordings else None
        if recording is None or recording.reference is None:
            logs.append(Log(part, law.follows(measured_motion(part)), True))
            notes.append(Note("reference-from-positions",
                              f"{part.source} contains no reference: the filtered positions are used instead"))
        else:
            logs.append(Log(part, _covering(part, Reference.from_recording(recording)), False))
    return tuple(logs), tuple(notes)


def measured_motion(samples: Samples) -> Reference:
    """Return filtered positions, velocities and accelerations of a log as a reference."""
    return Reference(samples.q, samples.dq, samples.ddq, samples.rate, float(samples.t[0]))


def _covering(part: Samples, reference: Reference) -> Reference:
    """Return the reference of a log; raise an error if it does not cover all samples."""
    more = _MAX_TICKS_OUTSIDE / reference.rate
    if reference.t[-1] < part.t[-1] - more or reference.t[0] > part.t[0] + more:
        raise ModelError(f"{part.source}: the reference runs from {reference.t[0]:.4g} s to {reference.t[-1]:.4g} s, "
                         f"but the samples end at {part.t[-1]:.4g} s", "give the whole reference, or a shorter log",
                         "reference-too-short")
    return reference


_SLOW_SPEED = 0.01  # of the top speed: below it, the sign of dry friction is uncertain
_UNCLEAR_SIGN_WIDTHS = 3.0  # widths of a smooth sign within which the sign is uncertain


def at_samples(samples: Samples, motion: Simulation) -> Samples:
    """Return a simulated motion, interpolated at the times of measured samples.

    Accelerations are central differences of the velocities, because the torque changes stepwise at each control tick.
    """
    ddq = np.gradient(motion.dq, 1.0 / motion.rate, axis=0)
    place = (samples.t - motion.t[0]) * motion.rate
    whole = np.clip(np.round(place).astype(np.int64), 0, len(motion) - 1)
    if np.all(np.abs(place - whole) < 1e-3):
        q, dq, ddq, tau = motion.q[whole], motion.dq[whole], ddq[whole], motion.tau[whole]
    else:
        q, dq, ddq, tau = (at_times(samples.t, motion.t, x) for x in (motion.q, motion.dq, ddq, motion.tau))
    return replace(samples, q=np.ascontiguousarray(q), dq=np.ascontiguousarray(dq), ddq=np.ascontiguousarray(ddq),
                   tau=np.ascontiguousarray(tau))


def tracking(logs: Sequence[Log], motions: Sequence[Samples]) -> float:
    """Return the RMS distance between simulated and measured positions, in percent of the measured motion."""
    miss = size = 0.0
    for log, motion in zip(logs, motions, strict=True):
        moved = log.samples.q - log.samples.q.mean(axis=0)
        miss, size = miss + float(np.sum((motion.q - log.samples.q) ** 2)), size + float(np.sum(moved ** 2))
    return 100.0 * float(np.sqrt(miss / size)) if size > 0 else 0.0


def friction_sign_unclear(directions: Array, widths: Array, speeds: Sequence[Array]) -> Bools:
    """Return the mask (samples, dof) of rows in which the sign of dry friction is uncertain in one of the motions with
    given velocities (samples, dof). Dry friction acts along directions (elements, dof), with a sign that is smooth over
    widths (elements,), rad/s or m/s."""
    out = np.zeros(speeds[0].shape, dtype=bool)
    for dq in speeds:
        for direction, width in zip(directions, widths, strict=True):
            speed = np.abs(dq @ direction)
            slow = speed < max(_SLOW_SPEED * float(speed.max()), _UNCLEAR_SIGN_WIDTHS * float(width))
            out[:, direction != 0.0] |= slow[:, None]
    return out
