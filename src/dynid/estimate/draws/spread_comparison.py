"""Comparison of the torque spread of drawn models with the spread by the covariance of an estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.estimate.estimate import Estimate
from dynid.regression import Regression

SPREAD_TOLERANCE = 0.1  # by which the spread of draws may differ from the stated one, as a share of it


@dataclass(frozen=True, eq=False)
class TorqueSpread:
    """Standard deviation of predicted torques over draws, root mean square along the data.

    Attributes:
        joints: names (dof,).
        stated: (dof,), by the covariance of the estimate, N m or N.
        drawn: (dof,), of the draws about their mean, N m or N.
    """

    joints: tuple[str, ...]
    stated: Array
    drawn: Array

    @property
    def ratio(self) -> Array:
        """Spread of the draws divided by the stated spread (dof,); one if nothing is stated."""
        return np.where(self.stated > 0.0, self.drawn / np.where(self.stated > 0.0, self.stated, 1.0), 1.0)

    @property
    def matches(self) -> bool:
        """Whether the ratio of every joint is within `SPREAD_TOLERANCE` of one."""
        return bool(np.all(np.abs(self.ratio - 1.0) <= SPREAD_TOLERANCE))

    @property
    def sentence(self) -> str:
        """Sentence that compares the torque spread of the draws with the stated one."""
        low, high = float(self.ratio.min()), float(self.ratio.max())
        said = f"The torques of the draws scatter by {low:.2f} to {high:.2f} times the stated standard error"
        if self.matches:
            return said + f" of each joint: within {100 * SPREAD_TOLERANCE:g} %."
        worst = self.joints[int(np.argmax(np.abs(self.ratio - 1.0)))]
        return said + (f", which is outside {100 * SPREAD_TOLERANCE:g} % (worst: {worst}). Physical "
                       "consistency restricts the draws there; more excitation makes the posterior narrower.")


def torque_spread(estimate: Estimate, values: Array, regression: Regression) -> TorqueSpread:
    """Return the spread of torques of base values (draws, base) along the data of a regression.

    Raises:
        ModelError: if the regression is of other base parameters.
    """
    check_same_base(estimate, regression)
    away = values - values.mean(axis=0)
    stated, drawn = np.zeros(regression.dof), np.zeros(regression.dof)
    for j, factor in enumerate(regression.factors):
        rows, own, count = factor.r[:, :-1], factor.columns, max(factor.rows, 1)
        known = estimate.identified[own]
        rows, own = rows[:, known], own[known]
        covariance = estimate.covariance[np.ix_(own, own)]
        stated[j] = np.sqrt(max(float(np.einsum("ki,ij,kj->", rows, covariance, rows)), 0.0) / count)
        drawn[j] = np.sqrt(float(np.sum((away[:, own] @ rows.T) ** 2)) / max(len(away) - 1, 1) / count)
    return TorqueSpread(regression.joints, stated, drawn)


def check_same_base(estimate: Estimate, regression: Regression) -> None:
    """Refuse a regression of other base parameters than those of the estimate."""
    if regression.base.expressions != estimate.base.expressions:
        raise ModelError("the regression has other base parameters than the estimate", code="other-parameters")
