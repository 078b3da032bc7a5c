"""3-D view of the robot with an arrow for the mean force of each contact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid import dynamics
from dynid.report import geometry, scene
from dynid.report.figure import INK, SERIES, VERMILION, Figure
from dynid.report.pages.contact.data import ContactData
from dynid.report.section import Section

MAX_ARROWS_SHOWN = 6  # contacts, the strongest
_LONGEST_ARROW_SHARE = 0.35  # of the robot's size, of the longest arrow


def gather(data: ContactData) -> Mapping[str, Any] | None:
    if not data.log.contacts:
        return None
    strongest = sorted(data.log.contacts,
                       key=lambda one: -float(np.linalg.norm(one.link_wrench[:3])))[:MAX_ARROWS_SHOWN]
    return {"figure": arrow_figure(data, sorted(strongest, key=lambda one: one.start)),
            "more": max(0, len(data.log.contacts) - MAX_ARROWS_SHOWN)}


def arrow_figure(data: ContactData, contacts: list[Any]) -> Figure:
    """Return the robot at the first of some contacts with an arrow at the link of each contact; the arrows after the
    first are hidden until selected."""
    rows, robot = data.log.rows, data.robot
    longest = max(float(np.linalg.norm(one.link_wrench[:3])) for one in contacts)
    traces, drawn = list[dict[str, Any]](), []
    for k, one in enumerate(contacts):
        q = rows.torques.q[int(np.argmin(np.abs(rows.t - 0.5 * (one.start + one.stop))))]
        poses = dynamics.forward_kinematics(robot, q)[:robot.dof]
        frames = geometry.joint_frames(robot, poses)
        size = geometry.robot_size(frames, poses)
        lines, at = geometry.link_lines(robot, poses), poses[robot.body_names.index(one.link)][:3, 3]
        arrow = geometry.arrow(at, one.link_wrench[:3] * (_LONGEST_ARROW_SHARE * size / max(longest, 1e-9)))
        name = f"{one.start:.2f} s, {np.linalg.norm(one.link_wrench[:3]):.3g} N on {one.link}"
        own = {"legendgroup": str(k), **({"visible": "legendonly"} if k else {})}
        color = VERMILION if k == 0 else SERIES[k % len(SERIES)]
        traces += [{**scene.links(lines), **own, "showlegend": False},
                   {**scene.joints(frames, list(robot.joint_names)), **own, "showlegend": False},
                   scene.lines(arrow, name, color, 8, **own)]
        drawn += [lines, arrow]
    layout = {"scene": scene.layout(*geometry.bounds(drawn), 0.15 * size), "margin": {"l": 0, "r": 0, "t": 34, "b": 0},
              "font": {"color": INK}}
    return Figure(traces, layout, "The robot and the forces that acted on it", 600)


SECTION = Section("arrow", "Forces on the robot", gather)
