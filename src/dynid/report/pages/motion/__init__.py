"""Page on a designed motion: joints and limits, expected standard errors, the search, a 3-D preview."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.excitation import ExcitingMotion, Usage
from dynid.report.figure import BLUE, GREY, MEASURED, Figure, axis, level, line, numbers, significant, text
from dynid.report.pages.motion import joints, preview
from dynid.report.pages.motion.data import LowestPoint, MotionData, used
from dynid.report.rendering import write_page
from dynid.report.section import Card, Page, Section
from dynid.report.words import COLORS, GOOD, POOR, JointUnits, count, grade, number, percent, seconds, typeset

_PER_NAME = 14  # px per parameter on the axis
_LENGTHS = {"space": "clearance", "support": "inside the support polygon", "height": "above the ground"}


def overview(data: MotionData) -> Mapping[str, Any]:
    """Return the headline, key numbers and remarks of a designed motion."""
    found = data.excitation
    approach = "" if found.trajectory is found.core else \
        f", {seconds(found.trajectory.duration)} including the approach from and to home"
    ends = "interrupted: best motion found so far" if found.interrupted else (
        ", ".join(filter(None, ("inside the joint limits" if data.unchecked else "inside all limits", data.checked,
                                data.unchecked))))
    return {"headline": f"{data.robot.name} moves for {seconds(found.core.duration)}{approach}: {ends}.",
            "cards": cards(data), "notes": data.notes}


def cards(data: MotionData) -> list[Card]:
    """Return the key numbers of a motion, as cards of the report."""
    found = data.excitation
    known = np.isfinite(data.relative)
    shown = [Card(found.criterion if found.criterion != "condition" else "condition number", number(found.value, 4),
                  f"the criterion, from {found.starts} starts in {seconds(found.elapsed)}" if found.starts else
                  "of the unscaled base regressor; the motion was not optimised")]
    if found.criterion != "condition" or abs(found.value / found.condition - 1.0) > 1e-6:
        shown.append(Card("condition number", number(found.condition, 4), "of the unscaled base regressor"))
    if known.any():
        shown.append(Card("median standard error", percent(float(np.median(data.relative))),
                          "median expected standard error of the base parameters"))
        shown.append(Card("well determined", f"{int(np.sum(data.relative < GOOD))} of {len(known)}",
                          f"base parameters with an expected standard error below {percent(GOOD)}"))
    tight = max((u for u in found.report.usages if used(u) is not None), key=lambda u: u.excess, default=None)
    if tight is not None:
        shown.append(Card("closest limit", f"{used(tight):.1f} %", f"{tight.kind} of {tight.where}"))
    return shown


def _expected(data: MotionData) -> Mapping[str, Any]:
    """Expected standard error of each base parameter from a log of the motion."""
    found, base = data.excitation, data.excitation.base
    rows = [{"name": name, "meaning": base.meanings[k], "value": float(data.values[k]),
             "std": float(found.std[k]), "relative": float(data.relative[k]),
             "before": None if data.before is None else float(data.before[k]), "unit": typeset(base.units[k]),
             "expression": base.expressions[k],
             "grade": grade(float(data.relative[k])) if np.isfinite(data.relative[k]) else ""}
            for k, name in enumerate(base.names)]
    return {"figure": expected_figure(data), "rows": rows, "rate": found.rate, "noise": noise_words(data),
            "before": data.before is not None, "good": GOOD, "poor": POOR}


def noise_words(data: MotionData) -> str:
    """Return the torque noise with its unit: once if it is the same for all joints, else joint by joint."""
    noise = data.excitation.noise
    if np.allclose(noise, noise[0]) and len({units.torque for units in data.units}) == 1:
        return f"{number(float(noise[0]), 3)} {data.units[0].torque}"
    return ", ".join(f"{number(float(x), 3)} {units.torque}" for x, units in zip(noise, data.units, strict=True))


def expected_figure(data: MotionData) -> Figure | None:
    """Return bars of relative standard errors on a logarithmic axis, with those of earlier logs if there are any."""
    shown = np.flatnonzero(np.isfinite(data.relative))
    if not len(shown):
        return None
    base, relative = data.excitation.base, data.relative[shown]
    names = [text(base.names[k]) for k in shown]
    labels = [f"{name}: {percent(float(r))}, ±{number(float(data.excitation.std[k]), 3)} "
              f"{typeset(base.units[k])}" for name, r, k in zip(names, relative, shown, strict=True)]
    traces: list[dict[str, Any]] = []
    reach = [relative]
    if data.before is not None:
        earlier = 100.0 * data.before[shown] / np.abs(data.values[shown])
        reach.append(earlier[np.isfinite(earlier)])
        traces.append({"type": "bar", "x": names, "y": significant(earlier), "name": "before",
                       "marker": {"color": MEASURED}, "hovertemplate": "%{x}: %{y:.3~g} %<extra>before</extra>"})
    traces.append({"type": "bar", "x": names, "y": significant(relative), "name": "expected", "text": labels,
                   "textposition": "none", "hovertemplate": "%{text}<extra></extra>",
                   "marker": {"color": [COLORS[grade(float(r))] for r in relative]}})
    every = np.concatenate(reach)
    low, high = np.log10(every.min()), np.log10(every.max())
    layout = {"xaxis": axis("base parameter", type="category", tickangle=-90 if len(names) > 12 else 0,
                            tickfont={"size": 11 if len(names) > 12 else 13}, dtick=1),
              "yaxis": axis("expected standard error, %", type="log", dtick=1, exponentformat="none",
                            range=[float(np.floor(low - 0.1)), float(high + 0.15)]),
              "shapes": [level(value, GREY, "dot") for value in (GOOD, POOR)], "bargap": 0.25,
              "showlegend": data.before is not None}
    return Figure(traces, layout, "Expected relative standard errors of the base parameters", 380,
                  120 + _PER_NAME * len(names))


def limits(data: MotionData) -> Mapping[str, Any] | None:
    """Return the largest utilisation of each limit by the motion."""
    units = dict(zip(data.joints, data.units, strict=True))
    rows = [{"kind": usage.kind, "where": usage.where, "value": usage.value, "bound": usage.bound, "time": usage.time,
             "unit": limit_unit(usage, units.get(usage.where)), "used": used(usage),
             "words": f"{1000 * usage.value:.0f} mm {_LENGTHS[usage.kind]}" if usage.kind in _LENGTHS else "met"}
            for usage in sorted(data.excitation.report.usages, key=lambda u: -u.excess)]
    return {"rows": rows} if rows else None


def limit_unit(usage: Usage, units: JointUnits | None) -> str:
    """Return the unit of a motion limit, from the kind of the limit and the units of its joint."""
    if units is None:
        return "m" if usage.kind in _LENGTHS else ""
    return {"velocity": units.velocity, "acceleration": units.acceleration, "jerk": f"{units.position}/s³",
            "torque": units.torque}.get(usage.kind, units.position)


def _search(data: MotionData) -> Mapping[str, Any]:
    """The best value of the criterion over the time of the search, and the command that repeats the search."""
    found = data.excitation
    return {"figure": search_figure(found), "starts": found.starts, "seed": found.seed, "elapsed": found.elapsed,
            "interrupted": found.interrupted, "command": data.command}


def search_figure(found: ExcitingMotion) -> Figure | None:
    """Return a figure of the best value of the criterion over the time of the search; None without a search."""
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


def subtitle(data: MotionData) -> str:
    """Line below the headline: duration, number of joints and number of parameters."""
    found = data.excitation
    return (f"{seconds(found.core.duration)} motion of {count(len(data.joints), 'joint')} for {len(found.base)} base "
            "parameters")


SECTIONS: tuple[Section[MotionData], ...] = (
    Section("overview", "Overview", overview),
    joints.SECTION,
    Section("expected", "Expected accuracy", _expected),
    preview.SECTION,
    Section("limits", "Limits", limits),
    Section("search", "Search", _search))
MOTION = Page("motion", subtitle, SECTIONS)


def write_motion(data: MotionData, path: str | Path, sections: Iterable[Section[MotionData]] = SECTIONS) -> Path:
    """Write the page to a file atomically; sections as in `dynid.report.write_report`."""
    return write_page(replace(MOTION, sections=tuple(sections)), data, path)


__all__ = ["MOTION", "SECTIONS", "LowestPoint", "MotionData", "used", "write_motion"]
