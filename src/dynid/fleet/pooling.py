"""Partial pooling: regularisation of each robot by its fleet, chosen by the evidence of all robots' data.

Robot r has parameters theta_r ~ N(mu, T), T diagonal, and its data give theta_hat_r ~ N(theta_r, L_r^-1 L_r^-T), where
L_r L_r' = C_r^-1 is the information of its logs under autocorrelated noise. With G_r = (C_r + T)^-1 = L_r (I + L_r' T
L_r)^-1 L_r', which needs no inverse in directions that a robot does not excite,

    log p = 1/2 sum_r [log det(I + L_r' T L_r)^-1 - d_r' G_r d_r] - 1/2 log det sum_r G_r,   d_r = theta_hat_r - mu,

where the last term accounts for the estimation of mu from the same data (restricted likelihood). T increases from zero
if robots differ by more than their noise. The estimate of a robot is then the mean of its own and the fleet's values,
weighted by their information.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Ints
from dynid.fleet.robot_fold import RobotFold
from dynid.regression import BaseParameters

# Robots from which every parameter has its own spread; in smaller fleets parameters of one kind share a spread.
_MIN_ROBOTS_OWN_SPREAD = 8
_FIXED_POINT_STEPS, _SEARCH_STEPS = 25, 60  # steps of the fixed-point iteration, and of the search that follows
_START_LOG_SPREAD = -2.0  # initial logarithm of the spread, where the likelihood is steep
MIN_LOG_SPREAD = -6.0  # initial logarithm of the spread if a similar fleet has a spread of zero
# logarithms of the spread, in units of a parameter's size, that are tried
_MIN_LOG_SPREAD, _MAX_LOG_SPREAD = -14.0, 6.0


@dataclass(frozen=True, eq=False)
class RobotInformation:
    """Information of one robot's data on the base parameters: square root `root` (base, k) of the information matrix
    root root', and `seen` = root' theta_hat (k,), with the estimate theta_hat and unit covariance."""

    root: Array
    seen: Array

    @staticmethod
    def from_fold(robot: RobotFold, inflation: float = 1.0) -> RobotInformation:
        """Return the information of a robot's data; inflation: factor on its standard errors, from the scatter between
        its logs."""
        root, seen = robot.information()
        return RobotInformation(root / inflation, seen / inflation)


@dataclass(frozen=True, eq=False)
class PooledRobot:
    """Estimate of one robot with its fleet as prior.

    Attributes:
        values, covariance: base parameters (base,) and their covariance (base, base).
        lean: weight of the fleet in each value (base,): 0 for a well-determined robot, 1 for a robot without data."""

    values: Array
    covariance: Array
    lean: Array

    @property
    def std(self) -> Array:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))


@dataclass(frozen=True, eq=False)
class Pooling:
    """Distribution of the base parameters of all robots of a type.

    Attributes:
        base: the base parameters.
        mean, covariance: mean (base,) and its covariance (base, base).
        spread: standard deviation between robots (base,), zero if robots do not differ significantly.
        size: size of each parameter (base,), by which spreads are scaled."""

    base: BaseParameters
    mean: Array
    covariance: Array
    spread: Array
    size: Array

    @property
    def prior(self) -> Array:
        """Covariance (base, base) of a new robot's parameters before its first log."""
        return self.covariance + np.diag(self.spread ** 2)

    def member(self, known: RobotInformation, free: Array | None = None) -> PooledRobot:
        """Return the estimate of a robot of the fleet, whose data are already part of the mean.

        free (base, base): covariance of differences beyond the spread, for parts that differ from the fleet.
        """
        prior = np.diag(self.spread ** 2) + (0.0 if free is None else free)
        inside = np.eye(known.root.shape[1]) + known.root.T @ prior @ known.root
        gain = np.linalg.solve(inside, known.root.T @ prior).T
        values = self.mean + gain @ (known.seen - known.root.T @ self.mean)
        lean = np.eye(len(prior)) - gain @ known.root.T
        covariance = lean @ prior + lean @ self.covariance @ lean.T
        return PooledRobot(values, 0.5 * (covariance + covariance.T), np.clip(np.diag(lean), 0.0, 1.0))


def parameter_groups(base: BaseParameters, robots: int) -> Ints:
    """Return the group index of each parameter (base,); parameters of a group have the same relative spread.

    In a large fleet every parameter has a group of its own; in a small fleet, parameters with the same symbol share a
    group.
    """
    if robots >= _MIN_ROBOTS_OWN_SPREAD:
        return np.arange(len(base))
    symbols = [base.parameters.items[c].symbol for c in base.independent]
    order = list(dict.fromkeys(symbols))
    return np.array([order.index(symbol) for symbol in symbols])


def pool_known(base: BaseParameters, data: Sequence[RobotInformation], groups: Ints,
               near: Pooling | None = None) -> Pooling:
    """Return mean and spread of a fleet by restricted likelihood, from the information of each robot's data.

    groups: group of each parameter (base,), see `parameter_groups`. near: a similar fleet, as the start of the search.
    """
    from scipy.optimize import minimize

    mean_of_equals = _solved(np.sum([one.root @ one.root.T for one in data], axis=0),
                             np.sum([one.root @ one.seen for one in data], axis=0))
    size = _sizes(base, mean_of_equals)
    count = int(groups.max()) + 1
    member = np.zeros((count, len(base)))
    member[groups, np.arange(len(base))] = 1.0

    def value(logs: Array) -> tuple[float, Array]:
        variances = np.exp(2.0 * logs)[groups] * size ** 2
        evidence, pulls, *_ = _evidence(data, variances)
        return -evidence, -member @ ((pulls[0] - pulls[1]) * variances)

    start = np.full(count, _START_LOG_SPREAD)
    if near is None:
        start = _fixed_points(data, start, groups, size, member)
    else:
        of_group = [int(np.argmax(groups == g)) for g in range(count)]
        start = np.log(np.maximum(near.spread / size, np.exp(MIN_LOG_SPREAD))[of_group])
    logs = minimize(value, start, jac=True, method="L-BFGS-B", bounds=[(_MIN_LOG_SPREAD, _MAX_LOG_SPREAD)] * count,
                    options={"maxiter": _SEARCH_STEPS}).x
    # Near the lower end of the search, robots are equal: the spread is zero.
    spread = np.where(logs[groups] < _MIN_LOG_SPREAD + 4.0, 0.0, np.exp(logs)[groups] * size)
    _, _, mean, covariance = _evidence(data, spread ** 2)
    return Pooling(base, mean, covariance, spread, size)


def _fixed_points(data: Sequence[RobotInformation], logs: Array, groups: Ints, size: Array, member: Array) -> Array:
    """Return logarithms of the spreads closer to the maximum of the evidence, by a fixed-point iteration. At the
    maximum, the squared differences between robots equal their expectation. Each variance is therefore multiplied by
    the root of the ratio of the two. The iteration never decreases the likelihood (Zhou, Hu, Zhou and Lange 2019)."""
    for _ in range(_FIXED_POINT_STEPS):
        _, (wide, expected), *_ = _evidence(data, np.exp(2.0 * logs)[groups] * size ** 2)
        ratio = (member @ (wide * size ** 2)) / np.maximum(member @ (expected * size ** 2), 1e-300)
        logs = np.clip(logs + 0.25 * np.log(np.maximum(ratio, 1e-12)), _MIN_LOG_SPREAD, _MAX_LOG_SPREAD)
    return logs


def _solved(matrix: Array, right: Array) -> Array:
    """Return the solution of a linear system in the range of its symmetric matrix; columns are scaled before."""
    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    sizes, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    kept = sizes > 1e-13 * sizes.max()
    inner = vectors[:, kept] / sizes[kept]
    turned = vectors[:, kept].T @ (right.T / scale).T
    return np.asarray(((inner @ turned).T / scale).T)


def _sizes(base: BaseParameters, mean: Array) -> Array:
    """Return positive sizes (base,) of parameters with means (base,): the absolute mean, and at least a tenth of
    the root mean square of all parameters with the same symbol and unit."""
    kinds = [(base.parameters.items[c].symbol, base.parameters.items[c].unit) for c in base.independent]
    sizes = np.zeros(len(mean))
    for kind in set(kinds):
        same = np.array([one == kind for one in kinds])
        usual = float(np.sqrt(np.mean(mean[same] ** 2)))
        sizes[same] = np.maximum(np.abs(mean[same]), 0.1 * usual if usual > 0 else 1.0)
    return np.maximum(sizes, 1e-12 * sizes.max())


def _lower_factor(root: Array, variances: Array) -> Array:
    """Return the lower triangular factor (k, k) of I + root' T root, T diagonal with `variances` (base,)."""
    try:
        return np.asarray(np.linalg.cholesky(np.eye(root.shape[1]) + (root.T * variances) @ root), dtype=float)
    except np.linalg.LinAlgError:
        # In the sum, the identity is lost to rounding if the information is large; a QR decomposition preserves it.
        upper = np.linalg.qr(np.vstack([np.eye(root.shape[1]), np.sqrt(variances)[:, None] * root]), mode="r")
        return np.asarray((upper * np.sign(np.diag(upper))[:, None]).T, dtype=float)


def _evidence(data: Sequence[RobotInformation], variances: Array) -> tuple[float, Array, Array, Array]:
    """Return the log restricted likelihood, its derivative by the variances, the mean (base,) and its covariance. The
    derivative is half the difference of two parts (2, base): squared differences, and their expectation."""
    information, score, parts = np.zeros((len(variances),) * 2), np.zeros(len(variances)), []
    total = 0.0
    for one in data:
        # G = root (I + root' T root)^-1 root', by a triangular factor of I + root' T root.
        lower = _lower_factor(one.root, variances)
        half = np.linalg.solve(lower, one.root.T)
        seen = np.linalg.solve(lower, one.seen)
        total -= float(np.sum(np.log(np.diag(lower))))
        information += half.T @ half
        score += half.T @ seen
        parts.append((half, seen))
    mean = _solved(information, score)
    covariance = _solved(information, np.eye(len(variances)))
    scale = np.sqrt(np.maximum(np.diag(information), 1e-300))
    total -= 0.5 * float(np.linalg.slogdet(information / np.outer(scale, scale))[1]) + float(np.sum(np.log(scale)))
    pulls = np.zeros((2, len(variances)))
    for half, seen in parts:
        left = seen - half @ mean
        total -= 0.5 * float(left @ left)
        g = half.T @ half
        pulls[0] += (half.T @ left) ** 2
        pulls[1] += np.diag(g) - np.sum((g @ covariance) * g, axis=1)
    return total, pulls, mean, 0.5 * (covariance + covariance.T)
