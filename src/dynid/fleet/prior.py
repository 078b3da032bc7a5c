"""The fleet as a prior for a new robot of its type."""

from __future__ import annotations

import numpy as np

from dynid.estimate import Estimate
from dynid.estimate.diagnostics import Diagnostics
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.fleet.pooling import Pooling
from dynid.model import LinearModel
from dynid.regression import Regression


def type_estimate(pooling: Pooling, model: LinearModel, regression: Regression) -> Estimate:
    """Return the fleet's mean as an estimate whose covariance includes the spread between robots.

    It is a prior for `dynid watch --prior` and `Online`. regression: of all robots, for the numbers of the fit.
    """
    variances = np.diag(pooling.prior)
    identified = np.isfinite(variances) & (variances < (1e2 * pooling.size) ** 2)
    facts = Diagnostics.of_fit(regression, pooling.mean, rank=int(identified.sum()), condition=1.0)
    return Estimate("fleet", model, pooling.base, pooling.mean, identified,
                    OnDemand.known(Uncertainty(pooling.prior, "posterior")), diagnostics=facts)
