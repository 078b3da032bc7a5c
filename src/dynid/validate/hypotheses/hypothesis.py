"""Hypotheses: possible faults of a log or a model, with their corrections and evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dynid.arrays import Array
from dynid.findings import Evidence
from dynid.model import LinearModel
from dynid.plain import PlainFields
from dynid.recording import Samples

Change = Callable[[LinearModel, tuple[Samples, ...]], tuple[LinearModel, tuple[Samples, ...]]]


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A possible fault of the data or model, with its correction.

    Attributes:
        cause: name of the fault, which is the code of its finding.
        joints: indices of the affected joints, from 0.
        change: returns model and samples with the fault corrected.
        torque: (dof,), correction factors of the torques, so that residuals are compared in logged torques.
        values: numbers of the hypothesis, one per joint.
        parameters: number of fitted values.
        details: further numbers for the text of the finding.
        between_rows: whether the correction uses neighbouring rows, so that it cannot be applied to decimated logs.
        remake: returns the same hypothesis with another number, or None if it has no number to search for.
    """

    cause: str
    joints: tuple[int, ...] = ()
    change: Change = lambda model, logs: (model, logs)
    torque: Array | None = None
    values: tuple[float, ...] = ()
    parameters: int = 0
    details: Evidence = field(default_factory=dict)
    between_rows: bool = False
    remake: Callable[[float], Hypothesis] | None = None


@dataclass(frozen=True)
class Weighed(PlainFields, also=("explained",)):
    """A hypothesis about a fault, with its evidence in cross-validation.

    Attributes:
        cause, joints, values: name of the cause, affected joints and numbers.
        misfit: weighted squared residuals in cross-validation over blocks of time, in units of the joints' own noise; 1
            is the smallest possible value.
        without: misfit of the uncorrected data.
        weight: posterior weight among all hypotheses, including that of correct data.
    """

    cause: str
    joints: tuple[str, ...]
    values: tuple[float, ...]
    misfit: float
    without: float
    weight: float = 0.0

    @property
    def explained(self) -> float:
        """Share of the squared residuals that the hypothesis removes."""
        return 1.0 - self.misfit / self.without if self.without > 0 else 0.0


def scaled_torques(factors: Sequence[float] | Array) -> Change:
    """Return the correction of samples that multiplies each joint's torque by its factor."""
    scale = np.asarray(factors, dtype=float)

    def change(model: LinearModel, logs: tuple[Samples, ...]) -> tuple[LinearModel, tuple[Samples, ...]]:
        return model, tuple(replace(log, tau=log.tau * scale) for log in logs)

    return change
