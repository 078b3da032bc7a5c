"""Noise that the equations of a robot with a free base have in common.

The acceleration of the base enters all equations, and a force at a foot those of the base and of its leg: their noise
is correlated between equations. With the correlation coefficients R of the residuals and the spectrum S_j of each
equation's noise, the spectrum between two equations is R_ij sqrt(S_i S_j), which is positive semidefinite. The
covariance of the score then has the additional part

    sum of w_i^2 w_j^2 X_i' C_ij X_j over i != j.

R counts at the frequencies of the regressor: noise at others, such as that of torques that are not filtered, does not
reach the estimate. It is shrunk toward zero by its own standard errors (Schaefer and Strimmer 2005).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.fft import rfft

from dynid.arrays import Array, Bools
from dynid.regression.derived import Derived, Mixed
from dynid.regression.equations import Equations, Piece
from dynid.regression.noise_spectrum import spectrum
from dynid.signals import fast_length

_ROWS_AT_ONCE = 1024  # long against the correlation of filtered noise, short against memory
_MIN_POWER = 1e-8  # share of the power of the largest frequency below which one is left out: filters leave few


def have_common_noise(equations: Equations) -> bool:
    """Return whether the noise of several equations has common sources: those of a robot with a free base."""
    if isinstance(equations, Mixed):
        return False
    if isinstance(equations, Derived):
        return have_common_noise(equations.equations)
    robot = getattr(equations.layout.model, "robot", None)
    return robot is not None and bool(robot.has_free_base)


def residual_correlation(residual: Array, keep: Bools, absorbed: Sequence[Array | None]) -> Array:
    """Return correlation coefficients (equations, equations) of residuals (m, equations).

    absorbed: sum over t of P[t, t + k] (lags,) of each equation's part of the projection of the fit; the sum of their
    spectra is the weight of a frequency. Without it all frequencies count.
    """
    size = fast_length(2 * len(residual))
    found = rfft(np.where(keep, residual, 0.0), size, axis=0)
    weight = np.ones(len(found))
    if all(one is not None for one in absorbed):
        weight = np.maximum(spectrum(np.sum([one for one in absorbed if one is not None], axis=0), size), 0.0)
    scaled = (found * np.sqrt(weight)[:, None]).view(float).reshape(len(found), residual.shape[1], 2)
    product = np.einsum("fic,fjc->ij", scaled, scaled)
    spread = np.sqrt(np.maximum(np.diag(product), 1e-300))
    rho = product / np.outer(spread, spread)
    np.fill_diagonal(rho, 0.0)
    total = float(np.sum(rho ** 2))
    # Twice the padding: half of the frequencies are independent, each with a real and an imaginary part.
    count = max(float(weight.sum()) ** 2 / max(float(np.sum(weight ** 2)), 1e-300), 2.0)
    error = float(np.sum(np.where(rho != 0.0, (1.0 - rho ** 2) ** 2, 0.0))) / count
    rho *= max(0.0, 1.0 - error / total) if total > 0.0 else 0.0
    return np.asarray(rho + np.eye(len(rho)))


def common_noise_matrix(equations: Equations, work: Sequence[Piece], shapes: Sequence[Array], rho: Array,
                        weights: Array) -> Array:
    """Return the sum of w_i^2 w_j^2 X_i' C_ij X_j (base, base) over pairs of different equations.

    Args:
        equations: rows of all logs.
        work: pieces to sum over.
        shapes: autocovariance (lags,) of each equation's noise.
        rho: correlation coefficients (equations, equations).
        weights: w (equations,).
    """
    count, width = len(rho), len(equations.base)
    others, total = rho - np.eye(count), np.zeros((width, width))
    if not np.any(others):
        return total
    lags = max(map(len, shapes))
    size = fast_length(_ROWS_AT_ONCE + min(lags, _ROWS_AT_ONCE))
    power = np.array([np.maximum(spectrum(one[:size // 2], size), 0.0) for one in shapes])
    twice = np.full(size // 2 + 1, 2.0 / size)  # each frequency stands for its negative too
    twice[0] = 1.0 / size
    if size % 2 == 0:
        twice[-1] = 1.0 / size
    scale = np.asarray(weights)[:, None] ** 2 * np.sqrt(power * twice)
    for piece in work:
        rows = equations.rows(piece)
        for start in range(0, len(piece.rows), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            spectra = [rfft(np.where(rows.keep[part, j], rows.joint(j)[:-1, part], 0.0), size) * scale[j]
                       for j in range(count)]
            each = np.sum([np.sum(np.abs(one) ** 2, axis=0) for one in spectra], axis=0)
            used = each > _MIN_POWER * each.max()
            scaled = np.zeros((count, int(used.sum()), width), dtype=complex)
            for j, columns in enumerate(equations.layout.columns):
                scaled[j][:, columns] = spectra[j][:, used].T
            mixed = np.tensordot(others, scaled, axes=1)
            first, second = (one.view(float).reshape(-1, width, 2) for one in (scaled, mixed))
            total += first[:, :, 0].T @ second[:, :, 0] + first[:, :, 1].T @ second[:, :, 1]
    return 0.5 * (total + total.T)
