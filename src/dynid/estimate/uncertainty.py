"""Uncertainty of an estimate: its covariance and how that was found, computed when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.findings import Note
from dynid.threads import one_blas_thread

# How a covariance was found: from residuals correlated in time, from cross-validation over blocks of time, as if rows
# were independent, of a posterior with a prior, from the spectrum of instruments, or from a filter's innovations.
CovType = Literal["correlated", "blocks", "independent", "posterior", "instruments", "innovations"]
# Facts that files of earlier versions keep among the diagnostics of the fit.
EARLIER_FACTS = ("deviation_inflation", "effective_rows_per_joint", "autocovariance", "autocovariance_rate")


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Covariance of an estimate, and how it was found.

    Attributes:
        covariance: (base, base), in the units of the base parameters.
        cov_type: how it was found, see `dynid.estimate.covariance`.
        degrees_of_freedom: of Student's t for intervals; infinite for a normal distribution.
        notes: what the standard errors do not promise.
        facts: numbers by name. "deviation_inflation": how many times larger the standard errors are than those of
            independent rows, the median over the parameters. "textbook_std" (base,): standard errors of textbooks,
            which take all rows for independent and of one variance. "effective_rows_per_joint" (dof,): how many
            independent rows the data are worth. "autocovariance" of the residuals, one list a joint, at
            "autocovariance_rate", Hz. Others are a method's own.
    """

    covariance: Array
    cov_type: CovType
    degrees_of_freedom: float = np.inf
    notes: tuple[Note, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


class OnDemand:
    """An uncertainty that is computed at first use and kept; copies of an estimate share it.

    A thread that asks while another one computes does the same work again, and both get the first result: waiting
    for each other could block threads that the computation itself needs.
    """

    def __init__(self, compute: Callable[[CovType | None], Uncertainty], cov_type: CovType | None = None) -> None:
        self._compute: Callable[[CovType | None], Uncertainty] | None = compute
        self._cov_type = cov_type
        self._found: dict[str, Uncertainty] = {}

    @staticmethod
    def known(found: Uncertainty) -> OnDemand:
        """An uncertainty that is known already, and in one way only."""
        def compute(cov_type: CovType | None) -> Uncertainty:
            if cov_type not in (None, found.cov_type):
                raise NotPossibleError(f"cov_type '{cov_type}' is not possible for this "
                                       "estimate: its covariance is available only as "
                                       f"'{found.cov_type}'", "remove cov_type")
            return found
        return OnDemand(compute)

    def __call__(self) -> Uncertainty:
        compute = self._compute
        if "it" not in self._found and compute is not None:
            with one_blas_thread():
                self._found.setdefault("it", compute(self._cov_type))
        return self._found["it"]

    def by(self, cov_type: CovType) -> OnDemand:
        """The same estimate's uncertainty by a named way."""
        if cov_type not in get_args(CovType):
            raise ModelError(f"there is no cov_type '{cov_type}'; there are {', '.join(get_args(CovType)[:3])}")
        assert self._compute is not None
        return OnDemand(self._compute, cov_type)

    def then(self, change: Callable[[Uncertainty], Uncertainty]) -> OnDemand:
        """What a function makes of this uncertainty, computed at first use as well."""
        return OnDemand(lambda cov_type: change(self() if cov_type is None else self.by(cov_type)()))

    def __reduce__(self) -> tuple[Callable[[Uncertainty], OnDemand], tuple[Uncertainty]]:
        """Copies in other processes and files hold the result, not the data it is computed from."""
        return OnDemand.known, (self(),)
