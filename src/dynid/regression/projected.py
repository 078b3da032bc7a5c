"""Torque equations of each sample multiplied by a matrix of that sample.

Contacts add J' f to the torques of a robot with a free base. Rows of the null space of J do not contain the unknown f:
with an orthonormal N of that null space, N' Y theta = N' tau. `dynid.floating` computes the matrices. `Samples.keep`
states which of a sample's rows are used, since their number changes with the contacts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.arrays import Array
from dynid.model import LinearModel
from dynid.recording import Samples
from dynid.regression.base import BaseParameters
from dynid.regression.equations import Layout, TorqueEquations

_ROWS_AT_ONCE = 1024  # samples whose dense rows are held at a time


@dataclass(frozen=True, eq=False)
class ProjectedEquations(TorqueEquations):
    """Torque equations multiplied by `Samples.mixing`, row by row; logs without it are unchanged."""

    @cached_property
    def plain(self) -> TorqueEquations:
        """The data before they are multiplied by `Samples.mixing`."""
        return TorqueEquations(self.model, self.logs, self.base)

    @cached_property
    def layout(self) -> Layout:
        return Layout.of(self.model, self.base).with_columns([np.arange(len(self.base))] * self.model.dof)

    def entries(self, samples: Samples, rows: slice) -> Array:
        plain, n, b = self.plain.layout, self.model.dof, len(self.base)
        given = self.plain.entries(samples, rows)
        known = n if self.base.known else 0
        out = np.zeros((self.layout.rows + known, given.shape[1]))
        for start in range(0, given.shape[1], _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            dense = np.zeros((n, b + 2, given[:, part].shape[1]))
            for j in range(n):
                own = given[plain.joint(j), part]
                dense[j, plain.columns[j]], dense[j, b] = own[:-1], own[-1]
                if known:
                    dense[j, b + 1] = given[plain.rows + j, part]
            if samples.mixing is not None:
                dense = (samples.mixing[rows][part] @ dense.transpose(2, 0, 1)).transpose(1, 2, 0)
            for j in range(n):
                out[self.layout.joint(j), part] = dense[j, :b + 1]
                if known:
                    out[self.layout.rows + j, part] = dense[j, b + 1]
        return out


def torque_equations(model: LinearModel, logs: Sequence[Samples], base: BaseParameters | None = None
                     ) -> TorqueEquations:
    """Return the torque equations of some logs, multiplied by `Samples.mixing` where a log has it."""
    kind = ProjectedEquations if any(log.mixing is not None for log in logs) else TorqueEquations
    return kind.of(model, logs, base)
