"""Gear ratios of joints in the ROS transmissions of a URDF."""

from __future__ import annotations

import math
from xml.etree.ElementTree import Element

from dynid.errors import RobotError

_SIMPLE_TRANSMISSION = "simpletransmission"


def reductions(root: Element, file: str) -> dict[str, float]:
    """Return motor turns per joint turn, by joint name, of every simple transmission in the file.

    ROS 1 writes <mechanicalReduction> in <actuator> or <joint>, ros2_control <mechanical_reduction> in <joint>. Joints
    of differentials and four-bar linkages have no ratio of their own and are omitted.
    """
    found: dict[str, float] = {}
    for transmission in root.iter("transmission"):
        kind = transmission.findtext("type") or transmission.findtext("plugin") or ""
        joints = transmission.findall("joint")
        if not kind.strip().lower().endswith(_SIMPLE_TRANSMISSION) or len(joints) != 1 or not joints[0].get("name"):
            continue
        name = str(joints[0].get("name"))
        text = next((item.text for place in (joints[0], *transmission.findall("actuator"))
                     for item in place if item.tag in ("mechanicalReduction", "mechanical_reduction")), None)
        if text is None:
            continue
        try:
            ratio = float(text)
        except ValueError:
            ratio = math.nan
        if not math.isfinite(ratio) or ratio == 0.0:
            raise RobotError(f"{file}: the mechanical reduction of joint '{name}' must be a number other than zero, "
                             f"got \"{text.strip()[:80]}\"")
        found[name] = ratio
    return found
