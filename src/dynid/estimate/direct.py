"""Methods didim and pc-didim (direct and inverse dynamic models), and derivatives of simulated torques."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.consistency import fit
from dynid.consistency.consistency import InertiaForm
from dynid.errors import NotPossibleError
from dynid.estimate.closed_loop.loop import LawOf, Log, Loop, SimulatedRun, at_samples, closed_loop_facts, make_loop
from dynid.estimate.closed_loop.start import LoopOptions, Start, first_run, regular_parameters
from dynid.estimate.consistent import problem_consistency
from dynid.estimate.covariance import LinearFit, ScoreNoise, naive_covariance, noise
from dynid.estimate.estimate import Estimate
from dynid.estimate.instruments.equations import WINDOW, smoothed_velocity, soften
from dynid.estimate.instruments.projection import low_decimation
from dynid.estimate.iteration import Past, Solved, Values, iterate, step_motion
from dynid.estimate.iterations import Iteration
from dynid.estimate.linear import Solution, joint_weights, solve
from dynid.estimate.problem import Problem, method
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.recording import Samples
from dynid.recording.decimate import decimate_columns, decimated_rows
from dynid.regression import Regression, Stacked, TorqueEquations, fold
from dynid.regression.equations import Layout
from dynid.simulation import Simulation, simulate, simulate_many

_STEP_SHARES = (1.0, 0.5, 0.25, 0.1, 0.03)  # shares of a step that are tried
_NO_WORSE = 1.01  # largest squared torque error of a step, relative to the previous one
_PLAIN_STEP_RATIO = 0.4  # ratio of successive changes below which an iteration needs no derivatives

Solver = Callable[[Regression, Stacked], Values]
_STEP_REDUCTIONS = (1.0, 0.1, 0.01)  # of a finite-difference step, tried until the simulation succeeds


@method("didim", "torques of the simulated closed loop fitted to the measured ones",
        needs={"data", "exact", "rigid", "torques"}, options_of=[LoopOptions])
def direct_inverse(problem: Problem, *, start: Start = "regular", tolerance: float = 0.005, max_iterations: int = 20,
                   **loop: Any) -> Estimate:
    """Return the DIDIM estimate: least squares of the measured torques on the regressor of the simulated motion.

    See Ardiani, app. D. Measured positions do not enter the regressor. Plain iterations converge slowly in a soft loop
    with much friction. The derivatives of the simulated torques then turn them into Newton steps with the same fixed
    point (`torque_slopes`). The standard errors include these derivatives. Options and stop rule are those of `iv`. The
    simulated loop must be that of the robot.
    """
    options = LoopOptions(start, tolerance, max_iterations, **loop)
    return _estimate(problem, "didim", options, lambda regression, stacked: Values(solve(regression, stacked).beta))


@method("pc-didim", "didim among physically consistent robots", needs={"data", "exact", "rigid", "torques"},
        gives={"theta"}, options_of=[LoopOptions])
def consistent_direct_inverse(problem: Problem, *, start: Start = "regular", tolerance: float = 0.005,
                              max_iterations: int = 20, form: InertiaForm = "pseudo", **loop: Any) -> Estimate:
    """Return the DIDIM estimate with each least-squares step constrained to the consistent set (Ardiani, app. D)."""
    consistency = problem_consistency(problem, form=form)

    def constrained(regression: Regression, stacked: Stacked) -> Values:
        best = fit(consistency, problem.base, stacked)
        return Values(best.beta, best.theta)

    options = LoopOptions(start, tolerance, max_iterations, **loop)
    return _estimate(problem, "pc-didim", options, constrained)


@dataclass(frozen=True, eq=False)
class DirectState:
    """State of one DIDIM iteration: the simulated closed loop, and the data of its equations.

    Attributes:
        run: the simulated loop.
        theta: parameters of the simulated robot (parameters,), None for the first run.
        origin: start of a shortened step (parameters,), or None.
        share: fraction of the last step that was taken.
        slopes: derivatives of the torques (base, base), None while plain iterations converge.
        rows: valid rows (samples, dof), one array per log.
    """

    run: SimulatedRun
    theta: Array | None
    origin: Array | None
    share: float = 1.0
    slopes: Array | None = None
    rows: Sequence[Bools] = ()


@dataclass(frozen=True, eq=False)
class SimulatedEquations:
    """Measured torques on the regressor of a simulated motion: samples and valid rows per log, their compressed
    regression, and joint weights (dof,)."""

    samples: tuple[Samples, ...]
    rows: Sequence[Bools]
    regression: Regression
    weights: Array

    @property
    def stacked(self) -> Stacked:
        return self.regression.stack(self.weights)


@dataclass(frozen=True, eq=False)
class DirectSolution:
    """Solution of one DIDIM iteration: its equations, the torque derivatives, and the least-squares solution."""

    equations: SimulatedEquations
    slopes: Array | None
    solution: Solution


@dataclass(frozen=True, eq=False)
class DirectInverse:
    """Steps of the iterations of `didim` and `pc-didim`.

    Attributes:
        speeds: smoothed measured velocities (samples, dof), one array per log.
        dropped: time excluded at the start of each log, s.
    """

    name: str
    problem: Problem
    loop: Loop
    options: LoopOptions
    solver: Solver
    speeds: tuple[Array, ...]
    dropped: float
    advice: str = ("the simulated loop must match the controller of the robot: check its gains, or use 'pc-iv', which "
                   "tolerates a wrong bandwidth")

    @staticmethod
    def from_problem(problem: Problem, name: str, options: LoopOptions, solver: Solver) -> DirectInverse:
        """Return the iteration of DIDIM for a problem, with all data that are constant over the iterations."""
        loop = make_loop(problem, name, options.controller, options.step)
        speeds = tuple(smoothed_velocity(log.samples) for log in loop.logs)
        return DirectInverse(name, problem, loop, options, solver, speeds, options.dropped(loop.settling))

    def start(self) -> DirectState:
        run = first_run(self.problem, self.loop, self.options.start)
        is_regular = self.options.start == "regular"
        return DirectState(run, None, regular_parameters(self.problem.model) if is_regular else None)

    def solve(self, state: DirectState, past: Past) -> Solved[DirectSolution]:
        equations = self._equations(state, self._moving_rows(state) if past.may_select_rows else state.rows)
        regression, stacked, slopes, theta = equations.regression, equations.stacked, state.slopes, state.theta
        here = None if theta is None else self.problem.base.reduce(theta)
        free = solve(regression, stacked)
        found = self.solver(regression, stacked if slopes is None or here is None else
                            linearised(stacked, slopes, here))
        change = np.inf if past.last is None else _change(stacked, found.beta, past.last.beta)
        ratio = 1.0 - state.share + _PLAIN_STEP_RATIO * state.share
        slow = len(past.changes) > 0 and change > ratio * past.changes[-1]
        if theta is not None and here is not None and (slow or (slopes is None and change <= self.options.tolerance)):
            slopes = torque_slopes(self.problem, self.loop, state.run.law_of, theta, equations.samples,
                                   equations.weights, _deviations(equations, free))
            found = self.solver(regression, linearised(stacked, slopes, here))
            change = _change(stacked, found.beta, here)
        solution, covariance = replace(free, beta=found.beta), None
        if slopes is not None and change <= self.options.tolerance:
            covariance = _covariance(solution, _noise(self.problem, equations, solution), slopes)
        seen = Iteration(found.beta, self.problem.regression.relative_errors(found.beta),
                         simulated_relative_error=regression.relative_error(found.beta),
                         motion=step_motion(self.loop.logs, state.run.motions, self.dropped, torques=True))
        move = found.beta if past.last is None else found.beta - past.last.beta
        return Solved(found, move, change, covariance, seen, DirectSolution(equations, slopes, solution))

    def advance(self, state: DirectState, found: Solved[DirectSolution]) -> DirectState:
        equations = found.detail.equations
        misfit = partial(self._misfit, equations)
        limit = np.inf if state.theta is None else _NO_WORSE * misfit(state.run)
        wanted = found.values.parameters(self.problem.base)
        run, theta, share = self._shortened(wanted, state.origin, misfit, limit)
        return DirectState(run, theta, theta, share, found.detail.slopes, equations.rows)

    def _equations(self, state: DirectState, rows: Sequence[Bools]) -> SimulatedEquations:
        """Return the equations of the simulated motion with the measured torques, in the valid rows."""
        samples = tuple(replace(motion, tau=log.samples.tau, keep=keep)
                        for log, motion, keep in zip(self.loop.logs, state.run.motions, rows, strict=True))
        equations = TorqueEquations.from_model(self.problem.model, samples, self.problem.base)
        regression = fold(equations, blocks=1, threads=self.problem.threads)
        return SimulatedEquations(samples, rows, regression, joint_weights(regression))

    def _moving_rows(self, state: DirectState) -> list[Bools]:
        """Return the masks of valid rows (samples, dof), one per log: without the start, and without rows near a
        standstill of the simulated or the real robot, where the sign of dry friction is uncertain."""
        out = []
        for log, motion, dq in zip(self.loop.logs, state.run.motions, self.speeds, strict=True):
            unclear = self.loop.friction_sign_unclear(log, state.theta, [motion.dq, dq])
            late = (log.samples.t >= log.samples.t[0] + self.dropped)[:, None]
            counts = log.samples.keep & late & (soften(~unclear, motion, 0.5 * WINDOW) > 0.5)
            if not np.any(counts):
                raise NotPossibleError(f"{log.samples.source}: no sample remains after the first {self.dropped:.3g} s",
                                       "record longer, or shorten the dropped 'transient'", "no-rows-left")
            out.append(counts)
        return out

    def _misfit(self, equations: SimulatedEquations, run: SimulatedRun) -> float:
        """Return the weighted sum of squares of measured minus simulated torques in the valid rows."""
        total = 0.0
        for log, motion, keep in zip(self.loop.logs, run.motions, equations.rows, strict=True):
            miss = (log.samples.tau - motion.tau) * equations.weights
            total += float(np.sum(miss[keep] ** 2))
        return total

    def _shortened(self, theta: Array, origin: Array | None, misfit: Callable[[SimulatedRun], float], limit: float
                   ) -> tuple[SimulatedRun, Array, float]:
        """Return the simulated loop, its parameters, and the share of the step from the origin to theta that was taken.
        The step is shortened until the robot can be simulated with an error within the limit."""
        if origin is None:
            return self.loop.run_following(theta), theta, 1.0
        for share in _STEP_SHARES[:-1]:
            there = origin + share * (theta - origin)
            try:
                run = self.loop.run_following(there)
            except NotPossibleError:
                continue
            if misfit(run) <= limit:
                return run, there, share
        there = origin + _STEP_SHARES[-1] * (theta - origin)
        return self.loop.run_following(there), there, _STEP_SHARES[-1]


def _change(stacked: Stacked, new: Array, old: Array) -> float:
    """Return the relative change of the predicted torques between two sets of base values (base,)."""
    return float(np.linalg.norm(stacked.r @ (new - old))) / max(float(np.linalg.norm(stacked.r @ new)), 1e-300)


def _deviations(equations: SimulatedEquations, free: Solution) -> Array:
    """Return step sizes (base,) for finite differences: the standard error of each parameter for independent rows."""
    sizes = np.sqrt(np.maximum(np.diag(naive_covariance(equations.regression, free, equations.weights)), 0.0))
    return np.where(sizes > 0.0, sizes, 1e-6)


def _noise(problem: Problem, equations: SimulatedEquations, solution: Solution) -> ScoreNoise:
    """Return the noise of the least-squares equations along the simulated motion."""
    inner = replace(problem, regression=equations.regression, data=equations.samples)
    # The motion is simulated, so the regressor contains no noise of positions.
    return noise(inner, solution, equations.weights, equations=inner.equations)


def _covariance(solution: Solution, found: ScoreNoise, slopes: Array) -> Array:
    """Return the DIDIM covariance M^-1 C M^-T (base, base), with C of least squares and M of `torque_slopes`."""
    kept = np.flatnonzero(solution.excited)
    back = np.zeros_like(slopes)
    back[np.ix_(kept, kept)] = np.linalg.inv(slopes[np.ix_(kept, kept)])
    return back @ found.covariance(solution) @ back.T


def _estimate(problem: Problem, name: str, options: LoopOptions, solver: Solver) -> Estimate:
    procedure = DirectInverse.from_problem(problem, name, options, solver)
    end = iterate(procedure, options.tolerance, options.max_iterations)
    values, detail = end.found.values, end.found.detail
    inner = replace(problem, regression=detail.equations.regression, data=detail.equations.samples)
    fit = LinearFit(inner, detail.solution, detail.equations.weights,
                    lambda cov_type: _noise(problem, detail.equations, detail.solution),
                    facts=closed_loop_facts(procedure.loop, len(end.iterations), procedure.dropped))
    fitted = fit.estimate(name).diagnostics
    facts = {"simulated_relative_error": fitted.relative_error,
             "relative_error": problem.regression.relative_error(values.beta),
             "relative_error_per_joint": problem.regression.relative_errors(values.beta).tolist()}
    if values.theta is not None:
        facts["consistent"] = True
    known = OnDemand.known(Uncertainty(end.covariance, "correlated")).then(
        lambda stated: fit.uncertainty(None, covariance=end.covariance))
    return Estimate(name, problem.model, problem.base, values.beta, detail.solution.identified, known, values.theta,
                    diagnostics=fitted.with_facts(facts), iterations=end.iterations)


def linearised(stacked: Stacked, slopes: Array, here: Array) -> Stacked:
    """Return equations R beta = rho that include the change of the simulated motion with the parameters, linearised
    about base values `here`: R M beta = rho - R here + R M here, with M (base, base) of `torque_slopes`."""
    r = stacked.r @ slopes
    return Stacked(r, stacked.rho - stacked.r @ here + r @ here, stacked.rest, stacked.rows)


def torque_slopes(problem: Problem, loop: Loop, law_of: LawOf, theta: Array, samples: Sequence[Samples],
                  weights: Array, sizes: Array) -> Array:
    """Return M = (X'WX)^-1 X'WS (base, base), the projected derivatives of the simulated torques.

    S contains the derivatives of the simulated torques, and X is the regressor of the simulated motion. As tau(beta) =
    X(beta) beta, S is X plus the effect of the changed motion. If the motion hardly changes, M is the identity and a
    plain iteration converges at once. In a soft loop with much friction, each iteration retains the share 1 - M of an
    error. The noise of the fixed point is then M^-1 times that of least squares.

    Args:
        problem: the identification problem.
        loop: the simulated loop of every log.
        law_of: the control law as a function of the parameters.
        theta: parameters at which the derivatives are computed (parameters,).
        samples: simulated motion of each log.
        weights: weights of the joints (dof,).
        sizes: finite-difference steps of the base parameters (base,).
    """
    base = problem.base
    layout = Layout.from_model(problem.model, base)
    normal, cross = np.zeros((len(base), len(base))), np.zeros((len(base), len(base)))
    for log, part in zip(loop.logs, samples, strict=True):
        slopes = _slopes(problem, loop, log, law_of, theta, sizes)
        decimation = low_decimation(part)
        at = np.arange(len(part.t)) if decimation is None else decimated_rows(part.segments, decimation)
        entries = layout.entries(part, slice(0, len(part.t)))
        for j, weight in enumerate(weights):
            x, s, columns = entries[layout.joint(j)][:-1], slopes[:, :, j], layout.columns[j]
            if decimation is not None:
                x, s = (decimate_columns(y.T, decimation, part.segments).T for y in (x, s))
            keep = part.keep[at, j]
            x = weight * x[:, keep]
            normal[np.ix_(columns, columns)] += x @ x.T
            cross[columns] += weight * x @ s[:, keep].T
    scale = np.sqrt(np.maximum(np.diag(normal), 1e-300))
    inverse = np.linalg.pinv(normal / np.outer(scale, scale), rcond=1e-12, hermitian=True) / np.outer(scale, scale)
    return inverse @ cross


def _slopes(problem: Problem, loop: Loop, log: Log, law_of: LawOf, theta: Array, sizes: Array) -> Array:
    """Return derivatives (base, samples, dof) of the simulated torques by each base parameter. sizes (base,):
    finite-difference steps, which are reduced if the simulation fails."""
    here = problem.base.reduce(theta)
    directions = np.array([problem.base.expand(here + unit) - problem.base.expand(here) for unit in np.eye(len(here))])

    def over(steps: Array) -> Array:
        motions = _many(loop, log, law_of, np.vstack([theta, theta + steps[:, None] * directions]), problem.threads)
        first, *others = [at_samples(log.samples, motion).tau for motion in motions]
        return np.stack([(tau - first) / step for tau, step in zip(others, steps, strict=True)])

    for shrink in _STEP_REDUCTIONS[:-1]:
        try:
            return over(shrink * sizes)
        except NotPossibleError:
            continue
    return over(_STEP_REDUCTIONS[-1] * sizes)


def _many(loop: Loop, log: Log, law_of: LawOf, thetas: Array, threads: int | None) -> list[Simulation]:
    """Simulate the closed loop of a log for each row of thetas (many, parameters), with its law and reference."""
    laws = [law_of(theta) for theta in thetas]
    if not log.from_positions:
        return simulate_many(loop.model, thetas, laws, log.reference, step=loop.step, threads=threads)
    return [simulate(loop.model, theta, law, loop.following_reference(log, theta, law), step=loop.step)
            for theta, law in zip(thetas, laws, strict=True)]
