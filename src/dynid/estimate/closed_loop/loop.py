"""Loop: all logs of a problem with the machine's control law, ready to be simulated with any parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.closed_loop.joint_loops import apparent_inertia
from dynid.estimate.closed_loop.motion import friction_elements, friction_sign_unclear, tracking
from dynid.estimate.closed_loop.references import Log, log_references, measured_motion
from dynid.estimate.closed_loop.speed_lag import with_speed_lag
from dynid.estimate.problem import Problem
from dynid.findings import Note
from dynid.model import LinearModel, complete, robot_model
from dynid.simulation import (
    ControlLaw,
    Controller,
    Poles,
    Reference,
    Simulation,
    control_law,
    joint_inertia,
    simulate,
)
from dynid.simulation.kernels import Law

DEFAULT_BANDWIDTH = 40.0  # Hz, of the loop that is simulated where no controller was given
_SHARE_OF_RATE = 0.15  # of the sampling rate (Hz), the fastest such loop in rad/s
_SIMILAR_INERTIA = 2.0  # within this factor of the apparent inertia, the machine's gains are simulated unchanged
_MAX_SPEED_LOSS_PER_TICK = 1.0  # share of a speed that one tick of its feedback may take away

LawOf = Callable[[Array], ControlLaw]  # parameters (parameters,) -> the law to simulate them with


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """Simulated closed loop of every log: the motions, and the control law as a function of the parameters."""

    motions: tuple[Simulation, ...]
    law_of: LawOf


@dataclass(frozen=True, eq=False)
class Loop:
    """All logs of a problem with the control law.

    apparent_inertia (dof,): from the logged loop, None for a law without gains. settling: settling time, s. step:
    integration step, s. assumed: assumed poles if no controller was given, otherwise None.
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
        """Return the machine's law for parameters theta (parameters,): known gains, or gains computed from known
        poles."""
        return self.controller.tuned(self.inertia(theta))

    def rescaled_law(self, theta: Array) -> ControlLaw:
        """Return the machine's law with gains scaled so that its poles are the same with parameters theta
        (parameters,)."""
        if self.apparent_inertia is None:
            return self.machine_law(theta)
        return self.controller.scaled(self.inertia(theta) / self.apparent_inertia)

    def inertia(self, theta: Array) -> Array:
        """Return the largest inertia of each joint along the references (dof,); ones for a law that does not need it.
        Refuses inertias that are not positive."""
        if not self.controller.needs_inertia:
            return np.ones(self.model.dof)
        found = np.max([joint_inertia(self.model, theta, log.reference.q) for log in self.logs], axis=0)
        if np.any(found <= 0):
            j = int(np.argmin(found))
            raise NotPossibleError(f"joint {j + 1} has an inertia of {found[j]:.3g}, so it cannot be simulated",
                                   "use a pc- method, drop parameters that the motion does not excite, or start from "
                                   "better values", "inertia-not-positive")
        return found

    def run(self, theta: Array) -> SimulatedRun:
        """Simulate the closed loop of every log with parameters theta (parameters,) along the given references, for
        instruments; an assumed law may be replaced by one that stabilises the robot better."""
        return self._closest(theta, self._stable_law, lambda log, law: log.reference)

    def run_following(self, theta: Array) -> SimulatedRun:
        """Simulate the closed loop of every log with parameters theta (parameters,) under the given law; references
        computed from positions are adapted to these parameters (`following_reference`)."""
        return self._closest(theta, lambda theta, law: law, lambda log, law: self.following_reference(log, theta, law))

    def _closest(self, theta: Array, adapted: Callable[[Array, ControlLaw], ControlLaw],
                 reference_of: Callable[[Log, ControlLaw], Reference]) -> SimulatedRun:
        """Return the simulation that follows the log best, among those with the candidate control laws."""
        found: list[tuple[float, SimulatedRun]] = []
        failed: list[NotPossibleError] = []
        laws = self._laws(theta)
        for law_of in laws:
            try:
                law = adapted(theta, law_of(theta))
                motions = tuple(simulate(self.model, theta, law, reference_of(log, law), step=self.step)
                                for log in self.logs)
            except NotPossibleError as error:
                failed.append(error)
                continue
            found.append((tracking(self.logs, motions) if len(laws) > 1 else 0.0, SimulatedRun(motions, law_of)))
        if not found:
            raise failed[-1]
        return min(found, key=lambda one: one[0])[1]

    def _laws(self, theta: Array) -> tuple[LawOf, ...]:
        """Return the laws to try for theta: the machine's own, and the rescaled one if the inertia differs from the
        apparent inertia.

        A model close to the machine follows the log with the known gains; a model with a very different inertia may be
        unstable with them. The apparent inertia is too inaccurate to decide, so the law that follows the log best is
        used.
        """
        if self.apparent_inertia is None:
            return (self.machine_law,)
        ratio = self.inertia(theta) / self.apparent_inertia
        close = np.all((ratio > 1.0 / _SIMILAR_INERTIA) & (ratio < _SIMILAR_INERTIA))
        return (self.machine_law,) if close else (self.machine_law, self.rescaled_law)

    def _stable_law(self, theta: Array, law: ControlLaw) -> ControlLaw:
        """Return the law, or a computed-torque law with the assumed poles if independent joint loops would be
        unstable."""
        model = robot_model(self.model)
        if self.assumed is None or model is None or self._holds(theta, law):
            return law
        return self.assumed.computed_torque(model, theta)

    def _holds(self, theta: Array, law: ControlLaw) -> bool:
        """Return whether velocity feedback over a sampling period T, T M^-1 kd, is well below its stability limit, 2.
        """
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
        """Return the log's reference, or one computed so that a robot of parameters theta follows the positions.

        A loop without integral action lags under gravity and friction; the computed reference compensates for it.
        """
        if not log.from_positions:
            return log.reference
        samples = log.samples
        torque = self.model.regressor(samples.q, samples.dq, samples.ddq) @ theta
        found = law.follows_with(measured_motion(samples), torque)
        return log.reference if found is None else found

    def friction_sign_unclear(self, log: Log, theta: Array | None, speeds: Sequence[Array]) -> Bools:
        """Return rows (samples, dof) in which dry friction of parameters theta (parameters,) has no clear sign in one
        of the motions with the given velocities (samples, dof)."""
        directions, widths = friction_elements(self.model, theta, log.reference, self.step)
        return friction_sign_unclear(directions, widths, speeds)


def make_loop(problem: Problem, method: str, controller: Controller | None = None, step: float | None = None) -> Loop:
    """Return the loop of a problem, with references of its logs or computed from the positions."""
    parts, dof = problem.data, problem.model.dof
    given = controller or problem.controller
    assumed = _assumed_poles(dof, min(part.rate for part in parts)) if given is None else None
    law = control_law(given or assumed)
    logs, said = log_references(parts, problem.recordings, law)
    notes = [*said] if assumed is None else [_assumed_note(assumed), *said]
    gains, inertia = law.gains(dof), None
    if gains is not None:
        if any(log.from_positions for log in logs):
            raise ModelError(f"method '{method}' cannot use recorded gains without the reference they followed",
                             "give the reference, or the loop's poles instead of its gains", "no-reference")
        _refuse_open_loop(gains, method)
        law, of_law = with_speed_lag(law, gains, [(log.reference, recording) for log, recording
                                                  in zip(logs, problem.recordings, strict=True)])
        inertia = apparent_inertia(gains, logs)
        notes += [*of_law, Note("loop-inertia", "joint inertias estimated from the logged closed loop: "
                                + ", ".join(f"{x:.3g}" for x in inertia), {"inertia": tuple(inertia.tolist())})]
    return Loop(problem.model, logs, law, inertia, law.settling(inertia), step, tuple(notes), assumed)


def _assumed_poles(dof: int, rate: float) -> Poles:
    """Return poles as fast as a sampling rate (Hz) allows, for a controller that is not known."""
    return Poles(np.full(dof, min(2.0 * np.pi * DEFAULT_BANDWIDTH, _SHARE_OF_RATE * rate)))


def _assumed_note(poles: Poles) -> Note:
    omega = float(np.max(poles.omega))
    return Note("controller-assumed", "no controller was given: a closed loop with both poles at "
                                      f"{omega:.3g} rad/s is simulated", {"poles": omega})


def _refuse_open_loop(gains: Law, method: str) -> None:
    for name, values in (("position", gains.kp), ("speed", gains.kd)):
        if not np.all(values > 0):
            raise ModelError(f"method '{method}' needs a controller with "
                             "feedback of position and speed, but joint "
                             f"{int(np.argmin(values)) + 1} has no {name}", "give its gains or the loop's poles",
                             "no-feedback")


def closed_loop_facts(loop: Loop, iterations: int, seconds_dropped: float) -> dict[str, Any]:
    """Return the diagnostics of a closed-loop method: number of iterations and the simulated loop."""
    return {"iterations": iterations, "converged": True, "notes": list(loop.notes),
            "transient_dropped": seconds_dropped,
            "reference": "positions" if any(log.from_positions for log in loop.logs) else "log"}
