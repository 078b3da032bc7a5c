"""The physically consistent robot nearest to given base parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array
from dynid.consistency import fit
from dynid.errors import NotPossibleError
from dynid.estimate.consistent import filled, problem_consistency
from dynid.estimate.estimate import Estimate
from dynid.estimate.linear import joint_weights
from dynid.estimate.problem import Problem
from dynid.quantities import percent_text
from dynid.threads import one_blas_thread

SAME_ERROR = 0.01  # largest relative increase of the torque error of a robot with "the same torques"


@dataclass(frozen=True, eq=False)
class ConsistentRobot:
    """A physically consistent robot near an estimate.

    Attributes:
        theta: standard parameters (parameters,).
        error: relative torque error of this robot on the data, percent.
        estimate_error: relative torque error of the estimate, percent.
    """

    theta: Array
    error: float
    estimate_error: float

    @property
    def same(self) -> bool:
        """Whether the torque error of this robot exceeds that of the estimate by at most `SAME_ERROR`."""
        return self.error <= (1.0 + SAME_ERROR) * self.estimate_error

    @property
    def sentence(self) -> str:
        """Sentence that states the increase of the torque error by physical consistency."""
        if self.same:
            return ("a physically consistent robot with the same torques "
                    f"(error {percent_text(self.error)} on the fitted data)")
        return ("the nearest physically consistent robot; its torque error on the fitted data is "
                f"{percent_text(self.error)} instead of {percent_text(self.estimate_error)}")


def consistent_robot(problem: Problem, estimate: Estimate) -> ConsistentRobot:
    """Return the physically consistent robot whose torques along the data are nearest to those of an estimate.

    Args:
        problem: the data and known values.
        estimate: estimate of the base parameters of this problem by any method.

    Raises:
        NotPossibleError: if the estimate has other parameters than the problem, or no robot is near.
    """
    base = problem.base
    if estimate.base is not base and estimate.names != base.names:
        raise NotPossibleError("the estimate and the regression have different base parameters; give an estimate and a "
                               "regression of the same model", code="other-parameters")
    with one_blas_thread():
        stacked = problem.regression.stack(joint_weights(problem.regression), prior=False)
        # The same equations without noise; `rest` is kept as the scale of the noise.
        target = replace(stacked, rho=stacked.r @ np.where(np.isfinite(estimate.values), estimate.values, 0.0))
        consistency = problem_consistency(problem)
        best = fit(consistency, base, target)
        theta, *_ = filled(problem, consistency, target, best, noise_misfit=float(len(base)))  # one for each parameter
    error = problem.regression.relative_error
    return ConsistentRobot(theta, error(base.matrix @ theta), error(estimate.values))
