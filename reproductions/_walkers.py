"""A quadruped and a humanoid as MJCF text, with fictitious but plausible masses and sizes.

Every link has its own centre of mass and principal axes, and left and right are mirror images. Only feet touch the
ground: spheres at the ends of the quadruped's legs, and a box under each foot of the humanoid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise


@dataclass
class Link:
    """A link on a joint: name, place of its joint on the parent (m), axis, mass (kg), size (m) of its box, and the
    offset of its centre of mass from its joint (m)."""

    name: str
    xyz: tuple[float, float, float]
    axis: tuple[float, float, float]
    mass: float
    size: tuple[float, float, float]
    com: tuple[float, float, float]
    ends: str = ""
    children: list[Link] = field(default_factory=list)


SOLE = (0.11, 0.05)  # half length and half width of a humanoid's foot, m
FOOT_RADIUS = 0.022  # of a quadruped's round feet, m
ANKLE = 0.07  # height of the ankle above the sole, m


def quadruped(gravity: float = -9.81) -> str:
    """Return the MJCF of a quadruped with 12 joints and about 15 kg."""
    legs = []
    for front, side in (("F", "L"), ("F", "R"), ("R", "L"), ("R", "R")):
        x, y = (0.19 if front == "F" else -0.19), (1.0 if side == "L" else -1.0)
        foot = (f'<geom name="{front}{side}_foot" class="foot" pos="0 0 -0.213" size="{FOOT_RADIUS}"/>'
                f'<site name="{front}{side}_toe" pos="0 0 -0.213"/>')
        calf = Link(f"{front}{side}_calf", (0.0, 0.0, -0.213), (0, 1, 0), 0.24, (0.02, 0.03, 0.2),
                    (0.005, 0.001 * y, -0.11), foot)
        thigh = Link(f"{front}{side}_thigh", (0.0, 0.095 * y, 0.0), (0, 1, 0), 1.15, (0.05, 0.04, 0.22),
                     (-0.004, -0.022 * y, -0.033), children=[calf])
        legs.append(Link(f"{front}{side}_hip", (x, 0.0465 * y, 0.0), (1, 0, 0), 0.68, (0.1, 0.08, 0.09),
                         (-0.005 * x / 0.19, 0.002 * y, 0.0), children=[thigh]))
    return _model("quadruped", "trunk", 0.32, 6.9, (0.38, 0.2, 0.11), (0.021, 0.0, -0.005), legs, gravity)


def humanoid(gravity: float = -9.81) -> str:
    """MJCF of a humanoid with 30 joints (two legs of 6, a waist of 3, two arms of 7, a neck) and about 55 kg."""
    legs, arms = [], []
    for side, y in (("left", 1.0), ("right", -1.0)):
        sole = (f'<geom name="{side}_foot" class="sole" pos="0.03 0 {0.01 - ANKLE}" size="{SOLE[0]} {SOLE[1]} 0.01"/>'
                f'<site name="{side}_sole" pos="0.03 0 {-ANKLE}"/>')
        legs.append(_chain(side, y, [
            ("hip_yaw", (0.0, 0.09 * y, -0.06), (0, 0, 1), 1.6, (0.09, 0.09, 0.09), (0.01, 0.004 * y, -0.02)),
            ("hip_roll", (0.0, 0.0, -0.05), (1, 0, 0), 1.9, (0.09, 0.09, 0.1), (-0.01, 0.005 * y, -0.01)),
            ("hip_pitch", (0.0, 0.0, 0.0), (0, 1, 0), 4.1, (0.11, 0.1, 0.34), (0.005, 0.01 * y, -0.15)),
            ("knee", (0.0, 0.0, -0.36), (0, 1, 0), 2.9, (0.09, 0.08, 0.33), (0.01, -0.006 * y, -0.14)),
            ("ankle_pitch", (0.0, 0.0, -0.36), (0, 1, 0), 0.5, (0.05, 0.05, 0.05), (0.0, 0.0, -0.005)),
            ("ankle_roll", (0.0, 0.0, 0.0), (1, 0, 0), 0.9, (0.2, 0.09, 0.03), (0.025, 0.002 * y, -0.045))], sole))
        hand = f'<site name="{side}_hand" pos="0 0 -0.08"/>'
        arms.append(_chain(side, y, [
            ("shoulder_pitch", (0.0, 0.17 * y, 0.26), (0, 1, 0), 1.2, (0.08, 0.09, 0.08), (0.0, 0.03 * y, 0.0)),
            ("shoulder_roll", (0.0, 0.05 * y, 0.0), (1, 0, 0), 1.0, (0.08, 0.08, 0.09), (0.004, 0.01 * y, -0.03)),
            ("shoulder_yaw", (0.0, 0.0, -0.09), (0, 0, 1), 1.1, (0.07, 0.07, 0.16), (0.003, 0.004 * y, -0.07)),
            ("elbow", (0.0, 0.0, -0.16), (0, 1, 0), 0.9, (0.07, 0.06, 0.14), (0.008, 0.003 * y, -0.06)),
            ("wrist_yaw", (0.0, 0.0, -0.13), (0, 0, 1), 0.6, (0.05, 0.05, 0.09), (0.002, 0.002 * y, -0.04)),
            ("wrist_roll", (0.0, 0.0, -0.09), (1, 0, 0), 0.3, (0.04, 0.04, 0.05), (0.001, 0.001 * y, -0.02)),
            ("wrist_pitch", (0.0, 0.0, 0.0), (0, 1, 0), 0.5, (0.04, 0.07, 0.13), (0.01, 0.006 * y, -0.06))], hand))
    neck = Link("neck", (0.0, 0.0, 0.32), (0, 0, 1), 2.4, (0.15, 0.13, 0.2), (0.02, 0.0, 0.08))
    waist = Link("waist_yaw", (0.0, 0.0, 0.05), (0, 0, 1), 1.0, (0.1, 0.12, 0.06), (0.005, 0.0, 0.02), children=[
        Link("waist_roll", (0.0, 0.0, 0.05), (1, 0, 0), 1.0, (0.1, 0.12, 0.06), (-0.01, 0.002, 0.02), children=[
            Link("waist_pitch", (0.0, 0.0, 0.0), (0, 1, 0), 11.0, (0.2, 0.28, 0.36), (0.015, 0.0, 0.17),
                 children=[*arms, neck])])])
    height = 0.06 + 0.05 + 0.36 + 0.36 + ANKLE
    return _model("humanoid", "pelvis", height, 6.0, (0.16, 0.24, 0.14), (-0.01, 0.0, -0.02), [*legs, waist], gravity)


def small_humanoid(gravity: float = -9.81) -> str:
    """MJCF of a humanoid with 17 joints (two legs of 6, a waist, two arms of 2) and about 25 kg."""
    legs, arms = [], []
    for side, y in (("left", 1.0), ("right", -1.0)):
        sole = (f'<geom name="{side}_foot" class="sole" pos="0.02 0 {0.01 - ANKLE}" size="{SOLE[0]} {SOLE[1]} 0.01"/>'
                f'<site name="{side}_sole" pos="0.02 0 {-ANKLE}"/>')
        legs.append(_chain(side, y, [
            ("hip_yaw", (0.0, 0.07 * y, -0.05), (0, 0, 1), 0.7, (0.07, 0.07, 0.07), (0.008, 0.003 * y, -0.02)),
            ("hip_roll", (0.0, 0.0, -0.03), (1, 0, 0), 0.8, (0.07, 0.07, 0.08), (-0.008, 0.004 * y, -0.01)),
            ("hip_pitch", (0.0, 0.0, 0.0), (0, 1, 0), 2.1, (0.09, 0.08, 0.24), (0.005, 0.008 * y, -0.1)),
            ("knee", (0.0, 0.0, -0.25), (0, 1, 0), 1.4, (0.07, 0.06, 0.23), (0.008, -0.005 * y, -0.1)),
            ("ankle_pitch", (0.0, 0.0, -0.25), (0, 1, 0), 0.3, (0.04, 0.04, 0.04), (0.0, 0.0, -0.004)),
            ("ankle_roll", (0.0, 0.0, 0.0), (1, 0, 0), 0.6, (0.18, 0.09, 0.03), (0.02, 0.002 * y, -0.045))], sole))
        arms.append(_chain(side, y, [
            ("shoulder", (0.0, 0.15 * y, 0.2), (0, 1, 0), 1.1, (0.07, 0.07, 0.2), (0.004, 0.02 * y, -0.08)),
            ("elbow", (0.0, 0.03 * y, -0.19), (0, 1, 0), 0.7, (0.06, 0.06, 0.18), (0.01, 0.004 * y, -0.08))], ""))
    waist = Link("waist_yaw", (0.0, 0.0, 0.05), (0, 0, 1), 6.5, (0.14, 0.2, 0.26), (0.012, 0.002, 0.12), children=arms)
    height = 0.05 + 0.03 + 0.25 + 0.25 + ANKLE
    return _model("small_humanoid", "pelvis", height, 3.4, (0.12, 0.18, 0.1), (-0.008, 0.001, -0.015),
                  [*legs, waist], gravity)


def _chain(side: str, y: float, rows: list[tuple], ends: str) -> Link:
    """Return the first link of a chain of links. ends: elements that the last link carries."""
    links = [Link(f"{side}_{name}", *rest) for name, *rest in rows]
    links[-1].ends = ends
    for upper, lower in pairwise(links):
        upper.children.append(lower)
    return links[0]


def _model(name: str, root: str, height: float, mass: float, size: tuple, com: tuple, children: list[Link],
           gravity: float) -> str:
    body = (f'<body name="{root}" pos="0 0 {height}"><freejoint/>{_inertial(mass, size, com)}'
            f'<site name="imu" pos="0.03 0.01 0.02"/>{"".join(map(_body, children))}</body>')
    names = [link.name for child in children for link in _walk(child)]
    motors = "".join(f'<motor name="{one}" joint="{one}"/>' for one in names)
    return f"""<mujoco model="{name}"><compiler angle="radian"/>
<option gravity="0 0 {gravity}" timestep="0.001" integrator="implicitfast" cone="elliptic" impratio="20"/>
<default><geom contype="0" conaffinity="0"/>
<default class="foot"><geom type="sphere" contype="1" conaffinity="1" friction="1.0 0.02 0.01" condim="6"/></default>
<default class="sole"><geom type="box" contype="1" conaffinity="1" friction="1.0 0.05 0.01" condim="4"/></default>
</default>
<worldbody><geom name="floor" type="plane" size="0 0 1" contype="1" conaffinity="1" friction="1 0.02 0.01"/>{body}
</worldbody><actuator>{motors}</actuator></mujoco>"""


def _walk(link: Link) -> list[Link]:
    return [link, *(one for child in link.children for one in _walk(child))]


def _inertial(mass: float, size: tuple, com: tuple) -> str:
    """Return the inertial element of a box, with products of inertia that follow from its offset, so that no entry is
    zero."""
    x, y, z = (mass / 12.0 * edge ** 2 for edge in size)
    xy, xz, yz = (0.05 * mass * a * b for a, b in ((com[0], com[1]), (com[0], com[2]), (com[1], com[2])))
    return (f'<inertial pos="{com[0]} {com[1]} {com[2]}" mass="{mass}" '
            f'fullinertia="{y + z} {x + z} {x + y} {-xy} {-xz} {-yz}"/>')


def _body(link: Link) -> str:
    x, y, z = link.xyz
    a, b, c = link.axis
    return (f'<body name="{link.name}_link" pos="{x} {y} {z}"><joint name="{link.name}" axis="{a} {b} {c}"/>'
            f'{_inertial(link.mass, link.size, link.com)}{link.ends}{"".join(map(_body, link.children))}</body>')
