"""Rotor inertias in a URDF as Drake reads them: transmissions with tags of its own."""

from __future__ import annotations

from collections.abc import Mapping

from dynid.escape import xml_attribute
from dynid.robot.xml_page import Edit, XmlPage

DRAKE_NAMESPACE = "http://drake.mit.edu"


def with_rotor_inertias(text: str, armature: Mapping[str, float]) -> str:
    """Return a URDF with a transmission of ratio one for every joint, whose actuator has a rotor inertia, kg m^2.

    Args:
        text: the URDF.
        armature: reflected rotor inertia by joint. A joint that has a transmission in the file gets the inertia there.
    """
    before = max(text.find("<"), 0)
    data = text[before:].encode()
    page = XmlPage(data, b"\r\n" if b"\r\n" in data else b"\n")
    root = page.root()
    present = {joint.attributes.get("name"): one for one in root.all("transmission") for joint in one.all("joint")}
    edits: list[Edit] = []
    if "drake" not in _prefixes(data[root.start:root.opened]):
        edits += page.set(root, {"xmlns:drake": DRAKE_NAMESPACE})
    new = b""
    for joint, value in armature.items():
        tags = f'<drake:rotor_inertia value="{value!r}"/><drake:gear_ratio value="1"/>'
        actuator = present[joint].first("actuator") if joint in present else None
        if actuator is not None:
            edits.append(page.appended(actuator, tags.encode()))
            continue
        new += (f'  <transmission name={xml_attribute(joint + "_transmission")}>\n'
                "    <type>transmission_interface/SimpleTransmission</type>\n"
                f"    <joint name={xml_attribute(joint)}>"
                "<hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface></joint>\n"
                f'    <actuator name={xml_attribute(joint + "_actuator")}>{tags}'
                "<mechanicalReduction>1</mechanicalReduction></actuator>\n"
                "  </transmission>\n").encode()
    edits.append((root.closed, root.closed, new))
    return text[:before] + page.edited(edits).decode()


def _prefixes(start_tag: bytes) -> set[str]:
    """Return the namespace prefixes that a start tag declares."""
    return {part.split(b"=")[0].decode() for part in start_tag.split(b"xmlns:")[1:]}
