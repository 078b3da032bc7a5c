"""Checks of logs without torques: implausible units, commands that repeat measurements, duty cycles above one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Array
from dynid.errors import RecordingError
from dynid.recording.recording import Recording

MAX_PLAIN_REACH = 4.0 * np.pi  # rad; servos that are commanded by position turn less than two turns either way
MAX_NORMALISED = 100.0  # end of the normalised range of LeRobot
MIN_TICKS_REACH = 360.0  # whole numbers beyond this are ticks, since they would be no degrees
MIN_MOTION = 1e-3  # rad or m; a joint that moves less does not show whether it is commanded
SAME_SHARE = 0.99  # share of the rows in which a command may equal the position before it is none
MAX_DUTY = 1.05  # rounding of registers may exceed one a little


def check_servo_units(positions: Array, joints: Sequence[str], source: str) -> None:
    """Raise an error if positions (samples, joints) without a given unit are probably not in rad."""
    reach = np.max(np.abs(positions), axis=0, initial=0.0)
    j = int(np.argmax(reach))
    if reach[j] <= MAX_PLAIN_REACH:
        return
    what = f"{source}: positions of joint {joints[j] if joints else j + 1} reach {reach[j]:.4g}, too far for rad"
    if reach[j] > MIN_TICKS_REACH and np.all(positions == np.round(positions)):
        raise RecordingError(f"{what}, and are whole numbers: they are probably encoder ticks; add "
                             "--set log.unit=ticks --set log.offset=-2048", code="wrong-unit", where="log.unit")
    if np.max(reach) <= MAX_NORMALISED:
        raise RecordingError(f"{what}: they are in degrees (add --set log.unit=deg) or normalised to -100..100 (add "
                             "--set log.unit=normalised --set log.calibration=FILE.json)", code="wrong-unit",
                             where="log.unit")
    raise RecordingError(f"{what}: they are probably in degrees; add --set log.unit=deg, or --set log.unit=rad if they "
                         "are in radians", code="wrong-unit", where="log.unit")


def check_commands(recording: Recording) -> None:
    """Raise an error if the commands of a moving joint equal its measured positions in the same row or one
    beside it."""
    if recording.reference is None or len(recording) < 3:
        return
    moving = np.flatnonzero(np.ptp(recording.q, axis=0) > MIN_MOTION)
    for j in moving.tolist():
        q, command = recording.q[:, j], recording.reference[:, j]
        changes = np.abs(np.diff(q)) > 0  # a joint that rests agrees with any command that has arrived
        if np.sum(changes) < 2:
            continue
        same = np.mean(command[1:][changes] == q[1:][changes])
        later = np.mean(command[:-1][changes] == q[1:][changes])
        earlier = np.mean(command[1:][changes] == q[:-1][changes])
        if max(same, later, earlier) >= SAME_SHARE:
            which = "its measured position" + ("" if same >= SAME_SHARE else " one row later" if later >= SAME_SHARE
                                               else " one row earlier")
            name = recording.joints[j] if recording.joints else j + 1
            raise RecordingError(f"{recording.source}: the command of joint {name} equals {which}, so it was not the "
                                 "command that the servo received", "record the goal position that is sent to the "
                                 "servo, and map it with --set 'log.reference=[...]'", "command-is-position",
                                 where="log.reference")


def check_duty(recording: Recording) -> None:
    """Raise an error if duty cycles exceed one: they have another unit, or their sign bits were not decoded."""
    if recording.duty is None or not len(recording):
        return
    reach = np.max(np.abs(recording.duty), axis=0)
    j = int(np.argmax(reach))
    if reach[j] > MAX_DUTY:
        name = recording.joints[j] if recording.joints else j + 1
        raise RecordingError(f"{recording.source}: the duty cycle of joint {name} reaches {reach[j]:.4g}, and must lie "
                             "within -1 and 1: it has another unit, or its sign bit was not decoded",
                             "give the factor with --set 'log.scale={duty=0.001}', or decode the sign bit in the "
                             "recorder", "duty-range", where="log.duty")
