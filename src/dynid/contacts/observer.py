"""Observer: the joint torques of whatever acts on a robot from outside, sample by sample."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynid.arrays import Array, Ints
from dynid.contacts.filtered_rows import FilteredRows, FilterOptions
from dynid.errors import ModelError
from dynid.estimate import Estimate

_AT_ONCE = 4096  # raw samples


class OutsideTorques(NamedTuple):
    """Joint torques from outside, a row a sample. t (m,): s, of what a row is about. q, dq (m, dof): as filtered. tau
    (m, dof): N m or N. model (m, dof, dof): covariance of tau from that of the parameters. slow (m, dof): see `Rows`.
    """

    t: Array
    q: Array
    dq: Array
    tau: Array
    model: Array
    slow: Array

    @staticmethod
    def joined(parts: list[OutsideTorques]) -> OutsideTorques:
        """One after the other."""
        return parts[0] if len(parts) == 1 else OutsideTorques(*(np.concatenate(x) for x in zip(*parts, strict=True)))

    def rows(self, which: slice | Ints) -> OutsideTorques:
        """Some of the rows."""
        return OutsideTorques(*(x[which] for x in self))


class Observer:
    """Torques from outside of a robot with the identified base parameters as they are."""

    def __init__(self, estimate: Estimate, options: FilterOptions) -> None:
        self.estimate, self.options = estimate, options
        self._covariance = parameter_covariance(estimate)
        self._rows = FilteredRows(estimate.model, estimate.base, options)

    @property
    def delay(self) -> float:
        """Seconds after its own time that a row is known; nan before the first."""
        return self._rows.delay

    @property
    def events(self) -> tuple[str, ...]:
        """What was wrong with the samples."""
        return self._rows.events

    def push(self, t: Array, q: Array, tau: Array) -> OutsideTorques:
        """Raw samples (m,), (m, dof), (m, dof), and the torques that they complete."""
        blocks = range(0, max(len(t), 1), _AT_ONCE)
        return OutsideTorques.joined([self._push(*(x[k:k + _AT_ONCE] for x in (t, q, tau))) for k in blocks])

    def _push(self, t: Array, q: Array, tau: Array) -> OutsideTorques:
        rows = self._rows.push(t, q, tau)
        y = rows.columns
        outside = y @ self.estimate.values - rows.tau
        return OutsideTorques(rows.t, rows.q, rows.dq, outside, y @ self._covariance @ np.swapaxes(y, 1, 2), rows.slow)


def parameter_covariance(estimate: Estimate) -> Array:
    """Covariance (base, base) of what is identified, zero elsewhere; refused where the estimate states none."""
    known = np.outer(estimate.identified, estimate.identified)
    found = np.where(known, estimate.covariance, 0.0)
    if found.shape != (len(estimate.values),) * 2 or not np.isfinite(found).all() or not np.diag(found).any():
        raise ModelError("the result states no covariance of its parameters, so forces would have no deviation",
                         "identify by a method that does, such as wls, and give that result")
    return found
