"""Joint estimation of parameters that are common to all robots of a type and those that differ between robots.

With a robot's own columns first, the triangular factor of its weighted equations is

    [R_oo R_os | rho_o]
    [  0  R_ss | rho_s]

For any common values s, the robot's own values o = R_oo^-1 (rho_o - R_os s) fit the first rows exactly. The remaining
rows [R_ss rho_s] have the size of the common columns, and those of all robots are summed.

Own parameters are eliminated as without constraints. Those that are negative but must not be, such as friction, are
fixed at zero and released again according to their multipliers: an active-set method for one convex problem, in which
only the links need a cone programme.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.consistency import Consistency, fit
from dynid.errors import ModelError, NotPossibleError
from dynid.fleet.robot_fold import RobotFold
from dynid.lapack import solve_triangular
from dynid.regression import BaseParameters, Stacked
from dynid.regression.factor import triangular
from dynid.threads import one_blas_thread
from dynid.workers import tree_sum

OWN_GROUPS = ("friction", "offset", "stiffness", "other")  # differ between robots; links and rotors are common
_NOT_EXCITED = 1e-9  # independent part of a column, relative to its norm, below which its value is not estimated
_MOST_ROUNDS = 60
_MIN_MULTIPLIER_SHARE = 1e-9  # smallest significant multiplier, relative to the squared torques


def shared_columns(base: BaseParameters, own: Sequence[str] = OWN_GROUPS) -> Bools:
    """Return which base parameters (base,) are common: those that contain no parameter of an individual robot.

    own: groups of parameters ("body", "rotor", "friction", "offset", "stiffness", "other"), or names of standard
    parameters.
    """
    items = base.parameters.items
    known = {*(item.kind.group for item in items), *OWN_GROUPS, "body", "rotor", *base.parameters.names}
    wrong = next((one for one in own if one not in known), None)
    if wrong is not None:
        raise ModelError(f"there is no group or parameter '{wrong}' that robots could have individually; groups are "
                         "body, rotor, friction, offset, stiffness, other")
    mine = np.array([item.kind.group in own or item.name in own for item in items])
    return ~np.any(base.matrix[:, mine] != 0.0, axis=1)


@dataclass(frozen=True, eq=False)
class Eliminated:
    """Equations of one robot after elimination of its own columns.

    Attributes:
        left: remaining equations [R_ss rho_s; 0 rest] of the common values.
        own, cross, rho: rows (k, k), (k, shared) and (k,) that determine the robot's own values.
        columns: indices of the robot's own excited columns, among the base parameters followed by the gains.
        fixed: indices of the robot's own columns whose values are fixed at zero.
        rows: number of equations.
    """

    left: Array
    own: Array
    cross: Array
    rho: Array
    columns: Ints
    fixed: Ints
    rows: int

    @staticmethod
    def from_fold(robot: RobotFold, shared: Bools, gains: float | None = None, zero: Sequence[int] = ()) -> Eliminated:
        """Return a robot's equations after elimination of its own columns.

        Args:
            robot: compressed data of the robot.
            shared: mask of common columns (base,).
            gains: relative standard deviation of the robot's drive gains from those of the type; None for equal gains.
            zero: own columns that are fixed at zero.
        """
        tall = _with_gains(robot, gains)
        mine = [c for c in (*np.flatnonzero(~shared), *range(len(shared), tall.shape[1] - 1)) if c not in zero]
        size = np.linalg.norm(tall[:, mine], axis=0)
        mine = [c for c, norm in zip(mine, size, strict=True) if norm > 0.0]
        kept = _independent(tall, mine)
        order = [*kept, *np.flatnonzero(shared), tall.shape[1] - 1]
        r = triangular(tall[:, order])
        k = len(kept)
        return Eliminated(r[k:, k:], r[:k, :k], r[:k, k:-1], r[:k, -1], np.array(kept, dtype=np.int64),
                          np.array(zero, dtype=np.int64), robot.stacked.rows)

    def values(self, shared: Array) -> Array:
        """Return the robot's own parameters (k,) for given common parameters (shared,)."""
        if not len(self.columns):
            return np.zeros(0)
        return np.asarray(solve_triangular(self.own, self.rho - self.cross @ shared))


def _with_gains(robot: RobotFold, gains: float | None) -> Array:
    """Return the robot's weighted equations [X y], with one column per joint for the error g of its gain, if requested.

    (1 + g) tau = Y theta, so Y theta - tau g = tau.
    """
    if gains is None:
        stacked = robot.stacked
        tall = np.zeros((len(stacked.r) + 1, len(stacked.r) + 1))
        tall[:-1, :-1], tall[:-1, -1], tall[-1, -1] = stacked.r, stacked.rho, np.sqrt(stacked.rest)
        return tall
    if not 0.0 < gains < 1.0:
        raise ModelError("the standard deviation of drive gains between robots must be a share between 0 and 1, got "
                         f"{gains}")
    base, dof = len(robot.regression.base), robot.regression.dof
    parts = []
    for j, factor in enumerate(robot.regression.factors):
        rows = np.zeros((len(factor.r), base + dof + 1))
        rows[:, factor.columns] = factor.r[:, :-1]
        rows[:, base + j], rows[:, -1] = -factor.r[:, -1], factor.r[:, -1]
        parts.append(robot.weights[j] * rows)
    prior = np.zeros((dof, base + dof + 1))
    prior[:, base:-1] = np.eye(dof) / gains
    return np.vstack([*parts, prior])


def _score_covariance_with_gains(robot: RobotFold) -> Array:
    """Return the covariance (base + dof, base + dof) of the score with the columns of the gains. The autocorrelation of
    the noise is assumed to have the same effect on a gain's column as on the joint's other columns."""
    base, found = len(robot.regression.base), np.zeros((len(robot.score_covariance) + robot.regression.dof,) * 2)
    found[:base, :base] = robot.score_covariance
    for j, factor in enumerate(robot.regression.factors):
        variance = factor.misfit(robot.solution.beta) / max(factor.rows - len(factor.columns), 1)
        plain = variance * float(np.sum(factor.r[:, :-1] ** 2))
        more = 1.0 if robot.noise is None or plain <= 0.0 else float(np.trace(robot.noise[j])) / plain
        scale = robot.weights[j] ** 4 * variance * more
        tau = -factor.r[:, -1]
        found[base + j, base + j] = scale * float(tau @ tau)
        found[base + j, factor.columns] = found[factor.columns, base + j] = scale * (factor.r[:, :-1].T @ tau)
    return found


def _independent(tall: Array, columns: Sequence[int]) -> list[int]:
    """Return the columns of a matrix that are linearly independent of the columns before them."""
    if not columns:
        return []
    size = np.linalg.norm(tall[:, columns], axis=0)
    diagonal = np.abs(np.diag(triangular(tall[:, columns] / size)))
    if np.all(diagonal > _NOT_EXCITED):
        return list(columns)
    kept: list[int] = []
    for c in columns:
        r = triangular(tall[:, [*kept, c]] / np.linalg.norm(tall[:, [*kept, c]], axis=0))
        if abs(r[-1, -1]) > _NOT_EXCITED:
            kept.append(c)
    return kept


@dataclass(frozen=True, eq=False)
class SharedEstimate:
    """Joint estimate of a fleet.

    Attributes:
        shared: mask of common parameters (base,).
        values, std: estimates and standard errors of every robot (robots, base). A parameter that the robot's logs do
            not excite has the value zero and an infinite standard error.
        covariances: covariance of each robot's base parameters (base, base); infinite variance if not excited.
        gains: actual divided by nominal drive gain of each robot (robots, dof); ones if not estimated.
    """

    shared: Bools
    values: Array
    covariances: tuple[Array, ...]
    gains: Array

    @property
    def std(self) -> Array:
        return np.array([np.sqrt(np.maximum(np.diag(covariance), 0.0)) for covariance in self.covariances])


@one_blas_thread()
def shared_estimate(robots: Sequence[RobotFold], own: Sequence[str] = OWN_GROUPS,
                    gains: float | None = None) -> SharedEstimate:
    """Return the joint least-squares estimate of a fleet, by a sum over robots."""
    check_alike(robots)
    base = robots[0].regression.base
    shared = shared_columns(base, own)
    parts = [Eliminated.from_fold(robot, shared, gains) for robot in robots]
    total = summed(parts)
    return completed(robots, parts, total, shared, solved(total), gains)


def check_alike(robots: Sequence[RobotFold]) -> None:
    """Raise an error if robots have different models, or there are none."""
    if not robots:
        raise ModelError("a fleet needs at least one robot with a log")
    first = robots[0].regression
    for robot in robots[1:]:
        if robot.regression.base.expressions != first.base.expressions:
            raise ModelError(f"logs of '{robots[0].name}' and '{robot.name}' were compressed with different models")


def summed(parts: Sequence[Eliminated]) -> Stacked:
    """Return the sum over robots of the equations for the common values."""
    total = tree_sum([part.left for part in parts], lambda one, other: triangular(np.vstack([one, other])))
    return Stacked(total[:-1, :-1], total[:-1, -1], float(total[-1, -1] ** 2), sum(part.rows for part in parts))


def solved(total: Stacked) -> Array:
    """Return the least-squares solution (shared,) of the summed equations for the common values."""
    size = np.linalg.norm(total.r, axis=0)
    if not np.all(size > 0) or np.any(np.abs(np.diag(total.r)) <= _NOT_EXCITED * size):
        raise NotPossibleError("the logs of all robots together do not determine every shared parameter; add logs "
                               "that move more joints, or treat those parameters as individual")
    return np.asarray(solve_triangular(total.r / size, total.rho)) / size


def completed(robots: Sequence[RobotFold], parts: Sequence[Eliminated], total: Stacked, shared: Bools, values: Array,
              gains: float | None) -> SharedEstimate:
    """Return all robots' values and covariances, given the common values (shared,).

    With normal matrices H_r of the robots (own columns o, shared columns s), their scores s_r, E_r = [-H_so H_oo^-1, I]
    and P, the inverse of the sum of all H_r with own columns eliminated, the error of the common values is c = P sum_r
    E_r s_r, and that of a robot's own values is H_oo^-1 (s_o - H_os c).
    """
    base, dof = len(shared), robots[0].regression.dof
    half = np.linalg.inv(total.r)
    inverse = half @ half.T
    carries, keeps, score_covariances = [], [], []
    for robot, part in zip(robots, parts, strict=True):
        wide = robot.score_covariance if gains is None else _score_covariance_with_gains(robot)
        width = len(wide)
        root = np.linalg.inv(part.own) if len(part.columns) else np.zeros((0, 0))
        carry = np.zeros((width, int(shared.sum())))  # change of own and shared values by a change of the shared ones
        carry[part.columns] = -root @ part.cross
        carry[np.flatnonzero(shared)] = np.eye(carry.shape[1])
        keep = np.zeros((width, width))
        keep[np.ix_(part.columns, part.columns)] = root @ root.T
        carries.append(carry)
        keeps.append(keep)
        score_covariances.append(wide)
    score_covariance = tree_sum([carry.T @ one @ carry
                                 for carry, one in zip(carries, score_covariances, strict=True)], np.add)
    covariance = inverse @ score_covariance @ inverse
    found, spread, factors = [], [], []
    for part, carry, keep, one in zip(parts, carries, keeps, score_covariances, strict=True):
        row = np.zeros(base + dof)
        row[np.flatnonzero(shared)] = values
        row[part.columns] = part.values(values)
        found.append(row[:base])
        factors.append(1.0 / (1.0 + row[base:]))
        mixed = carry @ inverse @ (carry.T @ one @ keep.T)
        whole = carry @ covariance @ carry.T + mixed + mixed.T + keep @ one @ keep.T
        not_excited = np.setdiff1d(np.flatnonzero(~shared), [*part.columns, *part.fixed])
        whole[not_excited, not_excited] = np.inf
        spread.append(whole[:base, :base])
    return SharedEstimate(shared, np.array(found), tuple(spread), np.array(factors))


@one_blas_thread()
def consistent_shared_estimate(robots: Sequence[RobotFold], own: Sequence[str] = OWN_GROUPS,
                               gains: float | None = None) -> SharedEstimate:
    """Return the joint least-squares estimate of a fleet with physically consistent links. Standard errors are those
    without constraints.

    An own base parameter that is a single positive standard parameter is kept non-negative.
    """
    check_alike(robots)
    base = robots[0].regression.base
    shared = shared_columns(base, own)
    alone = np.count_nonzero(base.matrix, axis=1) == 1
    positive = [int(c) for c in np.flatnonzero(~shared & alone) if base.parameters.items[base.independent[c]].positive]
    held: list[set[int]] = [set() for _ in robots]
    for _ in range(_MOST_ROUNDS):
        parts = [Eliminated.from_fold(robot, shared, gains, sorted(zero))
                 for robot, zero in zip(robots, held, strict=True)]
        total = summed(parts)
        values = _links(base, shared, total, own)
        if not _changed(robots, parts, held, values, positive, shared):
            return completed(robots, parts, total, shared, values, gains)
    raise NotPossibleError("the consistent estimate of the fleet did not converge: the set of friction parameters at "
                           "zero keeps changing")


def _links(base: BaseParameters, shared: Bools, total: Stacked, own: Sequence[str]) -> Array:
    """Return the common parameters (shared,) of the physically consistent robot that fits the equations best."""
    places = np.flatnonzero(shared)
    r, rho = np.zeros((len(base), len(base))), np.zeros(len(base))
    r[:len(places), places], rho[:len(places)] = total.r, total.rho
    items = base.parameters.items
    mine = {item.name: 0.0 for item in items if item.kind.group in own or item.name in own}
    consistency = Consistency(base.parameters, known={**mine, **base.known})
    return (base.matrix @ fit(consistency, base, Stacked(r, rho, total.rest, total.rows)).theta)[places]


def _changed(robots: Sequence[RobotFold], parts: Sequence[Eliminated], held: list[set[int]], shared_values: Array,
             positive: Sequence[int], shared: Bools) -> bool:
    """Fix negative parameters at zero, and release fixed ones that would be positive. Return whether any changed."""
    changed = False
    for robot, part, zero in zip(robots, parts, held, strict=True):
        values = dict(zip(part.columns.tolist(), part.values(shared_values).tolist(), strict=True))
        below = {c for c in positive if values.get(c, 0.0) < 0.0}
        full = np.zeros(len(shared))
        full[np.flatnonzero(shared)] = shared_values
        for c, value in values.items():
            if c < len(full):
                full[c] = value
        stacked = robot.stacked
        slope = stacked.r.T @ (stacked.rho - stacked.r @ full)  # negative gradient of half the misfit
        size = np.linalg.norm(stacked.r, axis=0) * np.sqrt(float(stacked.rho @ stacked.rho) + stacked.rest)
        back = {c for c in zero if slope[c] > _MIN_MULTIPLIER_SHARE * size[c]} if not below else set()
        zero -= back
        zero |= below
        changed = changed or bool(below or back)
    return changed
