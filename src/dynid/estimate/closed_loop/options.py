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
    """start: what is simulated first, as the method names it. tolerance: change of the torques between two iterations,
    a share of them, at which they may stop. step: of the simulation, s, default one a tick. controller: the law,
    default the problem's. transient: s dropped at the start, default what the loop needs to forget it.
    """

    start: str
    tolerance: float
    max_iterations: int
    step: float | None
    controller: Controller | None
    transient: float | None

    def dropped(self, settling: float) -> float:
        """Seconds dropped at the start of each log, for a loop that settles in so many seconds."""
        return settling if self.transient is None else self.transient
