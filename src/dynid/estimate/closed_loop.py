"""What the closed-loop methods share: references, the loop as it is simulated at each iteration, its history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.signal import bilinear, butter, lfilter, lfiltic, sosfiltfilt

from dynid.arrays import Array, Bools
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.problem import Problem
from dynid.model import LinearModel, Model, Parameter, Parameters, RotorInertia, complete
from dynid.model.kinds import ROTOR
from dynid.recording import Samples
from dynid.recording.resample import at_times
from dynid.robot import numbered_joints
from dynid.simulation import (
    PD,
    PID,
    Cascade,
    ComputedTorque,
    Controller,
    Poles,
    Reference,
    Simulation,
    dry_elements,
    joint_inertia,
    simulate,
)

Start = Literal["regular", "nominal", "wls"]
DEFAULT_BANDWIDTH = 40.0  # Hz, of a loop nobody told us about
_CLOSE = 2.0  # within this factor of the inertia that the loop shows, its true gains are simulated unchanged
_SLOW = 0.01  # share of the top speed below which dry friction has no clear sign
_BEARABLE = 1.0  # share of a speed that one tick of its feedback may take away
_SETTLED = 5.0  # time constants after which a different start is forgotten (Janot, Vandanjon, Gautier, s. 3.4)
_SMALL_STEP = 0.1  # stated deviations by which the last iteration may still move a parameter
_ROUNDING = 1e-3  # of the tolerance: torques that change less than this have settled, however good the data are


@dataclass(frozen=True, eq=False)
class Log:
    """One log: its samples, what its controller was asked to follow, and whether that had to be made up."""

    samples: Samples
    reference: Reference
    made_up: bool


@dataclass(frozen=True, eq=False)
class Loop:
    """All logs of a problem with the control law, ready to be simulated with any parameters.

    shown (dof,): inertia of each joint that the logged loop shows; None where the law does not need it. assumed: nobody
    told the law.
    """

    model: LinearModel
    logs: tuple[Log, ...]
    controller: Controller
    shown: Array | None
    settled: float
    step: float | None
    notes: tuple[str, ...]
    assumed: bool = False

    def law(self, theta: Array, scaled: bool = False, any_will_do: bool = False) -> Controller:
        """The law to simulate parameters theta (parameters,) with: of known poles the one that keeps them, of known
        gains itself, or scaled so that the poles stay where the machine has them.

        any_will_do: for instruments, which any robot close to the log gives. Of a law that nobody told, a computed
        torque then puts the poles where joints feel each other so much that one loop a joint would not hold them.
        """
        inertia = self.inertia(theta)
        if isinstance(self.controller, Poles):
            law = self.controller.tuned(inertia)
            if not (any_will_do and self.assumed and isinstance(self.model, Model)) or self._holds(theta, law):
                return law
            omega, damping = (np.asarray(x, dtype=float) for x in (self.controller.omega, self.controller.damping))
            return ComputedTorque(self.model, theta, omega ** 2, 2.0 * damping * omega, feedforward=False)
        if not scaled or self.shown is None or not isinstance(self.controller, PD | PID | Cascade):
            return self.controller
        return self.controller.scaled(inertia / self.shown)

    def _holds(self, theta: Array, law: Cascade) -> bool:
        """Whether one tick of the speed feedback, T M^-1 kd, stays well below what a sampled loop can bear, 2."""
        damping = law.law(self.model.dof).kd
        for log in self.logs:
            few = log.reference.q[:: max(1, len(log.reference) // 50)]
            inertia = complete(self.model).inertia_matrix(theta, few)
            once = np.linalg.solve(inertia, np.diag(damping)) / log.reference.rate
            if np.abs(np.linalg.eigvals(once)).max() > _BEARABLE:
                return False
        return True

    def inertia(self, theta: Array) -> Array:
        """Largest inertia of each joint along the references (dof,), refused where it is not positive; ones for a law
        that does not ask for it."""
        if self.shown is None and not isinstance(self.controller, Poles):
            return np.ones(self.model.dof)
        found = np.max([joint_inertia(self.model, theta, log.reference.q) for log in self.logs], axis=0)
        if np.any(found <= 0):
            j = int(np.argmin(found))
            raise NotPossibleError(f"joint {j + 1} has an inertia of {found[j]:.3g}, which cannot move; use a pc- "
                                   "method, drop parameters that the motion does not excite, or start from "
                                   "better values")
        return found

    def run(self, theta: Array) -> list[Simulation]:
        """The closed loop of every log with parameters theta (parameters,)."""
        return self.tried(theta)[0]

    def tried(self, theta: Array, follow: bool = False) -> tuple[list[Simulation], bool]:
        """The closed loop of every log with parameters theta (parameters,), and whether gains were scaled for it;
        follow: references as `reference` makes them.

        Known gains are the machine's own, so a robot close to it follows the log with them and with no others; one
        with far other inertia may not even stand with them. The inertia that a loop shows is too rough to tell which
        it is, as gravity and friction pass for inertia there: where it differs, the log itself tells.
        """
        inertia = self.inertia(theta)
        ratio = np.ones(len(inertia)) if self.shown is None else inertia / self.shown
        if np.all((ratio > 1.0 / _CLOSE) & (ratio < _CLOSE)):
            return self._simulated(theta, self.law(theta, any_will_do=not follow), follow), False
        tries: list[tuple[float, list[Simulation], bool]] = []
        for scaled in (False, True):
            try:
                runs = self._simulated(theta, self.law(theta, scaled, not follow), follow)
                tries.append((tracking(self, runs), runs, scaled))
            except NotPossibleError:
                if scaled and not tries:
                    raise
        _, runs, scaled = min(tries, key=lambda one: one[0])
        return runs, scaled

    def _simulated(self, theta: Array, law: Controller, follow: bool) -> list[Simulation]:
        return [simulate(self.model, theta, law, self.reference(log, theta, law) if follow else log.reference,
                         step=self.step) for log in self.logs]

    def reference(self, log: Log, theta: Array, law: Controller) -> Reference:
        """The log's own reference, or where that was made up the one with which this robot follows the positions.

        A loop without integral lags by what gravity and friction ask of it. qr = q + (tau(theta) + kd dq) / kp lets
        it ask for just that: the inverse of the loop as `_from_positions` has it, with the whole torque.
        """
        if not log.made_up or not isinstance(law, Cascade):
            return log.reference
        gains, samples = law.law(self.model.dof), log.samples
        if np.any(gains.follow != 0.0):
            return log.reference
        torque = self.model.regressor(samples.q, samples.dq, samples.ddq) @ theta
        return Reference.of(samples.q + (torque + gains.kd * samples.dq) / gains.kp, rate=samples.rate,
                            start=float(samples.t[0]))

    def run_regular(self) -> list[Simulation]:
        """The closed loop of unit inertias, the regular start (Janot, Vandanjon, Gautier, eq. 48-50)."""
        n = self.model.dof
        ones = np.ones(n)
        controller = self.controller
        if isinstance(controller, ComputedTorque):
            root = np.sqrt(np.asarray(controller.kp, dtype=float))
            law: Controller = Poles(root, np.asarray(controller.kd, dtype=float) / (2.0 * root)).tuned(ones)
        elif isinstance(controller, PD | PID | Cascade) and self.shown is not None:
            law = controller.scaled(ones / self.shown)
        elif isinstance(controller, Poles):
            law = controller.tuned(ones)
        else:
            raise ModelError("the regular start needs a controller whose gains can be rescaled; with a function as the "
                             "controller use start = 'nominal' or 'wls'")
        unit: LinearModel = Model(self.model.robot, (RotorInertia(),)) if isinstance(self.model, Model) else Unit(n)
        return [simulate(unit, ones, law, log.reference, step=self.step) for log in self.logs]


@dataclass(frozen=True)
class Unit:
    """Joints of unit inertia that do not feel each other: the regular start of a model that has no robot."""

    dof: int

    @property
    def parameters(self) -> Parameters:
        return Parameters(tuple(Parameter(f"Ia{j + 1}", "kg m^2", j, name, kind=ROTOR)
                                for j, name in enumerate(numbered_joints(self.dof))))

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        return np.einsum("sj,jk->sjk", ddq, np.eye(self.dof))

    def forward_dynamics(self, theta: Array, q: Array, dq: Array, tau: Array) -> Array:
        return tau / theta


@dataclass(frozen=True, eq=False)
class How:
    """Options that all iterated closed-loop methods share."""

    start: Start
    tolerance: float
    max_iterations: int
    step: float | None
    controller: Controller | None
    transient: float | None


def make_loop(problem: Problem, method: str, controller: Controller | None = None, step: float | None = None) -> Loop:
    """The loop of a problem: references of its logs, or made from the positions where a log has none."""
    parts = problem.need_samples(method)
    law = controller or problem.controller
    notes, assumed = [], law is None
    if law is None:
        slowest = min(part.rate for part in parts)
        omega = min(2.0 * np.pi * DEFAULT_BANDWIDTH, 0.15 * slowest)
        law = Poles(np.full(problem.model.dof, omega))
        notes.append(f"no controller was given: a loop with both poles at {omega:.3g} rad/s is simulated")
    logs = []
    for k, part in enumerate(parts):
        recording = problem.recordings[k] if problem.recordings else None
        if recording is not None and recording.reference is not None:
            reference = Reference.from_recording(recording)
            if reference.t[-1] < part.t[-1] - 1.5 / reference.rate or reference.t[0] > part.t[0] + 1.5 / reference.rate:
                raise ModelError(f"{part.source}: the reference runs from {reference.t[0]:.4g} s to "
                                 f"{reference.t[-1]:.4g} s, the samples to {part.t[-1]:.4g} s; give the whole "
                                 "reference or cut the log to it")
            logs.append(Log(part, reference, False))
        else:
            logs.append(Log(part, _from_positions(part, law), True))
            notes.append(f"{part.source} holds no reference: it was taken from the filtered positions")
    made_up = any(log.made_up for log in logs)
    shown = None
    if isinstance(law, PD | PID | Cascade):
        if made_up:
            raise ModelError(f"method '{method}' cannot use recorded gains without the reference they followed; give "
                             "the reference, or the loop's poles instead of its gains")
        gains = law.law(problem.model.dof)
        for name, values in (("position", gains.kp), ("speed", gains.kd)):
            if not np.all(values > 0):
                raise ModelError(f"method '{method}' needs a controller with feedback of position and speed, joint "
                                 f"{int(np.argmin(values)) + 1} has none of {name}; give its gains or the loop's poles")
        law, said = _with_lag(law, problem, logs)
        notes += said
        shown = _shown_inertia(law, logs)
        notes.append("inertia of the joints that the logged loop shows: " + ", ".join(f"{x:.3g}" for x in shown))
    return Loop(problem.model, tuple(logs), law, shown, _settling(law, shown), step, tuple(notes), assumed)


def first_run(problem: Problem, loop: Loop, start: Start) -> list[Simulation]:
    """The simulations that the first iteration takes its instruments from."""
    if start == "regular":
        return loop.run_regular()
    if start == "nominal":
        return loop.run(problem.need_nominal("closed loop"))
    if start == "wls":
        from dynid.estimate.least_squares import weighted_least_squares
        return loop.run(weighted_least_squares(problem).full)
    raise ModelError(f"a closed-loop method starts from 'regular', 'nominal' or 'wls', not '{start}'")


def at_samples(samples: Samples, run: Simulation) -> Samples:
    """A simulated motion at the rows of measured samples; its accelerations by central differences of its velocities,
    as a tick's torque makes them jump."""
    ddq = np.gradient(run.dq, 1.0 / run.rate, axis=0)
    place = (samples.t - run.t[0]) * run.rate
    whole = np.clip(np.round(place).astype(np.int64), 0, len(run) - 1)
    if np.all(np.abs(place - whole) < 1e-3):
        q, dq, ddq, tau = run.q[whole], run.dq[whole], ddq[whole], run.tau[whole]
    else:
        q, dq, ddq, tau = (at_times(samples.t, run.t, x) for x in (run.q, run.dq, ddq, run.tau))
    return replace(samples, q=np.ascontiguousarray(q), dq=np.ascontiguousarray(dq), ddq=np.ascontiguousarray(ddq),
                   tau=np.ascontiguousarray(tau))


def tracking(loop: Loop, runs: Sequence[Simulation]) -> float:
    """How far simulated positions are from measured ones, percent of their motion."""
    miss = size = 0.0
    for log, run in zip(loop.logs, runs, strict=True):
        there = at_samples(log.samples, run).q
        moved = log.samples.q - log.samples.q.mean(axis=0)
        miss, size = miss + float(np.sum((there - log.samples.q) ** 2)), size + float(np.sum(moved ** 2))
    return 100.0 * float(np.sqrt(miss / size)) if size > 0 else 0.0


def standing(loop: Loop, speeds: Sequence[Array], theta: Array | None, reference: Reference) -> Bools:
    """(samples, dof): rows in which dry friction that acts on a joint has no clear sign in any of the motions whose
    velocities (samples, dof) are given."""
    if theta is None:
        directions, widths = np.eye(loop.model.dof), np.zeros(loop.model.dof)
    else:
        directions, widths = dry_elements(loop.model, theta, reference, loop.step)
    out = np.zeros(speeds[0].shape, dtype=bool)
    for dq in speeds:
        for direction, width in zip(directions, widths, strict=True):
            speed = np.abs(dq @ direction)
            slow = speed < max(_SLOW * float(speed.max()), 3.0 * float(width))
            out[:, direction != 0.0] |= slow[:, None]
    return out


def regular_vector(model: LinearModel) -> Array | None:
    """The regular start as parameters, unit rotor inertias alone; None for a model without them."""
    names = model.parameters.names
    rotors = [f"Ia{j + 1}" for j in range(model.dof)]
    if any(name not in names for name in rotors):
        return None
    return np.array([1.0 if name in rotors else 0.0 for name in names])


def relaxed(new: tuple[Array, Array | None], old: tuple[Array, Array | None], changes: Sequence[float]
            ) -> tuple[Array, Array | None]:
    """Base values and parameters to go on with: the new ones, or half way to them where iterations do not contract.

    Dry friction of joints that nearly stand still can make the estimate swing between two answers; the mean of two
    consistent robots is one as well.
    """
    if len(changes) < 2 or changes[-1] < 0.7 * changes[-2]:
        return new
    theta = None if new[1] is None or old[1] is None else 0.5 * (new[1] + old[1])
    return 0.5 * (new[0] + old[0]), theta


def step_size(step: Array, covariance: Array) -> float:
    """Largest step (base,) of an iteration, in the deviations of the same iteration's covariance (base, base)."""
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    live = (step != 0.0) & (deviation > 0.0)
    return float(np.max(np.abs(step[live]) / deviation[live], initial=0.0))


def has_settled(change: float, tolerance: float, step: float) -> bool:
    """Whether iterations may stop: the torques changed by less than the tolerance, the document's rule (Janot,
    Vandanjon, Gautier, s. 3.4), and no parameter by more than a tenth of its stated deviation.

    The first alone stops where joints with small torques are still far from their end: all of a wrist's may be less
    than the tolerance of the whole arm's. What is left after a step is a fraction of it, as iterations contract.
    """
    return change <= tolerance and (step <= _SMALL_STEP or change <= _ROUNDING * tolerance)


def stopped(method: str, iteration: int, error: NotPossibleError) -> NotPossibleError:
    """The sentence of a simulation that failed, with the iteration it failed in."""
    return NotPossibleError(f"method '{method}' stopped at iteration {iteration}: {error}")


def _from_positions(samples: Samples, law: Controller) -> Reference:
    """A reference that makes the loop follow the filtered positions: qr = q + 2 zeta/omega dq + ddq/omega^2, the
    inverse of Janot, Vandanjon, Gautier, eq. 42."""
    if not isinstance(law, Poles):
        return Reference(samples.q, samples.dq, samples.ddq, samples.rate, float(samples.t[0]))
    omega, damping = (np.broadcast_to(np.asarray(x, dtype=float), (samples.dof,)) for x in (law.omega, law.damping))
    q = samples.q + 2.0 * damping / omega * samples.dq + samples.ddq / omega ** 2
    return Reference.of(q, rate=samples.rate, start=float(samples.t[0]))


def _with_lag(law: PD | PID | Cascade, problem: Problem, logs: Sequence[Log]) -> tuple[PD | PID | Cascade, list[str]]:
    """The law with the age of the speed it uses, as the log itself shows it.

    The logged torque says which speed the controller used: v = (kp (qr - q) + kd follow dqr - tau) / kd. A controller
    that takes it from positions sees it late by d, v = dq - d ddq, which moves the loop as d kd of inertia would.
    """
    if law.speed_lag or isinstance(law, PID):
        return law, []
    gains = law.law(problem.model.dof)
    lags = []
    for log, recording in zip(logs, problem.recordings, strict=True):
        rate = log.reference.rate
        cutoff = butter(4, 0.04, output="sos")
        q, tau = (at_times(log.reference.t, recording.t, x) for x in (recording.q, recording.tau))
        seen = (gains.kp * (log.reference.q - q) + gains.kd * gains.follow * log.reference.dq - tau) / gains.kd
        dq = np.gradient(q, 1.0 / rate, axis=0)
        ddq = np.gradient(dq, 1.0 / rate, axis=0)
        if len(q) < 200:
            return law, []
        v, dq, ddq = (sosfiltfilt(cutoff, x, axis=0)[50:-50] for x in (seen, dq, ddq))
        for j in range(q.shape[1]):
            x = np.column_stack([dq[:, j], -ddq[:, j]])
            (gain, lag), *_ = np.linalg.lstsq(x, v[:, j], rcond=None)
            miss = float(np.linalg.norm(v[:, j] - x @ [gain, lag])) / max(float(np.linalg.norm(v[:, j])), 1e-300)
            if miss < 0.02 and abs(gain - 1.0) < 0.02:
                lags.append(lag * rate)
    if len(lags) < len(logs) * problem.model.dof:
        return law, ["the logged torques are not those of the given law to 2 %: gains or reference may be others"]
    lag = float(np.clip(np.median(lags), 0.0, 100.0))
    if lag < 0.05:
        return law, []
    lag = round(2.0 * lag) / 2.0 if abs(2.0 * lag - round(2.0 * lag)) < 0.1 else lag
    return replace(law, speed_lag=lag), [f"the logged torques show that the controller's speed is {lag:.3g} ticks old"]


def _shown_inertia(law: PD | PID | Cascade, logs: Sequence[Log]) -> Array:
    """The inertia of each joint with which its linear loop turns the reference into the measured position best.

    q / qr = (kd follow s^2 + kp s + ki) / (J s^3 + kd s^2 + kp s + ki): friction and coupling are left out, so this is
    a scale for gains, no estimate. The joint's mean position has no part in it.
    """
    dof = logs[0].samples.dof
    gains = law.law(dof)
    found = np.ones(dof)
    for j in range(dof):
        kp, ki, kd, follow = (float(x[j]) for x in (gains.kp, gains.ki, gains.kd, gains.follow))

        def miss(log_inertia: float, j: int = j, kp: float = kp, ki: float = ki, kd: float = kd,
                 follow: float = follow) -> float:
            inertia, total = np.exp(log_inertia), 0.0
            for log in logs:
                rate = log.reference.rate
                b, a = bilinear([kd * follow, kp, ki] if ki else [kd * follow, kp],
                                [inertia, kd, kp, ki] if ki else [inertia, kd, kp], rate)
                x = log.reference.q[:, j]
                state = lfiltic(b, a, np.full(len(a), x[0]), np.full(len(b), x[0]))
                y, _ = lfilter(b, a, x, zi=state)
                there = np.interp(log.samples.t, log.reference.t, y)
                total += float(np.sum((there - log.samples.q[:, j]) ** 2))
            return total

        grid = np.log(kd / max(kp / max(kd, 1e-300), 1e-12)) + np.linspace(np.log(1e-3), np.log(1e3), 49)
        values = [miss(x) for x in grid]
        best = int(np.nanargmin(np.where(np.isfinite(values), values, np.inf)))
        fine = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], 21)
        found[j] = float(np.exp(fine[int(np.argmin([miss(x) for x in fine]))]))
    return found


def _settling(law: Controller, shown: Array | None) -> float:
    """Seconds until a wrong start is forgotten, from the slowest pole of the loop."""
    if isinstance(law, Poles):
        slow = np.asarray(law.omega, dtype=float) * np.minimum(1.0, np.asarray(law.damping, dtype=float))
        return float(_SETTLED / np.min(slow))
    if isinstance(law, PD | PID | Cascade) and shown is not None:
        gains = law.law(len(shown))
        slow_pole = [np.min(-np.roots([J, kd, kp]).real) for J, kd, kp in zip(shown, gains.kd, gains.kp, strict=True)]
        return float(_SETTLED / max(min(slow_pole), 1e-3))
    if isinstance(law, ComputedTorque):
        return float(_SETTLED / np.sqrt(np.min(np.asarray(law.kp, dtype=float))))
    return 0.5


def facts(loop: Loop, history: list[dict[str, Any]], seconds_dropped: float) -> dict[str, Any]:
    """What every closed-loop method says of its iterations."""
    return {"iterations": len(history), "converged": True, "history": history, "notes": list(loop.notes),
            "transient_dropped": seconds_dropped,
            "reference": "positions" if any(log.made_up for log in loop.logs) else "log"}
