"""Scatter of parameters between robots and between motions of one robot, by analysis of variance.

If several robots made the same motions, the estimate of each log is mu + (robot) + (motion) + noise of its stated
standard deviation. The variance that robots explain beyond motions, and motions beyond robots, is compared with the
residual variance by Fisher's F test. The residual variance, at least that of the noise, is compared with the stated
noise by a chi-squared test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Bools, Ints
from dynid.fleet.change_detection import LogEstimates
from dynid.fleet.robot_fold import RobotFold
from dynid.output_fields import output_fields
from dynid.plain import plain

RATE = 0.05  # false discovery rate of parameters that are reported as different
Differs = Literal["robots", "motions", "nothing", "unknown"]
MAX_MOTIONS_NAMED = 6  # motions that a sentence names
# Robots per motion, and motions that several robots made, needed to separate robots from motions.
MIN_COMMON_MOTIONS = 2


@dataclass(frozen=True, eq=False)
class Scatter:
    """Scatter of the parameters of a fleet; all arrays are (base,).

    Attributes:
        within_ratio: mean square of (log - robot's mean) relative to the stated variances, about one for noise alone.
        within, between: standard deviations in excess of noise, between motions of one robot and between robots.
        p_within, p_between: p-values of the scatter between motions of one robot, and of that between robots.
        crossed: two-way analysis of variance, robots by motions; None if robots did not make the same motions.
        differs: "robots" if a parameter differs between robots, "motions" if only between motions, "nothing", or
            "unknown" if too few logs determine the parameter.
    """

    within_ratio: Array
    within: Array
    between: Array
    p_within: Array
    p_between: Array
    crossed: TwoWay | None
    differs: tuple[Differs, ...]

    @property
    def p_robots(self) -> Array:
        """P-values (base,) of differences of a parameter between robots."""
        return self.p_between if self.crossed is None else self.crossed.p_robots

    @property
    def p_motions(self) -> Array:
        """P-values (base,) of differences between motions; without common motions, between the logs of one robot."""
        return self.p_within if self.crossed is None else self.crossed.p_motions

    def named(self, differs: Differs, names: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the parameters that are classified in `differs` by the given value, such as "robots"."""
        return tuple(name for name, one in zip(names, self.differs, strict=True) if one == differs)

    @property
    def inflation(self) -> float:
        """Ratio of the scatter between logs of one robot to the stated standard errors, the median over parameters; at
        least one."""
        known = self.within_ratio[np.isfinite(self.within_ratio)]
        return float(np.sqrt(max(np.median(known), 1.0))) if len(known) else 1.0


def scatter(robots: Sequence[RobotFold], logs: Sequence[LogEstimates]) -> Scatter:
    """Return the scatter of all base parameters between and within robots; logs: estimates of each robot's logs."""
    from scipy.stats import chi2
    from scipy.stats import f as fisher

    count = len(robots[0].regression.base)
    ratio, within, p_within = (np.full(count, np.nan) for _ in range(3))
    degrees_of_freedom = np.zeros(count)
    for k in range(count):
        square, free, spread = _within([(one.values[:, k], one.std[:, k]) for one in logs])
        if free > 0:
            ratio[k], degrees_of_freedom[k], within[k] = square / free, free, spread
            p_within[k] = float(chi2.sf(square, free))
    values = np.array([np.where(robot.solution.identified, robot.solution.beta, np.nan) for robot in robots])
    variances = np.array([np.diag(robot.covariance) for robot in robots])
    between, p_between = np.full(count, np.nan), np.full(count, np.nan)
    for k in range(count):
        scale = max(ratio[k], 1.0) if np.isfinite(ratio[k]) else 1.0
        square, free, spread = _within([(values[:, k], np.sqrt(np.maximum(variances[:, k], 0.0) * scale))])
        if free > 0:
            between[k] = spread
            p_between[k] = float(fisher.sf(square / free, free, degrees_of_freedom[k]) if degrees_of_freedom[k] > 0 else
                                 chi2.sf(square, free))
    crossed = two_way(logs)
    p_robots, p_motions = (p_between, p_within) if crossed is None else (crossed.p_robots, crossed.p_motions)
    robots_differ, motions_differ = discoveries(p_robots, RATE), discoveries(p_motions, RATE)
    differs: list[Differs] = ["robots" if a else "motions" if b else "unknown" if not np.isfinite(p) else "nothing"
                              for a, b, p in zip(robots_differ, motions_differ, p_robots, strict=True)]
    return Scatter(ratio, within, between, p_within, p_between, crossed, tuple(differs))


def _within(groups: Sequence[tuple[Array, Array]]) -> tuple[float, int, float]:
    """Return the sum of squares about the mean of each group, its degrees of freedom, and the standard deviation in
    excess of noise (DerSimonian and Laird 1986). groups: values (n,) of one parameter and their standard errors (n,),
    the unit of the squares, for each group."""
    square, free, size = 0.0, 0, 0.0
    for values, std in groups:
        known = np.isfinite(values) & np.isfinite(std) & (std > 0)
        if known.sum() < 2:
            continue
        weight, x = 1.0 / std[known] ** 2, values[known]
        square += float(np.sum(weight * (x - np.sum(weight * x) / weight.sum()) ** 2))
        free += int(known.sum()) - 1
        size += float(weight.sum() - np.sum(weight ** 2) / weight.sum())
    return square, free, float(np.sqrt(max(square - free, 0.0) / size)) if size > 0 else 0.0


def discoveries(probabilities: ArrayLike, rate: float) -> Bools:
    """Return a mask of the significant tests at a false discovery rate `rate` (Benjamini and Hochberg 1995).
    probabilities: p-values of any shape, the shape of the mask; non-finite entries were not tested."""
    p = np.asarray(probabilities, dtype=float)
    ordered = np.sort(p[np.isfinite(p)])
    below = np.flatnonzero(ordered <= rate * np.arange(1, len(ordered) + 1) / len(ordered))
    return np.isfinite(p) & (p <= (ordered[below[-1]] if len(below) else -np.inf))


@dataclass(frozen=True, eq=False)
class TwoWay:
    """P-values (base,) of a two-way analysis of variance.

    Attributes:
        p_robots: p-values of differences between robots that made the same motion.
        p_motions: p-values of differences between motions of the same robot.
        p_left: p-values of the residual variance; nan if the logs do not determine it.
        motions: names of the motions that several robots made.
        robots: number of robots that made these motions.
    """

    p_robots: Array
    p_motions: Array
    p_left: Array
    motions: tuple[str, ...]
    robots: int

    @property
    def sentence(self) -> str:
        """Sentence that states how many robots and motions were compared."""
        shown = ", ".join(self.motions[:MAX_MOTIONS_NAMED]) + (", ..." if len(self.motions) > MAX_MOTIONS_NAMED else "")
        return (f"{self.robots} robots made {len(self.motions)} motions that other robots made too "
                f"({shown}), so differences between robots are separated from differences between motions")

    @output_fields(robots=int, motions=list[str], p_robots=dict[str, float | None],
                   p_motions=dict[str, float | None], p_left=dict[str, float | None])
    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the p-values by name of the base parameter as plain data; numbers that are not finite are None."""
        return {"robots": self.robots, "motions": list(self.motions),
                **{key: dict(zip(names, plain(getattr(self, key)), strict=True))
                   for key in ("p_robots", "p_motions", "p_left")}}


def two_way(logs: Sequence[LogEstimates]) -> TwoWay | None:
    """Return the two-way analysis of variance of every base parameter, from logs of motions that several robots made.

    The result is None if there are fewer than two such motions. logs: estimates of each robot's logs.
    """
    made: dict[str, set[int]] = {}
    for r, own in enumerate(logs):
        for entry in own.entries:
            if entry.motion:
                made.setdefault(entry.motion, set()).add(r)
    motions = tuple(sorted(name for name, robots in made.items() if len(robots) >= MIN_COMMON_MOTIONS))
    if len(motions) < MIN_COMMON_MOTIONS:
        return None
    places = [(r, k, motions.index(entry.motion)) for r, own in enumerate(logs) for k, entry in enumerate(own.entries)
              if entry.motion in motions]
    robot, motion = np.array([place[0] for place in places]), np.array([place[2] for place in places])
    values = np.array([logs[r].values[k] for r, k, _ in places])
    stds = np.array([logs[r].std[k] for r, k, _ in places])
    found = np.array([_tests(values[:, c], stds[:, c], robot, motion) for c in range(values.shape[1])])
    return TwoWay(found[:, 0], found[:, 1], found[:, 2], motions, len(set(robot.tolist())))


def _tests(values: Array, std: Array, robot: Ints, motion: Ints) -> tuple[float, float, float]:
    """Return the p-values of one parameter: of differences between robots, of differences between motions, and of the
    residual variance. All arguments have one entry per log (logs,)."""
    from scipy.stats import chi2
    from scipy.stats import f as fisher

    known = np.isfinite(values) & np.isfinite(std) & (std > 0)
    nothing = (float("nan"),) * 3
    if known.sum() < 2 * MIN_COMMON_MOTIONS:
        return nothing
    x, weight = values[known], 1.0 / std[known]
    robots, motions = (_levels(one[known]) for one in (robot, motion))
    (by_robots, rank_robots), (by_motions, rank_motions), (by_both, rank) = (
        _residual_squares(columns, x, weight) for columns in (robots, motions, np.hstack([robots, motions])))
    free = int(known.sum()) - rank
    if free < 1:
        return nothing
    left = max(by_both / free, 1.0)

    def chance(gained: float, degrees: int) -> float:
        return float(fisher.sf(max(gained, 0.0) / degrees / left, degrees, free)) if degrees > 0 else float("nan")

    return (chance(by_motions - by_both, rank - rank_motions), chance(by_robots - by_both, rank - rank_robots),
            float(chi2.sf(by_both, free)))


def _levels(which: Ints) -> Array:
    """Return the indicator matrix (logs, levels) of a factor with integer levels."""
    return (which[:, None] == np.unique(which)).astype(float)


def _residual_squares(columns: Array, x: Array, weight: Array) -> tuple[float, int]:
    """Return the weighted residual sum of squares of a regression on columns, and the number of independent columns."""
    solution, _, rank, _ = np.linalg.lstsq(columns * weight[:, None], x * weight, rcond=1e-10)
    return float(np.sum((weight * (x - columns @ solution)) ** 2)), int(rank)
