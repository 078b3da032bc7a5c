"""Options that all iterated closed-loop methods share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dynid.simulation import Controller

Start = Literal["regular", "regular-links", "filtered", "nominal", "wls"]
# "auto": one after the other until one leads on
AnyStart = Literal["auto", "regular", "regular-links", "filtered", "nominal", "wls"]


@dataclass(frozen=True, eq=False)
class LoopOptions:
    """Options of the iterated closed-loop methods.

    Attributes:
        start: the first simulated model, by its name in the method.
        tolerance: relative change of the torques between two iterations at which they may stop.
        step: integration step of the simulation, s; by default one step per control tick.
        controller: the control law; by default that of the problem.
        transient: time dropped at the start of each log, s; by default the settling time of the loop.
    """

    start: str
    tolerance: float
    max_iterations: int
    step: float | None
    controller: Controller | None
    transient: float | None

    def dropped(self, settling: float) -> float:
        """Return the time dropped at the start of each log, s, for a loop with this settling time, s."""
        return settling if self.transient is None else self.transient
