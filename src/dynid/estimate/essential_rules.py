"""Rules for removing base parameters, based on the fit without some of them.

A `View` of a fit gives, for any kept set of parameters, their values, their standard errors, and the cost of removing
the others. Rules select the next parameter to remove (Ardiani, s. 1.3.2.2): the parameter of largest relative standard
error while it is above a threshold ("deviation") or a multiple of the smallest ("ratio", Gautier et al. 2013), or as
long as an F-test allows ("f-test", eq. 1.35); all at once those above ten times the smallest ("smallest", Khalil and
Dombre 2002); and those with little torque, by the diagonal of R of the columns times their values ("r"), or by their
singular values ("singular"), both of Pham and Gautier 1991.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from dynid.arrays import Array, Ints
from dynid.lapack import solve_triangular
from dynid.regression import Stacked

THRESHOLDS = {"deviation": 30.0, "ratio": 30.0, "smallest": 10.0, "r": 1.0, "singular": 1.0}
RULES = ("deviation", "ratio", "f-test", "smallest", "r", "singular")


@dataclass(frozen=True)
class Removal:
    """A removed base parameter: its relative standard error in percent, infinite if it was not excited, and the
    F-statistic of the model without it and all before it against the full one."""

    name: str
    relative_std: float
    statistic: float


class KeptParameters(NamedTuple):
    """Values and standard errors (kept,) of the kept parameters, and the cost of removing the others, a sum of
    squares in units of the noise variance."""

    values: Array
    deviations: Array
    cost: float

    @property
    def relative(self) -> Array:
        """Relative standard errors (kept,), percent."""
        size = np.abs(self.values)
        return np.where(size > 0, 100.0 * self.deviations / np.where(size > 0, size, 1.0), np.inf)


class View(Protocol):
    """A fit with only some of its parameters, given by their indices."""

    def __call__(self, kept: Ints) -> KeptParameters: ...


@dataclass(frozen=True, eq=False)
class FoldedView:
    """Least squares with any set of columns, solved from the compressed factor, with the noise of the full model.
    middle (base, base): see `Noise`; free: effective rows minus parameters; rest: residual sum of squares of the full
    model."""

    stacked: Stacked
    middle: Array
    rest: float
    free: float

    def __call__(self, kept: Ints) -> KeptParameters:
        part = self.stacked.select(kept)
        scale = np.linalg.norm(part.r, axis=0)
        half = solve_triangular(part.r / scale, np.eye(len(kept))) / scale[:, None]
        inverse = half @ half.T
        deviations = np.sqrt(np.diag(inverse @ self.middle[np.ix_(kept, kept)] @ inverse))
        cost = (part.rest - self.rest) / self.rest * self.free if self.rest > 0 else np.inf
        return KeptParameters(half @ part.rho, deviations, float(cost))


@dataclass(frozen=True, eq=False)
class NormalView:
    """Conditional estimate with the other parameters fixed at zero; the cost is the Wald statistic."""

    values: Array
    covariance: Array

    def __call__(self, kept: Ints) -> KeptParameters:
        gone = np.setdiff1d(np.arange(len(self.values)), kept)
        gone = gone[np.diag(self.covariance)[gone] > 0]  # those not excited have no deviation and no value
        whole, both = self.covariance[np.ix_(kept, kept)], self.covariance[np.ix_(kept, gone)]
        scale = np.sqrt(np.diag(self.covariance)[gone])
        share = np.linalg.solve(self.covariance[np.ix_(gone, gone)] / np.outer(scale, scale),
                                np.column_stack([self.values[gone] / scale, both.T / scale[:, None]]))
        values = self.values[kept] - both / scale @ share[:, 0]
        variance = np.diag(whole) - np.einsum("kg,gk->k", both / scale, share[:, 1:])
        return KeptParameters(
            values, np.sqrt(np.maximum(variance, 0.0)), float(self.values[gone] / scale @ share[:, 0])
        )


Choose = Callable[[Ints, Array], int | None]  # of the kept and their relative deviations, the one to go


def walked(view: View, first: Ints, names: Sequence[str], choose: Choose,
           allowed: Callable[[int, float], bool] = lambda gone, statistic: True) -> tuple[Ints, list[Removal]]:
    """Return the indices of the kept parameters, ascending, and the removed parameters in order of removal. allowed:
    function of the number of removals and the F-statistic that accepts a removal.
    """
    kept, removed = first, list[Removal]()
    while len(kept) > 1:
        relative = view(kept).relative
        worst = choose(kept, relative)
        if worst is None:
            break
        place = int(np.flatnonzero(kept == worst)[0])
        fewer = np.delete(kept, place)
        gone = len(first) - len(fewer)
        statistic = view(fewer).cost / gone
        if not allowed(gone, statistic):
            break
        kept = fewer
        removed.append(Removal(names[worst], float(relative[place]), float(statistic)))
    return kept, removed


def chooser(rule: str, threshold: float, view: View, first: Ints, stacked: Stacked) -> Choose:
    """Return a function that chooses the next parameter to remove by a rule."""
    if rule in ("deviation", "ratio", "f-test"):
        def largest(kept: Ints, relative: Array) -> int | None:
            worst = int(np.argmax(relative))
            limit = {"deviation": threshold, "ratio": threshold * float(relative.min()), "f-test": -1.0}[rule]
            return int(kept[worst]) if relative[worst] > limit else None
        return largest
    if rule == "smallest":
        relative = view(first).relative
        order = np.argsort(-relative)
        going = [int(first[k]) for k in order if relative[k] > threshold * relative.min()]
    else:
        going = _little_torque(rule, 0.01 * threshold, first, stacked, view(first).values)
    left = iter(going)
    return lambda kept, relative: next(left, None)


def _little_torque(rule: str, share: float, first: Ints, stacked: Stacked, values: Array) -> list[int]:
    """Return the parameters whose independent torque is below a share of the largest, smallest first."""
    from scipy.linalg import qr

    columns = stacked.r[:, first] * values  # torques of each, in units of the noise
    if rule == "r":
        triangle, order = qr(columns, mode="economic", pivoting=True)[1:]
        size = np.abs(np.diag(triangle))
        return [int(first[k]) for k in order[size < share * size[0]][::-1]]
    _, singular, right = np.linalg.svd(columns, full_matrices=False)
    many = max(int(np.sum(singular >= share * singular[0])), 1)
    # The columns that span the large ones best (Golub and Van Loan, subset selection).
    order = qr(right[:many], mode="economic", pivoting=True)[2]
    return [int(first[k]) for k in order[many:][::-1]]
