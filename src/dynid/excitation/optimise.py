"""excite: an exciting motion inside all limits, for a robot's controller."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError
from dynid.excitation.approach import approach
from dynid.excitation.check import LimitReport, check
from dynid.excitation.criteria import Criterion
from dynid.excitation.design import Design, design
from dynid.excitation.excitation import Excitation
from dynid.excitation.family import with_random_knots
from dynid.excitation.limits import Limits
from dynid.excitation.search import Problem, descend
from dynid.excitation.starts import at_rest, calm, good_start, random_motion, safe_posture
from dynid.excitation.trajectory import Trajectory
from dynid.model import LinearModel
from dynid.regression import BaseParameters, Regression
from dynid.robot import Robot
from dynid.threads import side_by_side, thread_count

Progress = Callable[[float, float], None]  # seconds so far, best value so far

_AT_ONCE = 4  # starts of one round; fixed, so that the result does not depend on the number of threads
_SHRINK = (1.0, 0.999, 0.995, 0.99, 0.98, 0.96, 0.92, 0.85, 0.7, 0.5, 0.35, 0.2, 0.1, 0.05, 0.02, 0.005, 0.001)


@dataclass(frozen=True, eq=False)
class _Found:
    """A motion that respects everything: its free numbers, trajectory, value and report."""

    z: Array
    trajectory: Trajectory
    value: float
    report: LimitReport
    ground: _Ground


@dataclass(frozen=True, eq=False)
class _Ground:
    """What a start stands on: the problem, a safe posture (dof,), and the calm motion where postures are given."""

    problem: Problem
    safe: Array
    base: Array | None

    @property
    def still(self) -> Array:
        """Free numbers of a motion that hardly moves."""
        family = self.problem.family
        return family.free(np.outer(self.safe, family.centre)) if self.base is None else self.base


def excite(model: LinearModel | Robot, limits: Limits | None = None, *, duration: float = 20.0, harmonics: int = 5,
           kind: str = "fourier", period: float | None = None, rest: bool = True,
           knots: Array | Literal["free"] | None = None, pieces: int = 12, home: ArrayLike | None = None,
           criterion: str | Criterion = "condition", noise: Array | float | None = None,
           scale: Literal["prior"] | Array | None = None, known: Regression | None = None,
           nominal: ArrayLike | None = None, base: BaseParameters | None = None, budget: float | None = 30.0,
           rounds: int | None = None, seed: int = 0, rate: float = 100.0, start: Trajectory | None = None,
           threads: int | None = None, progress: Progress | None = None) -> Excitation:
    """The motion of a family that tells most about a model's base parameters and respects every limit.

    model: or a robot, with the terms its file lists. limits: the robot's own unless given. duration: s.
    kind: 'fourier' (harmonics, period), 'fourier+quintic' or 'bspline' (pieces, inner knots, or 'free' knots).
    rest: begins and ends at rest. home: a posture to come from and go back to by quintics, outside the duration.
    criterion: 'condition', 'condition+', 'frobenius', 'd', 'a', 'largest' or 'hadamard'.
    noise: deviation of each joint's torque (N m). scale: prior magnitudes of the base parameters, 'prior' for those of
    the nominal model; default 'prior' for 'a' and 'largest', none otherwise.
    known: earlier logs, to which the motion shall add most. nominal: parameters for the torque limits (default: the
    model's own, zero where unknown). start: a motion of the family to begin with.
    budget: seconds. rounds: of four starts each; with rounds and no budget the result depends on the seed alone.
    rate: of the log to come (Hz), for the expected deviations. progress(seconds, best value).
    """
    if budget is None and rounds is None:
        raise DynidError("give a budget in seconds, a number of rounds, or both")
    began = time.monotonic()
    wanted = design(model, limits, duration=duration, harmonics=harmonics, kind=kind, period=period, rest=rest,
                    knots=knots, pieces=pieces, criterion=criterion, noise=noise, scale=scale, known=known,
                    nominal=nominal, base=base, rate=rate)
    search = _Search(wanted, seed, np.inf if budget is None else began + budget, began, progress)
    best = search.run(rounds, thread_count(threads), start)
    whole, report = best.trajectory, best.report
    if home is not None:
        whole = approach(whole, home, wanted.limits, wanted.torque)
        free = replace(wanted.limits, start=None, end=None)
        report = check(whole, free, wanted.torque, points=10000, unchecked=wanted.unchecked)
    return Excitation(
        trajectory=whole, core=best.trajectory, model=wanted.model, base=wanted.base, limits=wanted.limits,
        criterion=wanted.problem.criterion.name, value=best.value, condition=wanted.condition(best.trajectory),
        deviations=wanted.deviations(best.trajectory), noise=1.0 / wanted.sharp.weights, rate=rate,
        history=tuple(search.history), report=report, seed=seed, starts=search.starts,
        elapsed=time.monotonic() - began, interrupted=search.interrupted)


def _ground(problem: Problem, safe: Array) -> _Ground:
    given = problem.limits.start is not None or problem.limits.end is not None
    return _Ground(problem, safe, calm(problem) if given else None)


def _inside(given: Trajectory, ground: _Ground) -> Array:
    """A given motion as free numbers, drawn towards a calm one until it respects the linear limits."""
    problem, still = ground.problem, ground.still
    c = np.linalg.lstsq(problem.family.functions(problem.t)[0], given.at(problem.t).q, rcond=None)[0].T
    z = problem.family.free(c)
    for share in _SHRINK:
        moved = still + share * (z - still)
        if problem.excess(problem.signals(moved)) <= 1e-9:
            return moved
    return still


class _Search:
    """Many starts side by side, the best motion so far, the clock."""

    def __init__(self, wanted: Design, seed: int, deadline: float, began: float, progress: Progress | None) -> None:
        self.wanted, self.seed, self.deadline, self.began, self.progress = wanted, seed, deadline, began, progress
        self.history: list[tuple[float, float]] = []
        self.starts, self.running, self.interrupted = 0, 0, False
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.found: dict[tuple[int, int], _Found] = {}  # by round and start

    def stop(self) -> bool:
        return self.over.is_set() or time.monotonic() > self.deadline

    def run(self, rounds: int | None, threads: int, start: Trajectory | None) -> _Found:
        """Rounds of starts until the time is over; later rounds begin half their starts near the best so far."""
        ground = _ground(self.wanted.problem, safe_posture(self.wanted.problem, self.seed))
        number = 0
        try:
            while (rounds is None or number < rounds) and (number == 0 or not self.stop()):
                self._round(number, self.best, ground, threads, start)
                number += 1
        except KeyboardInterrupt:
            self.interrupted = True
            self.over.set()
            while self.running:  # each stops after its present step, and hands over what it has
                time.sleep(0.005)
        best = self.best
        if best is None:
            raise KeyboardInterrupt if self.interrupted else self._nothing(ground)
        return best

    @property
    def best(self) -> _Found | None:
        """The best motion so far; the earliest start where two are equal, whichever thread was first."""
        with self.lock:
            return self.found[min(self.found, key=lambda key: (self.found[key].value, key))] if self.found else None

    def _round(self, number: int, near: _Found | None, ground: _Ground, threads: int, start: Trajectory | None) -> None:
        def one(k: int) -> None:
            with self.lock:
                self.running += 1
            try:
                given = start if (number, k) == (0, 0) else None
                self._one(number, k, near if k % 2 == 0 else None, ground, given)
            finally:
                with self.lock:
                    self.running -= 1

        side_by_side(one, range(_AT_ONCE), threads)

    def _one(self, number: int, k: int, near: _Found | None, ground: _Ground, given: Trajectory | None) -> None:
        """One start, followed to its end."""
        if self.stop() and (number, k) != (0, 0):
            return
        rng = np.random.default_rng([self.seed, number, k])
        if self.wanted.free_knots and (number, k) != (0, 0):
            ground, given = self._other_knots(near, ground, rng), near.trajectory if near is not None else None
            near = None
        problem = ground.problem
        if given is not None:
            z = _inside(given, ground)
        elif near is None:
            z = good_start(problem, rng, ground.safe, ground.base)
        else:
            # Between two motions that respect the linear limits, all do.
            share = rng.choice([0.1, 0.2, 0.35])
            z = (1.0 - share) * near.z + share * random_motion(problem, rng, ground.safe, ground.base)
        last = kept = z
        for point in descend(problem, z, self.stop):
            last = point.z
            if point.excess <= 1e-3:
                kept = point.z
        result = self._repaired(last, ground)
        if result is None and kept is not last:
            result = self._tighten(kept, ground)
        with self.lock:
            self.starts += 1
            if result is None:
                return
            self.found[number, k] = result
            if not self.history or result.value < self.history[-1][1]:
                self.history.append((time.monotonic() - self.began, result.value))
                if self.progress is not None:
                    self.progress(*self.history[-1])

    def _other_knots(self, near: _Found | None, ground: _Ground, rng: np.random.Generator) -> _Ground:
        """The same question on other knots: any, or a little off those of the best so far."""
        problem, share = (ground.problem, 1.0) if near is None else (near.ground.problem, 0.15)
        limits = problem.limits
        try:
            motions = with_random_knots(problem.family, rng, limits.start, limits.end, share)
            return _ground(replace(problem, family=motions), ground.safe)
        except NotPossibleError:  # these knots leave no way between the given postures
            return ground

    def _repaired(self, z: Array, ground: _Ground) -> _Found | None:
        """As `_tighten`, but what oversteps torque or space between the samples is searched again, more strictly."""
        problem, orders = ground.problem, (64.0,)
        best = self._tighten(z, ground)
        for _ in range(3):
            report = self.wanted.check(problem.family.trajectory(z))
            curved = [u.excess for u in report.usages if u.kind in ("torque", "space")]
            if not problem.curved or max(curved, default=0.0) <= 0:
                break
            stricter = tuple(c.with_room(1.2 * max(curved) + 0.002) for c in problem.curved)
            problem = replace(problem, curved=stricter)
            for point in descend(problem, z, self.stop, orders, 25):
                z = point.z
            again = self._tighten(z, ground)
            if again is not None and (best is None or again.value < best.value):
                best = again
        return best

    def _tighten(self, z: Array, ground: _Ground) -> _Found | None:
        """The motion drawn towards a calm one until every limit holds on the dense grid; None if it never does."""
        problem, family = ground.problem, ground.problem.family
        anchors = [ground.still]
        if ground.base is None:
            # Where the motion itself stands well is a better place to shrink to than anywhere else.
            q = np.ascontiguousarray(problem.signals(z)[0])
            middle = 0.5 * (q.min(axis=0) + q.max(axis=0))
            posture = q[int(np.argmin(at_rest(problem, q)))] if problem.curved else middle
            anchors.insert(0, family.free(np.outer(posture, family.centre)))
        for anchor in anchors:
            for share in _SHRINK:
                moved = anchor + share * (z - anchor)
                trajectory = family.trajectory(moved)
                report = self.wanted.check(trajectory)
                if report.ok:
                    return _Found(moved, trajectory, self.wanted.value(trajectory), report, ground)
        return None

    def _nothing(self, ground: _Ground) -> NotPossibleError:
        trajectory = ground.problem.family.trajectory(ground.still)
        wrong = self.wanted.check(trajectory).violated
        if wrong:
            return NotPossibleError(f"no motion of {trajectory.duration:g} s respects all limits, even the calmest one "
                                    f"breaks one: {wrong[0]}; relax it, or change the postures or the duration")
        return NotPossibleError("no exciting motion was found inside all limits in the time given; allow more time or "
                                "relax the limits of torque and space")
