"""Kinds of parameters, as data that verdict, exporters and methods read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Group = Literal["body", "rotor", "friction", "offset", "stiffness", "other"]


@dataclass(frozen=True)
class Kind:
    """Physical kind of a parameter; a custom term may define its own kind.

    Attributes:
        words: name of the kind in a sentence, such as "viscous friction".
        group: role in the equations of motion: "body" (one of the ten inertial parameters of a body), "rotor" (inertia
            on one axis), "friction" (opposes the motion), "offset" (constant torque), "stiffness" (depends on the
            position), or "other".
        urdf: attribute of a URDF joint that stores it, or empty.
        mjcf: attribute of an MJCF joint that stores it, or empty.
    """

    words: str
    group: Group = "other"
    urdf: str = ""
    mjcf: str = ""

    def unwritten(self) -> Kind:
        """Return the same kind without file attributes, for a parameter that is only one part of a curve."""
        return Kind(self.words, self.group)


INERTIA = Kind("inertia", "body")
PRODUCT = Kind("product of inertia", "body")
MOMENT = Kind("first moment", "body")
MASS = Kind("mass", "body")
ROTOR = Kind("rotor inertia", "rotor", mjcf="armature")
VISCOUS = Kind("viscous friction", "friction", urdf="damping", mjcf="damping")
DRY = Kind("Coulomb friction", "friction", urdf="friction", mjcf="frictionloss")
FRICTION = Kind("friction", "friction")
OFFSET = Kind("offset", "offset")
SPRING = Kind("spring stiffness", "stiffness")
OTHER = Kind("parameter")

BODY = (INERTIA, PRODUCT, PRODUCT, INERTIA, PRODUCT, INERTIA, MOMENT, MOMENT, MOMENT, MASS)  # of its ten numbers


# Meaning of each symbol in a parameter's name; {k} is the number in symbols such as Ft4_. A symbol that is not listed
# has the words of its kind, such as D, which is a delay or a damping.
SYMBOLS = {
    "XX": "moment of inertia about x", "YY": "moment of inertia about y", "ZZ": "moment of inertia about z",
    "XY": "product of inertia xy", "XZ": "product of inertia xz", "YZ": "product of inertia yz",
    "MX": "first moment along x", "MY": "first moment along y", "MZ": "first moment along z", "M": "mass",
    "Ia": "reflected rotor inertia", "Iam": "rotor inertia, motor side", "Jm": "rotor inertia of a flexible joint",
    "Fv": "viscous friction", "Fvm": "viscous friction, motor side",
    "Fvd": "half the difference of viscous friction between directions",
    "Fvp": "viscous friction in positive direction", "Fvn": "viscous friction in negative direction",
    "Fc": "Coulomb friction", "Fcm": "Coulomb friction, motor side",
    "Fcp": "Coulomb friction in positive direction", "Fcn": "Coulomb friction in negative direction",
    "Fo": "torque offset", "Fom": "torque offset, motor side",
    "Fs": "static friction", "Fsc": "Stribeck friction, arctan term", "Fnl": "Stribeck friction, power term",
    "Fb": "breakaway friction above Coulomb friction",
    "Ft": "friction curve, step {k}", "Fp": "polynomial friction, degree {k}", "Fw": "friction drift, time knot {k}",
    "Fl": "load-dependent friction", "Flm": "load-dependent friction, motor drives the link",
    "Flg": "load-dependent friction, link drives the motor",
    "Fct": "Coulomb friction per kelvin", "Fvt": "viscous friction per kelvin",
    "Fd": "presliding (Dahl) friction", "Fz": "presliding (LuGre) friction",
    "Rc": "torque ripple, cosine of order {k}", "Rs": "torque ripple, sine of order {k}",
    "Cc": "cable torque, cosine of order {k}", "Cs": "cable torque, sine of order {k}",
    "Fg": "gas spring force", "Kg": "gas spring stiffness", "Kc": "counterbalance spring stiffness"}


def meaning_of(symbol: str, kind: Kind) -> str:
    """Return the meaning of a parameter from its symbol (such as "Fc" or "Ft4_"), or else from its kind."""
    stem = symbol[:-1].rstrip("0123456789") if symbol.endswith("_") else symbol
    number = symbol[len(stem):].rstrip("_")
    words = SYMBOLS.get(stem, kind.words)
    return words.format(k=number) if number and "{k}" in words else f"{words}, number {number}" if number else words
