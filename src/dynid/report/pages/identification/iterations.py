"""Iterations: values, torque errors and motion at every step of an iterative method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.estimate import Estimate
from dynid.estimate.iterations import QUANTITIES, Iteration, StepMotion
from dynid.report.figure import (
    BLUE,
    GREY,
    LIGHT,
    MEASURED,
    SERIES,
    Figure,
    axis,
    line,
    log_axis,
    numbers,
    significant,
    title,
)
from dynid.report.figure import text as plain_text
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.report.words import JointUnits, count, number

PARAMETERS = 12  # drawn parameters: those with the largest changes in standard errors
COLUMNS = 8  # steps in the table
STEPS = 10  # selectable steps with motion
_RATIO_FOR_LOG_AXIS = 10.0  # ratio to the smallest value above which an axis is logarithmic
_BAND_STD = 2.0  # standard errors of the last step


def gather(data: ReportData) -> Mapping[str, Any] | None:
    steps = data.estimate.iterations
    if not steps:
        return None
    shown, passes = _chosen(len(steps), COLUMNS), steps[-1].number != len(steps)
    moved = _most_moved(data.estimate)[:PARAMETERS]
    times = {1: "once", 2: "twice"}.get(round(steps[-1].number), f"{round(steps[-1].number)} times")
    driven = [one.motion for one in steps if one.motion is not None and one.motion.torque_error is None]
    return {"words": count(len(steps), "step"), "times": times, "passes": passes,
            "count": len(steps), "settled": steps[-1].change, "step": steps[-1].step,
            "heads": [number(steps[k].number, 3) for k in shown], "rows": _rows(data.estimate, shown),
            "values": [value_figure(data.estimate, k) for k in moved], "drawn": len(moved),
            "of": len(data.estimate.values), "errors": error_figure(steps, data.joints, passes),
            "motions": motion_figures(steps, data.joints, passes), "panes": _panes(steps, data.joints, data.units),
            "driven": bool(driven)}


def _chosen(steps: int, most: int) -> list[int]:
    """Return the first, second, some intermediate and the last step."""
    if steps <= most:
        return list(range(steps))
    return sorted({0, 1, *np.linspace(1, steps - 1, most - 1).round().astype(int).tolist()})


def _most_moved(estimate: Estimate) -> list[int]:
    """Return the identified base parameters, those that changed most in standard errors first."""
    values = np.array([one.values for one in estimate.iterations])
    known = estimate.identified & np.isfinite(estimate.std) & (estimate.std > 0)
    moved = np.where(known, np.ptp(values, axis=0) / np.where(known, estimate.std, 1.0), -1.0)
    return [int(k) for k in np.argsort(-moved, kind="stable") if known[k]]


def _rows(estimate: Estimate, shown: Sequence[int]) -> list[dict[str, Any]]:
    return [{"name": name, "values": [float(estimate.iterations[k].values[i]) for k in shown],
             "std": float(estimate.std[i]), "unit": estimate.base.units[i]}
            for i, name in enumerate(estimate.names)]


def value_figure(estimate: Estimate, parameter: int) -> Figure:
    """Return the value of one base parameter at every step, with two standard errors of the last step as a band."""
    steps, name = estimate.iterations, estimate.names[parameter]
    x, y = [one.number for one in steps], [float(one.values[parameter]) for one in steps]
    reach, last = _BAND_STD * float(estimate.std[parameter]), y[-1]
    own = [0.0 if one.std is None else _BAND_STD * float(one.std[parameter]) for one in steps]
    ends = [min(x) - 0.25, max(x) + 0.25]
    band = line([*ends, *ends[::-1]], numbers([last - reach] * 2 + [last + reach] * 2), "± 2 standard errors", LIGHT,
                0.0, fill="toself", fillcolor="rgba(86,180,233,0.22)", hoverinfo="skip")
    many = len(steps) > 30
    points = line(numbers(x), numbers(y), "value", BLUE, 1.4, mode="lines+markers", marker={"size": 3 if many else 6},
                  error_y={"type": "data", "array": numbers(own), "color": GREY, "thickness": 0.8, "width": 2},
                  hovertemplate="%{y:.5~g} at step %{x:.3~g}")
    unit = estimate.base.units[parameter]
    layout = {"title": title(name), "xaxis": axis("step", range=ends, **_ticks(x)), "showlegend": False,
              "yaxis": axis(unit.replace("^2", "²"))}
    return Figure([band, points], layout, f"Value of {name} at every step", 230)


def _ticks(x: Sequence[float]) -> dict[str, Any]:
    return {"dtick": 1} if max(x) <= 12 else {}


def error_figure(steps: Sequence[Iteration], joints: Sequence[str], passes: bool) -> Figure:
    """Return the torque error of every joint over the steps."""
    x = [one.number for one in steps]
    errors = np.array([one.relative_error_per_joint for one in steps])
    traces = [line(numbers(x), significant(np.where(errors[:, j] > 0, errors[:, j], np.nan)), plain_text(name),
                   SERIES[j % len(SERIES)], 1.5, mode="lines+markers", marker={"size": 5},
                   hovertemplate="%{y:.3~g} % at step %{x:.3~g}") for j, name in enumerate(joints)]
    layout = {"xaxis": axis("pass through the logs" if passes else "step", **_ticks(x)),
              "yaxis": _share_axis("unexplained torque, %", errors)}
    return Figure(traces, layout, "Torque error of every joint over the steps", 300)


def _share_axis(words: str, values: Array) -> dict[str, Any]:
    """Return an axis from zero if percentages are of similar size, else a logarithmic one."""
    good = values[np.isfinite(values) & (values > 0)]
    low, high = (float(good.min()), float(good.max())) if len(good) else (1.0, 1.0)
    return log_axis(words, low, high) if high > _RATIO_FOR_LOG_AXIS * low else axis(words, rangemode="tozero")


def motion_figures(steps: Sequence[Iteration], joints: Sequence[str], passes: bool) -> list[Figure]:
    """Return errors of position, velocity and acceleration of every joint over the steps; dashed: commanded motion."""
    moving = [(one.number, one.motion) for one in steps if one.motion is not None]
    return [_motion_figure(moving, joints, k, passes) for k in range(3)] if len(moving) > 1 else []


def _motion_figure(moving: Sequence[tuple[float, StepMotion]], joints: Sequence[str], k: int, passes: bool) -> Figure:
    x, everything, traces = [one for one, _ in moving], list[float](), list[Mapping[str, Any]]()
    for j, name in enumerate(joints):
        color = SERIES[j % len(SERIES)]
        for label, dash, found in (
                (plain_text(name), "solid", [motion.errors[k, j] for _, motion in moving]),
                ("from its reference", "dot", [motion.from_reference[k, j] for _, motion in moving
                                               if motion.from_reference is not None])):
            shown = [float(value) if value > 0 else np.nan for value in found]
            if len(shown) < len(x):
                continue
            everything += [value for value in shown if np.isfinite(value)]
            traces.append(line(numbers(x), significant(shown), label, color, 1.5, mode="lines+markers",
                               marker={"size": 5}, line={"dash": dash}, legendgroup=str(j), showlegend=dash == "solid",
                               hovertemplate="%{y:.3~g} % at step %{x:.3~g}"))
    layout = {"title": title(QUANTITIES[k]), "xaxis": axis("pass" if passes else "step", **_ticks(x)),
              "yaxis": _share_axis("error, %", np.array(everything))}
    return Figure(traces, layout, f"Error of the simulated {QUANTITIES[k]} over the steps", 280)


def _panes(steps: Sequence[Iteration], joints: Sequence[str], units: Sequence[JointUnits]) -> list[dict[str, Any]]:
    """Return measured and simulated positions of the steps that can be selected."""
    moving = [one for one in steps if one.motion is not None]
    return [{"label": f"step {number(moving[k].number, 3)}", "kind": "last" if k == len(moving) - 1 else "",
             "source": "", "error": motion.tracking_error,
             "figures": [position_figure(motion, j, name, unit)
                         for j, (name, unit) in enumerate(zip(joints, units, strict=True))]}
            for k in _chosen(len(moving), STEPS) if (motion := moving[k].motion) is not None]


def position_figure(motion: StepMotion, j: int, name: str, units: JointUnits) -> Figure:
    """Return the measured position of one joint and the simulated one at one step."""
    t, hover = numbers(motion.t - motion.t[0], 6), f"%{{y:.5~g}} {units.position} at %{{x:.3f}} s"
    traces = [line(t, numbers(motion.measured[:, j]), "measured", MEASURED, 4, hovertemplate=hover),
              line(t, numbers(motion.q[:, j]), "simulated", BLUE, 1.4, hovertemplate=hover)]
    layout = {"title": title(name), "xaxis": axis("time, s"), "yaxis": axis(f"position, {units.position}")}
    return Figure(traces, layout, f"Measured and simulated position of {name} at one step", 250)


SECTION = Section("iterations", "Iterations", gather)
