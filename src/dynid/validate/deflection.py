"""Deflection of flexible joints: stiffness, damping and hysteresis from torque over deflection.

With b the deflection of a joint, motor position minus link position, and tau the torque on the link side of its gear,

    tau = K b + D db + H sign(db) + c.

H is half the width of the hysteresis: the excess torque at increasing over that at decreasing deflection. If only motor
positions are logged, a flexible joint shows as a resonance: a narrow oscillation of torque and motor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array, Bools
from dynid.estimate import Estimate
from dynid.model import FlexibleModel, complete, flexible_joint_model
from dynid.order_statistics import median
from dynid.output_fields import output_fields, record
from dynid.plain import plain
from dynid.recording import Recording, Samples
from dynid.recording.preparation.selection import inside_borders
from dynid.recording.sample_preparation import filtered_again
from dynid.regression.autocorrelation import correlated_covariance
from dynid.signals import at_times

_SLOW_DEFLECTION = 0.05  # share of the largest deflection rate below which its sign is not used
MIN_DEFLECTION_ROWS = 50  # rows

Origin = Literal["sensor", "model"]


_MEASURED = record("DeflectionValue", value=float | None, std=float | None)
_SPECTRUM_SECONDS = 1.0  # s: length of a window of the spectrum
_MIN_RESONANCE_HZ = 4.0  # Hz: below, friction and slow model errors dominate
_MAX_RESONANCE_OF_RATE = 0.13  # share of the sampling rate
_ALWAYS_SEARCHED_HZ = 60.0  # Hz: always searched up to this frequency, since robot joints oscillate below it
_MAX_CUTOFF_RATIO = 2.0  # multiple of the cut-off up to which is searched
_FILTER_REACH = 3.0  # multiple of the searched frequency at which the filter is set
_MIN_PEAK_RATIO = 3.0  # ratio of a peak to the power of neighbouring frequencies
_NEIGHBOURHOOD_OCTAVES = 1.5  # octaves on each side of a peak for comparison
_MIN_COHERENCE = 0.85  # share of the torque's power at the peak that the position explains
_MIN_WINDOWS = 8  # windows at least, so that the coherence of noise stays below the limit
_FEWEST_LINES = 16  # samples: shorter parts have no usable spectrum
_SAMPLES_AT_ONCE = 4096  # samples whose torques are predicted at once
_MAX_SPECTRUM_ROWS = 131072  # rows used for the spectrum


@dataclass(frozen=True, eq=False)
class Deflection:
    """Torque over deflection of one joint.

    Attributes:
        joint, number: name of the joint, and its index from 0.
        origin: "sensor" for a torque sensor, "model" for the motor torque minus that of motor inertia and friction.
        bend, torque, rate: (rows,), deflection in rad or m, torque in N m or N, deflection rate in rad/s or m/s.
        stiffness, damping, hysteresis: K, D and H, each with its standard error.
        skew: delay of motor positions, s, with its standard error, or None.
    """

    joint: str
    number: int
    origin: Origin
    bend: Array
    torque: Array
    rate: Array
    stiffness: tuple[float, float]
    damping: tuple[float, float]
    hysteresis: tuple[float, float]
    skew: tuple[float, float] | None = None

    @output_fields(joint=str, origin=str, rows=int, largest_bend=float | None, stiffness=_MEASURED | None,
                   damping=_MEASURED | None, hysteresis=_MEASURED | None, skew=_MEASURED | None)
    def to_dict(self) -> dict[str, Any]:
        """Return the stiffness, damping and hysteresis as plain data for JSON."""
        pairs = {"stiffness": self.stiffness, "damping": self.damping, "hysteresis": self.hysteresis, "skew": self.skew}
        return plain({"joint": self.joint, "origin": self.origin, "rows": len(self.bend),
                      "largest_bend": np.abs(self.bend - np.median(self.bend)).max(),
                      **{name: pair and {"value": pair[0], "std": pair[1]} for name, pair in pairs.items()}})


def deflections(estimate: Estimate, data: Sequence[Samples], recordings: Sequence[Recording]) -> tuple[Deflection, ...]:
    """Return the deflection of every joint whose motor and link positions are both logged. The torque on the joint is
    measured by a sensor, or computed with an estimate of flexible joints. data, recordings: samples and recordings of
    the same logs, in the same order."""
    flexible = flexible_joint_model(estimate.model)
    if len(recordings) != len(data) or any(log.motor_position is None or samples.settings.get("thin", 1) != 1
                                           for log, samples in zip(recordings, data, strict=True)):
        return ()
    sensed = all(log.sensed_torque is not None for log in recordings)
    if not sensed and flexible is None:
        return ()
    joints = range(data[0].dof) if flexible is None else flexible.bending
    parts = [_signals(estimate, samples, log, sensed) for samples, log in zip(data, recordings, strict=True)]
    bend, rate, torque = (np.concatenate([part[k] for part in parts]) for k in range(3))
    keep = np.concatenate([part[3] for part in parts])
    names = data[0].joints or recordings[0].joints
    found = []
    for k, j in enumerate(joints):
        rows = np.flatnonzero(keep[:, k])
        if len(rows) >= MIN_DEFLECTION_ROWS and np.ptp(bend[rows, k]) > 0.0:
            one = _fitted(names[j], "sensor" if sensed else "model", (bend[:, k], rate[:, k], torque[:, k]), keep[:, k])
            found.append(replace(one, number=j, skew=_skew(estimate, j)))
    return tuple(found)


def _signals(estimate: Estimate, samples: Samples, log: Recording, sensed: bool) -> tuple[Array, Array, Array, Bools]:
    """Return deflection, deflection rate and torque (samples, joints) of one log with the same low-pass filter, and a
    mask of the rows away from segment borders."""
    model = flexible_joint_model(estimate.model)
    every, links = list(range(samples.dof)), samples.dof
    if model is not None:
        every, links = list(model.bending), model.links.dof
        bend, rate = samples.q[:, links:] - samples.q[:, every], samples.dq[:, links:] - samples.dq[:, every]
    else:
        assert log.motor_position is not None
        motor, speed, _ = filtered_again(samples, at_times(samples.t, log.t, log.motor_position))
        bend, rate = motor - samples.q, speed - samples.dq
    if sensed:
        assert log.sensed_torque is not None
        torque = filtered_again(samples, at_times(samples.t, log.t, log.sensed_torque))[0][:, every]
    else:
        assert model is not None
        low = filtered_again(samples, np.asarray(samples.measured_tau))[0][:, links:]
        torque = low - _motor_torque(model, estimate.full, samples)
    border = round(float(samples.settings.get("border", 0.0)) * samples.rate)
    keep = np.repeat(inside_borders(samples.segments, len(samples), border)[:, None], bend.shape[1], axis=1)
    return bend, rate, torque, keep if sensed else keep & samples.keep[:, every]


def _motor_torque(model: FlexibleModel, theta: Array, samples: Samples) -> Array:
    """Return the torque of motor inertia and friction (samples, flexible joints) from the motor equations."""
    values = model.parameters.vector(theta).copy()
    springs = [k for k, item in enumerate(model.parameters) if item.symbol in ("K", "D", "Ko", "Ks")]
    values[springs] = 0.0
    return model.inverse_dynamics(values, samples.q, samples.dq, samples.ddq)[:, model.links.dof:]


def _fitted(joint: str, origin: Origin, signals: tuple[Array, Array, Array], keep: Bools) -> Deflection:
    """Return stiffness, damping and hysteresis of one joint by least squares with autocorrelated residuals."""
    bend, rate, torque = signals
    top = float(np.percentile(np.abs(rate[keep]), 99))
    direction = np.clip(rate / max(_SLOW_DEFLECTION * top, 1e-300), -1.0, 1.0)
    columns = np.array([bend, rate, direction, np.ones(len(bend))])
    scale = np.maximum(np.linalg.norm(columns[:, keep], axis=1), 1e-300)
    values, *_ = np.linalg.lstsq((columns[:, keep] / scale[:, None]).T, torque[keep], rcond=1e-12)
    values = values / scale
    spread = correlated_covariance(columns, np.where(keep, torque - values @ columns, 0.0), keep)
    std = np.sqrt(np.maximum(np.diag(spread), 0.0))
    stiffness, damping, hysteresis = ((float(values[k]), float(std[k])) for k in range(3))
    return Deflection(joint, 0, origin, bend[keep], torque[keep], rate[keep], stiffness, damping, hysteresis)


def _skew(estimate: Estimate, joint: int) -> tuple[float, float] | None:
    """Return the delay (s) of a motor's position signal, parameter Ks over stiffness K, and its standard error."""
    names = list(estimate.names)
    if f"Ks{joint + 1}" not in names or f"K{joint + 1}" not in names:
        return None
    at = [names.index(f"Ks{joint + 1}"), names.index(f"K{joint + 1}")]
    product, stiffness = estimate.values[at]
    if not stiffness > 0.0:
        return None
    slope = np.array([1.0, -product / stiffness]) / stiffness
    return float(product / stiffness), float(np.sqrt(max(slope @ estimate.covariance[np.ix_(at, at)] @ slope, 0.0)))


@dataclass(frozen=True)
class Resonance:
    """An oscillation of one joint.

    Attributes:
        joint: name of the joint.
        frequency: frequency of the oscillation, Hz.
        above: ratio of the power of the oscillation to that of neighbouring frequencies.
        coherence: share of the power of the torque at this frequency that the position explains.
        torque: RMS of the oscillation, N m or N.
    """

    joint: str
    frequency: float
    above: float
    coherence: float
    torque: float


def resonances(estimate: Estimate, data: Sequence[Samples], recordings: Sequence[Recording]) -> tuple[Resonance, ...]:
    """Return resonances in the residuals of an estimate with rigid joints, for each joint, from the longest log; empty
    without recordings and for a model with flexible joints."""
    if flexible_joint_model(estimate.model) is not None or len(recordings) != len(data) or not data:
        return ()
    samples, log = max(zip(data, recordings, strict=True), key=lambda pair: len(pair[0]))
    cutoff = float(samples.settings.get("cutoff") or 0.0)
    highest = min(max(_MAX_CUTOFF_RATIO * cutoff, _ALWAYS_SEARCHED_HZ), _MAX_RESONANCE_OF_RATE * samples.rate)
    part = _stretch(samples)
    if part is None or not cutoff or samples.settings.get("thin", 1) != 1:
        return ()
    position, model = at_times(part.t, log.t, log.q), complete(estimate.model)
    # Motion and torque pass the same wide filter, whose edge lies outside the searched frequencies.
    wide = replace(part, settings={**part.settings, "cutoff": _FILTER_REACH * highest, "method": "butterworth"})
    q, dq, ddq = filtered_again(wide, position)
    torque = filtered_again(wide, np.asarray(part.measured_tau))[0]
    left = torque - np.concatenate([
        model.inverse_dynamics(estimate.full, *(x[k:k + _SAMPLES_AT_ONCE] for x in (q, dq, ddq)))
        for k in range(0, len(part), _SAMPLES_AT_ONCE)])
    found = [_peak(name, left[:, j], position[:, j], part.rate, highest) for j, name in enumerate(model.joint_names)
             if name not in part.unmeasured and np.any(part.keep[:, j])]
    return tuple(one for one in found if one is not None)


def _stretch(samples: Samples) -> Samples | None:
    """Return the longest part of samples without a gap, up to a maximum length; None if it is too short."""
    start, stop = (int(x) for x in samples.segments[int(np.argmax(np.diff(samples.segments, axis=1)))])
    rows = slice(start, min(stop, start + _MAX_SPECTRUM_ROWS))
    least = 0.5 * (_MIN_WINDOWS + 1) * _SPECTRUM_SECONDS * samples.rate
    return samples[rows] if rows.stop - start >= least else None


def _peak(joint: str, torque: Array, position: Array, rate: float, highest: float) -> Resonance | None:
    """Return the highest peak of a torque's spectrum below `highest` Hz, if the position has the same peak."""
    size = round(_SPECTRUM_SECONDS * rate)
    if size < _FEWEST_LINES:
        return None
    f, own, by, cross = _spectra(torque, np.gradient(np.gradient(position)), rate, size)
    inside = np.flatnonzero((f >= _MIN_RESONANCE_HZ) & (f <= highest))
    if len(inside) < 8:
        return None
    factor = 2.0 ** _NEIGHBOURHOOD_OCTAVES
    starts, stops = np.searchsorted(f, f[inside] / factor), np.searchsorted(f, f[inside] * factor, side="right")
    around = np.array([median(own[a:b]) for a, b in zip(starts, stops, strict=True)])
    ratio = own[inside] / np.maximum(around, 1e-300)
    at = int(np.argmax(ratio))
    k = int(inside[at])
    coherence = float(cross[k] ** 2 / max(own[k] * by[k], 1e-300))
    if ratio[at] < _MIN_PEAK_RATIO or coherence < _MIN_COHERENCE:
        return None
    near = (own > 0.5 * own[k]) & (np.abs(f - f[k]) < 0.25 * f[k])
    centre = float(np.sum(f[near] * own[near]) / np.sum(own[near]))
    swing = float(np.sqrt(np.sum(own[np.abs(f - f[k]) < 0.25 * f[k]]) * (f[1] - f[0])))
    return Resonance(joint, centre, float(ratio[at]), coherence, swing)


def _spectra(x: Array, y: Array, rate: float, size: int) -> tuple[Array, Array, Array, Array]:
    """Return frequencies, power densities of both series (rows,), and the magnitude of their cross density by Welch's
    method: windows of `size` rows that overlap by half."""
    window = np.hanning(size)
    pieces = np.lib.stride_tricks.sliding_window_view(np.stack([x, y]), size, axis=-1)[:, ::size // 2]
    first, second = np.fft.rfft(window * (pieces - pieces.mean(axis=-1, keepdims=True)))
    scale = 2.0 / (rate * np.sum(window ** 2) * len(first))
    own, by = (scale * np.sum(np.abs(one) ** 2, axis=0) for one in (first, second))
    f = np.asarray(np.fft.rfftfreq(size, 1.0 / rate), dtype=float)
    return f, own, by, np.asarray(scale * np.abs(np.sum(first * second.conj(), axis=0)))
