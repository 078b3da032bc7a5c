"""Rounding of positions by an encoder: its resolution from a log, and its effect on the estimates.

Rounding is not independent noise. A joint that rests or moves very slowly keeps the same rounding error for many rows,
and these rows determine static friction. A drive that uses rounded positions in its loop also moves differently.
Simulations with several origins of the encoder counts give the resulting errors of the estimates.
"""

from __future__ import annotations

import numpy as np

from dynid.actuators.problem import ChainProblem
from dynid.arrays import Array

MAX_COUNT = 0.05  # rad: 126 counts per turn; coarser positions are commands or states, not an encoder
MIN_COUNT = 1e-6  # rad: smaller differences of positions are rounding errors of floating-point numbers
COUNT_SHARE = 0.98  # share of the changes of a position that must be whole counts, to a twentieth of a count
WHOLE_TOLERANCE = 0.05  # counts by which a whole number of counts may be wrong
ENCODER_ORIGINS = 24  # number of simulated origins of the counts: the RMS of 24 errors has a standard error of 15 %
# Student's 97.5 % quantile with 24 degrees of freedom, divided by that of the normal distribution: 2.064 / 1.960.
STUDENT_FACTOR = 1.053
# Sensitivity relative to the largest, below which an unknown has no effect, such as a Stribeck speed below all speeds
# of the log. Different units change sensitivities far less.
SILENT_SHARE = 1e-15
MIN_NOISE_SHARE = 0.02  # share of the squared residuals that rounding must explain; otherwise it is not simulated


def encoder_count(q: Array) -> float:
    """Return the resolution of an encoder, rad per count, from the positions (rows,) of a joint; 0 if the positions are
    not rounded."""
    change = np.abs(np.diff(q))
    change = change[change > MIN_COUNT]
    if len(change) < 10:
        return 0.0
    count = float(np.min(change))
    count = float(np.median(change[change < 1.5 * count]))
    counts = change / count
    whole = np.abs(counts - np.round(counts)) < WHOLE_TOLERANCE * np.maximum(1.0, 0.1 * counts)
    return count if count < MAX_COUNT and np.mean(whole) > COUNT_SHARE else 0.0


def rounding_errors(problem: ChainProblem, x: Array, slopes: Array, residual: Array, weights: Array) \
        -> tuple[Array, float]:
    """Return the RMS error (k,) of the first k unknowns that rounding of the positions causes, and the share of the
    squared residuals that rounding explains.

    Args:
        problem: the logs and unknowns.
        x: values of all unknowns.
        slopes: sensitivities (rows, dof, k), orthogonal to those of the initial states of the simulations.
        residual: measured minus simulated positions (rows, dof).
        weights: weights of the joints (dof,), 1/rad.
    """
    problem, count = problem.coarse, slopes.shape[2]
    measured = np.concatenate([log.signals.q for log in problem.logs])
    counts = np.array([encoder_count(own) for own in measured.T])
    share = float(np.mean(np.minimum(counts ** 2 / 12.0 / np.maximum(np.mean(residual ** 2, axis=0), 1e-300), 1.0)))
    if share < MIN_NOISE_SHARE:
        return np.zeros(count), 0.0
    flat = (slopes * weights[None, :, None]).reshape(-1, count)
    size = np.linalg.norm(flat, axis=0)
    is_silent = size <= SILENT_SHARE * size.max(initial=0.0)
    size[is_silent], flat[:, is_silent] = 1.0, 0.0  # they get no rounding error and no interval
    inverse = np.linalg.pinv(flat / size, rcond=1e-7) / size[:, None]
    rng, errors = np.random.default_rng(0), []
    plain = problem.residuals(x)
    places = np.array([rng.permutation(ENCODER_ORIGINS) for _ in counts]).T
    for place in (places + rng.uniform(size=places.shape)) / ENCODER_ORIGINS:
        rounded = problem.residuals(x, (counts, place * counts))
        if plain is not None and rounded is not None:
            errors.append(inverse @ ((plain - rounded) * weights).ravel())
    return (STUDENT_FACTOR * np.sqrt(np.mean(np.square(errors), axis=0)), share) if errors else (np.zeros(count), 0.0)
