"""Fast computation of the rows of a single sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dynid.arrays import Ints
from dynid.model import Model
from dynid.model.term_capabilities import SingleSample, capabilities
from dynid.regression.equations import Layout
from dynid.robot import Robot

_FLOAT = np.dtype(float)


class OneSample:
    """Rows (layout.rows, 1) of one sample in preallocated arrays, since allocation would take longer than the rows
    themselves.

    terms: each with its entries among `values`; the torques come last. order: entry of each row.
    """

    def __init__(self, robot: Robot, terms: list[tuple[SingleSample, slice]], order: Ints, count: int) -> None:
        self._given = (robot, terms, order, count)
        self._robot, self._terms, self._order = robot, terms, order
        self._motion, self._values = np.zeros((4, robot.dof)), np.zeros(count)
        self._flat, self._torques = self._motion.reshape(-1), self._values[count - robot.dof:]
        self._signals = tuple(self._motion)
        self._shape, self.velocities = (robot.dof,), self._signals[1]
        self.rows = np.zeros((len(order), 1))
        self._column = self.rows[:, 0]

    def __reduce__(self) -> tuple[Any, ...]:
        """Support copying and pickling: arrays of the copy share memory with each other like those of the original."""
        return OneSample, self._given

    @staticmethod
    def of(model: Model, layout: Layout, torque_rows: Ints) -> OneSample | None:
        """Return the fast computation for a model, or None if a term does not support single samples."""
        terms: list[tuple[SingleSample, slice]] = []
        order, count = np.zeros(layout.rows, dtype=np.int64), 0
        for term, columns in model.parts:
            single = capabilities(term).single_sample
            if single is None:
                return None
            joints, parameters = single.instant_entries(model.robot)
            rows = layout.place[joints, columns[parameters]]
            order[rows[rows >= 0]] = count + np.flatnonzero(rows >= 0)
            terms.append((single, slice(count, count + len(rows))))
            count += len(rows)
        order[torque_rows] = count + np.arange(model.dof)
        return OneSample(model.robot, terms, order, count + model.dof)

    def take(self, q: Any, dq: Any, ddq: Any, tau: Any) -> bool:
        """Compute `rows` of one sample, and return whether this was possible; False for a block of samples and for
        invalid numbers.
        """
        for x in (q, dq, ddq, tau):
            if type(x) is not np.ndarray or x.shape != self._shape or x.dtype != _FLOAT:
                return False
        motion, flat, values = self._signals, self._flat, self._values
        motion[0][:], motion[1][:], motion[2][:], motion[3][:] = q, dq, ddq, tau
        if not math.isfinite(flat.dot(flat)):
            return False
        for term, part in self._terms:
            values[part] = term.instant(self._robot, motion[0], motion[1], motion[2])
        self._torques[:] = motion[3]
        values.take(self._order, out=self._column, mode="clip")  # the mode that writes in place
        return True
