"""Equations that an error is computed over: those of a regression, and all rows in which a joint moves.

A regression uses reliable rows and low-passed torques, so its error is smaller than that over the whole motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.estimate import Estimate
from dynid.output_fields import output_fields
from dynid.plain import PlainFields, finite
from dynid.quantities import percent_text
from dynid.recording import Samples
from dynid.recording.decimate import low_passed, reach
from dynid.recording.preparation.selection import moving_speeds
from dynid.regression.equations import torques_along
from dynid.threads import one_blas_thread
from dynid.validate.words import span

_ROWS_AT_ONCE = 65536  # rows processed at once: long compared with filters, small in memory


@dataclass(frozen=True)
class Counted(PlainFields):
    """Number and kind of the equations that an error is computed over.

    Attributes:
        equations: number of equations used.
        of: number of all equations, rows times joints with measured torque.
        torque_cutoffs: low-pass cut-off of the torques in each log, Hz; None for unfiltered torques.
    """

    equations: int
    of: int
    torque_cutoffs: tuple[float | None, ...]

    @property
    def text(self) -> str:
        """Text such as '2,933 of 35,189 equations, torques low-passed at 4.9 Hz'."""
        low = [cutoff for cutoff in self.torque_cutoffs if cutoff is not None]
        filtered = f"low-passed at {span(low, 'Hz')}" if low else "as measured"
        return f"{self.equations:,} of {self.of:,} equations, torques {filtered}"


@dataclass(frozen=True)
class MovingError:
    """Relative error of one joint, or of all joints, over the rows in which it moves.

    Attributes:
        name: name of the joint.
        rows: number of rows.
        low_passed: error of low-passed torques as in the regression, percent; None without torque or rows.
        raw: error of measured torques, percent; None without torque or rows.
    """

    name: str
    rows: int
    low_passed: float | None
    raw: float | None


@dataclass(frozen=True)
class MovingErrors:
    """Errors over all rows in which a joint moves faster than 1 % of its top speed: of each joint, and over all."""

    joints: tuple[MovingError, ...]
    total: MovingError

    @property
    def text(self) -> str:
        """Text such as 'all moving rows 4.6 %, raw 8.7 %'; empty if nothing moves."""
        low, raw = self.total.low_passed, self.total.raw
        return "" if low is None or raw is None else f"all moving rows {percent_text(low)}, raw {percent_text(raw)}"

    @output_fields(rows=int, low_passed=float | None, raw=float | None, low_passed_per_joint=list[float | None],
                   raw_per_joint=list[float | None])
    def to_dict(self) -> dict[str, Any]:
        return {"rows": self.total.rows, "low_passed": self.total.low_passed, "raw": self.total.raw,
                "low_passed_per_joint": [one.low_passed for one in self.joints],
                "raw_per_joint": [one.raw for one in self.joints]}


def counted(samples: Sequence[Samples], equations: int) -> Counted:
    """Return the number and kind of equations over which the error of some logs is computed."""
    total = sum(len(part) * (part.dof - len(part.unmeasured)) for part in samples)
    return Counted(equations, total, tuple(dict.fromkeys(part.torque_cutoff for part in samples)))


def moving_errors(estimate: Estimate, samples: Sequence[Samples], names: Sequence[str]) -> MovingErrors:
    """Return the errors of an estimate over all moving rows of some logs; names: names of the joints.

    Without contact forces no errors are defined, because joint torques alone do not satisfy the equations of motion.
    """
    if any(part.mixing is not None for part in samples):
        return MovingErrors(tuple(MovingError(name, 0, None, None) for name in names),
                            MovingError("all joints", 0, None, None))
    with one_blas_thread():
        sums = np.sum([_sums(estimate, part) for part in samples], axis=0)
    return MovingErrors(tuple(_error(name, own) for name, own in zip(names, sums, strict=True)),
                        _error("all joints", sums.sum(axis=0)))


def _sums(estimate: Estimate, samples: Samples) -> Array:
    """Return (dof, 5): number of moving rows, and sums of squares of torque and error, low-passed and measured."""
    slow = moving_speeds(samples.dq, samples.keep)
    slow[[j for j, name in enumerate(samples.joints) if name in samples.unmeasured]] = np.inf
    margin = 0 if samples.decimation is None else reach(samples.decimation)
    found = np.zeros((samples.dof, 5))
    for first, last in samples.segments:
        for start in range(int(first), int(last), _ROWS_AT_ONCE):
            stop = min(start + _ROWS_AT_ONCE, int(last))
            wide = slice(max(start - margin, int(first)), min(stop + margin, int(last)))
            hat = torques_along(estimate.model, estimate.full, samples, wide)
            tau, raw, low = samples.tau[wide], samples.measured_tau[wide], hat
            if samples.decimation is not None:
                tau, low = low_passed(tau, samples.decimation), low_passed(hat, samples.decimation)
            inner, use = slice(start - wide.start, stop - wide.start), np.abs(samples.dq[start:stop]) > slow
            for k, x in enumerate((tau, tau - low, raw, raw - hat), 1):
                found[:, k] += np.sum(np.where(use, x[inner], 0.0) ** 2, axis=0)
            found[:, 0] += use.sum(axis=0)
    return found


def _error(name: str, sums: Array) -> MovingError:
    rows, low, low_misfit, raw, raw_misfit = (float(x) for x in sums)
    return MovingError(name, int(rows), finite(100.0 * np.sqrt(low_misfit / low)) if low > 0 else None,
                       finite(100.0 * np.sqrt(raw_misfit / raw)) if raw > 0 else None)
