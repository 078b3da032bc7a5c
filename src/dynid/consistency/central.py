"""Newton's method on the log-determinants: the most central parameters, or those nearest to a nominal model in the
entropic metric.

It minimises
    |M theta - rho|^2 / 2 + sum_i w_i (tr(C_i P_i) - log det P_i) - w' (sum of logs of the linear and conic conditions)
over theta, P_i the matrix of body i less the margin. With C_i the inverse of a nominal P_i the bracket is the log-det
divergence from it (Wensing, Kim and Slotine 2018; Lee, Wensing and Park 2019), which is zero there, infinite for bodies
that cannot exist, and the same in all units and frames. With small w the fit is optimal to within w times the number of
eigenvalues, and what the fit leaves open is filled centrally.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, null_space
from scipy.linalg.lapack import dpotrf

from dynid.consistency.blocks import Block
from dynid.consistency.consistency import LENGTH, Consistency
from dynid.consistency.interior import interior_point
from dynid.errors import NotPossibleError
from dynid.robot.inertia import Array

_STEPS = 60
_ROUNDS = 25  # of finding the mean mass and inertia in turn with the parameters
_DONE = 1e-7  # Newton decrement against the smallest weight


@dataclass(frozen=True, eq=False)
class Barrier:
    """The log-det and log terms of a set, as a function of theta; bodies and the other conditions weighted apart.

    pull (bodies, n, n): C_i. weights (bodies,): w_i. other: weight of the other conditions.
    """

    consistency: Consistency
    pull: Array
    weights: Array
    other: float

    def value(self, theta: Array) -> float:
        """The barrier; infinite outside the set."""
        total = 0.0
        if self.consistency.bodies:
            p = self._matrices(theta)
            eigenvalues = np.linalg.eigvalsh(p)
            if eigenvalues.min() <= 0:
                return np.inf
            total = float(self.weights @ (np.einsum("bij,bji->b", self.pull, p) - np.log(eigenvalues).sum(axis=1)))
        rows, offset = self.planes
        s = rows @ theta + offset
        if len(s) and s.min() <= 0:
            return np.inf
        total -= self.other * float(np.log(s).sum())
        for block in self.cones:
            s = block.value(theta)
            if block.slack(theta) <= 0:
                return np.inf
            total -= self.other * float(np.log(s[0] ** 2 - s[1:] @ s[1:]))
        return total

    @cached_property
    def planes(self) -> tuple[Array, Array]:
        """All linear conditions: rows (k, parameters) and offsets (k,) of rows theta + offset >= 0."""
        linear = [block for block in self.consistency.blocks if block.cone == "nonnegative"]
        rows = np.zeros((sum(len(block.offset) for block in linear), len(self.consistency.parameters)))
        at = 0
        for block in linear:
            rows[at:at + len(block.offset), block.columns] = block.rows
            at += len(block.offset)
        return rows, np.concatenate([block.offset for block in linear]) if linear else np.empty(0)

    @cached_property
    def cones(self) -> tuple[Block, ...]:
        return tuple(block for block in self.consistency.blocks if block.cone == "soc")

    def derivatives(self, theta: Array) -> tuple[Array, Array]:
        """Gradient (parameters,) and Hessian (parameters, parameters)."""
        size = len(theta)
        gradient, hessian = np.zeros(size), np.zeros((size, size))
        basis = self.consistency.basis
        if self.consistency.bodies:
            inverse = np.linalg.inv(self._matrices(theta))
            turned = np.einsum("bij,kjl->bkil", inverse, basis)
            slope = np.einsum("bij,kji->bk", self.pull - inverse, basis)
            bend = np.einsum("bkil,bmli->bkm", turned, turned, optimize=True)
            for w, columns, g, h in zip(self.weights, self.consistency.bodies.values(), slope, bend, strict=True):
                gradient[columns] += w * g
                hessian[columns[:, None], columns] += w * h
        rows, offset = self.planes
        scaled = rows / (rows @ theta + offset)[:, None]
        gradient -= self.other * scaled.sum(axis=0)
        hessian += self.other * (scaled.T @ scaled)
        for block in self.cones:
            s, at = block.value(theta), (block.columns[:, None], block.columns)
            sign = np.append(1.0, -np.ones(len(s) - 1))
            inside = s @ (sign * s)
            slope_s = -2.0 * sign * s / inside
            gradient[block.columns] += self.other * (block.rows.T @ slope_s)
            bend_s = np.outer(slope_s, slope_s) - 2.0 * np.diag(sign) / inside
            hessian[at] += self.other * (block.rows.T @ bend_s @ block.rows)
        return gradient, hessian

    def room(self, theta: Array, step: Array) -> float:
        """How many steps it is to the border along matrices and planes; infinite when the step never meets it."""
        worst = 0.0
        if self.consistency.bodies:
            p, change = self._matrices(theta), self.consistency.matrices(step)
            worst = -float(np.linalg.eigvals(np.linalg.solve(p, change)).real.min())
        rows, offset = self.planes
        if len(offset):
            worst = max(worst, -float(((rows @ step) / (rows @ theta + offset)).min()))
        return 1.0 / worst if worst > 0 else np.inf

    def _matrices(self, theta: Array) -> Array:
        p = self.consistency.matrices(theta)
        return p - self.consistency.margin * np.eye(p.shape[-1])


def minimise(matrix: Array, rho: Array, barrier: Barrier, start: Array) -> Array:
    """Damped Newton from a strictly interior start: theta (parameters,) that minimises the fit plus the barrier."""
    consistency = barrier.consistency
    equalities = [block for block in consistency.blocks if block.cone == "zero"]
    free = np.eye(len(start))
    if equalities:
        rows = np.zeros((len(equalities), len(start)))
        for k, block in enumerate(equalities):
            rows[k, block.columns] = block.rows[0]
        free = null_space(rows)
    normal = matrix.T @ matrix
    theta, error = start.copy(), matrix @ start - rho
    value = 0.5 * float(error @ error) + barrier.value(theta)
    smallest = min([*barrier.weights, barrier.other])
    for _ in range(_STEPS):
        gradient, hessian = barrier.derivatives(theta)
        gradient = free.T @ (gradient + matrix.T @ error)
        hessian = free.T @ (hessian + normal) @ free
        step = free @ _newton_step(hessian, gradient)
        moved = matrix @ step
        decrement = float(-(free.T @ step) @ gradient) if equalities else float(-step @ gradient)
        if decrement < max(_DONE * smallest, 1e-13 * abs(value)):
            return theta
        length = min(1.0, 0.9 * barrier.room(theta, step))
        while length > 1e-9:
            trial = theta + length * step
            trial_error = error + length * moved
            trial_value = 0.5 * float(trial_error @ trial_error) + barrier.value(trial)
            if trial_value <= value - 1e-4 * length * decrement:
                break
            length *= 0.5
        else:
            return theta  # no descent left beyond rounding
        theta, error, value = trial, trial_error, trial_value
    return theta


def _newton_step(hessian: Array, gradient: Array) -> Array:
    """-H^-1 g, with H brought to unit diagonal first: masses and inertias differ by many orders."""
    size = 1.0 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
    scaled = hessian * size * size[:, None]
    lift = 0.0
    for _ in range(12):
        _, info = dpotrf(scaled + lift * np.eye(len(scaled)))
        if info == 0:
            return -size * cho_solve(cho_factor(scaled + lift * np.eye(len(scaled))), size * gradient)
        lift = max(10.0 * lift, 1e-14)
    raise NotPossibleError("no central parameters could be found: some directions have no limit at all")


def fill(consistency: Consistency, matrix: Array, rho: Array, best: Array, *, tolerance: float,
         nominal: Array | None = None) -> Array:
    """Full parameters that fit within `tolerance` (of |M theta - rho|^2) of the best, all else chosen well.

    What motion cannot tell is taken nearest to a nominal model, where there is one: nominal (bodies, n, n), the matrix
    of each body. Without one it is the most central choice: the robot whose links are most alike and most compact,
    sum_i log det P_i as large as it gets for given mean mass and mean inertia, which is free of units. best
    (parameters,): a point where the fit is optimal.
    """
    bodies = len(consistency.bodies)
    if not bodies:
        return best
    n = consistency.basis.shape[1]
    count = n * bodies + sum(len(b.offset) for b in consistency.blocks if b.cone in ("nonnegative", "soc"))
    theta = 0.5 * (best + interior_point(consistency))
    error = matrix @ theta - rho
    final = 0.5 * tolerance / count
    weight = max(final, float(error @ error) / count)
    means = _means(consistency, theta)
    for done in itertools.count():
        pull = _isotropic(means, n, bodies) if nominal is None else np.asarray(np.linalg.inv(nominal), dtype=float)
        theta = minimise(matrix, rho, Barrier(consistency, pull, np.full(bodies, weight), weight), theta)
        before, means = means, _means(consistency, theta)
        settled = nominal is not None or max(abs(np.log(np.divide(means, before)))) < 1e-3
        if weight <= final and (settled or done >= _ROUNDS):
            break
        weight = max(weight / 10.0, final)
    return theta


def _isotropic(means: tuple[float, float], n: int, bodies: int) -> Array:
    """Inverse of a body of mean inertia and mean mass centred in its frame, for every body (bodies, n, n)."""
    diagonal = np.append(np.full(3, 1.0 / means[0]), np.full(n - 3, 1.0 / means[1]))
    return np.broadcast_to(np.diag(diagonal), (bodies, n, n))


def _means(consistency: Consistency, theta: Array) -> tuple[float, float]:
    """Mean of the second moments (kg m^2) and of the masses (kg) over the bodies."""
    p = consistency.matrices(theta)
    diagonal = np.diagonal(p, axis1=1, axis2=2)
    return max(float(diagonal[:, :3].mean()), 1e-12 * LENGTH ** 2), max(float(diagonal[:, 3:].mean()), 1e-12)
