"""Direct and inverse models together: didim, and pc-didim inside the set of robots that can exist."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.consistency import fit
from dynid.consistency.consistency import Form
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import closed_loop
from dynid.estimate.closed_loop import (
    How,
    Log,
    Loop,
    Start,
    at_samples,
    first_run,
    has_settled,
    make_loop,
    regular_vector,
    standing,
    step_size,
    stopped,
    tracking,
)
from dynid.estimate.consistent import consistency_of
from dynid.estimate.covariance import Noise, diagnostics, naive_covariance, noise
from dynid.estimate.estimate import Estimate
from dynid.estimate.instruments import WINDOW, low_decimation, smoothed_velocity, soften
from dynid.estimate.linear import Solution, joint_weights, solve
from dynid.estimate.problem import Problem, method
from dynid.recording import Samples
from dynid.recording.decimate import decimate_columns, decimated_rows
from dynid.regression import Regression, Stacked, TorqueEquations, fold
from dynid.regression.equations import Layout
from dynid.simulation import Controller, Simulation, simulate, simulate_many

_SHARES = (1.0, 0.5, 0.25, 0.1, 0.03)  # of a step that are tried
_NO_WORSE = 1.01  # times the last squared misfit of the torques that a step may have
_CONTRACTING = 0.4  # share of the last change below which an iteration needs no slopes

Solver = Callable[[Regression, Stacked], tuple[Array, Array | None]]


@method("didim", "torques of the simulated closed loop fitted to the measured ones", needs={"data"})
def direct_inverse(problem: Problem, *, start: Start = "regular", tolerance: float = 0.005, max_iterations: int = 20,
                   step: float | None = None, controller: Controller | None = None,
                   transient: float | None = None) -> Estimate:
    """DIDIM: no measured position enters the regressor, only the torques are measured (Ardiani, app. D).

    Each iteration is one least squares of the measured torques on the regressor of the simulated motion. Where these do
    not contract fast, as in a soft loop with much friction, the slopes of the simulated torques turn them into Newton's
    (`torque_slopes`), which end at the same place; the stated deviations count them too. Options and stop rule as those
    of `iv`. The simulated loop has to be the machine's own: a wrong bandwidth is not forgiven.
    """
    how = How(start, tolerance, max_iterations, step, controller, transient)
    return _iterate(problem, "didim", _unconstrained, how)


@method("pc-didim", "didim among physically consistent robots", needs={"data"}, gives={"theta"})
def consistent_direct_inverse(problem: Problem, *, start: Start = "regular", tolerance: float = 0.005,
                              max_iterations: int = 20, step: float | None = None, controller: Controller | None = None,
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
    speeds = [smoothed_velocity(log.samples) for log in loop.logs]
    history: list[dict[str, Any]] = []
    last: tuple[Array, Array | None] | None = None
    changes: list[float] = []
    simulated: Array | None = None
    carried = regular_vector(problem.model) if how.start == "regular" else None
    slopes: Array | None = None
    share = 1.0
    rows: list[Bools] = []
    step = np.inf  # of the last iteration, in deviations
    for iteration in range(1, how.max_iterations + 1):
        if step > 1.0:  # a row that is in and out by turns would keep a good estimate swinging for ever
            rows = moving_rows(loop, runs, speeds, dropped, simulated)
        samples = simulated_samples(loop, runs, rows)
        regression = fold(TorqueEquations.of(problem.model, samples, problem.base), blocks=1, threads=problem.threads)
        weights = joint_weights(regression)
        stacked = regression.stack(weights)
        here = None if simulated is None else problem.base.reduce(simulated)
        found = solver(regression, stacked if slopes is None or here is None else bent(stacked, slopes, here))
        change = np.inf if last is None else _change(stacked, found[0], last[0])
        slow = len(changes) > 0 and change > (1.0 - share + _CONTRACTING * share) * changes[-1]
        if here is not None and simulated is not None and (slow or (slopes is None and change <= how.tolerance)):
            try:
                slopes = torque_slopes(problem, loop, simulated, samples, weights, _deviations(regression, weights))
            except NotPossibleError as error:
                raise stopped(name, iteration, error) from None
            found = solver(regression, bent(stacked, slopes, here))
            change = _change(stacked, found[0], here)
        step = np.inf
        if slopes is not None and change <= how.tolerance:
            covariance = _covariance(problem, samples, regression, found[0], slopes)[0]
            step = step_size(found[0] - last[0] if last is not None else found[0], covariance)
        if np.isfinite(change):
            changes.append(change)
        last = found
        beta, theta = found
        simulated = problem.base.expand(beta) if theta is None else theta
        history.append({"values": beta.tolist(), "change": None if not np.isfinite(change) else change,
                        "step": None if not np.isfinite(step) else step,
                        "simulated_relative_error": regression.relative_error(beta),
                        "tracking_error": tracking(loop, runs)})
        if slopes is not None and has_settled(change, how.tolerance, step):
            break
        try:
            misfit = partial(_misfit, loop, rows, weights)
            limit = np.inf if here is None else _NO_WORSE * misfit(runs)
            runs, simulated, share = _advance(loop, simulated, carried, misfit, limit)
            carried = simulated
        except NotPossibleError as error:
            raise stopped(name, iteration + 1, error) from None
    else:
        raise NotPossibleError(f"method '{name}' did not settle in {how.max_iterations} iterations: the last changed "
                               f"the torques by {100.0 * change:.2g} %; the simulated loop has to be the "
                               "machine's own: check its gains, or use 'pc-iv', which forgives a wrong bandwidth")
    return _estimate(problem, name, loop, samples, regression, beta, theta, slopes, history, dropped)


def _misfit(loop: Loop, rows: Sequence[Bools], weights: Array, runs: Sequence[Simulation]) -> float:
    """Weighted squares of measured minus simulated torques in the rows that count."""
    total = 0.0
    for log, run, keep in zip(loop.logs, runs, rows, strict=True):
        miss = (log.samples.tau - at_samples(log.samples, run).tau) * weights
        total += float(np.sum(miss[keep] ** 2))
    return total


def _advance(loop: Loop, theta: Array, last: Array | None, misfit: Callable[[list[Simulation]], float], limit: float
             ) -> tuple[list[Simulation], Array, float]:
    """The loop with parameters theta, or so far on the way to them from the last ones that it can be simulated and its
    misfit is within the limit; and that share of the way."""
    if last is None:
        return loop.tried(theta, follow=True)[0], theta, 1.0
    for share in _SHARES[:-1]:
        there = last + share * (theta - last)
        try:
            runs = loop.tried(there, follow=True)[0]
        except NotPossibleError:
            continue
        if misfit(runs) <= limit:
            return runs, there, share
    there = last + _SHARES[-1] * (theta - last)
    return loop.tried(there, follow=True)[0], there, _SHARES[-1]


def _change(stacked: Stacked, new: Array, old: Array) -> float:
    """Share of the torques that changed."""
    return float(np.linalg.norm(stacked.r @ (new - old))) / max(float(np.linalg.norm(stacked.r @ new)), 1e-300)


def moving_rows(loop: Loop, runs: list[Simulation], speeds: Sequence[Array], dropped: float,
                theta: Array | None) -> list[Bools]:
    """Rows that count (samples, dof), one a log: not the start, nor rows in or next to a standstill of the simulated
    robot (theta) or of the machine (smoothed velocities `speeds`), where dry friction has no clear sign."""
    out = []
    for log, run, dq in zip(loop.logs, runs, speeds, strict=True):
        there = at_samples(log.samples, run)
        still = standing(loop, [there.dq, dq], theta, log.reference)
        late = (log.samples.t >= log.samples.t[0] + dropped)[:, None]
        counts = log.samples.keep & late & (soften(~still, there, 0.5 * WINDOW) > 0.5)
        if not np.any(counts):
            raise NotPossibleError(f"{log.samples.source}: no row is left once the first {dropped:.3g} s are dropped; "
                                   "record longer, or give 'transient'")
        out.append(counts)
    return out


def simulated_samples(loop: Loop, runs: list[Simulation], rows: Sequence[Bools]) -> list[Samples]:
    """The simulated motion with the measured torques, in the rows that count."""
    return [replace(at_samples(log.samples, run), tau=log.samples.tau, keep=keep)
            for log, run, keep in zip(loop.logs, runs, rows, strict=True)]


def bent(stacked: Stacked, slopes: Array, here: Array) -> Stacked:
    """Equations whose motion follows the parameters: R M beta = rho - R here + R M here (see `torque_slopes`)."""
    r = stacked.r @ slopes
    return Stacked(r, stacked.rho - stacked.r @ here + r @ here, stacked.rest, stacked.rows)


def torque_slopes(problem: Problem, loop: Loop, theta: Array, samples: Sequence[Samples], weights: Array,
                  sizes: Array) -> Array:
    """M = (X'WX)^-1 X'WS (base, base), S the slopes of the simulated torques, X the regressor of the simulated motion.

    tau(beta) = X(beta) beta, so S is X and what the motion itself changes. Where it hardly moves M is the identity and
    the method's own iterations contract at once. A soft loop with much friction is far from that: an iteration takes
    the share 1 - M of an error with it, which makes them slow or diverge, and the noise in the fixed point is M^-1
    times that of a least squares. sizes (base,): by which each parameter is moved.
    """
    base = problem.base
    layout = Layout.of(problem.model, base)
    _, scaled = loop.tried(theta, follow=True)
    normal, cross = np.zeros((len(base), len(base))), np.zeros((len(base), len(base)))
    for log, part in zip(loop.logs, samples, strict=True):
        slopes = _slopes(problem, loop, log, theta, sizes, scaled)
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


def _slopes(problem: Problem, loop: Loop, log: Log, theta: Array, sizes: Array, scaled: bool) -> Array:
    """Slopes of the simulated torques in each base parameter (base, samples, dof), over steps of these sizes (base,) or
    smaller ones where a robot so far off cannot be simulated."""
    here = problem.base.reduce(theta)
    ways = np.array([problem.base.expand(here + unit) - problem.base.expand(here) for unit in np.eye(len(here))])
    for shrink in (1.0, 0.1, 0.01):
        steps = shrink * sizes
        moved = np.vstack([theta, theta + steps[:, None] * ways])
        try:
            laws = [loop.law(row, scaled) for row in moved]
            if log.made_up:
                runs = [simulate(problem.model, row, law, loop.reference(log, row, law), step=loop.step)
                        for row, law in zip(moved, laws, strict=True)]
            else:
                runs = simulate_many(problem.model, moved, laws, log.reference, step=loop.step, threads=problem.threads)
        except NotPossibleError:
            if shrink == 0.01:
                raise
            continue
        first, *others = [at_samples(log.samples, run).tau for run in runs]
        return np.stack([(tau - first) / step for tau, step in zip(others, steps, strict=True)])
    raise ModelError("slopes need at least one size of steps")


def _deviations(regression: Regression, weights: Array) -> Array:
    """A step for each parameter: its deviation as least squares has it, rows taken for independent (base,)."""
    free = solve(regression, regression.stack(weights))
    sizes = np.sqrt(np.maximum(np.diag(naive_covariance(regression, free, weights)), 0.0))
    return np.where(sizes > 0.0, sizes, 1e-6)


def _covariance(problem: Problem, samples: Sequence[Samples], regression: Regression, beta: Array,
                slopes: Array) -> tuple[Array, Solution, Array, Noise]:
    """M^-1 C M^-T (base, base) with the covariance C of least squares on the simulated motion, and what C is from."""
    inner = replace(problem, regression=regression, data=tuple(samples))
    weights = joint_weights(regression)
    free = solve(regression, regression.stack(weights))
    shown = Solution(beta, free.inverse, free.identified, free.confounded, free.condition)
    found = noise(inner, shown, weights)
    covariance = found.covariance(shown)
    kept = np.flatnonzero(free.identified)
    back = np.zeros_like(slopes)
    back[np.ix_(kept, kept)] = np.linalg.inv(slopes[np.ix_(kept, kept)])
    return back @ covariance @ back.T, shown, weights, found


def _estimate(problem: Problem, name: str, loop: Loop, samples: list[Samples], regression: Regression, beta: Array,
              theta: Array | None, slopes: Array, history: list[dict[str, Any]], dropped: float) -> Estimate:
    inner = replace(problem, regression=regression, data=tuple(samples))
    covariance, shown, weights, found = _covariance(problem, samples, regression, beta, slopes)
    fitted = diagnostics(inner, shown, weights, covariance, found, **closed_loop.facts(loop, history, dropped))
    facts = {"simulated_relative_error": fitted.relative_error,
             "relative_error": problem.regression.relative_error(beta),
             "relative_error_per_joint": problem.regression.relative_errors(beta).tolist()}
    if theta is not None:
        facts["consistent"] = True
    return Estimate(name, problem.model, problem.base, beta, covariance, shown.identified, theta,
                    diagnostics=fitted.with_facts(facts))
