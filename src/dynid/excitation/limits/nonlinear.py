"""Limits that are nonlinear in a motion's coefficients (torques, workspace), as functions that must not be positive."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from dynid.arrays import Array, Ints
from dynid.excitation.information import Information
from dynid.excitation.limits.workspace import Workspace
from dynid.model import complete

OVERLAP = 0.2  # m: overlap of two bodies that counts as a violation of 1


class NonlinearLimit(Protocol):
    """Protocol of a limit that is nonlinear in the coefficients of a motion.

    The method `values` returns values (m, K) along a motion, positive for a violation. The method `gradient` returns
    the derivative (rows, 3, dof) by q, dq and ddq of one column of the values per row. `tightened(excess)` returns a
    stricter limit. refinement: ratio of the limit's number of samples to that of the criterion.
    """

    @property
    def refinement(self) -> int: ...

    def tightened(self, excess: float) -> NonlinearLimit: ...

    def values(self, q: Array, dq: Array, ddq: Array) -> Array: ...

    def gradient(self, q: Array, dq: Array, ddq: Array, columns: Ints) -> Array: ...

    def describe(self, column: int) -> str: ...


@dataclass(frozen=True, eq=False)
class TorqueLimit:
    """Torque limits |tau_j| / limit_j - 1 <= 0 in both directions.

    Attributes:
        information: the model and its base parameters.
        beta: values of the base parameters (base,).
        limit: torque limits (dof,), N m or N.
        names: names of the joints.
        margin: share of each limit that is kept free.
    """

    information: Information
    beta: Array
    limit: Array
    names: tuple[str, ...]
    margin: float = 0.0
    refinement = 1

    def tightened(self, excess: float) -> TorqueLimit:
        return replace(self, margin=min(self.margin + excess, 0.5))

    def values(self, q: Array, dq: Array, ddq: Array) -> Array:
        share = self.torques(q, dq, ddq) / self.limit
        return np.hstack([share, -share]) - 1.0 + self.margin

    def torques(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the torques (m, dof) of the nominal model along a motion, N m or N."""
        layout = self.information.layout
        entries = self.information.entries(q, dq, ddq)
        return np.stack([self.beta[columns] @ entries[layout.joint(j)][:-1]
                         for j, columns in enumerate(layout.columns)], axis=1)

    def gradient(self, q: Array, dq: Array, ddq: Array, columns: Ints) -> Array:
        layout, n = self.information.layout, q.shape[1]
        out = np.zeros((len(q), 3, n))
        for j in range(n):
            rows = np.flatnonzero(columns % n == j)
            if not len(rows):
                continue
            weights = np.zeros((layout.rows, len(rows)))
            sign = np.where(columns[rows] < n, 1.0, -1.0) / self.limit[j]
            own = layout.joint(j)
            weights[own.start:own.stop - 1] = np.outer(self.beta[layout.columns[j]], sign)
            q_, dq_, ddq_ = (np.ascontiguousarray(x[rows]) for x in (q, dq, ddq))
            out[rows] = np.swapaxes(complete(layout.model).pull_back(q_, dq_, ddq_, layout.place, weights), 0, 1)
        return out

    def describe(self, column: int) -> str:
        j = column % len(self.names)
        return f"the torque limit {self.limit[j]:g} of joint '{self.names[j]}'"


@dataclass(frozen=True, eq=False)
class WorkspaceLimit:
    """Workspace limits: minus the distance between bodies or to obstacles, in units of OVERLAP (0.2 m); margin:
    distance to keep free, in the same unit."""

    space: Workspace
    margin: float = 0.02
    refinement = 3  # bodies may move far between two samples of the criterion

    def tightened(self, excess: float) -> WorkspaceLimit:
        return replace(self, margin=min(self.margin + excess, 1.0))

    def values(self, q: Array, dq: Array, ddq: Array) -> Array:
        return self.margin - self.space.slack(q) / OVERLAP

    def gradient(self, q: Array, dq: Array, ddq: Array, columns: Ints) -> Array:
        out = np.zeros((len(q), 3, q.shape[1]))
        out[:, 0] = -self.space.gradient(q, columns) / OVERLAP
        return out

    def describe(self, column: int) -> str:
        return self.space.names[column]
