"""Feet of a robot with a free base: their frames, the columns that belong to each, and when they are in contact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import RecordingError
from dynid.recording.whole_body import UNITREE_ORDER, leg_of, meaning_of, words_of
from dynid.robot import Robot

_FOOT_WORDS = ("sole", "foot", "toe", "contact", "ankle", "calf", "shank")  # the best name of a foot first
LIFTED_SHARE = 0.3  # of the 95th percentile of a foot's force: a foot whose 5th percentile is higher never lifts
# Of the range from the 5th to the 95th percentile. A loaded foot that counts as lifted spoils the equations, and a
# lifted one that counts as standing only removes rows, so the threshold is close to the noise of an unloaded sensor.
THRESHOLD_SHARES = (0.05, 0.25)
THRESHOLD_NOISE = 5.0  # standard deviations of a sensor's noise above an unloaded foot


def find_feet(robot: Robot) -> tuple[str, ...]:
    """Return frames that look like feet by their names, one per leg, in the order of the robot's joints.

    A foot is on a link that carries no joint. Of several frames of one leg, one with "sole" in its name goes before
    "foot", "toe", "contact" and "ankle".
    """
    carrying = {joint.parent for joint in robot.joints}
    best: dict[int, tuple[int, str]] = {}
    places = [(frame.name, frame.body) for frame in robot.frames]
    places += [(body.name, i) for i, body in enumerate(robot.bodies)]
    for name, body in places:
        if body in carrying or body < robot.free_coordinates:
            continue
        words = set(words_of(name))
        ranks = [k for k, word in enumerate(_FOOT_WORDS) if word in words]
        if ranks and (body not in best or ranks[0] < best[body][0]):
            best[body] = (ranks[0], name)
    return tuple(best[body][1] for body in sorted(best))


@dataclass(frozen=True)
class FootColumns:
    """Frames of the feet in the order of their columns, the number of columns of each, and a note on the order."""

    frames: tuple[str, ...]
    width: int
    note: str = ""


def assign_feet(robot: Robot, columns: Sequence[str], given: Sequence[str] | None, signal: str, source: str,
                count: int) -> FootColumns:
    """Return which foot each column of a signal belongs to.

    Args:
        robot: the robot.
        columns: names of the columns.
        given: frames in the order of the columns, or None.
        signal: "foot_force" or "contact", for messages.
        source: the log, for messages.
        count: number of columns.
    """
    feet = tuple(given) if given else find_feet(robot)
    for name in feet:
        robot.frame(name)  # raises for a frame that does not exist
    hint = f"name their frames in the order of the columns with --set 'log.feet=[\"...\"]'; robot '{robot.name}' has " \
           f"the frames {', '.join(frame.name for frame in robot.frames[:16])}"
    if not feet:
        raise RecordingError(f"{source}: has {signal}, but no frame of robot '{robot.name}' is named like a foot", hint,
                             code="unknown-feet")
    meanings = [meaning_of(name) for name in columns]
    legs = list(dict.fromkeys(one.leg for one in meanings if one is not None and one.leg))
    if not given and legs and all(one is not None and one.leg for one in meanings):
        own = {leg_of(name): name for name in feet}
        missing = [leg for leg in legs if leg not in own]
        if missing:
            raise RecordingError(f"{source}: {signal} has columns of the {' '.join(missing[0])} foot, but the feet of "
                                 f"the robot are {', '.join(feet)}", hint, code="unknown-feet")
        lacking = [name for leg, name in own.items() if leg not in legs]
        if lacking:
            raise RecordingError(f"{source}: {signal} has columns of {len(legs)} feet, and none of "
                                 f"{', '.join(lacking)}; forces there would be unknown", f"map all with --set "
                                 f"'log.{signal}=[...]', or name the feet that touch the ground in the order of the "
                                 "columns with --set 'log.feet=[...]'", code="unknown-feet")
        feet = tuple(own[leg] for leg in legs)
    note = ""
    if not given and not legs:
        own = {leg_of(name): name for name in feet}
        numbered = len({one.number for one in meanings if one is not None}) > 1
        if numbered and set(own) == set(UNITREE_ORDER):
            feet = tuple(own[leg] for leg in UNITREE_ORDER)
            note = (f"columns of {signal} are numbered: they are assigned to {', '.join(feet)}, the order of Unitree; "
                    "state another order with --set 'log.feet=[...]'")
        else:
            note = f"columns of {signal} are assigned to {', '.join(feet)} in this order"
    if count % len(feet) or count // len(feet) not in (1, 3, 6):
        raise RecordingError(f"{source}: {signal} has {count} columns for the {len(feet)} feet {', '.join(feet)}; each "
                             "needs 1, 3 or 6", hint, code="unknown-feet")
    return FootColumns(feet, count // len(feet), note)


def standing_from_loads(loads: Array, threshold: float | None) -> tuple[Bools, tuple[float, ...]]:
    """Return when feet stand (samples, feet) from their loads (samples, feet), and the threshold of each.

    By default the threshold is above the noise of a lifted foot; a foot whose load never becomes small stands
    throughout.
    """
    if threshold is not None:
        return loads > threshold, (threshold,) * loads.shape[1]
    low, high = np.percentile(loads, [5.0, 95.0], axis=0)
    lifts = low < LIFTED_SHARE * high
    noise = 1.4826 * np.median(np.abs(np.diff(loads, axis=0)), axis=0) / np.sqrt(2.0)
    smallest, largest = (share * (high - low) for share in THRESHOLD_SHARES)
    limits = np.where(lifts, low + np.clip(THRESHOLD_NOISE * noise, smallest, largest), -np.inf)
    return loads > limits, tuple(float(x) for x in limits)
