"""An earlier estimate as the prior of a new one, with a weight chosen by the evidence.

The prior N(mu, s^2 P) is added as rows to the weighted equations r beta = rho. Since residuals are autocorrelated,
the noise of the equations is multiplied by c, the mean eigenvalue of H^-1 M (H = r'r, M the noise of the score);
equivalently the prior's rows are multiplied by c^(1/2). s is at least one and maximises the evidence: with e_i, v_i
the eigenvalues and vectors of r P r' / c and d = (rho - r mu) / c^(1/2) it is

    -1/2 sum_i [log(1 + s^2 e_i) + (v_i' d)^2 / (1 + s^2 e_i)],

so the prior is down-weighted for robots that differ from the fleet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynid.errors import NotPossibleError
from dynid.estimate.covariance import noise
from dynid.estimate.estimate import Estimate
from dynid.estimate.linear import joint_weights, solve
from dynid.estimate.problem import Problem
from dynid.estimate.recursive.start import prior_rows
from dynid.regression.known import Prior

METHOD = "wls"  # method that accepts prior rows
_PRIOR_SCALES = np.geomspace(1.0, 1e3, 61)  # candidate factors on the standard deviations of the prior
UNLIKE_PRIOR_SCALE = 2.0  # from this factor on, a robot is reported as different from its prior


@dataclass(frozen=True)
class Weight:
    """Weight of a prior. `scale` is the factor on its standard deviations that maximises the evidence. `correlation` is
    c, the number of rows that count as one independent row."""

    scale: float
    correlation: float

    @property
    def sentence(self) -> str:
        """Sentence that states the weight of the prior relative to the data."""
        if self.scale < UNLIKE_PRIOR_SCALE:
            return "the prior is used with its stated covariance: the data do not contradict it"
        return (f"the prior is used with {self.scale:.3g} times its stated standard deviations, which maximises the "
                "likelihood of the data: this robot differs from those of the prior")


def with_prior(problem: Problem, earlier: Estimate) -> tuple[Problem, Weight]:
    """Return the problem with an earlier estimate of the same base parameters as prior rows, and their weight, for
    methods that solve weighted equations (`wls`)."""
    rows = prior_rows(problem.base, earlier)
    assert rows is not None
    regression = problem.regression
    alone = replace(problem, regression=replace(regression, prior=None))
    weights = joint_weights(regression)
    stacked = alone.regression.stack(weights)
    try:
        solution = solve(alone.regression, stacked)
        score_covariance = noise(alone, solution, weights).score_covariance
        c = max(float(np.trace(solution.inverse @ score_covariance)) / max(solution.rank, 1), 1.0)
    except NotPossibleError:  # without motion the prior is the estimate
        c = 1.0
    known = np.flatnonzero(earlier.identified)
    # Parameters that the prior does not contain are estimated from the data alone.
    others = np.setdiff1d(np.arange(len(problem.base)), known)
    r, rho = stacked.r[:, known], stacked.rho
    if len(others):
        basis, size, _ = np.linalg.svd(stacked.r[:, others], full_matrices=True)
        rest = basis[:, int(np.sum(size > 1e-10 * size.max(initial=0.0))):]
        r, rho = rest.T @ r, rest.T @ rho
    sizes, vectors = np.linalg.eigh(r @ earlier.covariance[np.ix_(known, known)] @ r.T / c)
    squares = (vectors.T @ (rho - r @ earlier.values[known])) ** 2 / c
    spread = 1.0 + _PRIOR_SCALES[:, None] ** 2 * np.maximum(sizes, 0.0)
    evidence = -0.5 * np.sum(np.log(spread) + squares / spread, axis=1)
    scale = float(_PRIOR_SCALES[int(np.argmax(evidence))])
    prior = Prior(rows.matrix / scale, rows.values / scale, {}, float(np.sqrt(c)))
    if regression.prior is not None:
        prior = prior.and_also(regression.prior)
    return replace(problem, regression=replace(regression, prior=prior)), Weight(scale, c)
