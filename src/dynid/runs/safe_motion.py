"""Safety settings of a designed motion, and conservative limits if collisions are not checked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.excitation import Limits
from dynid.excitation.limits.limits_file import BoxTable, LimitsTable, SpaceTable
from dynid.robot import Robot

SPEED_SHARE = 0.6  # share of each joint's top speed at which a person can still react and stop the robot
RANGE_SHARE = 0.5  # share of each joint's range, around the home posture
MAX_REACH = 0.8  # rad from home (45 degrees): no link of an upright arm reaches the floor


@dataclass(frozen=True)
class Safety:
    """Safety settings of a motion.

    Attributes:
        box: lower and upper corner (6 numbers, m, base frame) of the allowed space of all links.
        floor: height of the floor, m, against gravity from the base; links stay above it.
        radius: radius of links without collision shapes, m; default: a share of the robot's longest chain of links.
        speed: share of each joint's top speed, `SPEED_SHARE` by default.
        full_range: use the whole range of the joints although collisions are not checked.
    """

    box: tuple[float, ...] | None = None
    floor: float | None = None
    radius: float | None = None
    speed: float | None = None
    full_range: bool = False

    def table(self) -> LimitsTable:
        """Return the workspace limits of these options, in the form of a limits file."""
        if self.box is not None and len(self.box) != 6:
            raise DynidError(f"a box has six numbers, its lower and its upper corner, got {len(self.box)}",
                             "--box X1,Y1,Z1,X2,Y2,Z2, in metres")
        for name, value in (("floor", self.floor), ("radius", self.radius)):
            if value is not None and not (np.isfinite(value) and (name == "floor" or value >= 0.0)):
                raise DynidError(f"the {name} must be a finite number{' of zero or more' if name == 'radius' else ''}, "
                                 f"got {value:g}", f"give --{name} in metres")
        if not self.asked:
            return LimitsTable()
        inside = None if self.box is None else BoxTable(lower=self.box[:3], upper=self.box[3:])
        return LimitsTable(space=SpaceTable(table=self.floor, inside=inside, radius=self.radius))

    @property
    def asked(self) -> bool:
        """Whether the user specified a box, a floor or a link radius."""
        return self.box is not None or self.floor is not None or self.radius is not None


def careful(limits: Limits, robot: Robot, safety: Safety, home: ArrayLike | None) -> tuple[Limits, tuple[str, ...]]:
    """Return limits with reduced speeds, and notes. Ranges are also reduced if collisions are not fully checked, or
    only with an assumed radius of the links."""
    share = SPEED_SHARE if safety.speed is None else safety.speed
    if not 0.0 < share <= 1.0:
        raise DynidError(f"the speed is a share of the top speed, above 0 and at most 1, got {share:g}")
    top = robot.limit("velocity")
    limits = replace(limits, velocity=np.minimum(limits.velocity, share * top))
    notes = [] if safety.speed is not None else [f"speeds stay below {100 * share:g} % of the joints' top speeds; "
                                                 "--speed changes it"]
    is_assumed = limits.space is not None and limits.space.is_radius_assumed
    if safety.full_range or not (unchecked(limits) or is_assumed):
        return limits, tuple(notes)
    lower, upper = part_of_range(limits, robot, home)
    notes.append(f"positions stay within {100 * RANGE_SHARE:g} % of each range and {MAX_REACH:g} rad from home, since "
                 f"{'collisions are not fully checked' if unchecked(limits) else 'the radius of the links is assumed'};"
                 " --full-range uses all of it")
    return replace(limits, lower=lower, upper=upper), tuple(notes)


def part_of_range(limits: Limits, robot: Robot, home: ArrayLike | None) -> tuple[Array, Array]:
    """Return lower and upper positions (dof,) around home; default home: zero, or the middle of the limits."""
    lower, upper = limits.lower, limits.upper
    with np.errstate(invalid="ignore"):  # a joint without limits
        middle = np.where(np.isfinite(lower + upper), 0.5 * (lower + upper), 0.0)
    centre = np.where((lower < 0.0) & (upper > 0.0), 0.0, middle) if home is None else np.asarray(home, dtype=float)
    turning = np.array([not joint.prismatic for joint in robot.joints])
    reach = np.minimum(0.5 * RANGE_SHARE * (upper - lower), np.where(turning, MAX_REACH, np.inf))
    centre = np.clip(centre, lower + reach, upper - reach)  # a home near a limit still leaves space to move
    return centre - reach, centre + reach


def unchecked(limits: Limits) -> str:
    """Return text on the collisions that were not checked within these limits; empty if all were checked."""
    space = limits.space
    missing = [] if space is not None and space.self_collision else ["the robot itself"]
    if space is None or not space.has_floor:
        missing.append("the floor")
        if space is None or not (space.planes or space.obstacles):
            missing.append("objects around it")
    if not missing:
        return ""
    options = "(--box, --floor)" if "the floor" in missing else "(self_collision in the limits file)"
    return f"NOT checked against {', '.join(missing[:-1])}{' and ' if len(missing) > 1 else ''}{missing[-1]} {options}"


def checked(limits: Limits) -> str:
    """Return text on the collisions that were checked for every link within these limits; may be empty."""
    space = limits.space
    if space is None or any(not link.checked for link in space.links):
        return ""
    words = [*(["the floor"] if space.has_floor else []), *(["the robot itself"] if space.self_collision else [])]
    round_links = [link.link for link in space.links if link.radius is not None]
    assumed = (f", with an assumed radius for {len(round_links)} of {len(space.links)} links"
               if space.is_radius_assumed else "")
    return f"checked against {' and '.join(words)}{assumed}" if words else ""
