"""Parallel multi-start optimisation within a time budget; the result is the best motion within all limits."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.excitation.limits.limit_check import LimitReport
from dynid.excitation.search.experiment_design import BestSoFar, ExperimentDesign, Search
from dynid.excitation.search.sequential import descend
from dynid.excitation.search.starts import Anchor, best_random_motion, random_motion, safe_posture
from dynid.excitation.trajectories.families import ConstrainedFamily, Splines
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.threads import side_by_side, thread_count

_AT_ONCE = 4  # starts per round, independent of the number of threads so that results are reproducible
_AMPLITUDE_SHARES = (
    1.0, 0.999, 0.995, 0.99, 0.98, 0.96, 0.92, 0.85, 0.7, 0.5, 0.35, 0.2, 0.1, 0.05, 0.02, 0.005, 0.001)
_LAST_ORDER = (64.0,)  # order of the smooth approximation in the final correction


@dataclass(frozen=True, eq=False)
class FeasibleMotion:
    """A motion that respects every limit.

    Attributes:
        z, trajectory: free coefficients (dof, k) and trajectory of the motion.
        value: value of the criterion.
        report: use of every limit.
        anchor: feasible posture or motion from which the search started.
    """

    z: Array
    trajectory: Trajectory
    value: float
    report: LimitReport
    anchor: Anchor


class MultiStart:
    """Multi-start search for a motion: its starts, the best motion so far, and the elapsed time."""

    def __init__(self, design: ExperimentDesign, options: Search, began: float) -> None:
        self.design, self.options, self.began = design, options, began
        self.deadline = np.inf if options.budget is None else began + options.budget
        self.history: list[tuple[float, float]] = []
        self.starts, self.running, self.interrupted = 0, 0, False
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.found: dict[tuple[int, int], FeasibleMotion] = {}  # by round and start

    def stop(self) -> bool:
        return self.over.is_set() or time.monotonic() > self.deadline

    def run(self) -> FeasibleMotion:
        """Return the best motion of several rounds of starts within the time budget; in later rounds, half of the
        starts are near the best motion so far."""
        problem, rounds = self.design.problem, self.options.rounds
        anchor = Anchor.from_problem(problem, safe_posture(problem, self.options.seed))
        number = 0
        try:
            while (rounds is None or number < rounds) and (number == 0 or not self.stop()):
                self._round(number, self.best, anchor)
                number += 1
        except KeyboardInterrupt:
            self.interrupted = True
            self.over.set()
            while self.running:  # each start ends after its current step
                time.sleep(0.005)
        best = self.best
        if best is None:
            raise KeyboardInterrupt if self.interrupted else self._not_possible(anchor)
        return best

    @property
    def best(self) -> FeasibleMotion | None:
        """Best motion so far, or None; for equal values that of the earliest start, independent of the threads."""
        with self.lock:
            return self.found[min(self.found, key=lambda key: (self.found[key].value, key))] if self.found else None

    def _round(self, number: int, near: FeasibleMotion | None, anchor: Anchor) -> None:
        def one(k: int) -> None:
            with self.lock:
                self.running += 1
            try:
                self._follow(number, k, near if k % 2 == 0 else None, anchor)
            finally:
                with self.lock:
                    self.running -= 1

        side_by_side(one, range(_AT_ONCE), thread_count(self.options.threads))

    def _follow(self, number: int, k: int, near: FeasibleMotion | None, anchor: Anchor) -> None:
        """Run the optimisation of start k in round `number`; near: a motion near which the optimisation starts, or
        None."""
        if self.stop() and (number, k) != (0, 0):
            return
        rng = np.random.default_rng([self.options.seed, number, k])
        anchor, z = self._start((number, k) == (0, 0), near, anchor, rng)
        last = feasible = z
        for iterate in descend(anchor.problem, z, self.stop):
            last = iterate.z
            if iterate.violation <= 1e-3:
                feasible = iterate.z
        result = self._corrected(last, anchor)
        if result is None and feasible is not last:
            result = self._shrunk(feasible, anchor)
        with self.lock:
            self.starts += 1
            if result is None:
                return
            self.found[number, k] = result
            if not self.history or result.value < self.history[-1][1]:
                self.history.append((time.monotonic() - self.began, result.value))
                self._tell(result)

    def _tell(self, found: FeasibleMotion) -> None:
        """Pass a better motion to the callbacks of the caller."""
        design, options = self.design, self.options
        if options.progress is not None:
            options.progress(*self.history[-1])
        if options.best is not None:
            options.best(BestSoFar(*self.history[-1], design.condition(found.trajectory), design.base,
                                   design.standard_errors(found.trajectory)))

    def _start(self, first: bool, near: FeasibleMotion | None, anchor: Anchor,
               rng: np.random.Generator) -> tuple[Anchor, Array]:
        """Return an anchor and initial free coefficients (dof, k) of a start; first: whether it is the first start of
        the search. near: a motion near which to start, or None."""
        given = self.options.start if first else None
        family = self.design.problem.family.family
        if isinstance(family, Splines) and family.free_knots and not first:
            anchor, given = self._other_knots(near, anchor, rng), near.trajectory if near is not None else None
            near = None
        if given is not None:
            return anchor, _projected(given, anchor)
        if near is None:
            return anchor, best_random_motion(anchor, rng)
        # The set of motions within the linear limits is convex.
        share = rng.choice([0.1, 0.2, 0.35])
        return anchor, (1.0 - share) * near.z + share * random_motion(anchor, rng)

    def _other_knots(self, near: FeasibleMotion | None, anchor: Anchor, rng: np.random.Generator) -> Anchor:
        """Return an anchor with other spline knots: random ones, or knots close to those of the motion `near`."""
        problem, share = (anchor.problem, 1.0) if near is None else (near.anchor.problem, 0.15)
        limits, splines = problem.limits, problem.family.family
        assert isinstance(splines, Splines)  # only splines have knots
        try:
            motions = ConstrainedFamily.from_family(splines.with_random_knots(rng, share), limits.dof, limits.start,
                                                    limits.end)
            return Anchor.from_problem(replace(problem, family=motions), anchor.posture)
        except NotPossibleError:  # with these knots no motion connects the given postures
            return anchor

    def _corrected(self, z: Array, anchor: Anchor) -> FeasibleMotion | None:
        """Return a motion within all limits from free coefficients z (dof, k), None on failure. Violations of torque or
        workspace limits between samples are corrected by a further optimisation with stricter limits."""
        problem = anchor.problem
        best = self._shrunk(z, anchor)
        for _ in range(3):
            report = self.design.check(problem.family.trajectory(z))
            excess = self.design.nonlinear_excess(report)
            if not problem.nonlinear or excess <= 0:
                break
            stricter = tuple(limit.tightened(1.2 * excess + 0.002) for limit in problem.nonlinear)
            problem = replace(problem, nonlinear=stricter)
            for iterate in descend(problem, z, self.stop, _LAST_ORDER, 25):
                z = iterate.z
            again = self._shrunk(z, anchor)
            if again is not None and (best is None or again.value < best.value):
                best = again
        return best

    def _shrunk(self, z: Array, anchor: Anchor) -> FeasibleMotion | None:
        """Return the motion of free coefficients z (dof, k), scaled towards a slow motion until every limit is
        satisfied on the dense grid; None on failure."""
        problem, family = anchor.problem, anchor.problem.family
        centres = [anchor.gentlest]
        if anchor.motion is None:
            # A posture of the motion itself within all limits is the best centre for scaling.
            q = np.ascontiguousarray(problem.signals(z)[0])
            middle = 0.5 * (q.min(axis=0) + q.max(axis=0))
            posture = q[int(np.argmin(problem.nonlinear_excess_at_rest(q)))] if problem.nonlinear else middle
            centres.insert(0, family.constant_motion(posture))
        for centre in centres:
            for share in _AMPLITUDE_SHARES:
                moved = centre + share * (z - centre)
                trajectory = family.trajectory(moved)
                report = self.design.check(trajectory)
                if report.ok:
                    return FeasibleMotion(moved, trajectory, self.design.value(trajectory), report, anchor)
        return None

    def _not_possible(self, anchor: Anchor) -> NotPossibleError:
        trajectory = anchor.problem.family.trajectory(anchor.gentlest)
        wrong = self.design.check(trajectory).violated
        if wrong:
            return NotPossibleError(f"no motion of {trajectory.duration:g} s respects all limits; even the slowest "
                                    f"motion violates a limit: {wrong[0]}", "relax this limit, or change the postures "
                                    "or the duration")
        return NotPossibleError("no exciting motion within all limits was found in the given time", "allow more time "
                                "or relax the limits of torque and workspace")


def _projected(given: Trajectory, anchor: Anchor) -> Array:
    """Return free coefficients (dof, k) of a given motion, scaled towards a slow motion until the linear limits are
    satisfied."""
    problem, gentlest = anchor.problem, anchor.gentlest
    functions = problem.family.family.functions(problem.t)[0]
    z = problem.family.free(np.linalg.lstsq(functions, given.at(problem.t).q, rcond=None)[0].T)
    for share in _AMPLITUDE_SHARES:
        moved = gentlest + share * (z - gentlest)
        if problem.excess(problem.signals(moved)) <= 1e-9:
            return moved
    return gentlest
