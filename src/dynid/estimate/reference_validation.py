"""Cross-validation errors along the references, and the noise of the accelerations.

With noisy positions least squares predicts torques from the same positions best, even with wrong parameters. The error
on a block is then not a valid criterion. The part of the residual along the regressor of the references, which are free
of that noise, is valid: E|P_Z (tau - Y beta)| is smallest at the true parameters (Ardiani, s. 3.3.2). P_Z projects on
the regressor of the references, and Y is that of the measured motion.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.estimate.block_cross_validation import BlockCrossValidation
from dynid.estimate.closed_loop.loop import make_loop
from dynid.estimate.instruments.equations import Instrumented, Measured, taper
from dynid.estimate.instruments.transfer import plain_references
from dynid.estimate.problem import Problem
from dynid.regression import fold

# Of the largest singular value of a block's instruments: smaller ones are not excited.
_RANK_TOLERANCE = 1e-6


def reference_errors(problem: Problem, seen: Mapping[str, BlockCrossValidation]) -> dict[str, Array]:
    """Return cross-validation errors (blocks,) of each method, percent, along the regressor of the references."""
    loop = make_loop(problem, "auto")
    measured = Measured(problem.model, problem.base, problem.data)
    instruments = Instrumented(measured, tuple(plain_references(loop.logs)),
                               tuple(taper(log.samples, 0.0) for log in loop.logs))
    whole = fold(instruments, blocks=len(problem.regression.blocks), threads=problem.threads)
    if [block.spans for block in whole.blocks] != [block.spans for block in problem.regression.blocks]:
        raise NotPossibleError("the regressions of measured motion and references have different blocks of time; "
                               "compute both with the same blocks")
    b, parts = len(problem.base), []
    for k in range(len(whole.blocks)):
        stacked = whole.only(k).stack()
        left, singular, _ = np.linalg.svd(stacked.r[:b, :b])
        span = left[:, singular > _RANK_TOLERANCE * singular[0]]
        parts.append((span.T @ stacked.r[:b, b:], span.T @ stacked.rho[:b]))

    def error(k: int, values: Array) -> float:
        y, tau = parts[k]
        size = float(np.linalg.norm(tau))
        return 100.0 * float(np.linalg.norm(y @ values - tau)) / size if size > 0 else float("nan")

    return {name: np.array([error(k, fit.values) for k, fit in zip(one.blocks, one.fits, strict=True)])
            for name, one in seen.items()}


def acceleration_noise(problem: Problem) -> Array:
    """Return the share (dof,) of the prepared accelerations' mean square that is noise of the logged positions.

    Third differences of the positions give the noise variance s^2: those of white noise have the variance 20 s^2, those
    of a motion are far smaller. Below the cut-off f, accelerations have the noise variance 2 s^2 / rate (2 pi)^4 f^5 /
    5.
    """
    share = np.zeros(problem.model.dof)
    for log, part in zip(problem.recordings, problem.data, strict=False):
        rate = (len(log.t) - 1) / float(log.t[-1] - log.t[0])
        variance = np.mean(np.diff(log.q, 3, axis=0) ** 2, axis=0) / 20.0
        top = 0.5 * rate
        given = part.settings.get("cutoff")
        cutoff = top if part.settings.get("method") == "none" or given is None else min(float(given), top)
        noise = 2.0 * variance / rate * (2.0 * np.pi) ** 4 * cutoff ** 5 / 5.0
        power = np.mean(part.ddq ** 2, axis=0)
        share = np.maximum(share, np.where(power > 0, noise / np.where(power > 0, power, 1.0), 0.0))
    return np.minimum(share, 1.0)
