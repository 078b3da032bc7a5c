"""StudyData: what the page of a Monte Carlo study is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynid.arrays import Array, Bools


@dataclass(frozen=True, eq=False)
class MethodScore:
    """One method at one noise level.

    factor: on the noise. logs: how many gave an estimate. torque_error: percent, median over the logs, None without
    any. bias, spread, stated (base,): mean error, deviation over the logs, deviation stated, in each parameter's unit.
    coverage (base,): share of the logs whose stated 95 % interval holds the truth. known (base,): where these four mean
    anything. group_coverage: mean share by group of parameters, None where none is known. failures: why a log gave no
    estimate, a sentence each.
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
    """What the page shows. names, units, truth, inertial (base,): the parameters; inertial ones stand first.

    factors: on the noise. scores: every method at every factor. tables: rows of cells, the head first. unbiased,
    biased: mean error in spreads below which none is seen, above which it is most of the error. unbiased_by_chance:
    share of the parameters of a method without bias that so many logs show as such. settings: the text of the study's
    file. command: repeats it at the command line.
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
