"""Recursive update of a triangular factor by plane rotations (square-root form).

r (width, stride) is, up to padding (`rotation`), the upper triangular factor of [Y tau], or of [Z Y tau] with
instruments, with a non-negative diagonal. A row x is eliminated column by column; the product of the cosines is 1 /
sqrt(1 + x P x'), P = (R'R)^-1 before the row, and the remaining torque is the normalised innovation. The covariance
form is never computed, so P stays positive definite.
"""

from __future__ import annotations

import math

from dynid.arrays import Array, Bools, Ints
from dynid.dynamics.compiled import BORROWING, INNER_BORROWING
from dynid.estimate.recursive.rotation import GROUP, add_rest, fold_rows, rotate, solve
from dynid.kernel_store import njit

NONE, VARIABLE, VECTOR, DIRECTIONAL = 0, 1, 2, 3  # modes of forgetting inside the kernel
START = 200.0  # rows of a joint before down-weighting begins


@njit(**INNER_BORROWING)
def fade(r: Array, norms: Array, factor: float) -> None:
    """Multiply the information R'R of the triangular factor R by a forgetting factor."""
    root = math.sqrt(factor)
    for i in range(r.shape[0]):
        for k in range(i, r.shape[1]):
            r[i, k] *= root
    for i in range(len(norms)):
        norms[i] *= factor


@njit(**INNER_BORROWING)
def fade_by_innovation(r: Array, norms: Array, factors: Array, power: float) -> None:
    """Forget by lambda = 1 - e^2 / (1 + x P x') / (memory noise^2) (Fortescue, Kershenbaum, Ydstie 1981), and update
    the noise; power: mean squared normalised innovation of a sample. factors: least lambda, memory, noise^2."""
    mean = factors[2]
    if mean > 0.0:
        fade(r, norms, max(factors[0], 1.0 - power / (factors[1] * mean)))
    factors[2] = power if mean == 0.0 else mean + 0.001 * (min(power, 9.0 * mean) - mean)


@njit(**INNER_BORROWING)
def fade_columns(r: Array, norms: Array, vector: Array, beta: Array) -> None:
    """Scale the columns, R := R diag(vector), with the estimate unchanged: P := V^-1 P V^-1 (Ardiani, eq. 4.12)."""
    b, last, mean = len(beta), len(r) - 1, 0.0
    for i in range(b):
        rho = 0.0
        for k in range(i, b):
            r[i, k] *= vector[k]
            rho += r[i, k] * beta[k]
        r[i, last] = rho
        norms[i] *= vector[i] * vector[i]
        mean += vector[i] / b
    r[last, last] *= mean


@njit(**INNER_BORROWING)
def turn(r: Array, i: int, c: float, s: float, first: int) -> None:
    """Rotate rows i and i + 1 by cosine c and sine s, from column `first` on."""
    for k in range(first, r.shape[1]):
        p, q = r[i, k], r[i + 1, k]
        r[i, k] = c * p + s * q
        r[i + 1, k] = c * q - s * p


@njit(**INNER_BORROWING)
def fade_direction(r: Array, x: Array, u: Array, factor: float) -> None:
    """Forget only along the row x: subtract (1 - factor) H x x'H / x'H x from R'R, with H = R'R.

    With u = R x / |R x| this is R := (I - (1 - sqrt(factor)) u u') R. Rotations from the last row up turn u into the
    first axis, its row is scaled, and rotations in the reverse order make R triangular again.
    """
    b = len(u)
    size = 0.0
    for i in range(b):
        value = 0.0
        for k in range(i, b):
            value += r[i, k] * x[k]
        u[i] = value
        size += value * value
    if size <= 0.0:
        return
    for i in range(b - 2, -1, -1):
        h = math.sqrt(u[i] * u[i] + u[i + 1] * u[i + 1])
        if h > 0.0:
            turn(r, i, u[i] / h, u[i + 1] / h, i)
        u[i] = h
    root = math.sqrt(factor)
    for k in range(r.shape[1]):
        r[0, k] *= root
    for i in range(b - 1):
        d, v = r[i, i], r[i + 1, i]
        h = math.sqrt(d * d + v * v)
        if h > 0.0:
            turn(r, i, d / h, v / h, i)
        r[i + 1, i] = 0.0
    for i in range(b):
        if r[i, i] < 0.0:
            for k in range(i, r.shape[1]):
                r[i, k] = -r[i, k]


@njit(**INNER_BORROWING)
def gained(r: Array, x: Array, w: Array, first: int) -> float:
    """Return the information gain x P x' of a row x; infinite if it excites a new direction. w (b,): work space."""
    b, total = len(w), 0.0
    for k in range(first, b):
        w[k] = x[k]
    for i in range(first, b):
        if w[i] == 0.0:
            continue
        if r[i, i] <= 0.0:
            return math.inf
        v = w[i] / r[i, i]
        total += v * v
        for k in range(i + 1, b):
            w[k] -= r[i, k] * v
    return total


@njit(**INNER_BORROWING)
def huber(x: Array, width: int, beta: Array, spread: Array, j: int, robust: float) -> float:
    """Return the root of Huber's weight of a row from its innovation, and update the innovation's scale."""
    b = len(beta)
    error = x[width - 1]
    for k in range(b):
        error -= x[width - 1 - b + k] * beta[k]
    scale, count = spread[0, j], spread[1, j]
    size, limit = abs(error), robust * scale
    root = math.sqrt(limit / size) if count >= START and size > limit else 1.0
    # The standard deviation follows from the mean absolute value, which is robust; it adapts quickly at the start.
    size = min(size, 3.0 * scale) if count > 20.0 else size
    spread[0, j] += (1.2533 * size - scale) * max(1.0 / (count + 1.0), 0.05 if count < START else 0.002)
    spread[1, j] += 1.0
    return root


@njit(**INNER_BORROWING)
def load(x: Array, entries: Array, t: int, columns: Ints, start: int, stop: int, scale: float) -> None:
    """Copy the equation of a joint at sample t, times scale, to its columns in x (stride,)."""
    for k in range(len(x)):
        x[k] = 0.0
    given, places = entries[start:stop, t], columns[start:stop]
    for k in range(len(places)):
        x[places[k]] = scale * given[k]


@njit(**INNER_BORROWING)
def eliminate(r: Array, x: Array, owners: Ints, count: int, first: int, space: Array, which: Ints, ring: Array,
              tally: Array) -> float:
    """Eliminate equations x[:count] of joints `owners` into the factor r; return the sum of their squared innovations.

    The innovations are stored in ring (dof,) and added to tally (3, dof).
    """
    width, power = len(r), 0.0
    rotate(r, x, count, first, width, space, which)
    for k in range(count):
        rest, j = x[k, width - 1], owners[k]
        add_rest(r, width, rest)
        ring[j] = rest
        tally[0, j] += rest * rest
        tally[1, j] += 1.0
        tally[2, j] -= math.log(max(space[0, k], 1e-300))
        power += rest * rest
    return power


@njit(**BORROWING)
def update(r: Array, norms: Array, beta: Array, x: Array, u: Array, space: Array, which: Ints, entries: Array,
           keep: Bools, columns: Ints, starts: Ints, scale: Array, start: int, stop: int, mode: int, factors: Array,
           adds: float, robust: float, spread: Array, history: Array, ring: Array, place: int, tally: Array,
           factor: Array, squares: Array, counts: Array, shares: Array) -> None:
    """Add every valid row of samples start..stop to the factor r, joint by joint from the last one (Ardiani, eq.
    3.13), and to its joint's factor of this interval (`fold_rows`).

    entries (rows, m): each joint's columns and then its torque, starts[j] to starts[j + 1]; columns (rows,): their
    columns in r. keep (m, dof). scale (dof,): factors on the rows. factors: of forgetting, one per sample (NONE: of the
    whole, DIRECTIONAL: along each row), one per column (VECTOR), or the least factor, the memory and the mean squared
    innovation so far (VARIABLE). adds: rows with a smaller x P x' are skipped, and excluded in `keep`. spread (2, dof):
    standard deviation and number of innovations, to down-weight rows (also in `entries`) beyond `robust` times the
    former; 0: never. history (m or 0, b): the estimate after each sample. ring (n, dof): normalised innovations, from
    row `place` on. tally (3, dof): sums of their squares, of rows, and of log(1 + x P x') / 2. x, u, space, which: work
    space.
    """
    width, b, dof = len(r), len(beta), len(starts) - 1
    owners = which[len(which) // 2:]
    every = len(history) > 0 or mode == VECTOR or robust > 0.0
    single = adds > 0.0 or mode == DIRECTIONAL  # a row depends on the rows before it
    for t in range(start, stop):
        if mode == NONE and factors[t] != 1.0:
            fade(r, norms, factors[t])
        elif mode == VECTOR:
            fade_columns(r, norms, factors, beta)
        now, power, rows, count, first = ring[(place + t - start) % len(ring)], 0.0, 0, 0, width
        for j in range(dof - 1, -1, -1):
            now[j] = 0.0
            if keep[t, j]:
                row = x[count]
                load(row, entries, t, columns, starts[j], starts[j + 1], scale[j])
                own = columns[starts[j]]
                if adds > 0.0 and gained(r, row, u, own) < adds:
                    keep[t, j] = False
                    continue
                if robust > 0.0:
                    root = huber(row, width, beta, spread, j, robust)
                    if root < 1.0:
                        for k in range(starts[j], starts[j + 1]):
                            entries[k, t] *= root
                            row[columns[k]] *= root
                for k in range(b):
                    norms[k] += row[k] * row[k]
                if mode == DIRECTIONAL:
                    fade_direction(r, row, u, factors[t])
                owners[count], first = j, min(first, own)
                count, rows = count + 1, rows + 1
            if count > 0 and (single or count == GROUP or j == 0):
                power += eliminate(r, x, owners, count, first, space, which, now, tally)
                count, first = 0, width
        if mode == VARIABLE and rows > 0:
            fade_by_innovation(r, norms, factors, power / rows)
        if every and width == b + 1:  # with instruments the estimate is not a triangular solution
            solve(r, norms, beta, b)
            for k in range(b if len(history) > 0 else 0):
                history[t, k] = beta[k]
    if not every and width == b + 1:
        solve(r, norms, beta, b)
    fold_rows(factor, squares, counts, x, space, which, entries, keep, starts, start, stop, shares)


@njit(**BORROWING)
def update_own(r: Array, beta: Array, x: Array, row: Array, gain: Array, space: Array, which: Ints, entries: Array,
               keep: Bools, columns: Ints, starts: Ints, scale: Array, owner: Ints) -> None:
    """Add all samples to the factor r, joint by joint from the last one. The rows of a joint update only its own
    parameters in beta, with the gain of all parameters (Ardiani, S-IDIM-RLS-B). owner (b,): joint of each parameter."""
    width, b = len(r), len(beta)
    for j in range(len(starts) - 2, -1, -1):
        for t in range(len(keep)):
            if not keep[t, j]:
                continue
            load(x[0], entries, t, columns, starts[j], starts[j + 1], scale[j])
            error = x[0, width - 1]
            for k in range(b):
                row[k] = x[0, k]
                error -= row[k] * beta[k]
            rotate(r, x, 1, columns[starts[j]], width, space, which)
            add_rest(r, width, x[0, width - 1])
            # gain = (R'R)^-1 x' by forward and back substitution.
            for i in range(b):
                value = row[i] / r[i, i]
                row[i] = value
                for k in range(i + 1, b):
                    row[k] -= r[i, k] * value
            for i in range(b - 1, -1, -1):
                value = row[i]
                for k in range(i + 1, b):
                    value -= r[i, k] * gain[k]
                gain[i] = value / r[i, i]
            for k in range(b):
                if owner[k] == j:
                    beta[k] += gain[k] * error


@njit(**BORROWING)
def update_in_turn(r: Array, norms: Array, beta: Array, x: Array, space: Array, which: Ints, entries: Array,
                   keep: Bools, columns: Ints, starts: Ints, scale: Array, ring: Array, place: int, stages: Array
                   ) -> None:
    """Add all samples to the factor r, joint by joint from the last one (Ardiani, eq. 3.15).

    stages (dof, b): receives the estimate after the samples of each joint. Other arguments are those of `update`.
    """
    width, b = len(r), len(beta)
    for j in range(len(starts) - 2, -1, -1):
        for t in range(len(keep)):
            now = ring[(place + t) % len(ring)]
            now[j] = 0.0
            if not keep[t, j]:
                continue
            load(x[0], entries, t, columns, starts[j], starts[j + 1], scale[j])
            for k in range(b):
                norms[k] += x[0, k] * x[0, k]
            rotate(r, x, 1, columns[starts[j]], width, space, which)
            add_rest(r, width, x[0, width - 1])
            now[j] = x[0, width - 1]
        solve(r, norms, beta, b)
        for k in range(b):
            stages[j, k] = beta[k]
