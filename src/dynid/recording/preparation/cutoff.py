"""Choice of a cut-off frequency from the spectrum of the positions.

The spectrum of a motion decreases steeply with frequency (12 dB per octave or more, as accelerations are finite).
Sensor noise and errors of time stamps do not decrease. The noise floor therefore begins where the spectrum stops
decreasing.

Least squares is biased by noise of the acceleration. A position noise of density N (rad^2 / Hz) grows there with the
fourth power of the frequency, so a low-pass at f passes N (2 pi)^4 f^5 / 5. The cut-off of a joint is the frequency at
which this reaches a thousandth of the motion's acceleration power, which biases inertias by about the same share. It is
at most twice the frequency at which motion and noise are equal. The common cut-off is the median over the moving
joints. It is at most a tenth of the rate, where three-point differences have an error of 3 %, unless the motion itself
has higher frequencies.

Noise that decreases with frequency has no floor. The floor is then that of the encoder's steps, step^2 / (6 rate).
Without steps the cut-off is at most five octaves above the motion's band.

This uses positions alone; `dynid.choose_cutoff` finds the cut-off that predicts torques best.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import NotPossibleError
from dynid.order_statistics import distinct, median
from dynid.plain import finite
from dynid.recording.preparation.filters import Segments
from dynid.signals import power_density

MIN_SPECTRUM_SAMPLES = 64  # samples below which a spectrum is not informative
_SPECTRUM_BINS = 120  # logarithmic frequency bins kept for the choice and for the report
_STOPS_FALLING = 6.0  # dB: a smaller decrease over two octaves is noise
_NOISE_SHARE = 1e-3  # share of the acceleration's power
MAX_CUTOFF_SHARE_OF_RATE = 0.1  # share of the sampling rate
_KEPT_POWER = 0.999  # share of the acceleration's power that a filter must keep
_MOTION_POWER = 0.99  # share of a velocity's power within the motion's band
_BAND_WINDOW = 20.0  # s: window for the motion's band
_NOISE_BAND_START = 32.0  # times the motion's band, above which there is only noise
_AT_ONCE = 262_144  # rows of a position processed at once
_MIN_ENCODER_STEP_SHARE = 0.95  # share of position changes within a twentieth of a multiple of the step


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Power spectral densities of the positions, with noise floor and cut-off of each joint.

    Attributes:
        f: (bins,), Hz.
        psd: (bins, joints), rad^2 / Hz or m^2 / Hz.
        floor: (joints,), noise density, nan if no floor is found.
        cutoff: (joints,), Hz, nan if undetermined.
        common: cut-off to use for all joints, Hz.
        band: bandwidth of the motion, Hz, median over the moving joints.
    """

    f: Array
    psd: Array
    floor: Array
    cutoff: Array
    common: float
    band: float

    def by_joint(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Return {joint: {f, psd, noise_floor, cutoff}} in plain numbers, None for unknown values."""
        return {name: self._tables[j] for j, name in enumerate(names)}

    @cached_property
    def _tables(self) -> list[dict[str, Any]]:
        """The tables of `by_joint`, computed once for all cut-offs that are tried."""
        f = [float(f"{x:.6g}") for x in self.f.tolist()]
        return [{"f": f, "psd": [float(f"{x:.4g}") for x in self.psd[:, j].tolist()],
                 "noise_floor": finite(self.floor[j]), "cutoff": finite(self.cutoff[j])}
                for j in range(self.psd.shape[1])]


def position_spectrum(q: Array, rate: float, segments: Segments, moving: Bools, source: str) -> Spectrum:
    """Return the spectrum of positions q (samples, joints) in their longest segment; moving: mask (joints,)."""
    start, stop = segments[int(np.argmax(segments[:, 1] - segments[:, 0]))]
    if stop - start < MIN_SPECTRUM_SAMPLES:
        raise NotPossibleError(f"{source}: the longest run without a gap has {stop - start} samples, but choosing a "
                               f"cut-off needs at least {MIN_SPECTRUM_SAMPLES}; record longer or give the cut-off with "
                               "--set prepare.cutoff=N")
    dof = q.shape[1]
    f, psd = _density(q[start:stop], rate)
    octave, level = np.log2(f), 10.0 * np.log10(psd)
    smooth = np.array([median(level[np.abs(octave - x) < 0.25], axis=0) for x in octave])
    floor, cutoff, needed = np.full(dof, np.nan), np.full(dof, np.nan), np.full(dof, np.nan)
    for j in np.flatnonzero(moving):
        floor[j], cutoff[j], needed[j] = _joint_cutoff(f, psd[:, j], smooth[:, j],
                                                       encoder_step(q[start:stop, j]) ** 2 / (6.0 * rate))
    reached, wide = cutoff[np.isfinite(cutoff)], needed[~np.isnan(needed)]
    band = float(median(motion_bands(q[start:stop], rate)[moving]))
    high = max(MAX_CUTOFF_SHARE_OF_RATE * rate, float(median(wide)) if len(wide) else 0.0)
    high = min(high, 0.25 * rate)
    common = min(float(median(reached)) if len(reached) else _NOISE_BAND_START * band, high)
    return Spectrum(f, psd, floor, cutoff, float(f"{common:.3g}"), band)


def motion_bands(q: Array, rate: float) -> Array:
    """Return frequencies (joints,), Hz, below which 99 % of the velocity's power of the motion lies.

    Per octave, the velocity power of a motion decreases and that of noise increases: the motion ends at the minimum.
    Long windows resolve slow motion.
    """
    f, psd = power_density(q, rate, min(len(q), int(_BAND_WINDOW * rate)))
    f, psd = f[1:], psd[1:]
    half_octave = np.floor(2.0 * np.log2(f / f[0]) + 1e-9).astype(int)
    _, first = np.unique(half_octave, return_index=True)
    first = first[:-1] if len(first) > 1 else first  # the last window is incomplete
    position, velocity = (np.add.reduceat(x, first, axis=0) for x in (psd, f[:, None] ** 2 * psd))
    bands = []
    for j in range(q.shape[1]):
        top = int(np.argmax(position[:, j]))
        end = first[top + int(np.argmin(velocity[top:, j]))] + 1
        bands.append(_reach(f[:end], f[:end] ** 2 * psd[:end, j], _MOTION_POWER))
    return np.array(bands)


def encoder_step(q: Array) -> float:
    """Return the encoder step of which all changes of a position (samples,) are multiples; 0 if there is none."""
    def changes() -> Iterator[Array]:
        for start in range(0, len(q) - 1, _AT_ONCE):
            found = np.abs(np.diff(q[start:start + _AT_ONCE + 1]))
            yield found[found > 0.0]

    step = min((float(found.min()) for found in changes() if len(found)), default=0.0)
    if not step:
        return 0.0
    whole = count = 0
    for found in changes():
        counts = found / step
        whole, count = whole + int(np.sum(np.abs(counts - np.round(counts)) < 0.05)), count + len(counts)
    return step if whole / count >= _MIN_ENCODER_STEP_SHARE else 0.0


def _density(q: Array, rate: float) -> tuple[Array, Array]:
    """Return frequencies (bins,) and densities (bins, joints) of q (samples, joints) by Welch's method.

    The method is applied to the second difference of q, to avoid leakage of the large slow motion.
    """
    seconds = min(max(len(q) / rate / 8.0, 1.0), 4.0)
    window = min(len(q) - 2, max(int(seconds * rate), MIN_SPECTRUM_SAMPLES // 2))
    f, density = power_density(q, rate, window, differences=2)
    f, density = f[1:], density[1:] / (2.0 * np.sin(np.pi * f[1:, None] / rate)) ** 4
    edges = distinct(np.round(np.geomspace(1, len(f) + 1, _SPECTRUM_BINS + 1)).astype(int)) - 1
    centre = np.array([np.exp(np.mean(np.log(f[a:b]))) for a, b in pairwise(edges)])
    level = np.array([median(density[a:b], axis=0) for a, b in pairwise(edges)])
    return centre, np.maximum(level, 1e-300)


def _joint_cutoff(f: Array, psd: Array, smooth: Array, counted: float) -> tuple[float, float, float]:
    """Return noise density and cut-off (Hz) of a joint, nan if there is no floor, and the bandwidth of its
    acceleration.

    The bandwidth is twice the frequency below which 99.9 % of the acceleration's power lies, so that a filter there
    does not change it. smooth (bins,): running median of psd over half an octave, dB. counted: noise density of the
    encoder's steps, used if no floor is found.
    """
    octave, width = np.log2(f), np.gradient(f)
    power = (2.0 * np.pi * f) ** 4 * psd * width
    top = int(np.argmax(smooth + 20.0 * np.log10(f)))  # the motion is where the velocity is strongest
    for i in range(top, len(f)):
        if 4.0 * f[i] > f[-1]:
            break
        later = np.interp(octave[i] + np.array([1.0, 2.0]), octave, smooth)
        if np.all(smooth[i] - later < _STOPS_FALLING):
            break
    else:
        i = len(f)
    if i < len(f) and 4.0 * f[i] <= f[-1]:
        floor = float(median(smooth[(f >= 1.5 * f[i]) & (f <= 5.0 * f[i])]))
    elif counted > 0.0:
        i, floor = len(f) - 1, 10.0 * float(np.log10(counted))
    else:
        return np.nan, np.nan, 2.0 * _reach(f, power, _KEPT_POWER)
    above = np.flatnonzero(smooth[top:] < floor + 3.01)  # equal signal and noise are 3 dB above the noise alone
    equal = float(f[top + above[0]]) if len(above) else float(f[i])
    noise = 10.0 ** (floor / 10.0)
    motion = np.where(f <= equal, np.maximum((2.0 * np.pi * f) ** 4 * (psd - noise) * width, 0.0), 0.0)
    share = (5.0 * _NOISE_SHARE * float(np.sum(motion)) / (noise * (2.0 * np.pi) ** 4)) ** 0.2
    return noise, min(share, 2.0 * equal), 2.0 * _reach(f, motion, _KEPT_POWER)


def _reach(f: Array, power: Array, share: float) -> float:
    """Return the frequency (Hz) below which a share of the power (bins,) of a spectrum lies."""
    total = np.cumsum(power)
    return float(f[int(np.argmax(total >= share * total[-1]))])
