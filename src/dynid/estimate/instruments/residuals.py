"""Residuals of instrumented equations at a low rate: above the motion, below the noise of second differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Ints
from dynid.estimate.instruments.equations import Instrumented
from dynid.recording import Decimation, Samples

LOW_RATE = 100.0  # Hz, at which residuals are judged


def low_decimation(samples: Samples) -> Decimation | None:
    """How samples come down to the rate at which residuals are judged; None where they are there already."""
    if samples.decimation is not None:
        return samples.decimation
    factor = int(samples.rate // LOW_RATE)
    return Decimation(factor) if factor > 1 else None


@dataclass(frozen=True, eq=False)
class LowRate:
    """Equations at the low rate: z per joint (columns, rows), residual (rows, dof).

    kept (rows, dof): how much of its instruments each row keeps. columns: of each joint, among the base parameters.
    scale: what a sum over these rows stands for in rows of the fold. deviation (dof,): of the residuals.
    relative_error: percent, of the torques along the instruments against the measured ones. unexplained: share of the
    torque that the measured equations leave.
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
        """1 / deviation of each joint's residuals (dof,); ones where all of them fit exactly."""
        if not np.any(self.deviation > 0):
            return np.ones(len(self.deviation))
        return 1.0 / np.maximum(self.deviation, 1e-9 * self.deviation.max())


@dataclass(frozen=True, eq=False)
class _Part:
    """One joint in one piece: z (columns, rows), residual, misfit along the motion, torque and kept (rows,)."""

    z: Array
    residual: Array
    misfit: Array
    torque: Array
    kept: Array


def low_rate(logs: Sequence[Instrumented], beta: Array) -> LowRate:
    """The equations of all logs at the low rate, with base values beta (base,)."""
    layout, scale = logs[0].layout, 1.0
    joints: list[list[_Part]] = [[] for _ in range(layout.model.dof)]
    for log in logs:
        samples = log.measured.samples
        decimation = low_decimation(samples)
        if samples.decimation is None and decimation is not None:
            scale = float(decimation.total)
        for parts in _parts(log, decimation, beta):
            for own, part in zip(joints, parts, strict=True):
                own.append(part)
    residual, misfit, torque, kept = (np.column_stack([np.concatenate([getattr(part, name) for part in own])
                                                       for own in joints])
                                      for name in ("residual", "misfit", "torque", "kept"))
    counts = kept > 0.0
    residual = np.where(counts, residual, 0.0)
    deviation = np.sqrt((residual ** 2).sum(axis=0) / np.maximum(counts.sum(axis=0), 1))
    size = max(float(np.sum(torque[counts] ** 2)), 1e-300)
    return LowRate([np.concatenate([part.z for part in own], axis=1) for own in joints], residual, kept, layout.columns,
                   scale, deviation, 100.0 * float(np.sqrt(np.sum(misfit[counts] ** 2) / size)),
                   float(np.sqrt(np.sum(residual ** 2) / size)))


def _parts(log: Instrumented, decimation: Decimation | None, beta: Array) -> list[list[_Part]]:
    """All pieces of a log, each a list with one part a joint."""
    layout, out = log.layout, []
    for piece in log.cut(decimation):
        z, y, clean = log.at(piece, decimation, log.instruments, log.measured.entries,
                             lambda low, high: layout.entries(log.motion, slice(low, high)))
        kept = log.taper[piece.rows.start:piece.rows.stop:piece.rows.step]
        parts = []
        for j, columns in enumerate(layout.columns):
            own = layout.joint(j)
            torque, values = y[own][-1], beta[columns]
            parts.append(_Part(z[own][:-1], torque - values @ y[own][:-1], torque - values @ clean[own][:-1], torque,
                               kept[:, j]))
        out.append(parts)
    return out
