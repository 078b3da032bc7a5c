"""Two-way analysis of variance: whether a parameter differs between robots, between motions, or neither.

If several robots made the same motions, the estimate of each log is mu + (robot) + (motion) + noise of its stated
standard deviation. The variance that robots explain beyond motions, and motions beyond robots, is compared with the
residual variance by Fisher's F, and that with the stated noise by chi-squared; the residual variance is at least that
of the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, Ints
from dynid.fleet.log_estimates import LogEstimates
from dynid.output_fields import output_fields

MAX_MOTIONS_NAMED = 6  # motions that a sentence names
# Robots that made a motion, and motions that several robots made, from which both can be distinguished.
MIN_COMMON_MOTIONS = 2


@dataclass(frozen=True, eq=False)
class TwoWay:
    """P-values (base,) of a two-way analysis of variance.

    Attributes:
        p_robots: of differences between robots that made the same motion.
        p_motions: of differences between motions of the same robot.
        p_left: of the remaining variance; nan if the logs do not determine it.
        motions: those that several robots made.
        robots: how many made them.
    """

    p_robots: Array
    p_motions: Array
    p_left: Array
    motions: tuple[str, ...]
    robots: int

    @property
    def sentence(self) -> str:
        """Sentence that states what was compared."""
        shown = ", ".join(self.motions[:MAX_MOTIONS_NAMED]) + (", ..." if len(self.motions) > MAX_MOTIONS_NAMED else "")
        return (f"robots by motions: {self.robots} robots made {len(self.motions)} motions that others made too "
                f"({shown}), so differences between robots are separated from differences between motions")

    @output_fields(robots=int, motions=list[str], p_robots=dict[str, float | None],
                   p_motions=dict[str, float | None], p_left=dict[str, float | None])
    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Return plain data; numbers that are not finite are None."""
        def plain(values: Array) -> dict[str, float | None]:
            return {name: float(x) if np.isfinite(x) else None for name, x in zip(names, values, strict=True)}

        return {"robots": self.robots, "motions": list(self.motions), "p_robots": plain(self.p_robots),
                "p_motions": plain(self.p_motions), "p_left": plain(self.p_left)}


def two_way(logs: Sequence[LogEstimates]) -> TwoWay | None:
    """Return the test of every base parameter, from the logs of motions that several robots made.

    It is None if there are fewer than two such motions. logs: of each robot.
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
    """Return the p-values of one parameter: of robots, of motions, of the remaining variance."""
    from scipy.stats import chi2
    from scipy.stats import f as fisher

    known = np.isfinite(values) & np.isfinite(std) & (std > 0)
    nothing = (float("nan"),) * 3
    if known.sum() < 2 * MIN_COMMON_MOTIONS:
        return nothing
    x, weight = values[known], 1.0 / std[known]
    robots, motions = (_levels(one[known]) for one in (robot, motion))
    (by_robots, rank_robots), (by_motions, rank_motions), (by_both, rank) = (
        _left(columns, x, weight) for columns in (robots, motions, np.hstack([robots, motions])))
    free = int(known.sum()) - rank
    if free < 1:
        return nothing
    left = max(by_both / free, 1.0)

    def chance(gained: float, degrees: int) -> float:
        return float(fisher.sf(max(gained, 0.0) / degrees / left, degrees, free)) if degrees > 0 else float("nan")

    return (chance(by_motions - by_both, rank - rank_motions), chance(by_robots - by_both, rank - rank_robots),
            float(chi2.sf(by_both, free)))


def _levels(which: Ints) -> Array:
    """Return an indicator column (logs, levels) for each level."""
    return (which[:, None] == np.unique(which)).astype(float)


def _left(columns: Array, x: Array, weight: Array) -> tuple[float, int]:
    """Return the weighted residual sum of squares of some columns, and the number of independent columns."""
    solution, _, rank, _ = np.linalg.lstsq(columns * weight[:, None], x * weight, rcond=1e-10)
    return float(np.sum((weight * (x - columns @ solution)) ** 2)), int(rank)
