"""Position, velocity, acceleration and torque of each joint over time, with limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.report.figure import BLUE, GREY, LIGHT, VERMILION, Figure, axis, level, line, numbers, title
from dynid.report.pages.motion.data import MotionData
from dynid.report.section import Section
from dynid.report.words import number

_LINE_POINTS = 600  # points per line
MIN_USAGE_DRAWN = 0.2  # share of a limit that the signal must use for the limit to be drawn
PANEL_GAP = 0.05  # gap between panels, relative to the figure's height


@dataclass(frozen=True, eq=False)
class SignalPanel:
    """One signal (points,) of a joint, its unit, and its limits, infinite if there are none."""

    name: str
    unit: str
    signal: Array
    lower: float
    upper: float

    @property
    def drawn_limits(self) -> list[float]:
        """Limits close to the signal, and all position limits."""
        return [limit for limit in self._limits if self._is_near(limit)]

    @property
    def far_limits(self) -> list[float]:
        """Limits too far away to be drawn; they are stated in words."""
        return [limit for limit in self._limits if not self._is_near(limit)]

    @property
    def _limits(self) -> list[float]:
        return [float(limit) for limit in (self.lower, self.upper) if np.isfinite(limit)]

    def _is_near(self, limit: float) -> bool:
        return self.name == "position" or float(np.abs(self.signal).max()) >= MIN_USAGE_DRAWN * abs(limit)


def gather(data: MotionData) -> Mapping[str, Any]:
    whole, bounds = data.excitation.trajectory, data.excitation.limits
    t = np.linspace(0.0, whole.duration, _LINE_POINTS)
    motion = whole.at(t)
    tau = None
    if data.theta is not None:
        tau = data.excitation.torques(data.theta, t)
    figures = []
    for j, (name, units) in enumerate(zip(data.joints, data.units, strict=True)):
        panels = [SignalPanel("position", units.position, motion.q[:, j], bounds.lower[j], bounds.upper[j]),
                  SignalPanel("velocity", units.velocity, motion.dq[:, j], -bounds.velocity[j], bounds.velocity[j]),
                  SignalPanel("acceleration", units.acceleration, motion.ddq[:, j], -bounds.acceleration[j],
                        bounds.acceleration[j])]
        if tau is not None and np.isfinite(tau[:, j]).all():
            panels.append(SignalPanel(units.effort, units.torque, tau[:, j], -bounds.torque[j], bounds.torque[j]))
        figures.append(joint_figure(name, t, panels, data.core))
    return {"figures": figures, "torques": data.whose if tau is not None else "",
            "approach": whole is not data.excitation.core}


def joint_figure(name: str, t: Array, panels: list[SignalPanel], core: tuple[float, float]) -> Figure:
    """Return the signals of one joint over time in separate panels, with dashed limits; the approach is grey."""
    count = len(panels)
    height = (1.0 - PANEL_GAP * (count - 1)) / count
    x, axes = numbers(t, 6), ["y", *(f"y{k + 1}" for k in range(1, count))]
    traces, shapes, notes = [], [], []
    layout: dict[str, Any] = {"title": {**title(name), "y": 0.995}, "showlegend": False, "hovermode": "x",
                              "xaxis": axis("time, s", range=[0.0, float(t[-1])], anchor=axes[-1])}
    for k, (own, panel) in enumerate(zip(axes, panels, strict=True)):
        traces.append(line(x, numbers(panel.signal), panel.name, BLUE, 1.6, yaxis=own,
                           hovertemplate=f"{panel.name} %{{y:.4~g}} {panel.unit}<extra></extra>"))
        shapes += [{**level(limit, VERMILION), "yref": own} for limit in panel.drawn_limits]
        if panel.far_limits:
            notes.append({"text": f"limit ±{number(abs(panel.far_limits[-1]), 3)}", "xref": "paper",
                          "yref": f"{own} domain", "x": 1, "y": 1, "xanchor": "right", "yanchor": "top",
                          "showarrow": False, "font": {"size": 11, "color": GREY}})
        ends = [float(panel.signal.min()), float(panel.signal.max()), *panel.drawn_limits]
        margin, top = 0.06 * ((max(ends) - min(ends)) or 1.0), 1.0 - k * (height + PANEL_GAP)
        layout[f"yaxis{own[1:]}"] = axis(f"{panel.name},<br>{panel.unit}", domain=[max(top - height, 0.0), top],
                                         nticks=5, range=[min(ends) - margin, max(ends) + margin])
    shapes += [{"type": "rect", "xref": "x", "yref": "paper", "x0": a, "x1": b, "y0": 0, "y1": 1, "fillcolor": LIGHT,
                "opacity": 0.3, "line": {"width": 0}, "layer": "below"}
               for a, b in ((0.0, core[0]), (core[1], float(t[-1]))) if b - a > 1e-9]
    layout |= {"shapes": shapes, "annotations": notes}
    return Figure(traces, layout, f"Motion of {name} over time, with its limits", 130 * count + 70)


SECTION = Section("joints", "Joints", gather)
