"""Simulation: measured motion and that of a simulated robot with the identified parameters, for each joint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.order_statistics import distinct
from dynid.report.figure import BLUE, INK, MEASURED, Figure, axis, line, numbers, thinned_rows, title, with_breaks
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.report.words import JointUnits
from dynid.validate import ResimulatedLog, SimulationCheck

MOST_POINTS = 3000  # points per joint in one simulation
FEWEST_POINTS = 500
POINTS = 6000  # points per joint in all simulations, which limits the page's size
_RANGE_MARGIN = 0.4  # share of the measured range that is shown above and below it
_MAX_MARKED_STARTS = 400  # largest number of marked starts of windows


def gather(data: ReportData) -> Mapping[str, Any] | None:
    if not data.simulations:
        return None
    done = [one for one in data.simulations if one.log is not None]
    points = int(np.clip(POINTS // max(len(done), 1), FEWEST_POINTS, MOST_POINTS))
    # One sentence for equal failures: parameters that cannot be simulated fail on every log.
    failed: dict[str, list[str]] = {}
    for one in data.simulations:
        if one.log is None and one.reason is not None:
            failed.setdefault(one.reason.text, []).append(f"{data.log_name(one.source)}, {words(one)}")
    return {"panes": [_pane(one, one.log, data.log_name(one.source), data.units, points) for one in done
                      if one.log is not None],
            "failed": [{"reason": reason, "logs": logs} for reason, logs in failed.items()], "points": points}


def words(check: SimulationCheck) -> str:
    """Return in words how a log was simulated: by measured torques or in closed loop."""
    return "under its own torques" if check.mode == "torque-driven" else "in closed loop"


def _pane(check: SimulationCheck, log: ResimulatedLog, label: str, units: tuple[JointUnits, ...], points: int
          ) -> dict[str, Any]:
    feedback = check.mode == "closed-loop"
    rows = [{"name": name, "unit": unit.position, "motion": float(log.motion[j]),
             "off": float(log.position_rms[j]), "error": float(log.position_error[j]),
             "torque": float(log.torque_error_per_joint[j])}
            for j, (name, unit) in enumerate(zip(log.joints, units, strict=True))]
    draw = torque_figure if feedback else position_figure
    return {"label": label, "source": check.source, "kind": words(check), "check": check, "log": log, "rows": rows,
            "feedback": feedback, "marked": len(log.windows) <= _MAX_MARKED_STARTS, "thinned": len(log.t) > points,
            "figures": [draw(log, j, name, unit, points)
                        for j, (name, unit) in enumerate(zip(log.joints, units, strict=True))]}


def position_figure(log: ResimulatedLog, j: int, name: str, units: JointUnits, points: int) -> Figure:
    """Return measured and simulated position, with a dot at each restart from the measured state."""
    measured, simulated, t = log.q[:, j], log.simulated_q[:, j], log.t - log.t[0]
    rows = thinned_rows(np.column_stack([measured, simulated]), points)
    time, shown = with_breaks(t, rows, _gap(t), measured)
    # The drawn rows of a window must end with it, because a jump back to the log would look like motion.
    starts, ends = log.windows[:, 0], log.windows[:, 1] - 1
    every = np.union1d(rows, np.concatenate([starts, ends])) if len(log.windows) <= _MAX_MARKED_STARTS else rows
    cuts = distinct(np.searchsorted(every, starts))
    cuts = cuts[cuts > 0]
    separated = np.insert(t[every], cuts, t[every][cuts]), np.insert(simulated[every], cuts, np.nan)
    hover = f"%{{y:.5~g}} {units.position} at %{{x:.3f}} s"
    traces = [line(numbers(time, 7), numbers(shown, 6), "measured", MEASURED, 4, hovertemplate=hover),
              line(numbers(separated[0], 7), numbers(separated[1], 6), "simulated", BLUE, 1.4, hovertemplate=hover)]
    if len(log.windows) <= _MAX_MARKED_STARTS:
        traces.append({"type": "scatter", "mode": "markers", "x": numbers(t[starts], 7),
                       "y": numbers(measured[starts], 6), "name": "restarts",
                       "marker": {"color": INK, "size": 4 if len(starts) > 60 else 5}, "hovertemplate": hover})
    layout = {"title": title(name), "xaxis": axis("time, s", range=[0.0, float(t[-1]) or 1.0]),
              "yaxis": axis(f"position, {units.position}", range=_range(measured, simulated))}
    return Figure(traces, layout, f"Measured and simulated position of {name} over time", 290)


def torque_figure(log: ResimulatedLog, j: int, name: str, units: JointUnits, points: int) -> Figure:
    """Return the measured torque and the controller's torque in the simulation."""
    measured, simulated, t = log.tau[:, j], log.simulated_tau[:, j], log.t - log.t[0]
    rows = thinned_rows(np.column_stack([measured, simulated]), points)
    time, shown, hat = with_breaks(t, rows, _gap(t), measured, simulated)
    hover = f"%{{y:.4~g}} {units.torque} at %{{x:.3f}} s"
    traces = [line(numbers(time, 7), numbers(shown), "measured", MEASURED, 4, hovertemplate=hover),
              line(numbers(time, 7), numbers(hat), "simulated", BLUE, 1.4, hovertemplate=hover)]
    layout = {"title": title(name), "xaxis": axis("time, s", range=[0.0, float(t[-1]) or 1.0]),
              "yaxis": axis(f"{units.effort}, {units.torque}", range=_range(measured, simulated))}
    return Figure(traces, layout, f"Measured and simulated {units.effort} of {name} over time", 290)


def _gap(t: Array) -> float:
    """Return the time between two rows, s, above which a line is interrupted."""
    return 3.5 * float(np.median(np.diff(t))) if len(t) > 1 else 1.0


def _range(measured: Array, simulated: Array) -> list[float | None]:
    """Return the range of the axis: all measured values, and only the beginning of a simulation that diverges."""
    low, high = float(measured.min()), float(measured.max())
    span = high - low or max(abs(high), 1e-3)
    low = max(min(low, float(simulated.min())), low - _RANGE_MARGIN * span) - 0.05 * span
    high = min(max(high, float(simulated.max())), high + _RANGE_MARGIN * span) + 0.05 * span
    return numbers([low, high])


SECTION = Section("simulation", "Simulation", gather)
