"""Formatting of numbers, names, units and grades."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import PurePath

from dynid.model import LinearModel, flexible_joint_model
from dynid.report.figure import GREEN, ORANGE, VERMILION
from dynid.robot import Robot

NOTHING = "\u2013"  # a dash
GOOD, POOR = 5.0, 30.0  # percent: relative standard errors of well and poorly determined parameters
COLORS = {"good": GREEN, "fair": ORANGE, "poor": VERMILION}


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with `digits` significant digits, or a dash if it is None or not finite."""
    if value is None or not math.isfinite(value):
        return NOTHING
    text = f"{value:.{digits}g}"
    if "e" in text:
        mantissa, exponent = text.split("e")
        return f"{mantissa}e{int(exponent)}"
    return text


def percent(value: float | None) -> str:
    """Format a percentage as '1.62 %', '23 %' or '> 1000 %' without line breaks; a dash for no number."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if abs(value) > 1000:
        return "> 1000\u00a0%" if value > 0 else "< \u22121000\u00a0%"
    return f"{value:.3g}\u00a0%" if abs(value) < 100 else f"{value:.0f}\u00a0%"


def whole(value: float | None) -> str:
    """Format a count with thin spaces between thousands."""
    return NOTHING if value is None or not math.isfinite(value) else f"{round(value):,}".replace(",", "\u202f")


def count(number_of: int, noun: str) -> str:
    """Format a number of items with their noun, such as '1 joint' and '7 joints'."""
    return f"{number_of} {noun}{'' if number_of == 1 else 's'}"


def seconds(value: float | None) -> str:
    """Format a time in ms, s or min."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value < 1.0:
        return f"{1e3 * value:.0f} ms"
    if value < 120.0:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min"


def typeset(sentence: str) -> str:
    """Replace kg m^2 by kg m² and +- by ± in a sentence or unit."""
    return sentence.replace("+-", "\u00b1").replace("^2", "\u00b2").replace("^3", "\u00b3")


def file_name(source: str) -> str:
    """Return the last part of a path; other text is unchanged."""
    return PurePath(source).name or source


@dataclass(frozen=True)
class JointUnits:
    """Units of a joint's position, velocity and torque or force."""

    position: str
    velocity: str
    acceleration: str
    torque: str

    @property
    def effort(self) -> str:
        """Name of the joint's effort: 'torque' or 'force'."""
        return "force" if self.torque == "N" else "torque"


TURNING = JointUnits("rad", "rad/s", "rad/s²", "N m")
SLIDING = JointUnits("m", "m/s", "m/s²", "N")


def joint_units(model: LinearModel, robot: Robot | None) -> tuple[JointUnits, ...]:
    """Return the units of every joint. Without a robot, a joint with a parameter in N is prismatic."""
    flexible = flexible_joint_model(model)
    if flexible is not None:  # motors have the units of their joints
        links = joint_units(flexible.links, flexible.links.robot)
        return (*links, *(links[j] for j in flexible.bending))
    if robot is not None:
        return tuple(SLIDING if joint.prismatic else TURNING for joint in robot.joints)
    sliding = {item.owner for item in model.parameters if item.unit in ("N", "N s/m")}
    return tuple(SLIDING if j in sliding else TURNING for j in range(model.dof))


def inverse(unit: str) -> str:
    """Return the unit of the inverse of a torque or force, such as 1/(N m) or 1/N."""
    return f"1/({unit})" if " " in unit else f"1/{unit}"


def squared(unit: str) -> str:
    """Return the unit of a squared torque or force: '(N m)²' or 'N²'."""
    return f"({unit})²" if " " in unit else f"{unit}²"


def grade(relative: float) -> str:
    """Return the grade of a relative standard error in percent: good, fair or poor."""
    return "good" if relative < GOOD else "fair" if relative < POOR else "poor"
