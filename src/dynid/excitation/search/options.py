"""What may be said about a search, about the log to come and about what is known before it."""

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
    """The best motion of a search that goes on: seconds since its beginning, value of the criterion, condition number
    of the base regressor, and expected standard deviations (base,) of the base parameters."""

    seconds: float
    value: float
    condition: float
    base: BaseParameters
    deviations: Array


@dataclass(frozen=True, eq=False)
class Search:
    """How long to search, and from where.

    budget: seconds. rounds: of four starts each; with rounds and no budget the result depends on the seed alone.
    start: a motion of the family to begin with. threads: all cores unless given. progress(seconds, best value); best:
    is given every better motion that is found.
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
            raise DynidError("give a budget in seconds, a number of rounds, or both")


@dataclass(frozen=True, eq=False)
class Measurement:
    """The log to come. rate: Hz. noise: standard deviation of each joint's torque, N m (or N), one number or (dof,);
    unless given, a share of each joint's typical torque for the expected standard deviations."""

    rate: float = 100.0
    noise: Array | float | None = None

    def __post_init__(self) -> None:
        check_quantity(RATE, self.rate, "the sampling rate")


@dataclass(frozen=True, eq=False)
class PriorKnowledge:
    """What is known before the motion runs.

    regression: earlier logs, to which the motion shall add most. nominal: parameters for the torque limits (default:
    the model's own, zero where unknown). scale (base,): magnitudes of the base parameters, 'prior' for those of the
    nominal model; default 'prior' for the criteria 'a' and 'largest', none otherwise. base: found already.
    """

    regression: Regression | None = None
    nominal: ArrayLike | None = None
    scale: Literal["prior"] | Array | None = None
    base: BaseParameters | None = None
