"""A plain weighted least-squares identification, as a user would write it, for `dynid bench defaults`.

It has one fixed low-pass filter, viscous and Coulomb friction, an offset and rotor inertia at every joint, and two
passes of least squares, the second weighted by the residuals of the first. Only the regressor of the bodies is dynid's.
Both fits are tested on rows that are made here, so that no choice of dynid's moves the yardstick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.signal import butter, sosfiltfilt

from dynid.arrays import Array, Bools
from dynid.estimate import Estimate
from dynid.model import Model
from dynid.recording import Recording, Samples

SIGN_WIDTH = 0.02  # of tanh(dq / width), as a share of the joint's greatest speed
SMALLEST_SINGULAR = 1e-8  # share of the largest: columns are structurally dependent below it
MOVING = 0.01  # share of a joint's greatest speed, above which it moves
ROWS_PER_CUTOFF = 16.0  # rate at which columns are evaluated, as a multiple of the cut-off frequency
KEPT_PER_CUTOFF = 4.0  # rate of the rows that are kept after the columns are filtered, likewise
EDGE_PERIODS = 1.0  # of the cut-off frequency: duration at both ends that the filter's transient spoils


@dataclass(frozen=True, eq=False)
class Rows:
    """Filtered motion and torques of a log from the start to the end of its motion, (samples, joints) each.

    Attributes:
        q, dq, ddq: rad, rad/s, rad/s^2, or m and so on.
        tau: N m or N.
        rate: Hz.
        cutoff: Hz, of the low-pass filter.
        measured: whether the torque of each joint (dof,) was measured; rows of the others are zero.
    """

    q: Array
    dq: Array
    ddq: Array
    tau: Array
    rate: float
    cutoff: float
    measured: Bools

    def filtered(self, columns: Array) -> Array:
        """Return columns (samples, ...) through the low-pass filter, at few rows without transients."""
        step = max(1, int(self.rate / (KEPT_PER_CUTOFF * self.cutoff)))
        edge = int(np.ceil(EDGE_PERIODS * self.rate / self.cutoff))
        return low_pass(columns, self.cutoff, self.rate)[edge:len(columns) - edge:step]


def low_pass(x: Array, cutoff: float, rate: float) -> Array:
    """Return signals (samples, ...) through a Butterworth filter of order four, forward and backward."""
    if cutoff >= 0.4 * rate:
        return x
    return np.asarray(sosfiltfilt(butter(4, cutoff, fs=rate, output="sos"), x, axis=0))


def rows_of(log: Recording, cutoff: float) -> Rows:
    """Return the rows of a log, from its positions and torques alone."""
    rate = (len(log.t) - 1) / float(log.t[-1] - log.t[0])
    t = log.t[0] + np.arange(len(log.t)) / rate
    q, tau = (np.column_stack([np.interp(t, log.t, column) for column in x.T]) for x in (log.q, log.tau))
    q, tau = low_pass(q, cutoff, rate), low_pass(tau, cutoff, rate)
    dq = np.gradient(q, 1.0 / rate, axis=0)
    ddq = np.gradient(dq, 1.0 / rate, axis=0)
    moving = np.flatnonzero(np.any(np.abs(dq) > MOVING * np.abs(dq).max(axis=0), axis=1))
    step = max(1, int(rate / (ROWS_PER_CUTOFF * cutoff)))
    part = slice(int(moving[0]), int(moving[-1]) + 1, step)
    return Rows(q[part], dq[part], ddq[part], tau[part], rate / step, cutoff,
                ~np.isin(log.joints, log.unmeasured))


@dataclass(frozen=True, eq=False)
class PlainFit:
    """Values of a plain fit: model of the bodies, sign widths (dof,), and values of all columns."""

    bodies: Model
    widths: Array
    values: Array

    @staticmethod
    def from_logs(bodies: Model, logs: Sequence[Recording], cutoff: float) -> PlainFit:
        """Return the fit to some logs at one cut-off frequency (Hz)."""
        parts = [rows_of(log, cutoff) for log in logs]
        widths = SIGN_WIDTH * np.maximum(np.max([np.abs(one.dq).max(axis=0) for one in parts], axis=0), 1e-6)
        matrix = np.concatenate([one.filtered(columns(bodies, widths, one)) for one in parts])
        matrix *= parts[0].measured[:, None]
        torque = np.concatenate([one.filtered(one.tau) for one in parts])
        values, weights = np.zeros(matrix.shape[2]), np.ones(bodies.dof)
        for _ in range(2):
            tall = (matrix * weights[:, None]).reshape(-1, matrix.shape[2])
            scale = np.linalg.norm(tall, axis=0)
            scale[scale == 0.0] = 1.0
            values = np.linalg.lstsq(tall / scale, (torque * weights).ravel(), rcond=SMALLEST_SINGULAR)[0] / scale
            spread = np.sqrt(np.mean((torque - matrix @ values) ** 2, axis=0))
            weights = 1.0 / np.maximum(spread, 1e-6 * spread.max())
        return PlainFit(bodies, widths, values)

    def residual(self, rows: Rows) -> Array:
        """Return the filtered torques (samples, dof) that the fit does not predict."""
        return rows.measured * rows.filtered(rows.tau - columns(self.bodies, self.widths, rows) @ self.values)


def columns(bodies: Model, widths: Array, rows: Rows) -> Array:
    """Return the regressor (samples, dof, columns): bodies, rotors, viscous friction, Coulomb friction, offsets."""
    n, own = bodies.dof, np.arange(bodies.dof)
    body = bodies.regressor(rows.q, rows.dq, rows.ddq)
    found = np.zeros((len(rows.q), n, body.shape[2] + 4 * n))
    found[:, :, :body.shape[2]] = body
    for k, values in enumerate((rows.ddq, rows.dq, np.tanh(rows.dq / widths), np.ones(rows.dq.shape))):
        found[:, own, body.shape[2] + k * n + own] = values
    return found


def residual_of(estimate: Estimate, rows: Rows) -> Array:
    """Return the filtered torques (samples, dof) that an estimate of dynid's does not predict."""
    samples = Samples.from_arrays(rows.q, rows.dq, rows.ddq, rows.tau, rate=rows.rate)
    (found,) = estimate.residuals(samples)
    if len(found.measured) != len(rows.tau):
        raise ValueError(f"{len(found.measured)} of {len(rows.tau)} rows were predicted")
    return rows.measured * rows.filtered(found.measured - found.predicted)


def relative_error(residuals: Sequence[Array], rows: Sequence[Rows]) -> float:
    """Return the root mean square of the residuals in percent of that of the torques, all joints together."""
    left = sum(float(np.sum(one ** 2)) for one in residuals)
    return 100.0 * float(np.sqrt(left / sum(float(np.sum(one.filtered(one.tau) ** 2)) for one in rows)))
