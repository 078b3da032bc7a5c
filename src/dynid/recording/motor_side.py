"""Logs of robots with flexible joints, with motor coordinates after those of the links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.errors import RecordingError
from dynid.recording.recording import Recording
from dynid.robot import numbered_joints


def motor_name(joint: str) -> str:
    """Return the name of a joint's motor among the coordinates."""
    return f"{joint} motor"


def add_motor_side(recording: Recording, joints: Sequence[int]) -> Recording:
    """Return the recording with link and motor positions (samples, dof + motors), as `FlexibleModel` needs it.

    The motors of `joints` (counted from 0) have the same torques as the links. Filters, differentiation and the
    selection of rows treat both sides alike. A logged reference is the reference of the motors and is used for both
    sides.
    """
    motors = recording.motor_position
    if motors is None:
        raise RecordingError(f"{recording.source} has no motor positions. Flexible joints need them in addition to "
                             "the link positions: add --set 'log.motor_position=[...]', or motor_position = [...] "
                             "under [log], or remove [model.flexible]", code="no-motor-positions")
    own, names = list(joints), recording.joints or numbered_joints(recording.dof)
    every = [*range(recording.dof), *own]
    signals: dict[str, Any] = {name: np.ascontiguousarray(signal[:, every])
                               for name in ("tau", "reference", "reference_velocity", "motor_position", "sensed_torque")
                               if (signal := getattr(recording, name)) is not None}
    return replace(recording, **signals, q=np.hstack([recording.q, motors[:, own]]), dq=None,
                   joints=(*names, *(motor_name(names[j]) for j in own)),
                   unmeasured=(*recording.unmeasured,
                               *(motor_name(names[j]) for j in own if names[j] in recording.unmeasured)))
