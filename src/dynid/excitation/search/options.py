"""Options of a search, of the future log, and prior knowledge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.quantities import RATE, check_quantity
from dynid.regression import BaseParameters, Regression

Progress = Callable[[float, float], None]  # seconds so far, best value so far


@dataclass(frozen=True, eq=False)
class BestSoFar:
    """The best motion of a running search.

    It has the time since the start, s, the value of the criterion, the condition number of the base regressor, and the
    expected standard errors (base,) of the base parameters.
    """

    seconds: float
    value: float
    condition: float
    base: BaseParameters
    deviations: Array


@dataclass(frozen=True, eq=False)
class Search:
    """Budget and start of a search.

    Attributes:
        budget: seconds.
        rounds: number of rounds of four starts. With rounds and no budget, the result depends on the seed alone.
        start: motion of the family to start from.
        threads: default: all cores.
        progress: called with the seconds so far and the best value.
        best: called with every better motion that is found.
    """

    budget: float | None = 30.0
    rounds: int | None = None
    seed: int = 0
    start: Trajectory | None = None
    threads: int | None = None
    progress: Progress | None = None
    best: Callable[[BestSoFar], None] | None = None

    def __post_init__(self) -> None:
        if self.budget is None and self.rounds is None:
            raise DynidError("give a budget in seconds, a number of rounds, or both", code="no-budget")


@dataclass(frozen=True, eq=False)
class Measurement:
    """The future log: `rate`, Hz, and `noise`, the standard deviation of each torque (one number or (dof,)), N m or N.

    Without noise, a share of the typical torque of each joint is used for the expected standard errors.
    """

    rate: float = 100.0
    noise: Array | float | None = None

    def __post_init__(self) -> None:
        check_quantity(RATE, self.rate, "the sampling rate")


@dataclass(frozen=True, eq=False)
class PriorKnowledge:
    """Knowledge that is available before the motion is designed.

    Attributes:
        regression: earlier logs, which the motion shall complement.
        nominal: parameters for the torque limits. Default: the model's own, zero where unknown.
        scale: magnitudes of the base parameters (base,), or "prior" for those of the nominal model. Default: "prior"
            for the criteria "a" and "largest", none otherwise.
        base: base parameters, if they were computed before.
    """

    regression: Regression | None = None
    nominal: ArrayLike | None = None
    scale: Literal["prior"] | Array | None = None
    base: BaseParameters | None = None
