"""Motion of a free base: its pose over time, and the robot at some instants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.dynamics import forward_kinematics, rotations
from dynid.recording import Samples
from dynid.report import geometry, scene
from dynid.report.figure import BLUE, GREEN, LIGHT, VERMILION, Figure, axis, line, numbers, thinned_rows
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.robot import FREE_COORDINATES as SIX
from dynid.robot import Robot

_LINE_POINTS = 1200  # points per line
_INSTANTS = 5  # number of drawn postures
_PATH_POINTS = 400
_PANEL_GAP = 0.07  # gap between panels, relative to the figure's height
_AXIS_COLORS = (VERMILION, GREEN, BLUE)  # colours of x, y and z


def gather(data: ReportData) -> Mapping[str, Any] | None:
    robot = data.robot
    if robot is None or not robot.has_free_base or robot.dof != data.estimate.model.dof:
        return None
    panes = [{"label": data.log_name(log.source), "source": log.source, "kind": "", "signals": signal_figure(log),
              "robot": path_figure(robot, log), "start": _start(log),
              "orientation": log.base_pose is not None} for log in data.logs]
    return {"panes": panes}


def _start(log: Samples) -> list[float] | None:
    """Return the first position of the base (3,), m, or None if it is not logged."""
    if log.base_pose is None or not np.isfinite(log.base_pose[:, :3]).all():
        return None
    return [float(x) for x in log.base_pose[0, :3]]


def euler_angles(quaternion: Array) -> Array:
    """Return roll, pitch and yaw (samples, 3), degrees, continuous in time, of quaternions x y z w (samples, 4)."""
    turn = rotations(quaternion)
    angles = np.column_stack([np.arctan2(turn[:, 2, 1], turn[:, 2, 2]), -np.arcsin(np.clip(turn[:, 2, 0], -1.0, 1.0)),
                              np.arctan2(turn[:, 1, 0], turn[:, 0, 0])])
    return np.asarray(np.degrees(np.unwrap(angles, axis=0)))


def signal_figure(log: Samples) -> Figure:
    """Return position and orientation of the base over time if they are logged, and its rates."""
    panels: list[tuple[str, tuple[str, str, str], Array]] = []
    if log.base_pose is not None:
        if _start(log) is not None:
            panels.append(("displacement, m", ("x", "y", "z"), log.base_pose[:, :3] - log.base_pose[0, :3]))
        panels.append(("roll, pitch,<br>yaw, °", ("roll", "pitch", "yaw"), euler_angles(log.base_pose[:, 3:])))
    panels.append(("angular velocity,<br>rad/s", ("x", "y", "z"), log.dq[:, 3:SIX]))
    panels.append(("specific force,<br>m/s²", ("x", "y", "z"), log.ddq[:, :3]))
    height = (1.0 - _PANEL_GAP * (len(panels) - 1)) / len(panels)
    t = log.t - log.t[0]
    traces, axes = [], ["y", *(f"y{k + 1}" for k in range(1, len(panels)))]
    layout: dict[str, Any] = {"hovermode": "x",
                              "xaxis": axis("time, s", range=[0.0, float(t[-1])], anchor=axes[-1]),
                              "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.01,
                                         "yanchor": "bottom"}}
    rows = thinned_rows(np.hstack([signal for _, _, signal in panels]), _LINE_POINTS)
    x = numbers(t[rows], 6)
    for k, (own, (named, parts, signal)) in enumerate(zip(axes, panels, strict=True)):
        top = 1.0 - k * (height + _PANEL_GAP)
        layout[f"yaxis{own[1:]}"] = axis(named, domain=[max(top - height, 0.0), top], nticks=5)
        for j, (part, color) in enumerate(zip(parts, _AXIS_COLORS, strict=True)):
            named_axis = "xyz"[j] if part == "xyz"[j] else f"{'xyz'[j]}, {part}"
            traces.append(line(x, numbers(signal[rows, j]), "xyz"[j], color, 1.4, yaxis=own, legendgroup="xyz"[j],
                               showlegend=k == 0, hovertemplate=f"{named_axis} %{{y:.4~g}}<extra></extra>"))
    return Figure(traces, layout, "Pose and rates of the base over time", 150 * len(panels) + 90)


def path_figure(robot: Robot, log: Samples) -> Figure:
    """Return the robot at some instants, the first one darkest, and the path of its base."""
    rows = np.unique(np.linspace(0, len(log.t) - 1, _PATH_POINTS).astype(int))
    configurations = geometry.configurations(robot, log.q[rows], None if log.base_pose is None else log.base_pose[rows])
    path = configurations[:, :3]
    at = np.unique(np.linspace(0, len(rows) - 1, _INSTANTS).astype(int))
    shown = [geometry.link_lines(robot, poses) for poses in forward_kinematics(robot, configurations[at])]
    traces = [scene.lines(lines, f"at {log.t[rows[k]] - log.t[0]:.1f} s", BLUE if i == 0 else LIGHT, 7 if i == 0 else 4,
                          opacity=1.0 - 0.6 * i / max(len(at) - 1, 1), showlegend=True)
              for i, (k, lines) in enumerate(zip(at, shown, strict=True))]
    traces.append(scene.lines(path, "path of the base", VERMILION, 3, showlegend=True))
    low, high = geometry.bounds([path, *shown])
    layout = {"scene": scene.layout(low, high, 0.15 * max(float((high - low).max()), 0.2)),
              "margin": {"l": 0, "r": 0, "t": 34, "b": 0}}
    return Figure(traces, layout, "The robot at some instants of the log", 520)


SECTION = Section("base_motion", "Motion of the base", gather)
