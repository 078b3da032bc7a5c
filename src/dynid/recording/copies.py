"""Rows of a log that are not independent measurements: repeated, copied from another interval, or rounded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Bools
from dynid.order_statistics import distinct, median, quantile

MIN_ROWS_FOR_COPIES = 100  # below this nothing is said
_COMPARED_ROWS = 10  # rows to each side over which a motion is looked at
_COUNTS_A_ROW = 2.0  # steps of an encoder that a joint has to make in each row to count as moving
_LEAST_APART = 20  # rows between a row and its copy: nearer ones are rows that are held
DECIMAL_STEP_TOLERANCE = 1e-6  # relative: how exactly a step has to be a decimal one, and positions multiples of it
# steps in the range of a joint: with so many, rounding is below what a filter leaves of the motion
_FINE_ROUNDING_STEPS = 1000.0


@dataclass(frozen=True)
class Again:
    """A repeated interval of a log. rows: number of copies. after: s between a row and its copy."""

    rows: int
    after: float


def rows_in_motion(q: Array) -> Bools:
    """Return rows (samples,) in which a joint of q (samples, joints) moves by several of its smallest steps per row."""
    moving = np.zeros(len(q), dtype=bool)
    if len(q) < 2 * _COMPARED_ROWS + 1:
        return moving
    for column in q.T:
        steps = np.abs(np.diff(column))
        steps = steps[steps > 0.0]
        if len(steps):
            way = np.abs(column[2 * _COMPARED_ROWS:] - column[:-2 * _COMPARED_ROWS])
            moving[_COMPARED_ROWS:-_COMPARED_ROWS] |= way > 2 * _COMPARED_ROWS * _COUNTS_A_ROW * float(
                quantile(steps, 0.01)
            )
    return moving


def held_share(q: Array, tau: Array) -> float:
    """Return the share of the rows in motion, of q and tau (samples, joints), that repeat the previous row in all
    numbers; 0 if too few rows are in motion."""
    if len(q) < MIN_ROWS_FOR_COPIES:
        return 0.0
    same = np.all(q[1:] == q[:-1], axis=1) & np.all(tau[1:] == tau[:-1], axis=1)
    # Of rows that are held, the distinct ones show whether there is motion.
    own = np.concatenate([[True], ~same])
    moving = rows_in_motion(q[own])
    rows = np.repeat(moving, np.diff(np.append(np.flatnonzero(own), len(q))))
    return float(np.mean(same[rows[1:]])) if rows.sum() >= MIN_ROWS_FOR_COPIES else 0.0


def repeated_stretch(t: Array, q: Array, tau: Array) -> Again | None:
    """Return the longest interval in motion that is repeated exactly in t (samples,), q and tau (samples, joints), or
    None."""
    if len(t) < MIN_ROWS_FOR_COPIES:
        return None
    numbers = np.ascontiguousarray(np.column_stack([q, tau])).view(np.uint64)
    factors = np.random.default_rng(0).integers(1, 2**63, numbers.shape[1], dtype=np.uint64) | np.uint64(1)
    key = (numbers * factors).sum(axis=1, dtype=np.uint64)  # wraps around: a hash of each row
    moving = np.flatnonzero(rows_in_motion(q))
    _, first, inverse = np.unique(key[moving], return_index=True, return_inverse=True)
    apart = moving - moving[first][inverse]
    apart = apart[apart >= _LEAST_APART]
    if not len(apart):
        return None
    distances, counts = np.unique(apart, return_counts=True)
    most = int(np.argmax(counts))
    later = int(distances[most])
    return (Again(int(counts[most]), float(median(t[later:] - t[:-later])))
            if counts[most] >= MIN_ROWS_FOR_COPIES else None)


def decimal_step(column: Array) -> float | None:
    """Return the step, 1, 2 or 5 times a power of ten, to which positions (samples,) of one joint are coarsely
    rounded, or None."""
    values = distinct(column)
    if len(values) < 3:
        return None
    step = float(np.diff(values).min())
    exponent = np.floor(np.log10(step * (1.0 + DECIMAL_STEP_TOLERANCE)))
    lead = step / 10.0 ** exponent
    nice = min((1.0, 2.0, 5.0), key=lambda one: abs(lead - one))
    exact = nice * 10.0 ** float(exponent)
    on_grid = np.abs(values / exact - np.round(values / exact)).max() < 1e-4
    coarse = float(values[-1] - values[0]) / exact < _FINE_ROUNDING_STEPS
    return exact if abs(lead / nice - 1.0) < 1e-3 and on_grid and coarse else None
