"""Resonance: a narrow oscillation of torque and motor that the model does not contain, as in a flexible joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array
from dynid.estimate import Estimate
from dynid.model import complete, flexible_joint_model
from dynid.order_statistics import median
from dynid.recording import Recording, Samples
from dynid.recording.sample_preparation import filtered_again
from dynid.signals import at_times

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


@dataclass(frozen=True)
class Resonance:
    """An oscillation of one joint.

    Attributes:
        frequency: Hz.
        above: ratio of its power to that of neighbouring frequencies.
        coherence: share of its power that the position explains.
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
    left = torque - np.concatenate(
        [
            model.inverse_dynamics(estimate.full, *(x[k : k + _SAMPLES_AT_ONCE] for x in (q, dq, ddq)))
            for k in range(0, len(part), _SAMPLES_AT_ONCE)
        ]
    )
    found = [_peak(name, left[:, j], position[:, j], part.rate, highest) for j, name in enumerate(model.joint_names)
             if name not in part.unmeasured and np.any(part.keep[:, j])]
    return tuple(one for one in found if one is not None)


def _stretch(samples: Samples) -> Samples | None:
    """Return the longest part of samples without a gap, up to a maximum length; None if it is too short."""
    start, stop = (int(x) for x in samples.segments[int(np.argmax(np.diff(samples.segments, axis=1)))])
    rows = slice(start, min(stop, start + _MAX_SPECTRUM_ROWS))
    if rows.stop - start < 0.5 * (_MIN_WINDOWS + 1) * _SPECTRUM_SECONDS * samples.rate:
        return None
    return samples[rows]


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
