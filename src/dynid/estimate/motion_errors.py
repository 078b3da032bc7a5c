"""Errors of the measured motion in the regressor, and the resulting bias of least squares.

Least squares assumes an exact regressor. Two errors do not average out:

- Noise of the positions that the filter passes. Let X_e be the columns of a motion with the same amount of noise added
  again, and D = X_e - X. M = E[X_e' W^2 D] is the effect of noise on the normal equations H = X' W^2 X, and the bias is
  -(H - M)^-1 M b. M consists of D' D, and of X' D of the dry columns; X' D of the others has zero mean.
- Motion above the cut-off. Columns that are linear in it are filtered like the torques; dry friction is not. If a robot
  vibrates around a reversal, as with encoder noise in its loop, the sign of a filtered velocity is not the filtered
  sign. With X_w the columns with dry friction of the whole motion, the bias is -H^-1 X' W^2 (X - X_w) b. Positions do
  not show this motion, since a loop follows the noise within its bandwidth. Its acceleration is the high-frequency part
  of the torque residuals divided by the inertia. Only the part that is coherent with the positions is used, up to a few
  times the motion or the noise in the positions.

Friction below the smallest speed of a fit is not known either. Rows at these speeds are dropped, but filters mix them
into their neighbours. A model with a smooth sign assumes friction at these speeds; with X_s the dry columns at twice
the smallest speed instead, the bias is at most about -H^-1 X' W^2 (X - X_s) b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array
from dynid.estimate.estimate import Estimate
from dynid.estimate.linear import Solution
from dynid.estimate.problem import Problem, equation_counts
from dynid.model import complete
from dynid.recording import Recording, Samples
from dynid.recording.excerpts import filterable_excerpt
from dynid.recording.sample_preparation import filtered_again
from dynid.regression import prepared_equations
from dynid.regression.base import dry_columns
from dynid.regression.equations import Rows, memory_states, piece_entries, torques_along
from dynid.regression.residual_series import PIECE
from dynid.signals import at_times
from dynid.threads import side_by_side

_ENOUGH_ROWS = 131072  # rows at full rate that are filtered; of longer data some intervals are used
_SAME_INERTIA = 0.02  # s, over which the inertia is assumed constant
SPECTRUM_NEIGHBOURS = 12  # neighbouring frequencies on each side over which spectra are averaged
_LOOP_PEAK = 3.0  # largest ratio of motion to position noise: the resonance peak of a control loop
_BY_CHANCE = 0.01  # probability that independent series appear coherent at a frequency
_LEAST_INERTIA = 0.02  # smallest plausible eigenvalue of an inertia matrix with unit diagonal
_MOST_NOISE = 0.95  # largest share of noise in the columns of a direction
_RANK_TOLERANCE = 1e-10  # relative to the largest eigenvalue of the scaled normal equations


@dataclass(frozen=True, eq=False)
class MotionShift:
    """Bias of weighted least squares by errors of the measured motion.

    Attributes:
        shift: bias of the values (base,).
        score: bias of the normal equations of all data (base,).
        slow: bias of the normal equations by friction below the smallest speed in a fit (base,).
    """

    shift: Array
    score: Array
    slow: Array | None = None


def motion_shift(problem: Problem, solution: Solution, weights: Array) -> MotionShift | None:
    """Return the bias of a solution with joint weights (dof,) by errors of the measured motion.

    It is None if logs are not available or their preparation cannot be repeated. Long data are sampled in intervals.
    """
    if any(log.base_width for log in problem.recordings):  # a free base changes the columns
        return None
    problem = _few_rows(problem)
    unseen = None
    if problem.filtered is None:  # filtered equations exclude motion above their band
        unseen = unseen_velocities(problem, solution.beta)
        if unseen is None:
            return None
    share = sum(problem.regression.rows) / max(sum(equation_counts(problem.data)), 1)
    normal = problem.regression.normal(weights)
    noise = share * _noise_matrix(problem, weights)
    score, slow = np.zeros((2, len(normal))) if unseen is None else share * _unseen_scores(
        problem, unseen, solution.beta, weights)
    shift = _shift(normal, noise, score, solution)
    return MotionShift(shift, normal @ shift, slow)


def _few_rows(problem: Problem) -> Problem:
    """Return the problem reduced to about `_ENOUGH_ROWS` rows of data, in contiguous intervals of time."""
    few = filterable_excerpt(problem.data, _ENOUGH_ROWS)
    if all(few.get(k) is samples for k, samples in enumerate(problem.data)):
        return problem
    recordings = tuple(problem.recordings[k] for k in few) if len(problem.recordings) == len(problem.data) else ()
    return replace(problem, data=tuple(few.values()), recordings=recordings, is_excerpt=True,
                   places=tuple(problem.places[k] for k in few))


def noise_torques(estimate: Estimate, data: Sequence[Samples]) -> Array:
    """Return the RMS (dof,) of the effect of position noise on predicted torques in the rows of the regression, N m
    or N; zero if the preparation is unknown."""
    squares, rows = np.zeros(data[0].dof), np.zeros(data[0].dof)
    for samples in filterable_excerpt(data, _ENOUGH_ROWS).values():
        if _repeatable(samples) and np.any(_floors(samples) > 0.0):
            noisy, plain = (estimate.residuals(one)[0] for one in (_with_noise(samples), samples))
            squares += np.sum(np.where(plain.keep, noisy.predicted - plain.predicted, 0.0) ** 2, axis=0)
            rows += plain.keep.sum(axis=0)
    return np.asarray(np.sqrt(squares / np.maximum(rows, 1.0)))


def _repeatable(samples: Samples) -> bool:
    """Return whether samples were prepared from positions alone and contain all rows of the time grid."""
    settings = samples.settings
    return bool(settings) and settings.get("thin", 1) == 1 and settings.get("velocity") == "differentiate"


def _floors(samples: Samples) -> Array:
    """Return the noise power density (joints,) of the positions, rad^2/Hz or m^2/Hz; zero if no noise is detected."""
    found = [one.get("noise_floor") for one in samples.spectrum.values()]
    return np.array([0.0 if x is None else x for x in found]) if len(found) == samples.dof else np.zeros(samples.dof)


def _with_noise(samples: Samples) -> Samples:
    """Return samples with the same amount of position noise added again. Every log has the same seed, so that the order
    of the logs does not matter."""
    size = np.sqrt(0.5 * _floors(samples) * samples.rate)
    noise = np.random.default_rng(0).normal(size=samples.q.shape) * size
    signals = samples.filtered
    if signals is not None:
        kernel, rate = signals.filter.motion, signals.filter.rate
        q, dq = (kernel.applied(noise, rate, samples.segments, derivative) for derivative in (0, 1))
        return replace(samples, filtered=replace(signals, q=signals.q + q, dq=signals.dq + dq))
    q, dq, ddq = filtered_again(samples, noise)
    return replace(samples, q=samples.q + q, dq=samples.dq + dq, ddq=samples.ddq + ddq)


def unseen_velocities(problem: Problem, beta: Array) -> tuple[Array, ...] | None:
    """Return velocities (samples, joints), one array per log, of motion above the cut-off, estimated from the torques
    with base values beta (base,); None if the logs or the options of their preparation are not available."""
    if len(problem.recordings) != len(problem.data) or not all(map(_repeatable, problem.data)):
        return None
    return tuple(_unseen_velocity(problem, samples, log, beta)
                 for samples, log in zip(problem.data, problem.recordings, strict=True))


def _unseen_velocity(problem: Problem, samples: Samples, log: Recording, beta: Array) -> Array:
    """Return velocities (samples, joints) of motion above the cut-off of the positions, estimated from the torques."""
    cutoff = samples.settings.get("cutoff")
    if cutoff is None:
        return np.zeros(samples.q.shape)
    model, full = complete(problem.model), problem.base.expand(beta)
    q, tau = np.zeros(samples.q.shape), np.zeros(samples.q.shape)
    for start, stop in samples.segments:  # only the rows near a segment are loaded from a long log
        low, high = np.searchsorted(log.t, samples.t[[start, stop - 1]])
        rows = slice(max(int(low) - 1, 0), int(high) + 2)
        q[start:stop], tau[start:stop] = (at_times(samples.t[start:stop], log.t[rows], x[rows])
                                          for x in (log.q, log.tau))
    residual = tau - torques_along(model, full, samples)
    residual[:, [name in samples.unmeasured for name in samples.joints]] = 0.0
    fast = residual - filtered_again(samples, residual)[0]
    step = max(1, round(_SAME_INERTIA * samples.rate))
    inverse = np.repeat(_inverses(model.inertia_matrix(full, samples.q[::step])), step, axis=0)[:len(samples)]
    out = np.zeros(samples.q.shape)
    for start, stop in samples.segments:
        here = slice(start, stop)
        left = q[here] - samples.q[here]
        torque = _coherent(fast[here], left)
        f = np.fft.rfftfreq(stop - start, 1.0 / samples.rate)[:, None]
        spectra = np.fft.rfft(np.einsum("mij,mj->mi", inverse[here], torque), axis=0)
        high = f > 0.5 * cutoff
        spectra = np.where(high, spectra / np.where(high, 2j * np.pi * f, 1.0), 0.0)
        # A control loop converts position noise into motion of about the same size. Larger torques are not motion.
        floor = 0.5 * samples.rate * (stop - start) * _floors(samples)
        seen = np.maximum(_near(np.abs(np.fft.rfft(left, axis=0)) ** 2), floor) * (2.0 * np.pi * f) ** 2
        with np.errstate(over="ignore"):  # an infinite excess means that there is no motion
            excess = _near(np.abs(spectra) ** 2) / np.maximum(_LOOP_PEAK ** 2 * seen, 1e-300)
        out[here] = np.fft.irfft(spectra / np.sqrt(np.maximum(excess, 1.0)), stop - start, axis=0)
    return out


def _coherent(series: Array, other: Array) -> Array:
    """Return the part of series (rows, joints) that is coherent with the series `other`, joint by joint.

    The coherence of independent spectra averaged over n frequencies has mean 1/n and exceeds 1 - chance^(1 / (n - 1))
    with that probability: below this it is set to zero, above it 1/n is subtracted.
    """
    count, out = 2 * SPECTRUM_NEIGHBOURS + 1, np.zeros(series.shape)
    if len(series) < 8 * SPECTRUM_NEIGHBOURS:
        return out
    least = 1.0 - _BY_CHANCE ** (1.0 / (count - 1))
    own, by = np.fft.rfft(series, axis=0), np.fft.rfft(other, axis=0)
    cross, power = _near(own * by.conj()), _near(np.abs(by) ** 2)
    coherence = np.abs(cross) ** 2 / np.maximum(power * _near(np.abs(own) ** 2), 1e-300)
    share = np.where(coherence > least, (coherence - 1.0 / count) / (1.0 - 1.0 / count), 0.0)
    share = np.sqrt(share / np.maximum(coherence, 1e-300))
    return np.asarray(np.fft.irfft(share * cross * by / np.where(power > 0.0, power, np.inf), len(series), axis=0))


def _near(spectra: NDArray[Any]) -> NDArray[Any]:
    """Return the mean over neighbouring frequencies of spectra (frequencies, joints)."""
    window = np.full(2 * SPECTRUM_NEIGHBOURS + 1, 1.0 / (2 * SPECTRUM_NEIGHBOURS + 1))
    return np.column_stack([np.convolve(one, window)[SPECTRUM_NEIGHBOURS:SPECTRUM_NEIGHBOURS + len(one)]
                            for one in spectra.T])


def _inverses(inertia: Array) -> Array:
    """Return inverses of inertia matrices (m, dof, dof), or of their diagonals if not positive definite."""
    diagonal = np.einsum("mii->mi", inertia)
    size = np.sqrt(np.maximum(diagonal, 1e-300))
    scaled = inertia / (size[:, :, None] * size[:, None, :])
    good = (diagonal > 0.0).all(axis=1)
    good[good] = np.linalg.eigvalsh(scaled[good])[:, 0] > _LEAST_INERTIA
    found = np.where(diagonal > 0.0, 1.0 / np.maximum(diagonal, 1e-300), 0.0)[:, :, None] * np.eye(inertia.shape[1])
    found[good] = np.linalg.inv(inertia[good])
    return np.asarray(found)


def _weighted(rows: Rows, j: int, weights: Array) -> Array:
    """Return the regressor columns (columns, rows) of joint j times its weight, zero in rows that are not valid."""
    return np.asarray(weights[j] * np.where(rows.keep[:, j], rows.joint(j)[:-1], 0.0))


def _noise_matrix(problem: Problem, weights: Array) -> Array:
    """Return M (base, base), the effect of position noise on the normal equations of the available data."""
    size = len(problem.base)
    if not any(np.any(_floors(samples) > 0.0) for samples in problem.data):
        return np.zeros((size, size))
    plain = problem.equations
    noisy = prepared_equations(problem.model, tuple(map(_with_noise, problem.data)), problem.base)
    work, dry = plain.pieces(unit=PIECE), dry_columns(problem.model, problem.base)

    def one(k: int) -> Array:
        out = np.zeros((size, size))
        rows, more = plain.rows(work[k]), noisy.rows(work[k])
        for j, own in enumerate(plain.layout.columns):
            x, up = _weighted(rows, j, weights), _weighted(more, j, weights)
            added = up - x
            mean = np.where(dry[own][:, None], added, 0.0)
            out[np.ix_(own, own)] += added @ added.T + 0.5 * (x @ mean.T + mean @ x.T)
        return out

    return np.asarray(np.sum(side_by_side(one, range(len(work)), problem.threads), axis=0))


def _unseen_scores(problem: Problem, unseen: tuple[Array, ...], beta: Array, weights: Array) -> Array:
    """Return X' W^2 (X - X_w) b and X' W^2 (X - X_s) b (2, base) of the available data, for base values b (base,).

    X_w has the dry columns of the motion with unseen velocities (samples, joints), one array per log. X_s has the dry
    columns at no less than twice the smallest speeds of a fit. The products with b are differences of torques.
    """
    plain, dry, model = problem.equations, dry_columns(problem.model, problem.base), complete(problem.model)
    full = problem.base.expand(np.where(dry, beta, 0.0))
    away = []
    for one, more in zip(problem.data, unseen, strict=True):
        fast = np.sign(one.dq) * np.maximum(np.abs(one.dq), 2.0 * np.asarray(one.settings["slow"]))
        # States of terms with memory follow from positions, so that unseen velocities do not change them.
        memory = memory_states(problem.model, one, slice(None))
        own, *others = (model.inverse_dynamics(full, one.q, dq, one.ddq, memory=memory)
                        for dq in (one.dq, one.dq + more, fast))
        away.append([own - other for other in others])
    out = np.zeros((2, len(beta)))
    for piece in plain.pieces(unit=PIECE):
        rows = plain.rows(piece)
        for found, torques in zip(out, away[piece.log], strict=True):
            def entries(part: slice, torques: Array = torques) -> Array:
                return torques[part].T

            added = piece_entries(problem.data[piece.log], piece, entries)
            for j, columns in enumerate(plain.layout.columns):
                found[columns] += _weighted(rows, j, weights) @ (weights[j] * added[j])
    return out


def _shift(normal: Array, noise: Array, unseen: Array, solution: Solution) -> Array:
    """Return the bias (base,) of the parameters by position noise and unseen motion. normal, noise: H and M."""
    kept = solution.excited & (np.diag(normal) > 0.0)
    scale = np.sqrt(np.diag(normal)[kept])
    values, vectors = np.linalg.eigh(normal[np.ix_(kept, kept)] / np.outer(scale, scale))
    seen = values > _RANK_TOLERANCE * values.max(initial=0.0)
    half = vectors[:, seen] / np.sqrt(values[seen]) / scale[:, None]  # H^-1 = half half'
    shares, turn = np.linalg.eigh(half.T @ noise[np.ix_(kept, kept)] @ half)
    shares = np.clip(shares, 0.0, _MOST_NOISE)
    within = turn.T @ (half.T @ (normal[np.ix_(kept, kept)] @ solution.beta[kept]))
    found = np.zeros(len(unseen))
    found[kept] = -half @ (turn @ (shares / (1.0 - shares) * within)) - half @ (half.T @ unseen[kept])
    return found
