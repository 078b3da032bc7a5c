"""Preview: an animated 3-D skeleton of the robot with its surroundings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.dynamics import forward_kinematics
from dynid.excitation import Trajectory, WholeBodyTrajectory, Workspace
from dynid.excitation.standing.support import convex_hull
from dynid.report import geometry, scene
from dynid.report.figure import BLUE, INK, LIGHT, ORANGE, VERMILION, Figure, text
from dynid.report.pages.motion.data import MotionData
from dynid.report.section import Section
from dynid.report.words import number
from dynid.robot import Robot

_ANIMATION_FRAMES = 60
_PATH_POINTS = 400  # points of the path of the last link, finer than the frames
_MAX_FRAME_TIME = 200.0  # ms per frame
_PLANE_REACH = 2.5  # half sizes of the robot, beyond which a plane is not drawn


def gather(data: MotionData) -> Mapping[str, Any]:
    robot, whole = data.robot, data.excitation.trajectory
    t = np.linspace(0.0, whole.duration, _ANIMATION_FRAMES)
    postures = forward_kinematics(robot, data.excitation.configurations(t))
    fine = forward_kinematics(robot, data.excitation.configurations(np.linspace(0.0, whole.duration, _PATH_POINTS)))
    # For a standing robot the base is shown, because the last link may be a foot.
    tip = fine[:, robot.free_coordinates - 1, :3, 3] if robot.has_free_base else np.array(
        [geometry.last_point(geometry.link_lines(robot, poses)) for poses in fine])
    named = "path of the base" if robot.has_free_base else "path of the last link"
    low, high = geometry.bounds([tip, np.zeros((1, 3)), *(geometry.link_lines(robot, poses) for poses in postures)])
    least = 0.15 * max(float((high - low).max()), 0.2)
    around, extent = surroundings(data.excitation.limits.space, low, high)
    moving = [posture_traces(robot, poses) for poses in postures]
    traces = [*moving[0], scene.lines(tip, named, BLUE, 2), *around, *support_polygon(whole)]
    frames = [{"name": str(k), "data": part, "traces": [0, 1]} for k, part in enumerate(moving)]
    view = scene.layout(*geometry.bounds([low[None], high[None], *extent]), least)
    layout = {"scene": view, "margin": {"l": 0, "r": 0, "t": 34, "b": 90}, **controls(t)}
    return {"figure": Figure(traces, layout, "The robot's skeleton in motion", 660, frames=frames), "path": named}


def support_polygon(trajectory: Trajectory) -> list[dict[str, Any]]:
    """Return the support polygon of standing feet on the ground, if there are any."""
    if not isinstance(trajectory, WholeBodyTrajectory):
        return []
    corners = convex_hull(trajectory.limit.support.points)
    around = np.vstack([corners, corners[:1]])
    return [scene.lines(np.column_stack([around, np.zeros(len(around))]), "support polygon", ORANGE, 5)]


def posture_traces(robot: Robot, poses: Array) -> list[dict[str, Any]]:
    """Return links and joints for poses of the bodies (dof, 4, 4)."""
    own = slice(robot.free_coordinates, None)  # a free base has no joints to draw
    return [scene.links(geometry.link_lines(robot, poses)),
            scene.joints(geometry.joint_frames(robot, poses)[own], [text(name) for name in robot.joint_names[own]])]


def controls(t: Array) -> dict[str, Any]:
    """Return buttons and slider of an animation with frames at times t, as parts of a layout."""
    still = {"mode": "immediate", "transition": {"duration": 0}, "frame": {"duration": 0, "redraw": True}}
    pace = min(1000.0 * float(t[-1]) / len(t), _MAX_FRAME_TIME)
    play = {"fromcurrent": True, "transition": {"duration": 0}, "frame": {"duration": pace, "redraw": True}}
    buttons = [{"label": "▶ play", "method": "animate", "args": [None, play]},
               {"label": "❚❚ pause", "method": "animate", "args": [[None], still]}]
    steps = [{"label": f"{moment:.1f}", "method": "animate", "args": [[str(k)], still]} for k, moment in enumerate(t)]
    return {"updatemenus": [{"type": "buttons", "direction": "left", "showactive": False, "buttons": buttons, "x": 0,
                             "xanchor": "left", "y": -0.02, "yanchor": "top", "pad": {"t": 8, "r": 10},
                             "bgcolor": "#ffffff", "bordercolor": LIGHT}],
            "sliders": [{"active": 0, "steps": steps, "x": 0.2, "len": 0.78, "xanchor": "left", "y": -0.02,
                         "yanchor": "top", "pad": {"t": 4}, "ticklen": 0, "minorticklen": 0,
                         "currentvalue": {"prefix": "at ", "suffix": " s", "xanchor": "left",
                                          "font": {"size": 13, "color": INK}},
                         "font": {"color": "rgba(0,0,0,0)", "size": 1}}]}


def surroundings(space: Workspace | None, low: Array, high: Array) -> tuple[list[dict[str, Any]], list[Array]]:
    """Return traces of a robot's surroundings between corners low and high (3,), and points (points, 3) to keep
    visible.

    Obstacles are thick lines; half-spaces are squares if they are near the robot.
    """
    traces: list[dict[str, Any]] = []
    points: list[Array] = []
    if space is None:
        return traces, points
    middle, half = 0.5 * (low + high), 0.5 * float((high - low).max())
    for plane in space.planes:
        if abs(float(plane.normal @ middle - plane.offset)) <= _PLANE_REACH * half:
            corners = geometry.plane_square(plane.normal, plane.offset, middle, half)
            traces.append(scene.mesh(corners, np.array([[0, 1, 2], [0, 2, 3]]), text(plane.name), ORANGE, 0.2,
                                     showlegend=True, hoverinfo="name"))
            points.append(corners.mean(axis=0, keepdims=True))
    for capsule in space.obstacles:
        ends, name = np.array([capsule.a, capsule.b]), text(capsule.name)
        traces.append(scene.lines(ends, name, VERMILION, 12, mode="lines+markers", hoverinfo="all",
                                  marker={"color": VERMILION, "size": 8},
                                  hovertemplate=f"{name}, radius {number(capsule.radius, 3)} m<extra></extra>"))
        points.append(ends)
    return traces, points


SECTION = Section("preview", "Preview", gather)
