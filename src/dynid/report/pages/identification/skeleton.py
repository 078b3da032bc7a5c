"""3-D view of the robot: joints, links, and the mass distribution of each link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid import dynamics
from dynid.arrays import Array
from dynid.report import geometry, scene
from dynid.report.figure import BLUE, INK, LIGHT, VERMILION, Figure, text
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.report.words import typeset
from dynid.robot import Robot
from dynid.robot import inertia as ten
from dynid.robot.check import inertia_problems


def gather(data: ReportData) -> Mapping[str, Any] | None:
    robot = data.robot
    if robot is None or robot.dof != data.estimate.model.dof:
        return None
    q = geometry.bent_posture(data.logs[0].q)
    identified, nominal = identified_bodies(data), None if robot.bodies_without_inertia else robot.inertias
    bodies = nominal if identified is None else identified
    rows = [] if bodies is None else body_rows(robot, bodies)
    return {"figure": skeleton_figure(robot, q, identified, nominal), "rows": rows,
            "identified": identified is not None,
            "posture": [(name, float(x), units.position)
                        for name, x, units in zip(robot.joint_names, q, data.units, strict=True)],
            "wrong": [row for row in rows if not row["possible"]]}


def identified_bodies(data: ReportData) -> Array | None:
    """Return ten inertial parameters of every body (dof, 10), if the method gives all parameters."""
    theta, places = data.estimate.theta, data.estimate.model.parameters.bodies
    names = () if data.robot is None else data.robot.body_names
    if theta is None or not names or not all(len(places.get(name, ())) == 10 for name in names):
        return None
    return np.array([theta[places[name]] for name in names])


def body_rows(robot: Robot, bodies: Array) -> list[dict[str, Any]]:
    """Return mass, centre of mass and principal moments of every body, and why one is not physically consistent."""
    problems = [p for p in inertia_problems(robot.with_inertias(bodies)) if p.kind != "missing"]
    rows = []
    for name, body in zip(robot.body_names, bodies, strict=True):
        can, centre = ten.can_exist(body), geometry.mass_centre(body)
        moments = np.linalg.eigvalsh(geometry.central_inertia(body, centre)) if centre is not None else None
        rows.append({"name": name, "mass": float(body[9]), "centre": None if centre is None else centre.tolist(),
                     "moments": None if moments is None else moments.tolist(), "possible": can,
                     "reasons": [] if can else [typeset(p.message) for p in problems if p.link == name]})
    return rows


def skeleton_figure(robot: Robot, q: Array, identified: Array | None, nominal: Array | None) -> Figure:
    """Return links, joint axes, centres of mass and ellipsoids at a posture q (dof,), in the base frame."""
    poses = dynamics.forward_kinematics(robot, q)
    frames = geometry.joint_frames(robot, poses)[robot.free_coordinates:]
    size = geometry.robot_size(frames, poses)
    lines, axes = geometry.link_lines(robot, poses), geometry.axis_lines(frames, 0.06 * size)
    labels = [f"{text(joint.name)} is {'prismatic' if joint.prismatic else 'revolute'}"
              for joint in robot.joints[robot.free_coordinates:]]
    traces = [scene.links(lines), scene.lines(axes, "axes", INK, 5), scene.joints(frames, labels)]
    drawn = [lines, axes]
    hidden = False
    for name, bodies in (("identified", identified), ("robot's file", nominal)):
        if bodies is not None:  # the second set is hidden, and does not affect the size of the picture
            shapes = [geometry.ellipsoid(body, pose, size)
                      for body, pose in zip(bodies, poses[:len(bodies)], strict=True)]
            traces += body_traces(robot, bodies, shapes, name, hidden=hidden)
            drawn += [shape.points for shape in shapes if shape is not None and not hidden]
            hidden = True
    layout = {"scene": scene.layout(*geometry.bounds(drawn), 0.15 * size), "margin": {"l": 0, "r": 0, "t": 34, "b": 0}}
    return Figure(traces, layout, "The robot's skeleton with the inertia of its links", 600)


def body_traces(robot: Robot, bodies: Array, shapes: Sequence[geometry.EllipsoidMesh | None], name: str, *,
                hidden: bool = False) -> list[dict[str, Any]]:
    """Return the ellipsoid and centre of mass of each body (10,); hidden: grey, and invisible until selected."""
    traces: list[dict[str, Any]] = []
    named: set[str] = set()
    for link, body, shape in zip(robot.body_names, bodies, shapes, strict=True):
        if shape is None:
            continue
        can = ten.can_exist(body)
        color = LIGHT if hidden else BLUE if can else VERMILION
        label = name if can or hidden else f"{name}, not physically consistent"
        label_text = f"<b>{text(link)}</b><br>{body[9]:.4g} kg" + ("" if can else "<br>not physically consistent")
        common = {"legendgroup": label, "hovertemplate": "%{text}<extra></extra>",
                  **({"visible": "legendonly"} if hidden else {})}
        traces.append({"type": "scatter3d", "mode": "markers", **scene.coordinates(shape.centre[None]), "name": label,
                       "text": [label_text], "showlegend": label not in named,
                       "marker": {"size": 5, "color": color, "symbol": "diamond" if can else "square"}, **common})
        traces.append(scene.mesh(shape.points, shape.triangles, label, color, 0.32, text=label_text, showlegend=False,
                                 flatshading=False, lighting={"ambient": 0.75, "diffuse": 0.5, "specular": 0.05},
                                 **common))
        named.add(label)
    return traces


SECTION = Section("skeleton", "The robot in 3-D", gather)
