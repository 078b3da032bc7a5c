"""Options of a motion in which the feet of a robot with a free base stand still."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from dynid.errors import DynidError
from dynid.floating import Contact
from dynid.floating.contacts import find_feet
from dynid.robot import Robot

StandingEquations = Literal["wrenches", "projected", "base"]
FRICTION_COEFFICIENT = 0.6  # rubber on a dry, dusty floor; dry concrete has more
SUPPORT_MARGIN = 0.02  # m between the centre of pressure and the edges of the support polygon
SWAY, TILT = 0.1, 0.3  # m and rad: largest displacement of the base from home along and about each axis


@dataclass(frozen=True)
class Standing:
    """Feet that stand still during a motion, and the conditions of their contact.

    Attributes:
        feet: names of the frames of the standing feet.
        sole: length along the first horizontal axis of a foot's frame and width along the second axis, m, centred at
            the frame; None for point feet.
        friction: friction coefficient of the ground, the largest ratio of tangential to normal force.
        margin: smallest distance of the centre of pressure from the edges of the support polygon, m.
        equations: equations that the future log is used for: "projected" (no contact forces), "wrenches" (measured
            contact forces) or "base" (measured contact forces, no joint torques).
        sway: largest displacement of the base from home along each axis, m.
        tilt: largest rotation of the base from home about each axis, rad.
        home: joint positions (n,) in which the motion starts and ends; by default a posture with flexed legs is chosen.
    """

    feet: tuple[str, ...]
    sole: tuple[float, float] | None = None
    friction: float = FRICTION_COEFFICIENT
    margin: float = SUPPORT_MARGIN
    equations: StandingEquations = "projected"
    sway: float = SWAY
    tilt: float = TILT
    home: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not self.feet:
            raise DynidError("no standing foot is given", "name the standing feet with --standing "
                             "left_foot,right_foot", code="no-standing-feet")
        if len(set(self.feet)) < len(self.feet):
            raise DynidError(f"a standing foot is named twice in --standing {','.join(self.feet)}; name each foot "
                             "once", code="foot-named-twice")
        if self.equations not in get_args(StandingEquations):
            raise DynidError(f"there are no equations '{self.equations}' for standing feet; there are "
                             f"{', '.join(get_args(StandingEquations))}", code="unknown-equations")
        for name, value in (("friction coefficient", self.friction), ("sway", self.sway), ("tilt", self.tilt),
                            *(("size of a sole", edge) for edge in self.sole or ())):
            if not (value > 0.0 and np.isfinite(value)):
                raise DynidError(f"the {name} must be above zero, got {value:g}", code="wrong-standing-option")
        if self.sole is not None and len(self.sole) != 2:
            raise DynidError(f"a sole has two sizes, length and width, got {len(self.sole)}", "use --sole 0.2,0.1",
                             code="wrong-standing-option")
        if not (self.margin >= 0.0 and np.isfinite(self.margin)):
            raise DynidError(f"the support margin must not be negative, got {self.margin:g} m",
                             code="wrong-standing-option")
        if self.tilt >= 1.5:
            raise DynidError(f"a tilt of {self.tilt:g} rad is too large for a standing robot; give less than 1.5 rad",
                             code="wrong-standing-option")

    def contacts(self, robot: Robot) -> tuple[Contact, ...]:
        """Return the feet as contacts of a robot; raise an error for a robot or a frame that cannot stand."""
        if not robot.has_free_base:
            raise DynidError(f"robot '{robot.name}' has a fixed base, so its feet need not be named",
                             "omit --standing, or add --floating-base if the robot walks", code="fixed-base")
        for name in self.feet:
            robot.frame(name)  # raises for a frame that does not exist
        return tuple(Contact(name, "point" if self.sole is None else "sole") for name in self.feet)


def refuse_without_feet(robot: Robot) -> None:
    """Raise an error for a robot with a free base whose standing feet are not named."""
    if robot.has_free_base:
        feet = ",".join(find_feet(robot)) or "left_foot,right_foot"
        raise DynidError(f"robot '{robot.name}' has a free base, so a motion needs standing feet",
                         f"name the feet with --standing {feet}, or add --fixed-base if the base is clamped",
                         code="no-standing-feet")
