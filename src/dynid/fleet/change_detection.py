"""Detection of changes of a robot over time, from estimates of each of its logs: steps with their date, and drifts.

Log l of a robot gives y_l = L_l' theta_l with unit covariance. A change of a part (a link or a drive) by delta gives
theta_l = theta + g_l K delta. K are the part's columns of the base matrix, and g_l over l is a step at some log, or
proportional to time. With the fleet prior theta ~ N(mu, P), Lambda = sum L_l L_l', V = (P^-1 + Lambda)^-1 and S = sum
g_l L_l L_l' K,

    A = K' (sum g_l^2 L_l L_l') K - S' V S,   b = K' sum g_l L_l e_l - S' V sum L_l e_l,   e_l = y_l - L_l' mu,

and b' A^-1 b is chi-squared without a change. The most significant of all steps and the drift is reported, with its
p-value multiplied by the number of tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np

from dynid.arrays import Array
from dynid.datasets.log_fold import LogFold, ManifestEntry
from dynid.errors import NotPossibleError
from dynid.fleet.pooling import RobotInformation
from dynid.fleet.robot_fold import RobotFold

RATE = 0.01  # p-value below which a change is reported
MIN_LOGS_PER_SIDE = 2  # logs on either side of a step
_RANK_TOLERANCE = 1e-10  # share of the largest eigenvalue: smaller directions of a change are not determined
_SECONDS_PER_DAY = 86400.0  # s


@dataclass(frozen=True)
class PartChange:
    """A change over time of one part of a robot.

    Attributes:
        robot, part: names of the robot and of its link or drive.
        kind: "step" or "drift".
        date: date of the first log after a step, or of the last log of a drift.
        probability: p-value, corrected for all tests.
        parameters: name, value before and after the change (of the first and the last log for a drift), and difference
            in standard errors, for each base parameter of the part; the largest difference first.
    """

    robot: str
    part: str
    kind: Literal["step", "drift"]
    date: str
    probability: float
    parameters: tuple[tuple[str, float, float, float], ...]

    @property
    def sentence(self) -> str:
        """Sentence that states which part of the robot changed, and when."""
        name, before, after, _ = self.parameters[0]
        more = "" if not before else f" ({100.0 * (after - before) / abs(before):+.0f} %)"
        when = f"changed before {self.date}" if self.kind == "step" else f"drifts until {self.date}"
        return f"{self.robot}: {self.part} {when}: {name} from {before:.4g} to {after:.4g}{more}"


@dataclass(frozen=True, eq=False)
class Series:
    """Logs of one robot in order of time.

    Attributes:
        robot: name of the robot.
        dates: date of each log (ISO 8601).
        logs: information of each log on the base parameters.
        mean, prior: mean (base,) and covariance (base, base) of the base parameters before the logs.
        names: names of the base parameters."""

    robot: str
    dates: tuple[str, ...]
    logs: tuple[RobotInformation, ...]
    mean: Array
    prior: Array
    names: tuple[str, ...]

    def part(self, rows: slice) -> Series:
        return Series(self.robot, self.dates[rows], self.logs[rows], self.mean, self.prior, self.names)


def changes(series: Series, parts: Mapping[str, Array], rate: float = RATE) -> tuple[PartChange, ...]:
    """Return the changes of a robot in order of time. The logs are split at a step, and both intervals are searched
    again.

    Args:
        series: logs of the robot.
        parts: effect (base, k) of a change of each link or drive on the base parameters, by name.
        rate: p-value below which a change is significant.
    """
    if len(series.logs) < 2 * MIN_LOGS_PER_SIDE:
        return ()
    best = _best(series, parts)
    if best is None or best[1].probability >= rate:
        return ()
    place, change = best
    if change.kind == "drift":
        return (change,)
    before, after = (changes(series.part(rows), parts, rate) for rows in (slice(place), slice(place, None)))
    return (*before, change, *after)


def days(dates: Sequence[str]) -> Array:
    """Return the times of logs (logs,) in days since the first log; the indices of the logs if a date is missing."""
    try:
        stamps = np.array([datetime.fromisoformat(date).timestamp() for date in dates])
    except ValueError:
        return np.arange(len(dates), dtype=float)
    return (stamps - stamps[0]) / _SECONDS_PER_DAY


def _best(series: Series, parts: Mapping[str, Array]) -> tuple[int, PartChange] | None:
    """Return the most significant change of a robot, and the index of the first log after the change."""
    count = len(series.logs)
    information = np.array([one.root @ one.root.T for one in series.logs])
    scores = np.array([one.root @ (one.seen - one.root.T @ series.mean) for one in series.logs])
    whole = information.sum(axis=0)
    inverse = series.prior @ np.linalg.inv(np.eye(len(whole)) + whole @ series.prior)
    time = days(series.dates)
    shapes = [("step", place, (np.arange(count) >= place).astype(float))
              for place in range(MIN_LOGS_PER_SIDE, count - MIN_LOGS_PER_SIDE + 1)]
    if time[-1] > 0:
        shapes.append(("drift", count - 1, time / time[-1]))
    tries, best = len(shapes) * len(parts), None
    for kind, place, g in shapes:
        first, second = (np.tensordot(g ** power, information, axes=1) for power in (1, 2))
        pulled = inverse @ scores.sum(axis=0)
        own_score = g @ scores - first @ pulled
        reduced = second - first @ inverse @ first
        for label, changes_of in parts.items():
            square, rank, delta, covariance = change_test(changes_of, reduced, own_score)
            if not rank:
                continue
            chance = _log_chance(square, rank)
            if best is None or chance < best[0]:
                best = chance, kind, place, label, changes_of @ delta, changes_of @ covariance @ changes_of.T, g
    if best is None:
        return None
    chance, kind, place, label, delta, covariance, g = best
    level = series.mean + inverse @ (scores.sum(axis=0) - np.tensordot(g, information, axes=1) @ delta)
    std = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    rows = [(series.names[k], float(level[k]), float(level[k] + delta[k]), float(delta[k] / std[k]))
            for k in np.flatnonzero(np.any(parts[label] != 0.0, axis=1))]
    date = series.dates[place] or f"log {place + 1}"
    return place, PartChange(series.robot, label, "step" if kind == "step" else "drift", date,
                             min(float(np.exp(chance)) * tries, 1.0),
                             tuple(sorted(rows, key=lambda row: -abs(row[3]))))


def change_test(changes_of: Array, information: Array, score: Array) -> tuple[float, int, Array, Array]:
    """Return the chi-squared statistic of a change of k standard parameters, its degrees of freedom, the change (k,)
    and its covariance (k, k).

    Args:
        changes_of: effect (base, k) of these standard parameters on the base parameters.
        information: information (base, base) on a change of the base parameters.
        score: score (base,) of that change.
    """
    a, b = changes_of.T @ information @ changes_of, changes_of.T @ score
    scale = np.sqrt(np.where(np.diag(a) > 0.0, np.diag(a), 1.0))
    sizes, vectors = np.linalg.eigh(a / np.outer(scale, scale))
    shown = sizes > _RANK_TOLERANCE * max(sizes.max(initial=0.0), 1e-300)
    if not np.any(np.diag(a) > 0) or not shown.any():
        return 0.0, 0, b, a
    half = (vectors[:, shown] / np.sqrt(sizes[shown])).T / scale
    turned = half @ b
    return float(turned @ turned), int(shown.sum()), half.T @ turned, half.T @ half


def _log_chance(square: float, degrees: int) -> float:
    """Return the log p-value of a chi-squared statistic, by the asymptotic tail if the p-value underflows."""
    from scipy.special import gammaln
    from scipy.stats import chi2

    chance = float(chi2.logsf(square, degrees))
    if np.isfinite(chance):
        return chance
    return float(-0.5 * square + (0.5 * degrees - 1.0) * np.log(0.5 * square) - gammaln(0.5 * degrees))


@dataclass(frozen=True, eq=False)
class LogEstimates:
    """Estimates from each log of a robot.

    Attributes:
        robot, entries: name of the robot, and its logs.
        values, std: base parameters and standard errors (logs, base); nan and infinity if not determined by a log.
        relative_error: torque error of each log with its own estimate (logs, dof), percent."""

    robot: str
    entries: tuple[ManifestEntry, ...]
    values: Array
    std: Array
    relative_error: Array

    @staticmethod
    def from_folds(robot: RobotFold, folds: Sequence[LogFold]) -> LogEstimates:
        """Return estimates from each compressed log, with the weights and the noise of the robot."""
        shape, level = (len(folds), len(robot.regression.base)), _level(robot, folds)
        values, std = np.full(shape, np.nan), np.full(shape, np.inf)
        errors = np.full((len(folds), robot.regression.dof), np.nan)
        for k, fold in enumerate(folds):
            one = RobotFold.from_folds(robot.name, [fold], robot.weights)
            with suppress(NotPossibleError):  # a log that determines no parameter
                known = one.solution.identified
                values[k] = np.where(known, one.solution.beta, np.nan)
                std[k] = np.where(known, np.sqrt(np.maximum(np.diag(one.covariance), 0.0)) * level, np.inf)
                errors[k] = one.regression.relative_errors(one.solution.beta)
        return LogEstimates(robot.name, tuple(fold.entry for fold in folds), values, std, errors)


def _level(robot: RobotFold, folds: Sequence[LogFold]) -> float:
    """Return the noise level of a robot (possibly from its fleet) divided by the noise level of its logs' residuals."""
    own = [fold.noise for fold in folds]
    if robot.noise is None or any(noise is None for noise in own):
        return 1.0
    mine = sum(float(np.trace(matrix)) * w ** 4 for matrix, w in zip(robot.noise, robot.weights, strict=True))
    logs = sum(float(np.trace(matrix)) * w ** 4 for noise in own if noise is not None
               for matrix, w in zip(noise, robot.weights, strict=True))
    return float(np.sqrt(mine / logs)) if logs > 0 else 1.0
