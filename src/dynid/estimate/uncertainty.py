"""Uncertainty of an estimate, computed on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.findings import Note
from dynid.threads import one_blas_thread

# Types of covariances: from autocorrelated residuals, from cross-validation over blocks of time, for independent
# rows, of a posterior with a prior, from the spectrum of instruments, or from a filter's innovations.
CovType = Literal["correlated", "blocks", "independent", "posterior", "instruments", "innovations"]


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Covariance of an estimate and its type.

    Attributes:
        covariance: covariance of the base parameters (base, base), in their units.
        cov_type: type of the covariance, see `dynid.estimate.covariance`.
        degrees_of_freedom: degrees of freedom of Student's t for intervals; infinite for a normal distribution.
        notes: limitations of the standard errors.
        facts: numbers by name. "std_inflation": ratio of the standard errors to those of independent rows, the
            median over the parameters. "textbook_std" (base,): textbook standard errors. "effective_rows_per_joint"
            (dof,): effective number of independent rows. "autocovariance" of the residuals, one list per joint, at
            "autocovariance_rate", Hz. Others belong to a method.
    """

    covariance: Array
    cov_type: CovType
    degrees_of_freedom: float = np.inf
    notes: tuple[Note, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


class OnDemand:
    """An uncertainty that is computed at first use and cached; copies of an estimate share it.

    If two threads request it at once, both compute it and use the first result: waiting could block threads that the
    computation needs.
    """

    def __init__(self, compute: Callable[[CovType | None], Uncertainty], cov_type: CovType | None = None) -> None:
        self._compute, self._cov_type = compute, cov_type
        self._found: list[Uncertainty] = []

    @staticmethod
    def known(found: Uncertainty) -> OnDemand:
        """Return a computed uncertainty as `OnDemand`, available for its own type of covariance only."""
        def compute(cov_type: CovType | None) -> Uncertainty:
            if cov_type not in (None, found.cov_type):
                raise NotPossibleError(f"cov_type '{cov_type}' is not possible for this estimate: its covariance is "
                                       f"available only as '{found.cov_type}'", "remove cov_type")
            return found
        return OnDemand(compute)

    def __call__(self) -> Uncertainty:
        if not self._found:
            with one_blas_thread():
                self._found.append(self._compute(self._cov_type))
        return self._found[0]

    def by(self, cov_type: CovType) -> OnDemand:
        """Return the uncertainty of the estimate with a covariance of a named type."""
        if cov_type not in get_args(CovType):
            raise ModelError(f"there is no cov_type '{cov_type}'; there are {', '.join(get_args(CovType)[:3])}",
                             code="unknown-cov-type")
        return OnDemand(self._compute, cov_type)

    def then(self, change: Callable[[Uncertainty], Uncertainty]) -> OnDemand:
        """Return the uncertainty changed by a function `change`, also computed on demand."""
        return OnDemand(lambda cov_type: change(self() if cov_type is None else self.by(cov_type)()))

    def __reduce__(self) -> tuple[Callable[[Uncertainty], OnDemand], tuple[Uncertainty]]:
        """Support pickling: the computed uncertainty is stored instead of the data."""
        return OnDemand.known, (self(),)
