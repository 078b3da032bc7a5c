"""Data of the page on a Monte Carlo study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynid.arrays import Array, Bools


@dataclass(frozen=True, eq=False)
class MethodScore:
    """One method at one noise level.

    Attributes:
        factor: on the noise.
        logs: number of logs with an estimate.
        torque_error: percent, median over the logs, or None.
        bias, spread, stated: (base,), mean error, standard deviation over the logs, and mean stated standard error.
        coverage: (base,), share of the logs whose 95 % interval contains the true value.
        known: (base,), whether these four are defined.
        group_coverage: mean coverage by group of parameters, None if undefined.
        failures: one sentence for each log without an estimate.
    """

    label: str
    factor: float
    logs: int
    torque_error: float | None
    bias: Array
    spread: Array
    stated: Array
    coverage: Array
    known: Bools
    group_coverage: Mapping[str, float | None]
    failures: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class StudyData:
    """Data of the page on a Monte Carlo study.

    Attributes:
        names, units, truth, inertial: (base,), the parameters, inertial ones first.
        factors: on the noise.
        scores: every method at every factor.
        tables: rows of cells, the head first.
        unbiased, biased: ratios of mean error and spread below which no bias is detected, and above which it dominates.
        unbiased_by_chance: expected share of parameters below `unbiased` for an unbiased method.
        settings: text of the study's file.
        command: command line that repeats the study.
    """

    title: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    truth: Array
    inertial: Bools
    repetitions: int
    seed: int
    factors: tuple[float, ...]
    scores: tuple[MethodScore, ...]
    tables: Sequence[Sequence[Sequence[str]]]
    unbiased: float
    biased: float
    unbiased_by_chance: float
    settings: str
    command: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the methods, in order."""
        return tuple(dict.fromkeys(score.label for score in self.scores))
