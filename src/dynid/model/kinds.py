"""Kinds of parameters, as data that verdict, exporters and methods read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Group = Literal["body", "rotor", "friction", "offset", "stiffness", "other"]


@dataclass(frozen=True)
class Kind:
    """What sort of number a parameter is; a term of one's own may bring a kind of its own.

    words: as a sentence names it. group: what it does in the physics: "body" one of a body's ten numbers, "rotor" an
    inertia on one axis, "friction" torques against the motion, "offset" a column of ones, "stiffness" a torque that
    grows with the position, "other" all else. urdf, mjcf: the attribute of a joint that holds it in such a file, empty
    where there is none.
    """

    words: str
    group: Group = "other"
    urdf: str = ""
    mjcf: str = ""

    def unwritten(self) -> Kind:
        """The same kind where it is only a part of a curve, which no attribute of a file can hold."""
        return Kind(self.words, self.group)


INERTIA = Kind("inertia", "body")
PRODUCT = Kind("product of inertia", "body")
MOMENT = Kind("first moment", "body")
MASS = Kind("mass", "body")
ROTOR = Kind("rotor inertia", "rotor", mjcf="armature")
VISCOUS = Kind("viscous friction", "friction", urdf="damping", mjcf="damping")
DRY = Kind("dry friction", "friction", urdf="friction", mjcf="frictionloss")
FRICTION = Kind("friction", "friction")
OFFSET = Kind("offset", "offset")
SPRING = Kind("spring stiffness", "stiffness")
OTHER = Kind("parameter")

BODY = (INERTIA, PRODUCT, PRODUCT, INERTIA, PRODUCT, INERTIA, MOMENT, MOMENT, MOMENT, MASS)  # of its ten numbers
