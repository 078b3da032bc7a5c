"""Section on the data: signals of the logs, their preparation, and the origin of the cut-off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.recording import Samples
from dynid.report.figure import INK, SERIES, Figure, line, log_axis, significant, text
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.report.words import JointUnits

_SHOWN_SIGNALS = ("q", "dq", "ddq", "tau")


def gather(data: ReportData) -> Mapping[str, Any]:
    # A log that was read in pieces counts as one.
    parts: dict[tuple[str, str], list[Samples]] = {}
    for role, samples in [*(("identification", samples) for samples in data.logs),
                          *(("validation", samples) for one in data.validations for samples in one.samples)]:
        if len(samples):
            parts.setdefault((role, samples.source), []).append(samples)
    logs = [log_facts(data, role, pieces) for (role, _), pieces in parts.items()]
    for log in logs[1:]:
        log["same_steps"] = log["steps"] == logs[0]["steps"]
    known_notes = {step for pieces in parts.values() for step in pieces[0].steps}
    return {"logs": logs, "notes": [note for note in data.notes if note not in known_notes]}


def log_facts(data: ReportData, role: str, pieces: Sequence[Samples]) -> dict[str, Any]:
    """Return facts on one log as sentences; its preparation is described for the first log only."""
    first = pieces[0]
    step = 1 if first.decimation is None else first.decimation.total
    return {"name": data.log_name(first.source), "source": first.source, "role": role, "rows": sum(map(len, pieces)),
            "seconds": float(sum(piece.t[-1] - piece.t[0] for piece in pieces)), "rate": float(first.rate),
            "regression_rate": float(first.rate / step), "decimated": step,
            "segments": sum(len(piece.segments) for piece in pieces),
            "used": 100.0 * sum(int(piece.keep.sum()) for piece in pieces) / sum(piece.keep.size for piece in pieces),
            "steps": first.steps, "same_steps": False, "ranges": ranges(data, pieces),
            "spectrum": spectrum_figure(first, data.units), "cutoff": _cutoff(first)}


def ranges(data: ReportData, pieces: Sequence[Samples]) -> list[dict[str, Any]]:
    """Return the range of each signal of every joint, and the share of its limits that a joint used."""
    low = {name: np.min([getattr(piece, name).min(axis=0) for piece in pieces], axis=0) for name in _SHOWN_SIGNALS}
    high = {name: np.max([getattr(piece, name).max(axis=0) for piece in pieces], axis=0) for name in _SHOWN_SIGNALS}
    used = np.sum([piece.keep.sum(axis=0) for piece in pieces], axis=0) / sum(map(len, pieces))
    return [{"name": name, "units": (units.position, units.velocity, units.acceleration, units.torque),
             "used": float(100.0 * used[j]), "ranges": [(float(low[s][j]), float(high[s][j])) for s in _SHOWN_SIGNALS],
             "bar": _bar(data, j, (low["q"][j], high["q"][j]))}
            for j, (name, units) in enumerate(zip(data.joints, data.units, strict=True))]


def _bar(data: ReportData, j: int, reached: tuple[float, float]) -> tuple[float, float] | None:
    """Return start and width of the position range in percent of the joint limits, if it has any."""
    if data.robot is None or j >= data.robot.dof:  # a coordinate without a joint, such as a motor of a flexible joint
        return None
    lower, upper = data.robot.joints[j].lower, data.robot.joints[j].upper
    if not np.isfinite(upper - lower) or upper <= lower:
        return None
    low, high = (float(np.clip(100.0 * (x - lower) / (upper - lower), 0.0, 100.0)) for x in reached)
    return low, max(high - low, 0.5)


def _cutoff(samples: Samples) -> float | None:
    cutoff = samples.settings.get("cutoff")
    return float(cutoff) if isinstance(cutoff, int | float) else None


def spectrum_figure(samples: Samples, units: Sequence[JointUnits]) -> Figure | None:
    """Return the power spectral density of every joint's position, its noise floor, and the cut-off."""
    joints = {str(name): one for name, one in samples.spectrum.items()
              if isinstance(one, Mapping) and len(one.get("f", ())) and len(one.get("psd", ()))}
    if not joints:
        return None
    traces, lowest, highest, band = [], np.inf, 0.0, [np.inf, 0.0]
    for j, (name, one) in enumerate(joints.items()):
        f, psd = np.asarray(one["f"], dtype=float), np.asarray(one["psd"], dtype=float)
        good = np.isfinite(psd) & (psd > 1e-200) & (f > 0)  # a joint at rest has no power
        if not good.any():
            continue
        lowest, highest = min(lowest, float(psd[good].min())), max(highest, float(psd[good].max()))
        band = [min(band[0], float(f[good].min())), max(band[1], float(f[good].max()))]
        color = SERIES[j % len(SERIES)]
        traces.append(line(significant(f[good]), significant(psd[good]), text(name), color, 1.5, legendgroup=str(j),
                           hovertemplate="%{y:.3~g} at %{x:.3~g} Hz"))
        floor = one.get("noise_floor")
        if floor is not None and floor > 0:
            traces.append(line(significant([f[0], f[-1]]), significant([floor, floor]), "noise", color, 0.8,
                               legendgroup=str(j), showlegend=False, line={"dash": "dot"},
                               hovertemplate=f"noise floor of {text(name)}<extra></extra>"))
    if not traces:
        return None
    cutoff = _cutoff(samples)
    if cutoff is not None:
        traces.append(line([cutoff, cutoff], significant([lowest, highest]), "cut-off", INK, 1.5, line={"dash": "dash"},
                           hovertemplate=f"cut-off {cutoff:.4g} Hz<extra></extra>"))
    density = " or ".join(f"{unit}²/Hz" for unit in dict.fromkeys(one.position for one in units))
    layout = {"xaxis": log_axis("frequency, Hz", *band),
              "yaxis": log_axis(f"power density, {density}", lowest, highest)}
    return Figure(traces, layout, "Spectrum of the positions with noise floors and cut-off", 340)


SECTION = Section("logs", "Data", gather)
