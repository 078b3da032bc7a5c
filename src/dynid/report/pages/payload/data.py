"""PayloadData: what the page of a payload is made of."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.arrays import Array
from dynid.payloads.controllers import Entry
from dynid.payloads.result import PayloadEstimate
from dynid.recording import Samples
from dynid.robot import Robot


@dataclass(frozen=True, eq=False)
class PayloadData:
    """What the page shows. samples: of a loaded log; without, load (samples, dof): torques of the robot that was
    identified without load, and of the payload alone, along it. entries: what to type in. command: that made it."""

    title: str
    robot: Robot
    payload: PayloadEstimate
    entries: tuple[Entry, ...]
    samples: Samples
    without: Array
    load: Array
    command: str = ""
