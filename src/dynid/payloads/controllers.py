"""Payload settings of robot controllers, in the fields, frame, order and units of each manufacturer.

Sources are in docs/payload.md. Undocumented details are marked as not verified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.output_fields import output_fields
from dynid.payloads.result import PayloadEstimate
from dynid.robot import inertia as ten
from dynid.robot.pose import quaternion, to_rpy


@dataclass(frozen=True)
class Entry:
    """Payload settings of one controller.

    Attributes:
        maker: manufacturer.
        text: the settings as a user types them, or the call that sets them.
        values, units: value and unit of each field of the controller, by name of the field.
        frame: name of the frame of the values.
        unverified: details that the manufacturer does not document, as text, or empty.
    """

    maker: str
    text: str
    values: dict[str, Any]
    units: dict[str, str]
    frame: str
    unverified: str = ""

    @output_fields(text=str, values=dict[str, Any], units=dict[str, str], frame=str, unverified=str)
    def to_dict(self) -> dict[str, Any]:
        """Return the payload settings of a controller as plain data for JSON."""
        return {"text": self.text, "values": self.values, "units": self.units, "frame": self.frame,
                "unverified": self.unverified}


def entries(found: PayloadEstimate, to_flange: Array | None = None) -> tuple[Entry, ...]:
    """Return a payload in the format of every known controller. to_flange: pose (4, 4) of the payload's frame in the
    flange; None for the identity."""
    return tuple(controller_entry(found.numbers, maker, to_flange) for maker in FORMATS)


def controller_entry(numbers: Array, maker: str, to_flange: Array | None = None) -> Entry:
    """Return ten inertial parameters (10,) of a payload in the form of one manufacturer's controllers."""
    if maker not in FORMATS:
        raise ModelError(f"no payload format is known for controllers of '{maker}'; known are {', '.join(FORMATS)}",
                         code="unknown-controller")
    if to_flange is not None:
        numbers = ten.change_frame(to_flange) @ numbers
    if not numbers[9] > 0:
        raise ModelError(f"a payload of {numbers[9]:g} kg has no centre of mass to enter into a controller",
                         code="no-mass")
    mass, centre, central = ten.to_central(numbers)
    return FORMATS[maker](float(mass), centre, central)


def _universal_robots(mass: float, centre: Array, inertia: Array) -> Entry:
    six = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    return Entry(
        "ur", f"set_target_payload({_text(mass)}, {_list(centre)}, {_list(six)})",
        {"m": mass, "cog": centre.tolist(), "inertia": six.tolist()},
        {"m": "kg", "cog": "m", "inertia": "kg m^2: Ixx Iyy Izz Ixy Ixz Iyz about the centre of mass"},
        "tool flange", "whether Ixy, Ixz, Iyz are entries of the matrix, as written here, or have the other sign")


def _franka(mass: float, centre: Array, inertia: Array) -> Entry:
    column = inertia.T.ravel()  # in column-major order
    return Entry(
        "franka", f"robot.setLoad({_text(mass)}, {{{_list(centre)[1:-1]}}}, {{{_list(column)[1:-1]}}});",
        {"load_mass": mass, "F_x_Cload": centre.tolist(), "load_inertia": column.tolist()},
        {"load_mass": "kg", "F_x_Cload": "m", "load_inertia": "kg m^2, 3 x 3 column by column, about the centre of "
                                                              "mass"},
        "flange F", "that the axes of load_inertia are parallel to the flange's, as written here")


def _kuka(mass: float, centre: Array, inertia: Array) -> Entry:
    moments, axes = principal(inertia)
    place = dict(zip("XYZABC", map(float, (*(1e3 * centre), *np.degrees(to_rpy(axes)[::-1]))), strict=True))
    turning = dict(zip("XYZ", map(float, moments), strict=True))
    return Entry(
        "kuka", f"{{M {_text(mass)},CM {{{_fields(place)}}},J {{{_fields(turning)}}}}}",
        {"M": mass, "CM": place, "J": turning},
        {"M": "kg", "CM": "X Y Z mm, A about Z, B about Y', C about X'' degrees: the principal axes",
         "J": "kg m^2, principal, about the centre of mass"}, "flange")


def _abb(mass: float, centre: Array, inertia: Array) -> Entry:
    moments, axes = principal(inertia)
    q = quaternion(axes)
    return Entry(
        "abb", f"[{_text(mass)},{_list(1e3 * centre)},{_list(q)},{','.join(map(_text, moments))}]",
        {"mass": mass, "cog": (1e3 * centre).tolist(), "aom": q.tolist(), "ix": float(moments[0]),
         "iy": float(moments[1]), "iz": float(moments[2])},
        {"mass": "kg", "cog": "mm", "aom": "quaternion, scalar first: the principal axes",
         "ix": "kg m^2, principal, about the centre of mass", "iy": "kg m^2", "iz": "kg m^2"},
        "wrist (tool0), as tload of a tooldata; a separate loaddata is in the frame of the tool")


FORMATS: dict[str, Callable[[float, Array, Array], Entry]] = {
    "ur": _universal_robots, "franka": _franka, "kuka": _kuka, "abb": _abb}


def principal(inertia: Array) -> tuple[Array, Array]:
    """Return principal moments (3,) and axes (3, 3) of an inertia matrix (3, 3). The axes are the columns of a rotation
    matrix, ordered so that each is nearest to the coordinate axis of its index."""
    moments, axes = np.linalg.eigh(inertia)
    if np.ptp(moments) <= 1e-9 * max(float(np.abs(moments).max()), 1e-300):
        return np.diag(inertia).copy(), np.eye(3)
    order, left = [], [0, 1, 2]
    for k in range(3):
        best = max(left, key=lambda c: abs(axes[k, c]))
        order.append(best)
        left.remove(best)
    axes = axes[:, order] * np.where(np.diag(axes[:, order]) < 0, -1.0, 1.0)
    if np.linalg.det(axes) < 0:
        axes[:, int(np.argmin(np.abs(np.diag(axes))))] *= -1.0
    return moments[order], axes


def _text(x: float) -> str:
    return f"{x:.6g}" if abs(x) >= 5e-10 else "0"


def _list(values: Array) -> str:
    return "[" + ", ".join(_text(float(x)) for x in values) + "]"


def _fields(values: dict[str, float]) -> str:
    return ",".join(f"{key} {_text(value)}" for key, value in values.items())
