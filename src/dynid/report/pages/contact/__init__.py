"""Page on external contacts: their times and links, forces over time, and 3-D arrows at the robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid import dynamics
from dynid.contacts import ContactLog
from dynid.report import geometry, scene
from dynid.report.figure import BLUE, INK, SERIES, VERMILION, Figure, axis, level, line, numbers, thinned_rows, title
from dynid.report.section import Page, Section
from dynid.report.words import count
from dynid.robot import Robot

MAX_CONTACTS_SHOWN = 40
_AXIS_POINTS = 1500  # points per axis
_WRENCH_AXES = (("force x", "N"), ("force y", "N"), ("force z", "N"), ("moment x", "N m"), ("moment y", "N m"),
                ("moment z", "N m"))
MAX_ARROWS_SHOWN = 6  # strongest contacts that are drawn
_LONGEST_ARROW_SHARE = 0.35  # length of the longest arrow relative to the robot's size


@dataclass(frozen=True, eq=False)
class ContactData:
    """Data of the page on contacts.

    Attributes:
        title, robot: headline, and the robot.
        log: estimated contacts of a log.
        frame, axes: frame at which wrenches are estimated, and frame of their axes.
        level: detection threshold.
        alarms: accepted false alarms per hour.
        command: command line that made the page.
    """

    title: str
    robot: Robot
    log: ContactLog
    frame: str
    axes: str
    level: float
    alarms: float
    command: str = ""


def _touched(data: ContactData) -> Mapping[str, Any]:
    """Table of contacts: time, link, force, and whether each is a push or a payload."""
    rows = [{"start": one.start, "stop": one.stop, "link": one.link, "sure": 100.0 * float(one.probabilities.max()),
             "force": float(np.linalg.norm(one.link_wrench[:3])),
             "std": float(np.linalg.norm(one.link_std[:3])), "title": one.finding.title, "text": one.finding.text}
            for one in data.log.contacts]
    return {"rows": rows[:MAX_CONTACTS_SHOWN], "more": max(0, len(rows) - MAX_CONTACTS_SHOWN), "log": data.log.source,
            "findings": [one.text for one in data.log.findings], "frame": data.frame}


def _forces(data: ContactData) -> Mapping[str, Any]:
    """Forces and moments over time with bands of two standard deviations, and the statistic with its threshold."""
    return {"figures": [_axis_figure(data, k) for k in range(6)], "statistic": _statistic_figure(data),
            "frame": data.frame, "axes": data.axes}


def _axis_figure(data: ContactData, k: int) -> Figure:
    rows, (name, unit) = data.log.rows, _WRENCH_AXES[k]
    value, reach = rows.wrench[:, k], 2.0 * rows.std[:, k]
    shown = thinned_rows(np.column_stack([value, reach]), _AXIS_POINTS)
    t, value, reach = rows.t[shown], value[shown], reach[shown]
    band = {"type": "scatter", "mode": "lines", "x": numbers(np.concatenate([t, t[::-1]]), 6),
            "y": numbers(np.concatenate([value + reach, (value - reach)[::-1]])), "fill": "toself",
            "fillcolor": "rgba(0,114,178,0.18)", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    trace = line(numbers(t, 6), numbers(value), name, BLUE, 1.4, hovertemplate=f"%{{y:.4~g}} {unit} at %{{x:.3f}} s")
    layout = {"title": title(name), "xaxis": axis("time, s"), "yaxis": axis(f"{name}, {unit}"), "showlegend": False,
              "shapes": _spans(data)}
    return Figure([band, trace], layout, f"{name} over time with a band of two standard deviations", 240)


def _statistic_figure(data: ContactData) -> Figure:
    rows = data.log.rows
    shown = thinned_rows(rows.statistic[:, None], _AXIS_POINTS)
    trace = line(numbers(rows.t[shown], 6), numbers(np.maximum(rows.statistic[shown], 1e-3)), "statistic", BLUE, 1.2,
                 hovertemplate="%{y:.4~g} at %{x:.3f} s")
    layout = {"xaxis": axis("time, s"), "yaxis": axis("squared, normalised", type="log"), "showlegend": False,
              "shapes": [level(data.level, VERMILION)]}
    return Figure([trace], layout, "External joint torques, squared and normalised by their covariance, and the "
                                   "detection threshold",
                  240)


def _spans(data: ContactData) -> list[dict[str, Any]]:
    """Return shaded areas that mark the times of contacts in a plot."""
    return [{"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "x0": one.start, "x1": one.stop, "layer": "below",
             "fillcolor": "rgba(213,94,0,0.10)", "line": {"width": 0}} for one in data.log.contacts]


def _arrow(data: ContactData) -> Mapping[str, Any] | None:
    """3-D view of the robot with an arrow for the mean force of each contact."""
    if not data.log.contacts:
        return None
    strongest = sorted(data.log.contacts,
                       key=lambda one: -float(np.linalg.norm(one.link_wrench[:3])))[:MAX_ARROWS_SHOWN]
    return {"figure": arrow_figure(data, sorted(strongest, key=lambda one: one.start)),
            "more": max(0, len(data.log.contacts) - MAX_ARROWS_SHOWN)}


def arrow_figure(data: ContactData, contacts: list[Any]) -> Figure:
    """Return the robot during each contact with an arrow at the touched link; only the first is visible at first."""
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


def subtitle(data: ContactData) -> str:
    """Line below the headline: number of contacts, duration, detection delay and rate of false alarms."""
    rows = data.log.rows
    return (f"{count(len(data.log.contacts), 'contact')} in {rows.t[-1] - rows.t[0]:.4g} s, detection delay "
            f"{1000.0 * data.log.delay:.0f} ms; expected false alarms per hour: {data.alarms:g}")


CONTACT = Page("contact", subtitle, (
    Section("touched", "Detected contacts", _touched),
    Section("forces", "Forces over time", _forces),
    Section("arrow", "Forces on the robot", _arrow)))
