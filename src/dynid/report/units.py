"""Units of each joint's motion and torque."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.model import FlexibleModel, LinearModel
from dynid.robot import Robot


@dataclass(frozen=True)
class JointUnits:
    """Units of a joint's signals."""

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
    if isinstance(model, FlexibleModel):  # motors as the joints they turn
        links = joint_units(model.links, model.links.robot)
        return (*links, *(links[j] for j in model.bending))
    if robot is not None:
        return tuple(SLIDING if joint.prismatic else TURNING for joint in robot.joints)
    sliding = {item.owner for item in model.parameters if item.unit in ("N", "N s/m")}
    return tuple(SLIDING if j in sliding else TURNING for j in range(model.dof))


def inverse(unit: str) -> str:
    """Unit of the inverse of a torque or force, such as 1/(N m) or 1/N."""
    return f"1/({unit})" if " " in unit else f"1/{unit}"


def squared(unit: str) -> str:
    """Unit of a squared torque or force: '(N m)²' or 'N²'."""
    return f"({unit})²" if " " in unit else f"{unit}²"
