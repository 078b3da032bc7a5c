"""Direct and inverse models together: didim, and pc-didim inside the set of robots that can exist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.consistency import fit
from dynid.consistency.consistency import Form
from dynid.errors import NotPossibleError
from dynid.estimate import closed_loop
from dynid.estimate.closed_loop import (
    How,
    Loop,
    Start,
    at_samples,
    first_run,
    make_loop,
    regular_vector,
    relaxed,
    run_towards,
    standing,
    stopped,
    tracking,
)
from dynid.estimate.consistent import consistency_of
from dynid.estimate.estimate import Estimate
from dynid.estimate.least_squares import Solution, diagnostics, honest_covariance, joint_weights, solve
from dynid.estimate.problem import Problem, method
from dynid.recording import Samples
from dynid.regression import Regression, Stacked, fold
from dynid.robot.inertia import Array
from dynid.simulate import Controller, Simulation

Solver = Callable[[Regression, Stacked], tuple[Array, Array | None]]


@method("didim", "torques of the simulated closed loop fitted to the measured ones")
def direct_inverse(problem: Problem, *, start: Start = "regular", tolerance: float = 0.005, max_iterations: int = 15,
                   step: float | None = None, controller: Controller | None = None,
                   transient: float | None = None) -> Estimate:
    """DIDIM: no measured position enters the regressor, only the torques are measured (Ardiani, app. D).

    Each iteration is one least squares of the measured torques on the regressor of the simulated motion. Options as
    those of `iv`. The simulated loop has to be the machine's own: a wrong bandwidth is not forgiven.
    """
    how = How(start, tolerance, max_iterations, step, controller, transient)
    return _iterate(problem, "didim", _unconstrained, how)


@method("pc-didim", "didim among physically consistent robots")
def consistent_direct_inverse(problem: Problem, *, start: Start = "regular", tolerance: float = 0.005,
                              max_iterations: int = 15, step: float | None = None, controller: Controller | None = None,
                              transient: float | None = None, form: Form = "pseudo") -> Estimate:
    """Each least squares inside the set, so that every simulated robot can exist (Ardiani, app. D)."""
    consistency = consistency_of(problem, form=form)

    def constrained(regression: Regression, stacked: Stacked) -> tuple[Array, Array | None]:
        best = fit(consistency, problem.base, stacked)
        return best.beta, best.theta

    how = How(start, tolerance, max_iterations, step, controller, transient)
    return _iterate(problem, "pc-didim", constrained, how)


def _unconstrained(regression: Regression, stacked: Stacked) -> tuple[Array, Array | None]:
    return solve(regression, stacked).beta, None


def _iterate(problem: Problem, name: str, solver: Solver, how: How) -> Estimate:
    loop = make_loop(problem, name, how.controller, how.step)
    dropped = loop.settled if how.transient is None else how.transient
    try:
        runs = first_run(problem, loop, how.start)
    except NotPossibleError as error:
        raise stopped(name, 1, error) from None
    history: list[dict[str, Any]] = []
    last: tuple[Array, Array | None] | None = None
    changes: list[float] = []
    simulated: Array | None = None
    carried = regular_vector(problem.model) if how.start == "regular" else None
    for iteration in range(1, how.max_iterations + 1):
        samples = simulated_samples(loop, runs, dropped, simulated)
        regression = fold(problem.model, samples, base=problem.base, blocks=1, threads=problem.threads)
        stacked = regression.stack(joint_weights(regression))
        found = solver(regression, stacked)
        if last is not None:
            size = max(float(np.linalg.norm(stacked.r @ found[0])), 1e-300)
            changes.append(float(np.linalg.norm(stacked.r @ (found[0] - last[0]))) / size)
            found = relaxed(found, last, changes)
        last = found
        (beta, theta), change = found, changes[-1] if changes else np.inf
        simulated = problem.base.expand(beta) if theta is None else theta
        history.append({"values": beta.tolist(), "change": None if not np.isfinite(change) else change,
                        "simulated_relative_error": regression.relative_error(beta),
                        "tracking_error": tracking(loop, runs)})
        if change <= how.tolerance:
            break
        try:
            runs, simulated = run_towards(loop, simulated, carried)
            carried = simulated
        except NotPossibleError as error:
            raise stopped(name, iteration + 1, error) from None
    else:
        raise NotPossibleError(f"method '{name}' did not settle in {how.max_iterations} iterations: the last changed "
                               f"the torques by {100.0 * change:.2g} %; the simulated loop has to be the "
                               "machine's own: check its gains, or use 'pc-iv', which forgives a wrong bandwidth")
    return _estimate(problem, name, loop, samples, regression, beta, theta, history, dropped)


def simulated_samples(loop: Loop, runs: list[Simulation], dropped: float, theta: Array | None = None) -> list[Samples]:
    """The simulated motion with the measured torques; the start is left out, and rows of joints whose dry friction is
    in its dead zone: where the simulated robot (theta) stands still, the sign of its creeping means nothing and would
    make the iterations swing for ever."""
    out = []
    for log, run in zip(loop.logs, runs, strict=True):
        there = at_samples(log.samples, run)
        still = standing(loop, [there.dq], theta, log.reference)
        late = (log.samples.t >= log.samples.t[0] + dropped)[:, None] & ~still
        if not np.any(log.samples.keep & late):
            raise NotPossibleError(f"{log.samples.source}: no row is left once the first {dropped:.3g} s are dropped; "
                                   "record longer, or give 'transient'")
        out.append(replace(there, tau=log.samples.tau, keep=log.samples.keep & late))
    return out


def _estimate(problem: Problem, name: str, loop: Loop, samples: list[Samples], regression: Regression, beta: Array,
              theta: Array | None, history: list[dict[str, Any]], dropped: float) -> Estimate:
    """Covariance and diagnostics as those of least squares on the simulated motion."""
    inner = replace(problem, regression=regression, samples=tuple(samples))
    weights = joint_weights(regression)
    free = solve(regression, regression.stack(weights))
    shown = Solution(beta, free.inverse, free.identified, free.confounded, free.condition)
    covariance, found = honest_covariance(inner, shown, weights)
    facts = diagnostics(inner, shown, weights, covariance, found) | closed_loop.facts(loop, history, dropped)
    facts["simulated_relative_error"] = facts["relative_error"]
    facts["relative_error"] = problem.regression.relative_error(beta)
    facts["relative_error_per_joint"] = problem.regression.relative_errors(beta).tolist()
    if theta is not None:
        facts["consistent"] = True
    return Estimate(name, problem.model, problem.base, beta, covariance, free.identified, theta, facts)
