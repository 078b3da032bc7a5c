"""Limits that are not linear in a motion's coefficients: torques and space, as numbers that must not be above zero."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from dynid.arrays import Array, Ints
from dynid.excitation.information import Information
from dynid.excitation.space import Space
from dynid.model import complete

UNIT = 0.2  # m; an overlap of that much counts as an excess of 1


class Constraint(Protocol):
    """values (m, K) at a motion, and the derivative (rows, 3, dof) by q, dq, ddq of chosen columns, one in each row.

    fine: how many times more samples than the criterion it must be looked at. with_room(excess): the same, stricter.
    """

    @property
    def fine(self) -> int: ...

    def with_room(self, excess: float) -> Constraint: ...

    def values(self, q: Array, dq: Array, ddq: Array) -> Array: ...

    def gradient(self, q: Array, dq: Array, ddq: Array, columns: Ints) -> Array: ...

    def describe(self, column: int) -> str: ...


@dataclass(frozen=True, eq=False)
class TorqueLimit:
    """|tau_j| / limit_j - 1, both directions, of a model with base values beta. room: share of each limit kept free."""

    information: Information
    beta: Array
    limit: Array
    names: tuple[str, ...]
    room: float = 0.0
    fine = 1

    def with_room(self, excess: float) -> TorqueLimit:
        return replace(self, room=min(self.room + excess, 0.5))

    def values(self, q: Array, dq: Array, ddq: Array) -> Array:
        share = self.torques(q, dq, ddq) / self.limit
        return np.hstack([share, -share]) - 1.0 + self.room

    def torques(self, q: Array, dq: Array, ddq: Array) -> Array:
        """(m, dof), N m."""
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
class SpaceLimit:
    """Minus the metres left of every contact, in units of UNIT. room: in the same units, kept free."""

    space: Space
    room: float = 0.02
    fine = 3  # bodies move far between two samples of a slow criterion

    def with_room(self, excess: float) -> SpaceLimit:
        return replace(self, room=min(self.room + excess, 1.0))

    def values(self, q: Array, dq: Array, ddq: Array) -> Array:
        return self.room - self.space.slack(q) / UNIT

    def gradient(self, q: Array, dq: Array, ddq: Array, columns: Ints) -> Array:
        out = np.zeros((len(q), 3, q.shape[1]))
        out[:, 0] = -self.space.gradient(q, columns) / UNIT
        return out

    def describe(self, column: int) -> str:
        return self.space.names[column]
