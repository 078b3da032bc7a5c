"""Safety settings of a designed motion, conservative limits if collisions are not checked, and warnings."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.excitation import ExcitingMotion, Limits
from dynid.excitation.limits.limits_file import BoxTable, LimitsTable, SpaceTable
from dynid.excitation.limits.workspace import upward
from dynid.report.pages.motion import LowestPoint, MotionData
from dynid.robot import BASE, Robot

SPEED_SHARE = 0.6  # share of each joint's top speed at which a person can still react and stop the robot
RANGE_SHARE = 0.5  # share of each joint's range, around the home posture
MAX_REACH = 0.8  # rad from home (45 degrees): no link of an upright arm reaches the floor
_HEIGHT_RATE = 1000.0  # Hz: rate at which heights are computed; a point at 2 m/s moves by 2 mm between two samples
_HEIGHT_CHUNK = 20_000  # postures computed at a time: about 50 MB of capsule ends
_SAME_HEIGHT = 1e-6  # m: heights that differ less differ by rounding errors
_MAX_CONSTANT_HEIGHT = 1e-3  # m: an end of a link whose height changes less does not depend on the motion


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


def careful(limits: Limits, robot: Robot, safety: Safety, home: ArrayLike | None,
            has_file: bool = False) -> tuple[Limits, tuple[str, ...]]:
    """Return limits with reduced speeds, and notes. Ranges are also reduced if collisions are not fully checked, or
    only with an assumed radius of the links.

    has_file: whether the limits are those of the user's file, of which only a given speed reduces any.
    """
    if has_file and safety.speed is None:
        return limits, ()
    share = SPEED_SHARE if safety.speed is None else safety.speed
    if not 0.0 < share <= 1.0:
        raise DynidError(f"the speed is a share of the top speed, above 0 and at most 1, got {share:g}")
    top = robot.limit("velocity")
    limits = replace(limits, velocity=np.minimum(limits.velocity, share * top))
    notes = [] if safety.speed is not None else [f"speeds stay below {100 * share:g} % of the joints' top speeds; "
                                                 "--speed changes it"]
    is_assumed = limits.space is not None and limits.space.is_radius_assumed
    if has_file or safety.full_range or not (unchecked(limits) or is_assumed):
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


def lowest_point(robot: Robot, motion: ExcitingMotion) -> LowestPoint | None:
    """Return the lowest point of all links over a motion; None for a robot with a free base, or if no end of a link
    changes its height.

    Links have the shapes that collisions are checked with.
    """
    space = motion.limits.space
    if robot.has_free_base or space is None:
        return None
    own = [k for k, capsule in enumerate(space.capsules[:len(space.capsules) - len(space.obstacles)])
           if capsule.body != BASE]
    radii, up = np.array([space.capsules[k].radius for k in own]), upward(robot)
    t = np.linspace(0.0, motion.trajectory.duration, 1 + max(1, round(motion.trajectory.duration * _HEIGHT_RATE)))
    highest, lowest = np.full((len(own), 2), -np.inf), np.full((len(own), 2), np.inf)
    rows = np.zeros((len(own), 2), dtype=np.int64)
    for start in range(0, len(t), _HEIGHT_CHUNK):
        ends = space.ends(motion.configurations(t[start:start + _HEIGHT_CHUNK]))[:, own]
        heights = ends @ up - radii[:, None]
        rows = np.where(heights.min(axis=0) < lowest, start + heights.argmin(axis=0), rows)
        lowest, highest = np.minimum(lowest, heights.min(axis=0)), np.maximum(highest, heights.max(axis=0))
    lowest = np.where(highest - lowest > _MAX_CONSTANT_HEIGHT, lowest, np.inf)
    if not np.isfinite(lowest).any():
        return None
    link, end = np.unravel_index(int(np.argmin(lowest)), lowest.shape)
    at = float(t[rows[link, end]])
    point = space.ends(motion.configurations(np.array([at])))[0, own[link], end] - radii[link] * up
    height = float(point @ up)
    floors = [height - float(plane.normal @ point - plane.offset) / float(plane.normal @ up)  # below the point
              for plane in space.floors]
    return LowestPoint(point.tolist(), height, space.capsules[own[link]].name, at, max(floors, default=None))


def with_warnings(data: MotionData) -> MotionData:
    """Return a motion with its lowest point and with warnings: what a person must know before a robot follows it.

    There are no warnings if the motion was checked against everything and stays above the floor, or above the base
    plane if no floor is given; its lowest point is then a note.
    """
    low, notes, warnings = lowest_point(data.robot, data.excitation), data.notes, list[str]()
    if data.unchecked:
        warnings.append(f"{data.unchecked}: watch the first run at low speed, one hand on the emergency stop.")
    if low is not None:
        text = f"lowest point of the motion is {height_words(low)} ({low.link}, after {low.time:.1f} s)"
        if low.height >= (0.0 if low.floor is None else low.floor) - _SAME_HEIGHT:
            notes = (*notes, f"the {text}")
        else:
            advice = "; to keep it above the floor, give --floor" if low.floor is None else ""
            warnings.append(f"The {text}{advice}.")
    return replace(data, lowest=low, warnings=tuple(warnings), notes=notes)


def height_words(low: LowestPoint) -> str:
    """Return the height of a lowest point in relation to the floor, and to the horizontal plane through the origin of
    the base if that is another plane."""
    heights = [*([] if low.floor is None else [(low.height - low.floor, "the floor")]),
               *([] if low.floor is not None and abs(low.floor) < _SAME_HEIGHT else [(low.height, "the base plane")])]
    return " and ".join(f"{abs(height):.2f} m {'above' if height >= 0 else 'below'} {plane}"
                        for height, plane in heights)


def safety_sentences(data: MotionData) -> tuple[str, ...]:
    """Return what a motion was checked against, in a sentence, and its warnings."""
    done = (f"{data.checked[0].upper()}{data.checked[1:]}.",) if data.checked else ()
    return (*done, *data.warnings)
