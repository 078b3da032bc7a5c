"""Data of the page on a payload."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.arrays import Array
from dynid.payloads.controllers import Entry
from dynid.payloads.result import PayloadEstimate
from dynid.recording import Samples
from dynid.robot import Robot


@dataclass(frozen=True, eq=False)
class PayloadData:
    """Data of the page on a payload.

    Attributes:
        samples: of a loaded log.
        without, load: (samples, dof), torques of the unloaded robot and of the payload alone, for this log.
        entries: values to enter into controllers.
        command: command line that made the page.
    """

    title: str
    robot: Robot
    payload: PayloadEstimate
    entries: tuple[Entry, ...]
    samples: Samples
    without: Array
    load: Array
    command: str = ""
