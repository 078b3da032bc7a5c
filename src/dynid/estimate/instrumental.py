"""Methods iv and pc-iv: instrumental variables, unconstrained and for physically consistent parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array
from dynid.consistency import Consistency, fit
from dynid.consistency.consistency import InertiaForm
from dynid.errors import DynidError, ModelError, NotPossibleError, RecordingError
from dynid.estimate.closed_loop.loop import Loop, SimulatedRun, closed_loop_facts, make_loop, tracking
from dynid.estimate.closed_loop.start import AnyStart, LoopOptions, first_run
from dynid.estimate.consistent import filled, problem_consistency
from dynid.estimate.estimate import Diagnostics, Estimate
from dynid.estimate.instruments import projection
from dynid.estimate.instruments.equations import WINDOW, Instrumented, Measured, soften, taper
from dynid.estimate.instruments.projection import LowRate, Projected
from dynid.estimate.instruments.transfer import filtered_references, plain_references, with_joint_deflection
from dynid.estimate.iteration import Past, Settled, Solved, Values, iterate, step_motion
from dynid.estimate.iterations import Iteration
from dynid.estimate.least_squares import weighted_least_squares
from dynid.estimate.motion_errors import unseen_velocities
from dynid.estimate.problem import Problem, method
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.findings import Note
from dynid.model import flexible_joint_model
from dynid.recording import Samples
from dynid.regression import fold

Source = Literal["simulation", "transfer", "reference"]
Solver = Callable[[Projected], Values]
# share of the squared noise: accepted increase of the misfit for a robot well inside the consistent set
_INTERIOR_COST_SHARE = 0.003
_NEAREST_CONSISTENT_NOTE = Note(
    "simulated-consistent",
    "where the unconstrained estimate could not be simulated, the nearest physically consistent robot was used")


@method("iv", "instrumental variables from the simulated closed loop", needs={"data", "exact", "torques"},
        options_of=[LoopOptions])
def instrumental_variables(problem: Problem, *, instruments: Source = "simulation", start: AnyStart = "auto",
                           tolerance: float = 0.005, max_iterations: int = 15, **loop: Any) -> Estimate:
    """Return the estimate by instrumental variables from the simulated closed loop.

    See Janot, Vandanjon, Gautier, s. 3. The estimate is unbiased for any filter.

    Args:
        problem: the identification problem.
        instruments: "simulation" of the closed loop with the last estimate; "transfer": references filtered by each
            joint's identified closed loop; "reference": references alone (Ardiani, s. 3.3.2). The last two need no
            iteration. They are used for robots with flexible joints, with link deflections predicted from the
            least-squares estimate.
        start: "regular" (inertia matrix = identity), "regular-links" (ZZ = 1 of every link, eq. 51), "filtered" (a
            consistent fit to the filtered logs), "nominal", "wls", or "auto": "regular", "filtered" and "nominal" in
            turn until one converges, then an assumed loop instead of the law, then references alone. The estimate
            states which was used.
        tolerance: relative change of the torques between two iterations at which they stop. In addition no parameter
            may change by more than a tenth of its standard error.
        max_iterations: largest number of iterations.
        loop: step, controller and transient of the simulated loop, see `LoopOptions`.
    """
    options = LoopOptions(start, tolerance, max_iterations, **loop)
    return _estimate(problem, "iv", instruments, options, lambda projected: Values(projected.solution()))


@method("pc-iv", "instrumental variables among physically consistent robots",
        needs={"data", "exact", "torques"}, gives={"theta"}, options_of=[LoopOptions])
def consistent_instrumental_variables(problem: Problem, *, instruments: Source = "simulation", start: AnyStart = "auto",
                                      tolerance: float = 0.005, max_iterations: int = 15, form: InertiaForm = "pseudo",
                                      **loop: Any) -> Estimate:
    """Return the estimate by instrumental variables inside the consistent set.

    Each iteration minimises the projected criterion by a cone programme (Ardiani, s. 2.3, eq. 2.9).
    """
    consistency = problem_consistency(problem, form=form)

    def constrained(projected: Projected) -> Values:
        theta = _inside(problem, consistency, projected)
        return Values(problem.base.matrix @ theta, theta)

    options = LoopOptions(start, tolerance, max_iterations, **loop)
    return _estimate(problem, "pc-iv", instruments, options, constrained)


@dataclass(frozen=True, eq=False)
class InstrumentalState:
    """State of one iteration of instrumental variables: the simulated closed loop, and data of the equations.

    Attributes:
        motions: noise-free motions, one per log, at the rows of its samples.
        run: the simulation of these motions, None for references.
        theta: parameters of the simulation (parameters,), or None.
        weights: weights of the joints (dof,), None before the first estimate.
        moving: weight of each equation (samples, dof), one array per log.
        notes: notes on the simulation.
    """

    motions: tuple[Samples, ...]
    run: SimulatedRun | None
    theta: Array | None = None
    weights: Array | None = None
    moving: Sequence[Array] = ()
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, eq=False)
class InstrumentalSolution:
    """Solution of one iteration: projected equations, residuals, joint weights, and weights of the samples."""

    projected: Projected
    low: LowRate
    weights: Array
    moving: Sequence[Array]


@dataclass(frozen=True, eq=False)
class Instrumental:
    """Steps of the iterations of methods `iv` and `pc-iv`.

    Attributes:
        measured: equations of all logs at the rate of the regression.
        low: equations at the low rate of the residuals.
        tapers: weight of each equation that does not depend on the simulation (samples, dof), one array per log.
    """

    name: str
    problem: Problem
    source: Source
    loop: Loop
    options: LoopOptions
    solver: Solver
    measured: Measured
    low: Measured
    tapers: tuple[Array, ...]
    advice: str = "check the controller: its simulated loop may differ from that of the robot; or allow more iterations"

    @staticmethod
    def from_problem(problem: Problem, name: str, source: Source, options: LoopOptions, solver: Solver) -> Instrumental:
        """Return the iteration of instrumental variables, with all data that are constant over the iterations."""
        loop = make_loop(problem, name, options.controller, options.step)
        dropped = options.dropped(loop.settling)
        return Instrumental(name, problem, source, loop, options, solver,
                            Measured(problem.model, problem.base, problem.data),
                            Measured(problem.model, problem.base, projection.at_low_rate(problem.data)),
                            tuple(taper(log.samples, dropped) for log in loop.logs))

    @property
    def tolerance(self) -> float:
        """Tolerance of the iterations; infinite for instruments that do not depend on the estimate."""
        return self.options.tolerance if self.source == "simulation" else np.inf

    def start(self) -> InstrumentalState:
        if self.source in ("transfer", "reference"):
            motions = (filtered_references if self.source == "transfer" else plain_references)(self.loop.logs)
            flexible = flexible_joint_model(self.problem.model)
            if flexible is not None:
                motions = with_joint_deflection(flexible, weighted_least_squares(self.problem).full, motions)
            return InstrumentalState(tuple(motions), None)
        run = first_run(self.problem, self.loop, self.options.start)
        return InstrumentalState(run.motions, run)

    def solve(self, state: InstrumentalState, past: Past) -> Solved[InstrumentalSolution]:
        moving = self._moving(state) if past.may_select_rows else state.moving
        tapers = tuple(ends * rows for ends, rows in zip(self.tapers, moving, strict=True))
        regression = fold(Instrumented(self.measured, state.motions, tapers), blocks=1, threads=self.problem.threads)
        left = partial(projection.low_rate, Instrumented(self.low, state.motions, tapers),
                       scale=projection.low_rate_scale(self.problem.data))
        weights, rows = state.weights, sum(self.problem.regression.rows)
        if weights is None:  # the first weights need a first estimate
            plain = projection.project(regression, np.ones(regression.dof), rows)
            weights = left(self.solver(plain).beta).weights()
        projected = projection.project(regression, weights, rows)
        found, change, move = self.solver(projected), np.inf, np.zeros(len(self.problem.base))
        if past.last is not None:
            change, move = projected.change(found.beta, past.last.beta), found.beta - past.last.beta
            found = past.damped(found, change)
        low = left(found.beta)
        covariance = projection.spectral_covariance(projected, low, weights) if change <= self.tolerance else None
        seen = Iteration(found.beta, self.problem.regression.relative_errors(found.beta),
                         simulated_relative_error=low.relative_error,
                         motion=step_motion(self.loop.logs, state.motions, self.options.dropped(self.loop.settling),
                                            torques=state.run is not None))
        return Solved(found, move, change, covariance, seen, InstrumentalSolution(projected, low, weights, moving))

    def advance(self, state: InstrumentalState, found: Solved[InstrumentalSolution]) -> InstrumentalState:
        run, theta, notes = self._simulated(found.values, found.detail.projected)
        return InstrumentalState(run.motions, run, theta, found.detail.low.weights(), found.detail.moving,
                                 state.notes or notes)

    def shift(self, end: Settled[InstrumentalState, InstrumentalSolution]) -> Array:
        """Return the squared bias (base, base) by fast motion that smoothed velocities do not contain, or zero."""
        beta, detail = end.found.values.beta, end.found.detail
        unseen = unseen_velocities(self.problem, beta)
        if unseen is None:
            return np.zeros((len(beta), len(beta)))
        tapers = tuple(ends * rows for ends, rows in zip(self.tapers, detail.moving, strict=True))
        shift = projection.instrument_shift(Instrumented(self.measured, end.state.motions, tapers), detail.projected,
                                            unseen, beta, detail.weights)
        return np.outer(shift, shift)

    def _moving(self, state: InstrumentalState) -> list[Array]:
        """Return weights of the equations (samples, dof), one array per log, which decrease to zero where the sign of
        dry friction is unclear. While the robot sticks, its dry friction is undetermined, and such rows would bias the
        inertia of light joints. The weights decrease over half the smoothing window before such an interval. They are
        zero at its border, where the sign of a smoothed velocity is wrong. Slow rows outside are kept because they
        separate dry from viscous friction."""
        out = []
        for log, steady, motion in zip(self.loop.logs, self.measured.steady, state.motions, strict=True):
            unclear = self.loop.friction_sign_unclear(log, state.theta, [motion.dq, steady.dq])
            out.append(soften(~unclear, motion, 0.5 * WINDOW))
        return out

    def _simulated(self, values: Values, projected: Projected) -> tuple[SimulatedRun, Array, tuple[Note, ...]]:
        """Return a simulated run, its parameters and notes.

        The loop is simulated with the last estimate. If that robot cannot be simulated, a consistent robot of about the
        same error is used. Any model close to the robot gives valid instruments.
        """
        theta = values.parameters(self.problem.base)
        try:
            return self.loop.run(theta), theta, ()
        except NotPossibleError as error:
            if values.theta is not None or not self.problem.model.parameters.bodies:
                raise
            reason = error
        consistency = problem_consistency(self.problem)
        found: list[tuple[float, SimulatedRun, Array]] = []
        for nearest in (_border, _inside):
            try:
                theta = nearest(self.problem, consistency, projected)
                run = self.loop.run(theta)
            except NotPossibleError:
                continue
            found.append((tracking(self.loop.logs, run.motions), run, theta))
        if not found:
            raise reason
        _, run, theta = min(found, key=lambda one: one[0])
        return run, theta, (_NEAREST_CONSISTENT_NOTE,)


def _border(problem: Problem, consistency: Consistency, projected: Projected) -> Array:
    """Return the consistent parameters (parameters,) that fit best; they are usually on the boundary of the set."""
    return fit(consistency, problem.base, projected.stacked()).theta


def _inside(problem: Problem, consistency: Consistency, projected: Projected) -> Array:
    """Return consistent parameters (parameters,) well inside the set that fit as well as noise allows. On the boundary
    light links have almost no inertia, and no controller stabilises them."""
    stacked = projected.stacked()
    best = fit(consistency, problem.base, stacked)
    noise = len(projected.kept) * stacked.rest / max(stacked.rows, 1)
    return filled(problem, consistency, stacked, best, _INTERIOR_COST_SHARE * noise)[0]


def _estimate(problem: Problem, name: str, source: Source, options: LoopOptions, solver: Solver) -> Estimate:
    """Return the estimate from the requested start, or, for start "auto", from the first start that succeeds."""
    if source not in ("simulation", "transfer", "reference"):
        raise ModelError(f"instruments come from 'simulation', 'transfer' or 'reference', not '{source}'",
                         code="unknown-instruments")
    if flexible_joint_model(problem.model) is not None:
        return _flexible(problem, name, source, options, solver)
    if source != "simulation" or options.start != "auto":
        return _attempted(problem, name, source, options, solver)
    failures: dict[str, str] = {}
    for origin, tried, source, own in _attempts(problem, options):
        try:
            found = _attempted(tried, name, source, own, solver)
        except DynidError as error:
            if not isinstance(error, NotPossibleError | RecordingError) and error.code != "gains-not-known":
                raise
            failures[origin] = error.reason
            continue
        notes = found.diagnostics["notes"]
        if failures:
            notes = [*notes, Note("other-start", f"instruments are those {origin}, because other start values failed: "
                                  + "; ".join(f"{words} ({reason})" for words, reason in failures.items()))]
        return replace(found, diagnostics=found.diagnostics.with_facts(
            {"start": origin, "failed_starts": failures, "notes": notes}))
    raise NotPossibleError(f"method '{name}' found no instruments: " + "; ".join(
        f"{words}: {reason}" for words, reason in failures.items()),
        "check that the reference belongs to this log, in the same units and without a delay, and "
        "that every joint moves; without noise in the positions 'pc-wls' needs no instruments", "no-instruments")


def _flexible(problem: Problem, name: str, source: Source, options: LoopOptions, solver: Solver) -> Estimate:
    """Return the estimate of a robot with flexible joints: instruments are the references of its motors, unchanged or
    filtered by the identified loops, with link deflections from least squares."""
    if not problem.recordings or any(log.reference is None for log in problem.recordings):
        raise ModelError(f"method '{name}' takes the instruments of flexible joints from the references of the motors, "
                         "but the logs have none", "map them with --set 'log.reference=[...]', or use 'wls'",
                         "no-reference")
    lawless, options = replace(problem, controller=None), replace(options, controller=None)
    return _attempted(lawless, name, "transfer" if source == "transfer" else "reference", options, solver)


def _attempts(problem: Problem, options: LoopOptions) -> Iterator[tuple[str, Problem, Source, LoopOptions]]:
    """Yield description, problem, source and options of instruments to try: first those that use the control law, then
    an assumed law, last the references alone."""
    yield "from unit inertias", problem, "simulation", replace(options, start="regular")
    yield "from least squares on filtered data", problem, "simulation", replace(options, start="filtered")
    if problem.nominal is not None:
        yield "from nominal parameters", problem, "simulation", replace(options, start="nominal")
    if options.controller is not None or problem.controller is not None:
        lawless = replace(problem, controller=None)
        for words, start in (("of an assumed loop instead of the given law", "regular"),
                             ("of an assumed loop, from filtered data", "filtered")):
            yield words, lawless, "simulation", replace(options, start=start, controller=None)
    if problem.recordings and all(log.reference is not None for log in problem.recordings):
        yield "of the references alone", problem, "reference", options


def _attempted(problem: Problem, name: str, source: Source, options: LoopOptions, solver: Solver) -> Estimate:
    procedure = Instrumental.from_problem(problem, name, source, options, solver)
    end = iterate(procedure, procedure.tolerance, options.max_iterations)
    values, detail = end.found.values, end.found.detail
    # In measured equations, noise of second differences may exceed the torque.
    if detail.low.unexplained > 1.0 and detail.low.relative_error > 100.0:
        raise NotPossibleError(f"method '{name}' converged to parameters with a torque error above 100 %",
                               "the simulated loop does not match that of the robot: check controller and reference",
                               "explains-nothing")
    facts = closed_loop_facts(procedure.loop, len(end.iterations), options.dropped(procedure.loop.settling))
    facts["notes"] += end.state.notes
    if values.theta is not None:
        facts["consistent"] = True
    identified = np.zeros(len(problem.base), dtype=bool)
    identified[detail.projected.kept] = True
    fitted = Diagnostics.from_fit(
        problem.regression, values.beta, rank=len(detail.projected.kept), condition=detail.projected.condition,
        weights=detail.weights.tolist(), simulated_relative_error=detail.low.relative_error, instruments=source,
        residual_std_per_joint=detail.low.residual_std.tolist(), **facts)
    degrees_of_freedom = projection.spectral_freedom(detail.projected, detail.low, detail.weights)
    known = OnDemand.known(Uncertainty(end.covariance, "instruments", degrees_of_freedom)).then(
        lambda stated: replace(stated, covariance=end.covariance + procedure.shift(end)))
    return Estimate(name, problem.model, problem.base, values.beta, identified, known, values.theta, diagnostics=fitted,
                    iterations=end.iterations)
