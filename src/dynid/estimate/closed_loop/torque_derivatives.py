"""Derivatives of the simulated torques with respect to the parameters, including the change of the motion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.estimate.closed_loop.loop import LawOf, Log, Loop, at_samples
from dynid.estimate.instruments.projection import low_decimation
from dynid.estimate.problem import Problem
from dynid.recording import Samples
from dynid.recording.decimate import decimate_columns, decimated_rows
from dynid.regression import Stacked
from dynid.regression.equations import Layout
from dynid.simulation import Simulation, simulate, simulate_many

_STEP_REDUCTIONS = (1.0, 0.1, 0.01)  # of the step of a parameter, tried in turn until its robot can be simulated


def linearised(stacked: Stacked, slopes: Array, here: Array) -> Stacked:
    """Return equations that include the change of the motion, about base values here (base,): R M beta = rho - R here
    + R M here, with M (base, base) of `torque_slopes`."""
    r = stacked.r @ slopes
    return Stacked(r, stacked.rho - stacked.r @ here + r @ here, stacked.rest, stacked.rows)


def torque_slopes(problem: Problem, loop: Loop, law_of: LawOf, theta: Array, samples: Sequence[Samples],
                  weights: Array, sizes: Array) -> Array:
    """Return M = (X'WX)^-1 X'WS (base, base).

    S holds the derivatives of the simulated torques, and X is the regressor of the simulated motion. As tau(beta) =
    X(beta) beta, S is X plus the effect of the changed motion. If the motion hardly changes, M is the identity and a
    plain iteration converges at once. In a soft loop with much friction, each iteration keeps the share 1 - M of an
    error. The noise of the fixed point is then M^-1 times that of least squares.

    Args:
        problem: the identification problem.
        loop: the simulated loop of every log.
        law_of: the control law as a function of the parameters.
        theta: (parameters,), about which the derivatives are computed.
        samples: simulated motion of each log.
        weights: (dof,), of the joints.
        sizes: (base,), step sizes of the base parameters.
    """
    base = problem.base
    layout = Layout.of(problem.model, base)
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
    """Return derivatives of the simulated torques by each base parameter (base, samples, dof), with steps of these
    sizes (base,), or smaller ones if the simulation fails."""
    here = problem.base.reduce(theta)
    ways = np.array([problem.base.expand(here + unit) - problem.base.expand(here) for unit in np.eye(len(here))])

    def over(steps: Array) -> Array:
        motions = _many(loop, log, law_of, np.vstack([theta, theta + steps[:, None] * ways]), problem.threads)
        first, *others = [at_samples(log.samples, motion).tau for motion in motions]
        return np.stack([(tau - first) / step for tau, step in zip(others, steps, strict=True)])

    for shrink in _STEP_REDUCTIONS[:-1]:
        try:
            return over(shrink * sizes)
        except NotPossibleError:
            continue
    return over(_STEP_REDUCTIONS[-1] * sizes)


def _many(loop: Loop, log: Log, law_of: LawOf, thetas: Array, threads: int | None) -> list[Simulation]:
    """Simulate a log for each row of thetas (many, parameters), each with its own law and reference."""
    laws = [law_of(theta) for theta in thetas]
    if not log.from_positions:
        return simulate_many(loop.model, thetas, laws, log.reference, step=loop.step, threads=threads)
    return [simulate(loop.model, theta, law, loop.following_reference(log, theta, law), step=loop.step)
            for theta, law in zip(thetas, laws, strict=True)]
