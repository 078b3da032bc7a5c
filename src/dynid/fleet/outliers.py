"""Outliers of a fleet: which links or drives of which robot differ from those of the other robots.

A priori, a robot of the fleet has base parameters ~ N(mu, P). The estimate from its data, y = L' theta_hat with unit
covariance, is therefore N(L' mu, W) with W = I + L' P L. If the standard parameters of one part (a link or a drive)
differ by delta, the base parameters differ by K delta, with K the part's columns of the base matrix, and y by X delta,
X = L' K. With A = X' W^-1 X and b = X' W^-1 (y - L' mu), delta = A^-1 b. The statistic b' A^-1 b is approximately
chi-squared, with as many degrees of freedom as parameters of the part that the data determine.

All other parameters are regularised by the fleet, so that little data suffice to detect a part that differs much. The
most significant part of a robot is reported first, then further parts given the difference of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array, Ints
from dynid.fleet.change_detection import change_test
from dynid.fleet.pooling import Pooling, RobotInformation, parameter_groups, pool_known
from dynid.fleet.robot_fold import RobotFold
from dynid.fleet.robot_scatter import discoveries
from dynid.regression import BaseParameters

RATE = 0.01  # false discovery rate of robots that are reported as different
_SMALL_FLEET = 8  # robots; in a smaller fleet each robot is compared with the others only
_MAX_ROUNDS = 5  # largest number of alternations between the fleet's distribution and the tests of parts
_MIN_ROBOTS_FOR_SPREAD = 3  # robots from which the spread of a fleet can be estimated
_STUDENT_DEGREES = 20.0  # assumed degrees of freedom (Student's t) of natural differences between robots
_NOISE_FREEDOM = 300.0  # degrees of freedom of the noise level
_MAX_OUTLIER_SHARE = 0.2  # share of the robots that may differ in one part
_FREE_WIDTH = 1e3  # prior standard deviation of a parameter in a part that differs, in units of its size
_RANK_TOLERANCE = 1e-10  # share of the largest singular value: smaller directions of a part are not determined


@dataclass(frozen=True, eq=False)
class Difference:
    """A part of a robot that differs from its fleet.

    Attributes:
        robot: name of the robot.
        part: "link 3 (name)" or "drive of joint 3 (name)".
        probability: p-value of the difference.
        parameters: name, value if this part alone differs, the fleet's mean, and the difference in standard errors, for
            each base parameter of the part; the largest difference first.
    """

    robot: str
    part: str
    probability: float
    parameters: tuple[tuple[str, float, float, float], ...]

    @property
    def sentence(self) -> str:
        """Sentence that states which part of the robot differs from the fleet, and by how much."""
        name, value, mean, sigmas = self.parameters[0]
        more = "" if not mean else f" ({100.0 * (value - mean) / abs(mean):+.0f} %)"
        return (f"{self.robot}: {self.part} differs: {name} is {value:.4g}, the mean of the fleet {mean:.4g}{more}, "
                f"a difference of {abs(sigmas):.1f} standard deviations")


@dataclass(frozen=True, eq=False)
class StandingOut:
    """Parts of robots that differ from their fleet.

    Attributes:
        probability: p-value of the difference of each link and drive (robots, parts), nan if the data do not determine
            it.
        differences: significant differences, the most certain first.
        free: for each robot, effect (base, k) of the parts that differ on the base parameters.
        pooling: distribution of the fleet without the different parts.
    """

    probability: Array
    differences: tuple[Difference, ...]
    free: tuple[Array, ...]
    pooling: Pooling

    @property
    def robots(self) -> tuple[str, ...]:
        """Names of the robots that differ significantly, the most certain first."""
        return tuple(dict.fromkeys(one.robot for one in self.differences))


def fleet_parts(base: BaseParameters, joints: Sequence[str]) -> dict[str, Array]:
    """Return the effect (base, k) of a change of each link and of each drive on the base parameters, by name."""
    columns_of: dict[str, list[int]] = {}
    for c, item in enumerate(base.parameters):
        if item.body is not None:
            label = f"link {item.owner + 1} ({item.part})"
        else:
            label = f"drive of joint {item.owner + 1} ({joints[item.owner] if joints else item.part})"
        if np.any(base.matrix[:, c] != 0.0):
            columns_of.setdefault(label, []).append(c)
    return {label: base.matrix[:, columns] for label, columns in columns_of.items()}


def standing_out(robots: Sequence[RobotFold], known: Sequence[RobotInformation], rate: float = RATE) -> StandingOut:
    """Return the parts of robots that differ from the fleet, whose mean and spread exclude these parts. known:
    information of each robot's data on the base parameters. rate: false discovery rate."""
    base = robots[0].regression.base
    parts = fleet_parts(base, robots[0].regression.joints)
    labels, places = tuple(parts), list(parts.values())
    called: list[list[int]] = [[] for _ in robots]
    groups = parameter_groups(base, len(robots))
    pooling: Pooling | None = None
    for step in range(_MAX_ROUNDS):
        free = _free(called, places)
        pooling = pool_known(base, [_without(one, out) for one, out in zip(known, free, strict=True)], groups, pooling)
        if step == 0 and len(robots) >= _SMALL_FLEET:
            pooling = _trimmed(known, pooling, places, groups)
        fleets = _fleets(base, known, free, pooling)
        scores = [_Score.from_information(one, fleet) for one, fleet in zip(known, fleets, strict=True)]
        probability = np.array([[score.test(own, fleet, len(robots))[0] for own in places]
                                for score, fleet in zip(scores, fleets, strict=True)])
        now = _called(known, fleets, places, probability, rate)
        if now == called and step > 0:
            break
        called = now
    assert pooling is not None
    differences = [_difference(robots[r].name, known[r], fleets[r], labels[g], places[g],
                               [places[h] for h in own if h != g], len(robots))
                   for r, own in enumerate(called) for g in own]
    return StandingOut(probability, tuple(sorted(differences, key=lambda one: one.probability)),
                       _free(called, places), pooling)


def _trimmed(known: Sequence[RobotInformation], pooling: Pooling, places: Sequence[Array], groups: Ints) -> Pooling:
    """Return a robust mean and covariance of a fleet, without the outermost robots of each part, which would inflate
    the covariance. The covariance of the other robots is scaled to that of a normal fleet, as for the minimum
    covariance determinant (Croux and Haesbroeck 1999)."""
    from scipy.stats import chi2

    out: list[list[int]] = [[] for _ in known]
    most = int(_MAX_OUTLIER_SHARE * len(known))
    scores = [_Score.from_information(one, pooling) for one in known]
    for g, own in enumerate(places):
        chance = np.array([score.test(own, pooling, len(known))[0] for score in scores])
        for r in np.argsort(np.where(np.isfinite(chance), chance, 2.0))[:most]:
            out[int(r)].append(g)
    inliers = [_without(one, free) for one, free in zip(known, _free(out, places), strict=True)]
    robust = pool_known(pooling.base, inliers, groups, pooling)
    spread, inner = robust.spread.copy(), 1.0 - most / len(known)
    for own in places:
        led = np.any(own == 1.0, axis=1)
        size = max(int(led.sum()), 1)
        spread[led] = np.maximum(spread[led], robust.spread[led] * np.sqrt(
            inner / chi2.cdf(chi2.ppf(inner, size), size + 2)))
    return replace(robust, spread=spread)


def _fleets(base: BaseParameters, known: Sequence[RobotInformation], free: Sequence[Array],
            pooling: Pooling) -> list[Pooling]:
    """Return the distribution with which each robot is compared: the fleet, or in a small fleet the other robots."""
    if len(known) >= _SMALL_FLEET or len(known) < 3:
        return [pooling] * len(known)
    groups, fleets = parameter_groups(base, len(known) - 1), []
    for r in range(len(known)):
        others = [q for q in range(len(known)) if q != r]
        plain = sum(not free[q].shape[1] for q in others)
        # Two robots are too few for a spread, so different robots are not excluded then.
        data = [_without(known[q], free[q]) if plain >= _MIN_ROBOTS_FOR_SPREAD else known[q] for q in others]
        fleets.append(pool_known(base, data, groups))
    return fleets


def _called(known: Sequence[RobotInformation], fleets: Sequence[Pooling], places: Sequence[Array], probability: Array,
            rate: float) -> list[list[int]]:
    """Return the indices of the parts of each robot that differ significantly, the most certain first."""
    each = np.where(np.isfinite(probability), probability, 1.0)
    robots = discoveries(np.minimum(each.min(axis=1) * each.shape[1], 1.0), rate)
    called: list[list[int]] = []
    for r, out in enumerate(robots):
        own = [int(np.argmin(each[r]))] if out else []
        while own and len(own) < len(places):
            rest = [g for g in range(len(places)) if g not in own]
            score = _Score.from_information(known[r], fleets[r], [places[h] for h in own])
            next_ones = [score.test(places[g], fleets[r], len(known))[0] for g in rest]
            best = int(np.nanargmin([1.0 if np.isnan(p) else p for p in next_ones]))
            if not next_ones[best] * len(places) < rate:
                break
            own.append(rest[best])
        called.append(own)
    return called


@dataclass(frozen=True, eq=False)
class _Score:
    """Score of a robot's data relative to its fleet, with which every part is tested.

    matrix (base, base) = L W^-1 L' and score (base,) = L W^-1 (y - L' mu), with the symbols of this module's text.
    """

    matrix: Array
    score: Array

    @staticmethod
    def from_information(known: RobotInformation, fleet: Pooling, others: Sequence[Array] = ()) -> _Score:
        """Return the score of a robot; others: effects (base, k) on base parameters of parts that differ as well."""
        prior = fleet.prior + sum((changes_prior(one, fleet.size) for one in others), np.zeros_like(fleet.prior))
        inside = np.eye(known.root.shape[1]) + known.root.T @ prior @ known.root
        right = np.column_stack([known.root.T, known.seen - known.root.T @ fleet.mean])
        try:
            left = np.linalg.solve(inside, right)
        except np.linalg.LinAlgError:  # rounding errors if the information is very large
            left = np.linalg.lstsq(inside, right, rcond=None)[0]
        return _Score(known.root @ left[:, :-1], known.root @ left[:, -1])

    def test(self, own: Array, fleet: Pooling, robots: int) -> tuple[float, Array, Array]:
        """Return the p-value of a part's difference, the change of base parameters (base,) and its covariance (base,
        base). The test is Fisher's F, with fewer degrees of freedom if more of the variance is between robots. own:
        effect (base, k) of the part on the base parameters. robots: number of robots."""
        from scipy.stats import f as fisher

        square, rank, delta, covariance = change_test(own, self.matrix, self.score)
        if not rank:
            return float("nan"), np.zeros(len(own)), np.zeros((len(own), len(own)))
        chance = fisher.sf(square / rank, rank, _freedom(fleet, own, own.T @ self.matrix @ own, rank, robots))
        return float(chance), own @ delta, own @ covariance @ own.T


def _freedom(fleet: Pooling, own: Array, information: Array, rank: int, robots: int) -> float:
    """Return the denominator degrees of freedom of the F test of a part with k parameters.

    Noise is normal and its level is determined by many rows. Natural differences between robots may not be normal, and
    in a small fleet are determined by few robots. Noise and natural differences contribute by their shares of the
    variance (Welch and Satterthwaite). information: information (k, k) on the part's change, with noise and spread.
    """
    rows, columns = np.nonzero(own == 1.0)
    share = float(np.clip(np.sum(fleet.spread[rows] ** 2 * np.diag(information)[columns]) / rank, 0.0, 1.0))
    tail = _STUDENT_DEGREES
    if robots < _SMALL_FLEET:
        groups = parameter_groups(fleet.base, robots - 1)
        sharing = [int(np.sum(groups == groups[k])) for k in rows]
        tail = min(_STUDENT_DEGREES, max(robots - 2, 1) * (float(np.mean(sharing)) if sharing else 1.0))
        share = 1.0  # also if the estimated spread is zero
    return 1.0 / (share ** 2 / tail + (1.0 - share) ** 2 / _NOISE_FREEDOM)


def changes_prior(changes: Array, size: Array) -> Array:
    """Return the covariance (base, base) of base parameters with arbitrarily large changes in the directions `changes`
    (base, k); size (base,): scale of each parameter."""
    moves = changes != 0.0
    reach = np.max(np.where(moves, size[:, None] / np.where(moves, np.abs(changes), 1.0), 0.0), axis=0)
    return (changes * (_FREE_WIDTH * reach) ** 2) @ changes.T


def _without(known: RobotInformation, changes: Array) -> RobotInformation:
    """Return the information of a robot's data after elimination of the directions `changes` (base, k)."""
    if not changes.shape[1]:
        return known
    left, singular, _ = np.linalg.svd(known.root.T @ changes, full_matrices=True)
    rank = int(np.sum(singular > _RANK_TOLERANCE * singular.max(initial=0.0)))
    rest = left[:, rank:]
    return replace(known, root=known.root @ rest, seen=rest.T @ known.seen)


def _free(called: Sequence[Sequence[int]], places: Sequence[Array]) -> tuple[Array, ...]:
    """Return, for each robot, the effect (base, k) on base parameters of its significantly different parts `called`."""
    none = np.zeros((len(places[0]), 0))
    return tuple(np.hstack([none, *(places[g] for g in own)]) for own in called)


def _difference(robot: str, known: RobotInformation, fleet: Pooling, part: str, own: Array, others: Sequence[Array],
                robots: int) -> Difference:
    probability, delta, covariance = _Score.from_information(known, fleet, others).test(own, fleet, robots)
    std = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    rows = [(fleet.base.names[k], float(fleet.mean[k] + delta[k]), float(fleet.mean[k]), float(delta[k] / std[k]))
            for k in np.flatnonzero(np.any(own != 0.0, axis=1))]
    return Difference(robot, part, probability, tuple(sorted(rows, key=lambda row: -abs(row[3]))))
