"""Residuals of instrumented equations at a low sampling rate.

The rate is above the frequencies of the motion and below those of the noise of second differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array, Ints
from dynid.estimate.instruments.equations import Instrumented
from dynid.recording import Decimation, Samples

LOW_RATE = 100.0  # Hz, at which residuals are judged


def low_decimation(samples: Samples) -> Decimation | None:
    """Return the decimation of samples to the rate of the residuals; None if they have it already."""
    if samples.decimation is not None:
        return samples.decimation
    factor = int(samples.rate // LOW_RATE)
    return Decimation(factor) if factor > 1 else None


@dataclass(frozen=True, eq=False)
class LowRate:
    """Equations at the low rate.

    Attributes:
        z: per joint (columns, rows).
        residual: (rows, dof).
        kept: (rows, dof), taper of each row.
        columns: of each joint, among the base parameters.
        scale: rows of the regression per row here.
        deviation: (dof,), standard deviation of the residuals.
        relative_error: of the torques along the instruments, percent.
        unexplained: share of the torque that the measured equations do not explain.
    """

    z: list[Array]
    residual: Array
    kept: Array
    columns: tuple[Ints, ...]
    scale: float
    deviation: Array
    relative_error: float
    unexplained: float

    def weights(self) -> Array:
        """Return 1 / standard deviation of each joint's residuals (dof,); ones if all fit exactly."""
        if not np.any(self.deviation > 0):
            return np.ones(len(self.deviation))
        return 1.0 / np.maximum(self.deviation, 1e-9 * self.deviation.max())


def at_low_rate(logs: Sequence[Samples]) -> tuple[Samples, ...]:
    """Return the samples with a decimation to the low rate of the residuals."""
    return tuple(replace(log, decimation=low_decimation(log)) for log in logs)


def low_rate(equations: Instrumented, beta: Array, scale: float) -> LowRate:
    """Return the equations of logs at the low rate (`at_low_rate`) with their residuals for base values beta (base,).

    scale: rows of the regression per row at the low rate.
    """
    layout, pieces = equations.measured.layout, equations.pieces()
    columns, joints = layout.columns, range(len(layout.columns))
    z: list[list[Array]] = [[] for _ in joints]
    series: list[Array] = []
    for piece in pieces:
        instruments, motion = equations.instruments(piece), equations.along_motion(piece)
        measured, values = equations.measured.rows(piece), [beta[own] for own in columns]
        torque = np.array([measured.joint(j)[-1] for j in joints])
        residual = torque - [values[j] @ measured.joint(j)[:-1] for j in joints]
        misfit = torque - [values[j] @ motion[layout.joint(j)][:-1] for j in joints]
        whole = torque if measured.known is None else torque + measured.known
        series.append(np.array([residual, misfit, whole, equations.taper(piece).T]))
        for j in joints:
            z[j].append(instruments[layout.joint(j)][:-1])
    residual, misfit, torque, kept = np.concatenate(series, axis=2).transpose(0, 2, 1)
    counts = kept > 0.0
    residual = np.where(counts, residual, 0.0)
    deviation = np.sqrt((residual ** 2).sum(axis=0) / np.maximum(counts.sum(axis=0), 1))
    size = max(float(np.sum(torque[counts] ** 2)), 1e-300)
    return LowRate([np.concatenate(parts, axis=1) for parts in z], residual, kept, columns, scale, deviation,
                   100.0 * float(np.sqrt(np.sum(misfit[counts] ** 2) / size)),
                   float(np.sqrt(np.sum(residual ** 2) / size)))


def low_rate_scale(logs: Sequence[Samples]) -> float:
    """Return the number of rows of the regression per row at the low rate."""
    found = [low_decimation(log) for log in logs if log.decimation is None]
    return float(max((one.total for one in found if one is not None), default=1))
