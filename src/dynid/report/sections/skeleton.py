"""The robot in 3-D: joints and links, and what each link weighs, where and how it is spread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid import dynamics
from dynid.arrays import Array
from dynid.report.data import ReportData
from dynid.report.figure import BLUE, GREY, INK, LIGHT, VERMILION, Figure, numbers, text
from dynid.report.section import Section
from dynid.report.words import typeset
from dynid.robot import BASE, Robot
from dynid.robot import inertia as ten
from dynid.robot.check import inertia_problems

_ROUND, _UP = 16, 9  # points of an ellipsoid around and along


def gather(data: ReportData) -> Mapping[str, Any] | None:
    robot = data.robot
    if robot is None or robot.dof != data.estimate.model.dof:
        return None
    q = posture(data.logs[0].q)
    identified, nominal = identified_bodies(data), nominal_bodies(robot)
    bodies = nominal if identified is None else identified
    rows = [] if bodies is None else body_rows(robot, bodies)
    return {"figure": scene(robot, q, identified, nominal), "rows": rows, "identified": identified is not None,
            "posture": [(name, float(x), units.position)
                        for name, x, units in zip(robot.joint_names, q, data.units, strict=True)],
            "wrong": [row for row in rows if not row["possible"]]}


def posture(q: Array) -> Array:
    """Of q (samples, dof) the row farthest from the usual one, in shares of each joint's range: an arm that is bent."""
    wide = np.ptp(q, axis=0)
    away = (q - np.median(q, axis=0)) / np.where(wide > 0, wide, 1.0)
    return q[int(np.argmax(np.sum(away ** 2, axis=1)))]


def identified_bodies(data: ReportData) -> Array | None:
    """Ten numbers of every body (dof, 10), where the method gives all parameters."""
    theta, places = data.estimate.theta, data.estimate.model.parameters.bodies
    names = () if data.robot is None else data.robot.body_names
    if theta is None or not names or not all(len(places.get(name, ())) == 10 for name in names):
        return None
    return np.array([theta[places[name]] for name in names])


def nominal_bodies(robot: Robot) -> Array | None:
    """Ten numbers of every body (dof, 10) as the robot's file has them."""
    return None if robot.bodies_without_inertia else robot.inertias


def body_rows(robot: Robot, bodies: Array) -> list[dict[str, Any]]:
    """Mass, centre of mass and principal moments of every body, and why one cannot exist."""
    problems = [p for p in inertia_problems(robot.with_inertias(bodies)) if p.kind != "missing"]
    rows = []
    for name, body in zip(robot.body_names, bodies, strict=True):
        can, centre = ten.can_exist(body), _centre(body)
        moments = np.linalg.eigvalsh(_central(body, centre)) if centre is not None else None
        rows.append({"name": name, "mass": float(body[9]), "centre": None if centre is None else centre.tolist(),
                     "moments": None if moments is None else moments.tolist(), "possible": can,
                     "reasons": [] if can else [typeset(p.message) for p in problems if p.link == name]})
    return rows


def _centre(body: Array) -> Array | None:
    return body[6:9] / body[9] if abs(body[9]) > 1e-12 else None


def _central(body: Array, centre: Array) -> Array:
    """Inertia about the centre of mass (3, 3)."""
    c = ten.skew(centre)
    return ten.symmetric(body[:6]) - body[9] * (c @ c.T)


def scene(robot: Robot, q: Array, identified: Array | None, nominal: Array | None) -> Figure:
    """Skeleton, joint axes, centres of mass and ellipsoids, all in the base frame, metres."""
    poses = dynamics.forward_kinematics(robot, q)
    frames = joint_frames(robot, poses)
    points = np.array([np.zeros(3), *(frame[:3, 3] for frame in frames), *(pose[:3, 3] for pose in poses)])
    size = max(float(np.ptp(points, axis=0).max()), 0.2)
    traces = [link_lines(robot, poses, frames), *_joints(robot, frames, size)]
    shown = nominal if identified is None else identified
    if shown is not None:
        traces += _bodies(robot, poses, shown, size, "identified" if identified is not None else "robot's file", True)
    if identified is not None and nominal is not None:
        traces += _bodies(robot, poses, nominal, size, "robot's file", False)
    boxes = [_box(trace) for trace in traces if trace.get("visible") != "legendonly"]
    low, high = np.min([box[0] for box in boxes], axis=0), np.max([box[1] for box in boxes], axis=0)
    layout = {"scene": room(low, high, 0.15 * size), "margin": {"l": 0, "r": 0, "t": 34, "b": 0}}
    return Figure(traces, layout, "The robot's skeleton with the inertia of its links", 560)


def joint_frames(robot: Robot, poses: Array) -> list[Array]:
    """Where every joint stands (4 x 4 each) for poses of the bodies (dof, 4, 4).

    A sliding joint's frame stands where the slide begins; the body's own frame has moved along it.
    """
    return [(np.eye(4) if joint.parent == BASE else poses[joint.parent]) @ joint.before for joint in robot.joints]


def room(low: Array, high: Array, least: float) -> dict[str, Any]:
    """A scene around a box from corner low to high (3,), one scale for all axes, no half side shorter than `least`."""
    middle, half = 0.5 * (low + high), np.maximum(0.55 * (high - low), least)
    ratio, ranges = 1.1 * half / half.max(), np.round(np.column_stack([middle - half, middle + half]), 4).tolist()
    side = {"backgroundcolor": "#f7f8fa", "gridcolor": "#dfe3e8", "zerolinecolor": LIGHT, "showbackground": True}
    axes = {f"{name}axis": {**side, "title": {"text": f"{name}, m"}, "range": reach}
            for name, reach in zip("xyz", ranges, strict=True)}
    return {**axes, "aspectmode": "manual", "aspectratio": dict(zip("xyz", numbers(ratio, 4), strict=True)),
            "camera": {"eye": {"x": 1.15, "y": 1.0, "z": 0.45}}}


def _box(trace: Mapping[str, Any]) -> tuple[Array, Array]:
    """Lowest and highest corner (3,), (3,) of what a trace draws."""
    points = np.array([trace["x"], trace["y"], trace["z"]], dtype=float)
    return np.nanmin(points, axis=1), np.nanmax(points, axis=1)


def link_lines(robot: Robot, poses: Array, frames: list[Array]) -> dict[str, Any]:
    """From each body's frame to the joints that hang on it, and from a joint to its own body's frame."""
    path: list[Array] = []
    gap = np.full(3, np.nan)
    for i, joint in enumerate(robot.joints):
        start = np.zeros(3) if joint.parent == BASE else poses[joint.parent][:3, 3]
        path += [start, frames[i][:3, 3], poses[i][:3, 3], gap]
    # What the last body carries: its farthest named frame stands for the tool.
    for i in range(robot.dof):
        ends = [frame.pose[:3, 3] for frame in robot.frames if frame.body == i]
        if ends and not np.any(robot.parents == i):
            far = max(ends, key=lambda p: float(np.linalg.norm(p)))
            path += [poses[i][:3, 3], (poses[i] @ np.append(far, 1.0))[:3], gap]
    xyz = np.array(path)
    return {"type": "scatter3d", "mode": "lines", "x": numbers(xyz[:, 0]), "y": numbers(xyz[:, 1]),
            "z": numbers(xyz[:, 2]), "name": "links", "line": {"color": GREY, "width": 9}, "hoverinfo": "skip"}


def _joints(robot: Robot, frames: list[Array], size: float) -> list[dict[str, Any]]:
    """A dot at every joint and a stroke along its axis."""
    centre = np.array([frame[:3, 3] for frame in frames])
    half = 0.06 * size * np.array([frame[:3, 2] for frame in frames])
    strokes = np.stack([centre - half, centre + half, np.full_like(centre, np.nan)], axis=1).reshape(-1, 3)
    kinds = ["slides" if joint.prismatic else "turns" for joint in robot.joints]
    return [{"type": "scatter3d", "mode": "lines", "x": numbers(strokes[:, 0]), "y": numbers(strokes[:, 1]),
             "z": numbers(strokes[:, 2]), "name": "axes", "line": {"color": INK, "width": 5}, "hoverinfo": "skip"},
            {"type": "scatter3d", "mode": "markers", "x": numbers(centre[:, 0]), "y": numbers(centre[:, 1]),
             "z": numbers(centre[:, 2]), "name": "joints", "marker": {"size": 5, "color": INK},
             "text": [f"{text(name)} {kind}" for name, kind in zip(robot.joint_names, kinds, strict=True)],
             "hovertemplate": "%{text}<extra></extra>"}]


def _bodies(robot: Robot, poses: Array, bodies: Array, size: float, name: str, main: bool) -> list[dict[str, Any]]:
    """For each body the solid ellipsoid of even density with its mass and inertia, and its centre of mass."""
    traces: list[dict[str, Any]] = []
    seen: set[str] = set()
    for link, pose, body in zip(robot.body_names, poses, bodies, strict=True):
        centre = _centre(body)
        if centre is None:
            continue
        can = ten.can_exist(body)
        color = (BLUE if can else VERMILION) if main else LIGHT
        label = name if can or not main else f"{name}, cannot exist"
        common = {"name": label, "legendgroup": label, "showlegend": label not in seen,
                  **({} if main else {"visible": "legendonly"})}
        seen.add(label)
        # One wild link must not shrink the rest.
        centre = centre * min(1.0, 1.5 * size / max(float(np.linalg.norm(centre)), 1e-300))
        at = (pose @ np.append(centre, 1.0))[:3]
        said = f"<b>{text(link)}</b><br>{body[9]:.4g} kg" + ("" if can else "<br>cannot exist")
        traces.append({"type": "scatter3d", "mode": "markers", "x": numbers(at[:1]), "y": numbers(at[1:2]),
                       "z": numbers(at[2:]), "text": [said],
                       "marker": {"size": 5, "color": color, "symbol": "diamond" if can else "square"},
                       "hovertemplate": "%{text}<extra></extra>", **common})
        axes, turn = half_axes(body)
        axes = np.clip(axes, 1e-3 * size, 0.8 * size)
        x = (pose[:3, :3] @ turn * axes) @ _sphere()[0] + at[:, None]
        i, j, k = _sphere()[1]
        traces.append({"type": "mesh3d", "x": numbers(x[0], 4), "y": numbers(x[1], 4), "z": numbers(x[2], 4),
                       "i": i, "j": j, "k": k, "color": color, "opacity": 0.32, "flatshading": False,
                       "lighting": {"ambient": 0.75, "diffuse": 0.5, "specular": 0.05}, "text": said,
                       "hovertemplate": "%{text}<extra></extra>", **common, "showlegend": False})
    return traces


def half_axes(body: Array) -> tuple[Array, Array]:
    """Half axes (3,), m, of the even ellipsoid with a body's mass and inertia, and their directions (3, 3) in columns.

    The second moment along an axis of an even ellipsoid is m a^2 / 5. A negative one, which no body has, is drawn by
    its size.
    """
    centre = _centre(body)
    if centre is None:
        return np.zeros(3), np.eye(3)
    central = _central(body, centre)
    second, turn = np.linalg.eigh(0.5 * np.trace(central) * np.eye(3) - central)
    return np.sqrt(5.0 * np.abs(second / body[9])), turn


def _sphere() -> tuple[Array, tuple[list[int], list[int], list[int]]]:
    """Points (3, n) of a unit sphere and its triangles."""
    around = np.linspace(0.0, 2.0 * np.pi, _ROUND, endpoint=False)
    up = np.linspace(0.0, np.pi, _UP)
    a, b = np.meshgrid(around, up)
    points = np.stack([np.sin(b) * np.cos(a), np.sin(b) * np.sin(a), np.cos(b)]).reshape(3, -1)
    i, j, k = [], [], []
    for row in range(_UP - 1):
        for column in range(_ROUND):
            here, right = row * _ROUND + column, row * _ROUND + (column + 1) % _ROUND
            i += [here, right]
            j += [here + _ROUND, here + _ROUND]
            k += [right, right + _ROUND]
    return points, (i, j, k)


SECTION = Section("skeleton", "The robot in 3-D", gather)
