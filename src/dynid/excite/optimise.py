"""excite: an exciting motion inside all limits, for a robot's controller."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.dynamics.threads import side_by_side, thread_count
from dynid.errors import DynidError, NotPossibleError
from dynid.excite.approach import approach
from dynid.excite.check import LimitReport, check
from dynid.excite.constraints import Constraint, SpaceLimit, TorqueLimit
from dynid.excite.criteria import Criterion
from dynid.excite.excitation import Excitation
from dynid.excite.family import Family, family
from dynid.excite.information import Information, magnitudes
from dynid.excite.limits import Limits
from dynid.excite.search import Problem, descend
from dynid.excite.sensitivity import smooth
from dynid.excite.starts import at_rest, calm, good_start, random_motion, safe_posture
from dynid.excite.trajectory import Trajectory
from dynid.model import LinearModel, Model, make_terms
from dynid.regression import BaseParameters, Regression, base_parameters
from dynid.robot import Robot
from dynid.robot.inertia import Array

Progress = Callable[[float, float], None]  # seconds so far, best value so far

_SAMPLES_A_WAVE = 40  # of the highest frequency
_FEWEST, _MOST = 160, 500
_AT_ONCE = 4  # starts of one round; fixed, so that the result does not depend on the number of threads
_SMOOTH = 0.015  # width of a smooth sign as a share of the top speed
_SHRINK = (1.0, 0.999, 0.995, 0.99, 0.98, 0.96, 0.92, 0.85, 0.7, 0.5, 0.35, 0.2, 0.1, 0.05, 0.02, 0.005, 0.001)


@dataclass(frozen=True, eq=False)
class _Found:
    """A motion that respects everything: its free numbers, trajectory, value and report."""

    z: Array
    trajectory: Trajectory
    value: float
    report: LimitReport


def excite(model: LinearModel | Robot, limits: Limits | None = None, *, duration: float = 20.0, harmonics: int = 5,
           kind: str = "fourier", period: float | None = None, rest: bool = True, knots: Array | None = None,
           pieces: int = 12, home: ArrayLike | None = None, criterion: str | Criterion = "condition",
           noise: Array | float | None = None, scale: Literal["prior"] | Array | None = None,
           known: Regression | None = None, nominal: ArrayLike | None = None, base: BaseParameters | None = None,
           budget: float | None = 30.0, rounds: int | None = None, seed: int = 0, rate: float = 100.0,
           start: Trajectory | None = None, threads: int | None = None, progress: Progress | None = None) -> Excitation:
    """The motion of a family that tells most about a model's base parameters and respects every limit.

    model: or a robot, with the terms its file lists. limits: the robot's own unless given. duration: s.
    kind: 'fourier' (harmonics, period), 'fourier+quintic' or 'bspline' (pieces or inner knots).
    rest: begins and ends at rest. home: a posture to come from and go back to by quintics, outside the duration.
    criterion: 'condition', 'condition+', 'frobenius', 'd', 'a', 'largest' or 'hadamard'.
    noise: deviation of each joint's torque (N m). scale: prior magnitudes of the base parameters, 'prior' for those of
    the nominal model; default 'prior' for 'a' and 'largest', none otherwise.
    known: earlier logs, to which the motion shall add most. nominal: parameters for the torque limits (default: the
    model's own, zero where unknown). start: a motion of the family to begin with.
    budget: seconds. rounds: of four starts each; with rounds and no budget the result depends on the seed alone.
    rate: of the log to come (Hz), for the expected deviations. progress(seconds, best value).
    """
    if isinstance(model, Robot):
        model = Model(model, make_terms(model, defaults=True))
    robot = model.robot if isinstance(model, Model) else None
    if limits is None:
        if robot is None:
            raise DynidError("a model without a robot has no limits of its own; give some, e.g. Limits(...)")
        limits = Limits.of(robot)
    if limits.dof != model.dof:
        raise DynidError(f"the limits are for {limits.dof} joints, the model has {model.dof}")
    if budget is None and rounds is None:
        raise DynidError("give a budget in seconds, a number of rounds, or both")
    began = time.monotonic()
    criterion = Criterion(criterion) if isinstance(criterion, str) else criterion
    base = base_parameters(model) if base is None else base
    if scale is None and criterion.name in ("a", "largest"):
        scale = "prior"
    scales = magnitudes(base) if isinstance(scale, str) else scale
    torque, unchecked = _torque_limit(model, base, limits, nominal)
    motions = _family(kind, limits, duration, harmonics, period, rest, knots, pieces)
    sharp = Information.of(model, base, noise=noise, scale=scales, known=known)
    problem = _problem(motions, sharp, criterion, limits, torque, harmonics, period)
    search = _Search(problem, sharp, torque, unchecked, rate, seed,
                     np.inf if budget is None else began + budget, began, progress)
    best = search.run(rounds, thread_count(threads), start)
    whole = best.trajectory if home is None else approach(best.trajectory, home, limits, torque)
    free = replace(limits, start=None, end=None)
    report = best.report if home is None else check(whole, free, torque, unchecked=unchecked)
    t = _log_times(best.trajectory, rate)
    motion = best.trajectory.at(t)
    return Excitation(
        trajectory=whole, core=best.trajectory, model=model, base=base, limits=limits, criterion=criterion.name,
        value=best.value, condition=_condition(model, base, best.trajectory, rate),
        deviations=sharp.deviations(motion.q, motion.dq, motion.ddq), noise=1.0 / sharp.weights, rate=rate,
        history=tuple(search.history), report=report, seed=seed, starts=search.starts,
        elapsed=time.monotonic() - began, interrupted=search.interrupted)


def _log_times(trajectory: Trajectory, rate: float) -> Array:
    """Times of the log over one run, the last instant left out because it may be the first again."""
    count = max(2, round(trajectory.duration * rate))
    return np.linspace(0.0, trajectory.duration, count, endpoint=False)


def _condition(model: LinearModel, base: BaseParameters, trajectory: Trajectory, rate: float) -> float:
    """Condition number of the unscaled, unweighted base regressor."""
    motion = trajectory.at(_log_times(trajectory, rate))
    s = np.linalg.svd(Information.of(model, base).factor(motion.q, motion.dq, motion.ddq), compute_uv=False)
    return float(s[0] / s[-1]) if s[-1] > 0 else np.inf


def _torque_limit(model: LinearModel, base: BaseParameters, limits: Limits,
                  nominal: ArrayLike | None) -> tuple[TorqueLimit | None, tuple[str, ...]]:
    """The nominal model against the torque limits, and what about it cannot be checked."""
    if not np.isfinite(limits.torque).any():
        return None, ()
    notes: tuple[str, ...] = ()
    if nominal is None:
        values = [p.nominal for p in model.parameters]
        bodies = [p.nominal is None for p in model.parameters if p.body is not None]
        if any(bodies) or all(v is None for v in values):
            return None, ("torque limits were not checked: the robot's source gives no inertias; "
                          "give nominal=, parameters to compute torques with",)
        missing = [p.name for p in model.parameters if p.nominal is None]
        if missing:
            notes = (f"torques were computed without {', '.join(missing[:4])}{' ..' if len(missing) > 4 else ''}, "
                     "whose values are not known",)
        theta = np.array([0.0 if v is None else v for v in values])
    else:
        theta = model.parameters.vector(nominal)
    return TorqueLimit(Information.of(model, base), base.reduce(theta), limits.torque, limits.names), notes


def _family(kind: str, limits: Limits, duration: float, harmonics: int, period: float | None, rest: bool,
            knots: Array | None, pieces: int) -> Family:
    if not (duration > 0 and np.isfinite(duration)):
        raise DynidError(f"a motion needs a duration above zero, got {duration}")
    if np.isfinite(limits.bandwidth):
        if kind != "fourier":
            raise DynidError(f"a bandwidth of {limits.bandwidth:g} Hz can only be kept by the family 'fourier', "
                             f"got '{kind}'")
        most = int(np.floor(limits.bandwidth * (period or duration) + 1e-9))
        if most < 1:
            raise NotPossibleError(f"a bandwidth of {limits.bandwidth:g} Hz leaves no harmonic of a period of "
                                   f"{period or duration:g} s: allow a longer period or a higher bandwidth")
        harmonics = min(harmonics, most)
    for j, name in enumerate(limits.names):
        if not (np.isfinite(limits.upper[j] - limits.lower[j]) or np.isfinite(limits.velocity[j])
                or np.isfinite(limits.acceleration[j])):
            raise DynidError(f"joint '{name}' has neither a range nor a limit of velocity or acceleration: nothing "
                             "bounds its motion, so give one of them")
    return family(kind, limits.dof, duration, harmonics=harmonics, period=period, rest=rest, start=limits.start,
                  end=limits.end, knots=knots, pieces=pieces)


def _problem(motions: Family, sharp: Information, criterion: Criterion, limits: Limits, torque: TorqueLimit | None,
             harmonics: int, period: float | None) -> Problem:
    runs = motions.duration / (period or motions.duration)
    waves = motions.null.shape[0] / 2 if motions.kind == "bspline" else harmonics * runs
    count = int(np.clip(_SAMPLES_A_WAVE * waves, _FEWEST, _MOST))
    t = np.linspace(0.0, motions.duration, count)
    speed = limits.velocity[np.isfinite(limits.velocity)]
    width = _SMOOTH * float(np.median(speed)) if len(speed) else 0.03
    gentle = smooth(sharp.layout.model, width)
    information = replace(sharp, layout=replace(sharp.layout, model=gentle))
    curved: list[Constraint] = []
    if torque is not None:
        curved.append(replace(torque, information=replace(torque.information,
                                                          layout=replace(torque.information.layout, model=gentle))))
    if limits.space is not None and len(limits.space.names):
        curved.append(SpaceLimit(limits.space))
    return Problem(motions, information, criterion, limits, tuple(curved), t)


class _Search:
    """Many starts side by side, the best motion so far, the clock."""

    def __init__(self, problem: Problem, sharp: Information, torque: TorqueLimit | None, unchecked: tuple[str, ...],
                 rate: float, seed: int, deadline: float, began: float, progress: Progress | None) -> None:
        self.problem, self.sharp, self.torque, self.unchecked = problem, sharp, torque, unchecked
        self.rate, self.seed, self.deadline, self.began, self.progress = rate, seed, deadline, began, progress
        self.history: list[tuple[float, float]] = []
        self.starts, self.running, self.interrupted = 0, 0, False
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.best_value = np.inf

    def stop(self) -> bool:
        return self.over.is_set() or time.monotonic() > self.deadline

    def run(self, rounds: int | None, threads: int, start: Trajectory | None) -> _Found:
        """Rounds of starts until the time is over; later rounds begin half their starts near the best so far."""
        problem = self.problem
        safe = safe_posture(problem, self.seed)
        base = calm(problem) if problem.limits.start is not None or problem.limits.end is not None else None
        best: _Found | None = None
        number = 0
        while (rounds is None or number < rounds) and (number == 0 or not self.stop()):
            near = None if best is None else best.z
            found: list[_Found | None] = [None] * _AT_ONCE

            def one(k: int, number: int = number, near: Array | None = near,
                    found: list[_Found | None] = found) -> None:
                given = start if number == 0 and k == 0 else None
                with self.lock:
                    self.running += 1
                try:
                    found[k] = self._one(number, k, near if k % 2 == 0 else None, safe, base, given)
                finally:
                    with self.lock:
                        self.running -= 1

            try:
                side_by_side(one, range(_AT_ONCE), threads)
            except KeyboardInterrupt:
                self.interrupted = True
                self.over.set()
                while self.running:  # each stops after its present step, and hands over what it has
                    time.sleep(0.005)
            for motion in found:
                if motion is not None and (best is None or motion.value < best.value):
                    best = motion
            number += 1
        if best is None:
            raise self._nothing(safe, base)
        return best

    def _one(self, number: int, k: int, near: Array | None, safe: Array, base: Array | None,
             given: Trajectory | None) -> _Found | None:
        """One start, followed to its end."""
        if self.stop() and (number, k) != (0, 0):
            return None
        problem = self.problem
        rng = np.random.default_rng([self.seed, number, k])
        if given is not None:
            z = self._inside(given, safe, base)
        elif near is None:
            z = good_start(problem, rng, safe, base)
        else:
            # Between two motions that respect the linear limits, all do.
            share = rng.choice([0.1, 0.2, 0.35])
            z = (1.0 - share) * near + share * random_motion(problem, rng, safe, base)
        last = z
        kept = z
        for point in descend(problem, z, self.stop):
            last = point.z
            if point.excess <= 1e-3:
                kept = point.z
        result = self._repaired(last, safe, base)
        if result is None and kept is not last:
            result = self._tighten(kept, safe, base)
        with self.lock:
            self.starts += 1
            if result is not None and result.value < self.best_value:
                self.best_value = result.value
                self.history.append((time.monotonic() - self.began, result.value))
                if self.progress is not None:
                    self.progress(*self.history[-1])
        return result

    def _repaired(self, z: Array, safe: Array, base: Array | None) -> _Found | None:
        """As `_tighten`, but what oversteps torque or space between the samples is searched again, more strictly."""
        problem, orders = self.problem, (64.0,)
        best = self._tighten(z, safe, base)
        for _ in range(3):
            report = self._check(problem.family.trajectory(z))
            curved = [u.excess for u in report.usages if u.kind in ("torque", "space")]
            if not problem.curved or max(curved, default=0.0) <= 0:
                break
            stricter = tuple(c.with_room(1.2 * max(curved) + 0.002) for c in problem.curved)
            problem = replace(problem, curved=stricter)
            for point in descend(problem, z, self.stop, orders, 25):
                z = point.z
            again = self._tighten(z, safe, base)
            if again is not None and (best is None or again.value < best.value):
                best = again
        return best

    def _check(self, trajectory: Trajectory) -> LimitReport:
        points = max(10 * len(self.problem.t), 5000)
        return check(trajectory, self.problem.limits, self.torque, points=points, unchecked=self.unchecked)

    def _inside(self, given: Trajectory, safe: Array, base: Array | None) -> Array:
        """A given motion as free numbers, drawn towards a calm one until it respects the linear limits."""
        problem = self.problem
        values = problem.family.functions(problem.t)[0]
        c = np.linalg.lstsq(values, given.at(problem.t).q, rcond=None)[0].T
        z, still = problem.family.free(c), self._still(safe, base)
        for share in _SHRINK:
            moved = still + share * (z - still)
            if problem.excess(problem.signals(moved)) <= 1e-9:
                return moved
        return still

    def _still(self, safe: Array, base: Array | None) -> Array:
        family = self.problem.family
        return family.free(np.outer(safe, family.centre)) if base is None else base

    def _tighten(self, z: Array, safe: Array, base: Array | None) -> _Found | None:
        """The motion drawn towards a calm one until every limit holds on the dense grid; None if it never does."""
        problem, family = self.problem, self.problem.family
        anchors = [self._still(safe, base)]
        if base is None:
            # Where the motion itself stands well is a better place to shrink to than anywhere else.
            q = np.ascontiguousarray(problem.signals(z)[0])
            middle = 0.5 * (q.min(axis=0) + q.max(axis=0))
            posture = q[int(np.argmin(at_rest(problem, q)))] if problem.curved else middle
            anchors.insert(0, family.free(np.outer(posture, family.centre)))
        for anchor in anchors:
            for share in _SHRINK:
                moved = anchor + share * (z - anchor)
                trajectory = family.trajectory(moved)
                report = self._check(trajectory)
                if report.ok:
                    return _Found(moved, trajectory, self.value(trajectory), report)
        return None

    def value(self, trajectory: Trajectory) -> float:
        """The criterion itself, with hard signs and the samples of the log to come."""
        motion = trajectory.at(_log_times(trajectory, self.rate))
        return self.problem.criterion(self.sharp.matrix(self.sharp.entries(motion.q, motion.dq, motion.ddq)))[0]

    def _nothing(self, safe: Array, base: Array | None) -> NotPossibleError:
        trajectory = self.problem.family.trajectory(self._still(safe, base))
        wrong = self._check(trajectory).violated
        if wrong:
            return NotPossibleError(f"no motion of {trajectory.duration:g} s respects all limits, even the calmest one "
                                    f"breaks one: {wrong[0]}; relax it, or change the postures or the duration")
        return NotPossibleError("no exciting motion was found inside all limits in the time given; allow more time or "
                                "relax the limits of torque and space")
