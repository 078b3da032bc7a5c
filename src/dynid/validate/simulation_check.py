"""Validation by simulation: a log is compared with the simulated motion of the estimate, with or without feedback."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Estimate
from dynid.findings import Note
from dynid.model import complete, least_inertia
from dynid.model.completion import can_compile
from dynid.output_fields import output_fields
from dynid.plain import plain
from dynid.quantities import percent_text
from dynid.recording import Recording, Samples
from dynid.recording.preparation.selection import AT_REST
from dynid.robot import numbered_joints
from dynid.signals import at_times
from dynid.validate.words import joint_label

if TYPE_CHECKING:
    from dynid.simulation import Controller

Mode = Literal["torque-driven", "closed-loop"]

HORIZON = 0.5  # s
_MAX_STEP = 1e-3  # s: longest integration step; light joints with much friction need no longer one
_MAX_STEPS = 100_000  # integration steps for all logs, about half a second for seven joints
_STEPS_PER_WINDOW_START = 100  # steps that take as long as starting a window
_STEPS_PER_INTERPRETED_START = 2_000  # the same for a model simulated in Python
_START_ROWS = 20  # rows that determine the initial state of a log
_INERTIA_POSTURES = 300  # postures of a log at which the inertia matrix is tested
# Smallest over largest eigenvalue of an inertia matrix below which it is numerically singular.
_SINGULAR_INERTIA = 1e-12


@dataclass(frozen=True, eq=False)
class ResimulatedLog:
    """A log and its simulation.

    Attributes:
        mode: torque-driven or closed loop.
        t, q, simulated_q: (rows,), s, and (rows, dof), measured and simulated positions.
        tau, simulated_tau: (rows, dof), measured and simulated torques.
        windows: (k, 2), row ranges of simulations without correction by the log.
        joints: names of the joints.
        possible: number of windows of the log; for a long log only some of them are simulated, evenly spread.
        reached: simulated share of the rows; below 1 if a simulation ended early, for the given `reason`.
    """

    mode: Mode
    t: Array
    q: Array
    simulated_q: Array
    tau: Array
    simulated_tau: Array
    windows: Array
    joints: tuple[str, ...]
    possible: int = 1
    reached: float = 1.0
    reason: Note | None = None

    @property
    def position_rms(self) -> Array:
        """Root mean square of measured minus simulated position (dof,), rad or m."""
        return np.sqrt(np.mean((self.q - self.simulated_q) ** 2, axis=0))

    @property
    def motion(self) -> Array:
        """Root mean square of each joint's own motion about its mean (dof,), rad or m."""
        return np.sqrt(np.mean((self.q - self.q.mean(axis=0)) ** 2, axis=0))

    @property
    def position_error(self) -> Array:
        """Root mean square position error in percent of each joint's motion (dof,); nan for a joint at rest."""
        moves = np.ptp(self.q, axis=0) > AT_REST
        return np.where(moves, 100.0 * self.position_rms / np.where(moves, self.motion, 1.0), np.nan)

    @property
    def total_error(self) -> float:
        """Root mean square of the position errors of the joints that move, percent; nan if none does."""
        known = self.position_error[np.isfinite(self.position_error)]
        return float(np.sqrt(np.mean(known ** 2))) if len(known) else np.nan

    @property
    def torque_error(self) -> float:
        """100 |tau - simulated| / |tau| over all joints, percent; 0 for simulation with the measured torques."""
        size = float(np.linalg.norm(self.tau))
        return 100.0 * float(np.linalg.norm(self.tau - self.simulated_tau)) / size if size > 0 else 0.0

    @property
    def torque_error_per_joint(self) -> Array:
        """Torque error of each joint (dof,), percent; nan for a joint without torque."""
        size, off = (np.linalg.norm(x, axis=0) for x in (self.tau, self.tau - self.simulated_tau))
        return np.where(size > 0, 100.0 * off / np.where(size > 0, size, 1.0), np.nan)


@dataclass(frozen=True, eq=False)
class SimulationCheck:
    """Simulation of one log, under its torques or in closed loop.

    Attributes:
        source, mode: name of the log, and kind of simulation.
        horizon: time between restarts of a torque-driven simulation, s.
        log: the simulated log, or None if it could not be simulated.
        reason: why the log could not be simulated or some windows ended early; None if all succeeded.
        notes: sentences on the control law that follow from the log.
    """

    source: str
    mode: Mode
    horizon: float | None
    log: ResimulatedLog | None
    reason: Note | None = None
    notes: tuple[Note, ...] = ()

    @output_fields(source=str, mode=str, horizon=float | None, windows=int, windows_possible=int | None,
                   reached=float, reason=Note | None, notes=list[Note], position_error=float | None,
                   position_error_per_joint=list[float | None] | None,
                   position_rms_per_joint=list[float | None] | None, torque_error=float | None,
                   torque_error_per_joint=list[float | None] | None)
    def to_dict(self) -> dict[str, Any]:
        """Return the simulation as plain data for JSON, with the same keys whether it succeeded or not."""
        log, driven = self.log, None if self.mode == "torque-driven" else self.log  # measured torques have no error
        return plain({
            "source": self.source, "mode": self.mode, "horizon": self.horizon,
            "windows": 0 if log is None else len(log.windows),
            "windows_possible": None if log is None else log.possible, "reached": 0.0 if log is None else log.reached,
            "reason": self.reason, "notes": self.notes, "position_error": None if log is None else log.total_error,
            "position_error_per_joint": None if log is None else log.position_error,
            "position_rms_per_joint": None if log is None else log.position_rms,
            "torque_error": None if driven is None else driven.torque_error,
            "torque_error_per_joint": None if driven is None else driven.torque_error_per_joint})


def simulation_checks(estimate: Estimate, logs: Sequence[tuple[Sequence[Samples], Recording | None]], *,
                      horizon: float = HORIZON, controller: Controller | None = None) -> tuple[SimulationCheck, ...]:
    """Simulate every log under its own torques and, if a control law is given, in closed loop along its reference.

    Each of `logs` is a pair: the samples of a log, and its recording or None. For a log that cannot be simulated, the
    result contains the reason. Of a long log, as many windows are simulated as take about half a second.
    """
    steps = _MAX_STEPS if can_compile(estimate.model) else _STEPS_PER_INTERPRETED_START
    found = []
    for parts, recording in logs:
        source = parts[0].source
        try:
            per_window = horizon * max(parts[0].rate, 1.0 / _MAX_STEP) + _STEPS_PER_WINDOW_START
            log = torque_driven(estimate, parts, horizon=horizon, most=max(1, int(steps / len(logs) / per_window)))
            found.append(SimulationCheck(source, "torque-driven", horizon, log, log.reason))
        except (ModelError, NotPossibleError) as error:
            found.append(SimulationCheck(source, "torque-driven", horizon, None, Note(error.code, str(error))))
        if controller is None:
            continue
        try:
            if recording is None:
                raise NotPossibleError("the log itself is not available, so its closed loop cannot be simulated",
                                       "give the recording in addition to the samples", "no-recording")
            if recording.reference is None:
                raise NotPossibleError("the log has no reference for the controller",
                                       "map its columns with --set 'log.reference=[...]'", "no-reference")
            # A velocity that is measured d seconds late acts as an inertia smaller by d kd: 8.6 of 95 kg on the EMPS.
            # Without this correction, a carriage that is too light would reproduce the log best.
            from dynid.estimate.closed_loop.speed_lag import law_of_log

            law, notes = law_of_log(controller, recording)
            log = closed_loop(estimate, recording, law)
            found.append(SimulationCheck(source, "closed-loop", None, log, notes=notes))
        except (ModelError, NotPossibleError) as error:
            found.append(SimulationCheck(source, "closed-loop", None, None, Note(error.code, str(error))))
    return tuple(found)


def _refuse_indefinite(estimate: Estimate, q: Array) -> None:
    """Raise an error if the inertia matrix is indefinite at the given postures (rows, dof).

    Torques determine the inertia matrix, so base parameters suffice.
    """
    few = q[:: max(1, len(q) // _INERTIA_POSTURES)]
    model = complete(estimate.model)
    shares, directions = least_inertia(model.inertia_matrix(estimate.full, few))
    bad = float(np.mean(shares <= _SINGULAR_INERTIA))
    if not bad:
        return
    share = "all" if bad == 1.0 else percent_text(max(100.0 * bad, 0.1))
    joint = int(np.argmax(np.abs(directions[np.argmin(shares)])))
    name = joint_label(model.joint_names[joint])
    raise NotPossibleError(f"the inertia matrix is not positive definite in {share} of the log's postures, mostly for "
                           f"{name}, so these parameters cannot be simulated",
                           "use a physically consistent method, such as --method pc-wls", "inertia-indefinite")


def closed_loop(estimate: Estimate, recording: Recording, controller: Controller, *, step: float | str | None = None
                ) -> ResimulatedLog:
    """Simulate the estimate under the machine's control law along the log's reference, from the measured initial state.

    step: integration step, s, or "adaptive".
    """
    from dynid.simulation import Reference, simulate

    reference = Reference.from_recording(recording)
    _refuse_indefinite(estimate, recording.q)
    run = simulate(estimate.model, estimate.full, controller, reference, start=_start(recording),
                   step=min(_MAX_STEP, 1.0 / reference.rate) if step is None else step)
    q, tau = (at_times(recording.t, run.t, x) for x in (run.q, run.tau))
    return ResimulatedLog("closed-loop", recording.t, recording.q, q, recording.tau, tau,
                        np.array([[0, len(recording)]]), recording.joints or numbered_joints(recording.dof))


def torque_driven(estimate: Estimate, samples: Samples | Sequence[Samples], *, horizon: float = HORIZON,
                  most: int | None = None) -> ResimulatedLog:
    """Simulate the estimate under the measured torques, restarted from the filtered state every `horizon` seconds.

    Without feedback every error grows, that of gravity fastest. A short horizon distinguishes good from bad parameters;
    with a long one every arm drifts (Lomakin, Deutscher, fig. 3 uses the whole motion).

    Args:
        estimate: the estimate.
        samples: samples of one log, or of its pieces.
        horizon: time between restarts, s.
        most: number of windows to simulate, spread evenly over the log; default: all.
    """
    parts = (samples,) if isinstance(samples, Samples) else tuple(samples)
    spans = [(part, *_inside(part, int(start), int(stop))) for part in parts for start, stop in part.segments]
    if not spans:
        raise NotPossibleError("there are no samples from which a simulation could start; give a "
                               "log", code="no-samples")
    silent = sorted({name for part in parts for name in part.unmeasured})
    if silent:
        raise NotPossibleError(f"the torque of {', '.join(silent)} is not measured, so the "
                               "log cannot be simulated", code="torque-unmeasured")
    if not np.isfinite(horizon) or horizon <= 0:
        raise ModelError(f"the horizon of a simulation must be positive, got {horizon:g} s",
                         code="horizon-not-positive")
    longest = max((stop - start) / part.rate for part, start, stop in spans)
    if horizon > longest:
        raise ModelError(f"a horizon of {horizon:g} s is longer than the log, whose longest part without a gap has "
                         f"{longest:.3g} s", "give a shorter horizon", "horizon-too-long")
    windows = []
    for part, start, stop in spans:
        length = round(horizon * part.rate)
        if length < 2:
            raise ModelError(f"a horizon of {horizon:g} s is shorter than two samples at {part.rate:.4g} Hz; use a "
                             "longer one",
                             code="horizon-too-short")
        windows += [(part, first, min(first + length, stop)) for first in range(start, stop - 1, length)]
    _refuse_indefinite(estimate, np.concatenate([part.q for part in parts]))
    tried = windows
    if most is not None and most < len(windows):
        tried = [windows[k] for k in np.unique(np.linspace(0, len(windows) - 1, max(most, 1)).round().astype(int))]
    done, rows = [], 0
    broken: list[NotPossibleError] = []
    for (part, first, last), found in zip(tried, _simulated(estimate, tried), strict=True):
        rows += last - first
        if isinstance(found, NotPossibleError):
            broken.append(found)
        else:
            done.append((part, first, last, found))
    if not done:
        other = "" if estimate.method.startswith("pc-") else " or --method pc-wls"
        raise NotPossibleError(f"no window of {horizon:g} s could be simulated: {broken[0].reason}",
                               f"try a shorter horizon{other}", broken[0].code)
    ends = np.cumsum([0, *(last - first for _, first, last, _ in done)])
    t, q, tau = (np.concatenate([getattr(part, name)[first:last] for part, first, last, _ in done])
                 for name in ("t", "q", "tau"))
    reason = None if not broken else Note(
        "windows-broke-off", f"{len(broken)} of {len(tried)} windows of {horizon:g} s were aborted and are not "
                             f"counted: {broken[0].reason}; a shorter horizon keeps more windows",
        {"broken": len(broken), "tried": len(tried)})
    return ResimulatedLog("torque-driven", t, q, np.concatenate([run for *_, run in done]), tau, tau,
                        np.column_stack([ends[:-1], ends[1:]]), parts[0].joints or numbered_joints(parts[0].dof),
                        len(windows), float(ends[-1] / rows), reason)


def _simulated(estimate: Estimate, windows: Sequence[tuple[Samples, int, int]]) -> Iterator[Array | NotPossibleError]:
    """Yield simulated positions (rows, dof) of each window from its first measured state, or an error."""
    from dynid.simulation import Reference, TorqueDriven
    from dynid.simulation.simulation import simulate_windows

    def drive(part: Samples, first: int, last: int) -> tuple[TorqueDriven, Reference, Array]:
        rows = slice(first, last)
        # A torque sampled at both ends of an interval acts inside it as their mean.
        torque = part.tau[rows].copy()
        torque[:-1] = 0.5 * (torque[:-1] + torque[1:])
        begin = int(part.segments[np.searchsorted(part.segments[:, 0], first, side="right") - 1, 0])
        return TorqueDriven(torque), Reference(part.q[rows], part.dq[rows], part.ddq[rows], rate=part.rate,
                                               start=float(part.t[first])), part.q[begin:first]

    for rate, own in groupby(windows, key=lambda window: window[0].rate):
        for found in simulate_windows(estimate.model, estimate.full, (drive(*window) for window in own),
                                      step=min(_MAX_STEP, 1.0 / rate)):
            yield found if isinstance(found, NotPossibleError) else found.q


def _start(recording: Recording) -> Array | None:
    """Return initial position and velocity (2, dof) of a log that does not start on its reference, from a parabola
    through the first rows; None if it starts on the reference within their scatter, or is too short."""
    t, q = recording.t[:_START_ROWS] - recording.t[0], recording.q[:_START_ROWS]
    if len(t) < _START_ROWS or recording.reference is None:
        return None
    parabola = np.polynomial.polynomial.polyfit(t, q, 2)
    scatter = np.std(q - np.polynomial.polynomial.polyvander(t, 2) @ parabola, axis=0)
    off = np.abs(recording.q[0] - recording.reference[0])
    return None if np.all(off <= 3.0 * scatter + 1e-9) else parabola[:2]


def _inside(part: Samples, start: int, stop: int) -> tuple[int, int]:
    """Return the row range of a segment without the unused rows at its ends, where filters are least accurate."""
    used = np.flatnonzero(part.keep[start:stop].any(axis=1))
    return (start + int(used[0]), start + int(used[-1]) + 1) if len(used) else (start, stop)
