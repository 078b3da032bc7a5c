"""The page of a designed motion: every joint inside its limits, what it should tell, the search, a preview in 3-D."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.dynamics import forward_kinematics
from dynid.excitation import ExcitingMotion, Joined, Usage
from dynid.files import write_whole
from dynid.report.figure import (
    BLUE,
    GREEN,
    GREY,
    INK,
    LIGHT,
    MEASURED,
    ORANGE,
    VERMILION,
    Figure,
    axis,
    level,
    line,
    numbers,
    significant,
    text,
)
from dynid.report.render import page
from dynid.report.sections.parameters import GOOD, POOR, grade
from dynid.report.sections.skeleton import joint_frames, link_lines, room
from dynid.report.sections.verdict import Card
from dynid.report.units import JointUnits, joint_units
from dynid.report.words import number, percent, seconds, typeset
from dynid.robot import BASE, Robot

_POINTS = 600  # of one line
_FRAMES = 60
_NEAR = 0.2  # a limit is drawn where the signal uses at least this share of it
_PER_NAME = 14  # px a parameter needs on the axis
_COLORS = {"good": GREEN, "fair": ORANGE, "poor": VERMILION}


@dataclass(frozen=True, eq=False)
class MotionData:
    """What the page shows. values (base,): what deviations are relative to, nan where not known. theta (parameters,):
    to compute torques with, or None; whose: in words, whose parameters these are. before (base,): deviations that
    earlier logs gave, or None. notes: what to know. command: repeats it at the command line."""

    title: str
    robot: Robot
    excitation: ExcitingMotion
    values: Array
    theta: Array | None = None
    whose: str = "robot's file"
    before: Array | None = None
    notes: tuple[str, ...] = ()
    command: str = ""

    @property
    def joints(self) -> tuple[str, ...]:
        return self.robot.joint_names

    @cached_property
    def units(self) -> tuple[JointUnits, ...]:
        return joint_units(self.excitation.model, self.robot)

    @cached_property
    def relative(self) -> Array:
        """Expected deviations in percent of the values (base,), infinite where there is no value."""
        size = np.abs(self.values)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(size > 0, 100.0 * self.excitation.deviations / size, np.inf)

    @property
    def core(self) -> tuple[float, float]:
        """Seconds between which the exciting part runs."""
        whole = self.excitation.trajectory
        start = float(whole.starts[1]) if isinstance(whole, Joined) and whole is not self.excitation.core else 0.0
        return start, start + self.excitation.core.duration


def render_motion(data: MotionData) -> str:
    """The page as the text of one HTML file; nothing in it asks for anything outside."""
    return page("motion_page.html", data, (
        ("motion_overview", "The motion", overview), ("motion_joints", "Joints", joints),
        ("motion_expected", "What it should tell", expected), ("motion_preview", "Preview", preview),
        ("motion_limits", "Limits", limits), ("motion_search", "The search", search)))


def write_motion(data: MotionData, path: str | Path) -> Path:
    """Write the page to a file, whole or not at all."""
    text = render_motion(data)
    with write_whole(Path(path)) as file:
        file.write(text)
    return Path(path)


# -- sections ----------------------------------------------------------------------------------------
def overview(data: MotionData) -> Mapping[str, Any]:
    found = data.excitation
    known = np.isfinite(data.relative)
    cards = [Card(found.criterion if found.criterion != "condition" else "condition number", number(found.value, 4),
                  f"the criterion, from {found.starts} starts in {seconds(found.elapsed)}")]
    if found.criterion != "condition" or abs(found.value / found.condition - 1.0) > 1e-6:
        cards.append(Card("condition number", number(found.condition, 4), "of the plain base regressor"))
    if known.any():
        cards.append(Card("typical deviation", percent(float(np.median(data.relative))),
                          "expected; half of the base parameters have less"))
        cards.append(Card("well told", f"{int(np.sum(data.relative < GOOD))} of {len(known)}",
                          f"base parameters expected to better than {percent(GOOD)}"))
    tight = max((u for u in found.report.usages if used(u) is not None), key=lambda u: u.excess, default=None)
    if tight is not None:
        cards.append(Card("closest limit", f"{used(tight):.1f} %", f"{tight.kind} of {tight.where}"))
    way = "" if found.trajectory is found.core else \
        f", {seconds(found.trajectory.duration)} with the way from and to home"
    ends = "interrupted, the best so far" if found.interrupted else "inside all limits"
    return {"headline": f"{data.robot.name} moves for {seconds(found.core.duration)}{way}: {ends}.", "cards": cards,
            "notes": data.notes}


def joints(data: MotionData) -> Mapping[str, Any]:
    whole = data.excitation.trajectory
    t = np.linspace(0.0, whole.duration, _POINTS)
    motion = whole.at(t)
    tau = None
    if data.theta is not None:
        tau = data.excitation.model.regressor(*(np.ascontiguousarray(x) for x in motion[:3])) @ data.theta
    figures = []
    for j, (name, units) in enumerate(zip(data.joints, data.units, strict=True)):
        bounds = data.excitation.limits
        panels = [("position", units.position, motion.q[:, j], bounds.lower[j], bounds.upper[j]),
                  ("velocity", units.velocity, motion.dq[:, j], -bounds.velocity[j], bounds.velocity[j]),
                  ("acceleration", units.acceleration, motion.ddq[:, j], -bounds.acceleration[j],
                   bounds.acceleration[j])]
        if tau is not None:
            panels.append((units.effort, units.torque, tau[:, j], -bounds.torque[j], bounds.torque[j]))
        figures.append(joint_figure(name, t, panels, data.core))
    return {"figures": figures, "torques": data.whose if tau is not None else "",
            "approach": whole is not data.excitation.core}


def joint_figure(name: str, t: Array, panels: list[tuple[str, str, Array, float, float]],
                 core: tuple[float, float]) -> Figure:
    """One joint: position, velocity, acceleration and torque below each other over one time, limits dashed."""
    count, gap = len(panels), 0.05
    tall = (1.0 - gap * (count - 1)) / count
    x = numbers(t, 6)
    traces, shapes, notes = [], [], []
    last = "y" if count == 1 else f"y{count}"
    layout: dict[str, Any] = {
        "title": {"text": f"<b>{text(name)}</b>", "x": 0.005, "xanchor": "left", "y": 0.995, "yanchor": "top",
                  "font": {"size": 14}},
        "showlegend": False, "hovermode": "x",
        "xaxis": axis("time, s", range=[0.0, float(t[-1])], anchor=last)}
    for k, (what, unit, signal, low, high) in enumerate(panels):
        own = "y" if k == 0 else f"y{k + 1}"
        traces.append(line(x, numbers(signal), what, BLUE, 1.6, yaxis=own,
                           hovertemplate=f"{what} %{{y:.4~g}} {unit}<extra></extra>"))
        ends, far = [float(signal.min()), float(signal.max())], []
        for bound in (low, high):
            if not np.isfinite(bound):
                continue
            if max(abs(ends[0]), abs(ends[1])) >= _NEAR * abs(bound) or what == "position":
                shapes.append({**level(float(bound), VERMILION), "yref": own})
                ends += [float(bound)]
            else:
                far.append(bound)
        if far:
            notes.append({"text": f"limit ±{number(abs(far[-1]), 3)}", "xref": "paper", "yref": f"{own} domain",
                          "x": 1, "y": 1, "xanchor": "right", "yanchor": "top", "showarrow": False,
                          "font": {"size": 11, "color": GREY}})
        spread = (max(ends) - min(ends)) or 1.0
        top = 1.0 - k * (tall + gap)
        layout["yaxis" if k == 0 else f"yaxis{k + 1}"] = axis(
            f"{what},<br>{unit}", domain=[max(top - tall, 0.0), top], nticks=5,
            range=[min(ends) - 0.06 * spread, max(ends) + 0.06 * spread])
    shapes += [{"type": "rect", "xref": "x", "yref": "paper", "x0": a, "x1": b, "y0": 0, "y1": 1, "fillcolor": LIGHT,
                "opacity": 0.3, "line": {"width": 0}, "layer": "below"}
               for a, b in ((0.0, core[0]), (core[1], float(t[-1]))) if b - a > 1e-9]
    layout |= {"shapes": shapes, "annotations": notes}
    return Figure(traces, layout, f"Motion of {name} over time, inside its limits", 130 * count + 70)


def expected(data: MotionData) -> Mapping[str, Any]:
    found, base = data.excitation, data.excitation.base
    rows = [{"name": name, "part": base.parameters.items[base.independent[k]].part, "value": float(data.values[k]),
             "std": float(found.deviations[k]), "relative": float(data.relative[k]),
             "before": None if data.before is None else float(data.before[k]), "unit": typeset(base.units[k]),
             "expression": base.expressions[k],
             "grade": grade(float(data.relative[k])) if np.isfinite(data.relative[k]) else ""}
            for k, name in enumerate(base.names)]
    noise = found.noise
    same = np.allclose(noise, noise[0]) and len({u.torque for u in data.units}) == 1
    said = f"{number(float(noise[0]), 3)} {data.units[0].torque}" if same else ", ".join(
        f"{number(float(x), 3)} {u.torque}" for x, u in zip(noise, data.units, strict=True))
    return {"figure": expected_figure(data), "rows": rows, "rate": found.rate, "noise": said,
            "before": data.before is not None, "good": GOOD, "poor": POOR}


def expected_figure(data: MotionData) -> Figure | None:
    """Bars of relative deviations on a logarithmic axis; before and after where there are earlier logs."""
    shown = np.flatnonzero(np.isfinite(data.relative))
    if not len(shown):
        return None
    base, relative = data.excitation.base, data.relative[shown]
    names = [text(base.names[k]) for k in shown]
    said = [f"{name}: {percent(float(r))}, ±{number(float(data.excitation.deviations[k]), 3)} {typeset(base.units[k])}"
            for name, r, k in zip(names, relative, shown, strict=True)]
    traces: list[dict[str, Any]] = []
    reach = [relative]
    if data.before is not None:
        earlier = 100.0 * data.before[shown] / np.abs(data.values[shown])
        reach.append(earlier[np.isfinite(earlier)])
        traces.append({"type": "bar", "x": names, "y": significant(earlier), "name": "before",
                       "marker": {"color": MEASURED}, "hovertemplate": "%{x}: %{y:.3~g} %<extra>before</extra>"})
    traces.append({"type": "bar", "x": names, "y": significant(relative), "name": "expected", "text": said,
                   "textposition": "none", "hovertemplate": "%{text}<extra></extra>",
                   "marker": {"color": [_COLORS[grade(float(r))] for r in relative]}})
    every = np.concatenate(reach)
    low, high = np.log10(every.min()), np.log10(every.max())
    layout = {"xaxis": axis("base parameter", type="category", tickangle=-90 if len(names) > 12 else 0,
                            tickfont={"size": 11 if len(names) > 12 else 13}, dtick=1),
              "yaxis": axis("expected deviation, %", type="log", dtick=1, exponentformat="none",
                            range=[float(np.floor(low - 0.1)), float(high + 0.15)]),
              "shapes": [level(value, GREY, "dot") for value in (GOOD, POOR)], "bargap": 0.25,
              "showlegend": data.before is not None}
    return Figure(traces, layout, "Expected relative deviations of the base parameters", 380,
                  120 + _PER_NAME * len(names))


def preview(data: MotionData) -> Mapping[str, Any]:
    robot, whole = data.robot, data.excitation.trajectory
    t = np.linspace(0.0, whole.duration, _FRAMES)
    moving = [_posture(robot, poses) for poses in forward_kinematics(robot, whole.at(t).q)]
    # The way of the last link, drawn finer than the frames.
    fine = forward_kinematics(robot, whole.at(np.linspace(0.0, whole.duration, 400)).q)
    tip = np.array([_end(link_lines(robot, poses, joint_frames(robot, poses))) for poses in fine])
    corners = np.array([[trace["x"][k], trace["y"][k], trace["z"][k]] for part in moving for trace in part
                        for k in range(len(trace["x"])) if trace["x"][k] is not None])
    every = np.vstack([corners, tip, np.zeros((1, 3))])
    low, high = every.min(axis=0), every.max(axis=0)
    size = max(float((high - low).max()), 0.2)
    around = _surroundings(data, low, high)
    for trace in around:
        points = np.array([trace["x"], trace["y"], trace["z"]], dtype=float)
        if trace["type"] == "mesh3d":
            points = points.mean(axis=1, keepdims=True)
        low, high = np.minimum(low, points.min(axis=1)), np.maximum(high, points.max(axis=1))
    traces = [*moving[0], {"type": "scatter3d", "mode": "lines", "x": numbers(tip[:, 0]), "y": numbers(tip[:, 1]),
                           "z": numbers(tip[:, 2]), "name": "way of the last link", "hoverinfo": "skip",
                           "line": {"color": BLUE, "width": 2}}, *around]
    frames = [{"name": str(k), "data": part, "traces": [0, 1]} for k, part in enumerate(moving)]
    still = {"mode": "immediate", "transition": {"duration": 0}, "frame": {"duration": 0, "redraw": True}}
    pace = 1000.0 * whole.duration / _FRAMES
    play = {"fromcurrent": True, "transition": {"duration": 0}, "frame": {"duration": min(pace, 200.0), "redraw": True}}
    buttons = [{"label": "▶ play", "method": "animate", "args": [None, play]},
               {"label": "❚❚ pause", "method": "animate", "args": [[None], still]}]
    steps = [{"label": f"{moment:.1f}", "method": "animate", "args": [[str(k)], still]} for k, moment in enumerate(t)]
    scene = {**room(low, high, 0.15 * size), "camera": {"eye": {"x": 1.5, "y": 1.2, "z": 0.6},
                                                             "center": {"x": 0, "y": 0, "z": -0.15}}}
    layout = {"scene": scene, "margin": {"l": 0, "r": 0, "t": 34, "b": 90},
              "updatemenus": [{"type": "buttons", "direction": "left", "showactive": False, "buttons": buttons, "x": 0,
                               "xanchor": "left", "y": -0.02, "yanchor": "top", "pad": {"t": 8, "r": 10},
                               "bgcolor": "#ffffff", "bordercolor": LIGHT}],
              "sliders": [{"active": 0, "steps": steps, "x": 0.2, "len": 0.78, "xanchor": "left", "y": -0.02,
                           "yanchor": "top", "pad": {"t": 4}, "ticklen": 0, "minorticklen": 0,
                           "currentvalue": {"prefix": "at ", "suffix": " s", "xanchor": "left",
                                            "font": {"size": 13, "color": INK}},
                           "font": {"color": "rgba(0,0,0,0)", "size": 1}}]}
    return {"figure": Figure(traces, layout, "The robot's skeleton in motion", 660, frames=frames)}


def _posture(robot: Robot, poses: Array) -> list[dict[str, Any]]:
    """Links and joints for poses of the bodies (dof, 4, 4)."""
    frames = joint_frames(robot, poses)
    at = np.array([frame[:3, 3] for frame in frames])
    dots = {"type": "scatter3d", "mode": "markers", "x": numbers(at[:, 0]), "y": numbers(at[:, 1]),
            "z": numbers(at[:, 2]), "name": "joints", "marker": {"size": 5, "color": INK},
            "text": [text(name) for name in robot.joint_names], "hovertemplate": "%{text}<extra></extra>"}
    return [link_lines(robot, poses, frames), dots]


def _end(lines: Mapping[str, Any]) -> list[float]:
    """Where the last link ends (3,)."""
    k = max(k for k, x in enumerate(lines["x"]) if x is not None)
    return [lines[name][k] for name in "xyz"]


def _surroundings(data: MotionData, low: Array, high: Array) -> list[dict[str, Any]]:
    """Obstacles as thick lines, half-spaces as squares where they come near the robot."""
    space = data.excitation.limits.space
    if space is None:
        return []
    traces: list[dict[str, Any]] = []
    middle, half = 0.5 * (low + high), 0.5 * float((high - low).max())
    for plane in space.planes:
        off = float(plane.normal @ middle - plane.offset)
        if abs(off) > 2.5 * half:
            continue
        centre = middle - off * plane.normal
        first = np.cross(plane.normal, np.eye(3)[int(np.argmin(np.abs(plane.normal)))])
        first /= np.linalg.norm(first)
        second = np.cross(plane.normal, first)
        corners = np.array([centre + half * (a * first + b * second) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
        traces.append({"type": "mesh3d", "x": numbers(corners[:, 0]), "y": numbers(corners[:, 1]),
                       "z": numbers(corners[:, 2]), "i": [0, 0], "j": [1, 2], "k": [2, 3], "color": ORANGE,
                       "opacity": 0.2, "name": text(plane.name), "showlegend": True, "hoverinfo": "name"})
    for capsule in space.capsules:
        if capsule.body == BASE:
            ends, said = np.array([capsule.a, capsule.b]), f"{text(capsule.name)}, radius {number(capsule.radius, 3)} m"
            traces.append({"type": "scatter3d", "mode": "lines+markers", "x": numbers(ends[:, 0]),
                           "y": numbers(ends[:, 1]), "z": numbers(ends[:, 2]), "name": text(capsule.name),
                           "line": {"color": VERMILION, "width": 12}, "marker": {"color": VERMILION, "size": 8},
                           "hovertemplate": f"{said}<extra></extra>"})
    return traces


def used(usage: Usage) -> float | None:
    """Percent of a limit that is used; None where that says nothing (distances, postures)."""
    if usage.kind in ("position", "velocity", "acceleration", "jerk", "torque") and np.isfinite(usage.excess):
        return max(100.0 * (1.0 + usage.excess), 0.0)
    return None


def limits(data: MotionData) -> Mapping[str, Any] | None:
    place = {name: units for name, units in zip(data.joints, data.units, strict=True)}
    rows = []
    for usage in sorted(data.excitation.report.usages, key=lambda u: -u.excess):
        units = place.get(usage.where)
        unit = {"space": "m"}.get(usage.kind, "")
        if units is not None:
            unit = {"position": units.position, "velocity": units.velocity, "acceleration": units.acceleration,
                    "jerk": f"{units.position}/s³", "torque": units.torque}.get(usage.kind, units.position)
        said = f"{1000 * usage.value:.0f} mm free" if usage.kind == "space" else "met"
        rows.append({"kind": usage.kind, "where": usage.where, "value": usage.value, "bound": usage.bound,
                     "time": usage.time, "unit": unit, "used": used(usage), "said": said})
    return {"rows": rows} if rows else None


def search(data: MotionData) -> Mapping[str, Any]:
    found = data.excitation
    return {"figure": search_figure(found), "starts": found.starts, "seed": found.seed, "elapsed": found.elapsed,
            "interrupted": found.interrupted, "command": data.command}


def search_figure(found: ExcitingMotion) -> Figure | None:
    """The best value so far as a staircase down."""
    if not found.history:
        return None
    t, values = (np.array(column) for column in zip(*found.history, strict=True))
    wide = values.min() > 0 and values.max() > 3.0 * values.min()
    traces = [line(numbers([*t, found.elapsed], 4), significant([*values, values[-1]]), "best so far", BLUE, 2,
                   mode="lines+markers", line={"shape": "hv"}, marker={"size": 6},
                   hovertemplate="%{y:.4~g} after %{x:.1f} s<extra></extra>")]
    layout = {"xaxis": axis("time of the search, s", rangemode="tozero"), "showlegend": False,
              "yaxis": axis(f"best {text(found.criterion)} so far", **({"type": "log"} if wide else {}))}
    return Figure(traces, layout, "The best value of the search over time", 280, widest=760)
