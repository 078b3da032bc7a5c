"""Cut-off frequency from the spectrum of the positions: where motion falls into the noise.

Positions of a machine fall steeply with frequency (12 dB an octave or more, as accelerations are finite), sensor
noise and the error of time stamps do not. So the noise floor begins where the spectrum stops falling.

What spoils least squares is noise in the acceleration, where a floor N (rad^2 / Hz) in the position grows with
the fourth power of frequency: a low-pass at f lets through N (2 pi)^4 f^5 / 5. A joint's cut-off is where that
reaches a thousandth of the motion's own acceleration power (a share that biases inertias by about as much), but
not more than twice the frequency where motion and noise are equal, beyond which nothing is left to keep. The common
one is the median over the joints that move, and at most a tenth of the rate, where three-point differences are 3 %
off, unless the motion itself reaches higher.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import NotPossibleError
from dynid.recording.preparation.filters import Segments
from dynid.signals import power_density

_FEWEST = 64  # samples below which a spectrum says nothing
_BINS = 120  # logarithmic frequency bins kept for the choice and for the report
_STOPS_FALLING = 6.0  # dB: a fall of less than this over two octaves is noise
_NOISE_SHARE = 1e-3  # of the acceleration's power
_MOST = 0.1  # of the rate


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Power spectral densities of the positions, and noise floor and cut-off of each joint.

    f (bins,) Hz; psd (bins, joints) rad^2 / Hz. floor (joints,): noise density, nan where none is reached.
    cutoff (joints,): Hz, nan for a joint that does not tell. common: the one to use, Hz.
    """

    f: Array
    psd: Array
    floor: Array
    cutoff: Array
    common: float

    def by_joint(self, names: tuple[str, ...]) -> dict[str, Any]:
        """{joint: {f, psd, noise_floor, cutoff}} in plain numbers, None for what is not known."""

        def plain(value: float) -> float | None:
            return float(value) if np.isfinite(value) else None

        return {name: {"f": [float(f"{x:.6g}") for x in self.f], "psd": [float(f"{x:.4g}") for x in self.psd[:, j]],
                       "noise_floor": plain(self.floor[j]), "cutoff": plain(self.cutoff[j])}
                for j, name in enumerate(names)}


def position_spectrum(q: Array, rate: float, segments: Segments, moving: Bools, source: str) -> Spectrum:
    """Spectrum of q (samples, joints) on a uniform grid, from its longest segment. moving: (joints,)."""
    start, stop = segments[int(np.argmax(segments[:, 1] - segments[:, 0]))]
    if stop - start < _FEWEST:
        raise NotPossibleError(f"{source}: the longest run without a gap has {stop - start} samples, a cut-off cannot "
                               f"be chosen from fewer than {_FEWEST}; record longer or give the cut-off")
    dof = q.shape[1]
    f, psd = _density(q[start:stop], rate)
    octave, level = np.log2(f), 10.0 * np.log10(psd)
    smooth = np.array([np.median(level[np.abs(octave - x) < 0.25], axis=0) for x in octave])
    floor, cutoff, needed = np.full(dof, np.nan), np.full(dof, np.nan), np.full(dof, np.nan)
    for j in np.flatnonzero(moving):
        floor[j], cutoff[j], needed[j] = _joint_cutoff(f, psd[:, j], smooth[:, j])
    reached = cutoff[np.isfinite(cutoff)]
    high = max(_MOST * rate, float(np.nanmedian(needed)) if np.any(np.isfinite(needed)) else 0.0)
    high = min(high, 0.25 * rate)
    common = min(float(np.median(reached)), high) if len(reached) else high
    return Spectrum(f, psd, floor, cutoff, float(f"{common:.3g}"))


def _density(q: Array, rate: float) -> tuple[Array, Array]:
    """Frequencies (bins,) and densities (bins, joints) of q (samples, joints) by Welch's method on its second
    difference, which keeps the large slow motion from leaking."""
    seconds = min(max(len(q) / rate / 8.0, 1.0), 4.0)
    window = min(len(q) - 2, max(int(seconds * rate), _FEWEST // 2))
    f, density = power_density(np.diff(q, 2, axis=0), rate, window)
    f, density = f[1:], density[1:] / (2.0 * np.sin(np.pi * f[1:, None] / rate)) ** 4
    edges = np.unique(np.round(np.geomspace(1, len(f) + 1, _BINS + 1)).astype(int)) - 1
    centre = np.array([np.exp(np.mean(np.log(f[a:b]))) for a, b in pairwise(edges)])
    level = np.array([np.median(density[a:b], axis=0) for a, b in pairwise(edges)])
    return centre, np.maximum(level, 1e-300)


def _joint_cutoff(f: Array, psd: Array, smooth: Array) -> tuple[float, float, float]:
    """Noise density, cut-off (Hz), nan each if no floor is reached; and the frequency up to which 99.9 % of the
    acceleration's power lies, doubled so that a filter there leaves it whole. smooth (bins,): psd in dB, its median
    over half an octave."""
    octave, width = np.log2(f), np.gradient(f)
    power = (2.0 * np.pi * f) ** 4 * psd * width
    top = int(np.argmax(smooth + 20.0 * np.log10(f)))  # where the velocity is strongest, the motion is
    for i in range(top, len(f)):
        if 4.0 * f[i] > f[-1]:
            break
        later = np.interp(octave[i] + np.array([1.0, 2.0]), octave, smooth)
        if np.all(smooth[i] - later < _STOPS_FALLING):
            break
    else:
        i = len(f)
    if i == len(f) or 4.0 * f[i] > f[-1]:
        return np.nan, np.nan, _reach(f, power)
    floor = float(np.median(smooth[(f >= 1.5 * f[i]) & (f <= 5.0 * f[i])]))
    above = np.flatnonzero(smooth[top:] < floor + 3.01)  # signal and noise equal: 3 dB above the noise alone
    equal = float(f[top + above[0]]) if len(above) else float(f[i])
    noise = 10.0 ** (floor / 10.0)
    motion = np.where(f <= equal, np.maximum((2.0 * np.pi * f) ** 4 * (psd - noise) * width, 0.0), 0.0)
    share = (5.0 * _NOISE_SHARE * float(np.sum(motion)) / (noise * (2.0 * np.pi) ** 4)) ** 0.2
    return noise, min(share, 2.0 * equal), _reach(f, motion)


def _reach(f: Array, power: Array) -> float:
    total = np.cumsum(power)
    return 2.0 * float(f[int(np.argmax(total >= 0.999 * total[-1]))])
