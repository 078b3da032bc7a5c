"""Backlash: a link that follows its motor only at either end of a gap."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, Ints
from dynid.kernel_store import njit
from dynid.recording import Samples
from dynid.recording.preparation.filters import differentiate, differentiate_twice, low_pass

_HARDLY_FILTERED = 0.05  # of the rate: cut-off where the samples name none


def position_cutoff(log: Samples) -> float:
    """Return the cut-off (Hz) of the positions of samples, or one that hardly filters if they have none."""
    cutoff = log.settings.get("cutoff")
    return float(cutoff) if isinstance(cutoff, float | int) and 0 < cutoff < 0.45 * log.rate \
        else _HARDLY_FILTERED * log.rate


def lag_of_link(q: Array, gap: float, rate: float, cutoff: float, segments: Ints) -> tuple[Array, Array, Array]:
    """Return the difference of a link's position from its motor's q (samples,), with two derivatives, for a gap in
    the gear (rad or m). The logged position is the motor's. Low-passed at the cut-off (Hz) of the positions."""
    off = np.zeros((len(q), 1))
    for start, stop in segments:
        off[start:stop, 0] = _play(q[start:stop], 0.5 * abs(gap)) - q[start:stop]
    off = low_pass(off, cutoff, rate, 4, segments)
    return off[:, 0], differentiate(off, rate, segments)[:, 0], differentiate_twice(off, rate, segments)[:, 0]


def _play(motor: Array, half: float) -> Array:
    """Return the position of the link (samples,): unchanged unless the motor pushes it at one end of the gap."""
    link = np.array(motor)
    _follow(link, float(half))
    return link


@njit(cache=True, nogil=True)
def _follow(x: Array, half: float) -> None:
    """Replace the motor's positions x (samples,) by the link's."""
    link = x[0] if len(x) else 0.0
    for k in range(len(x)):
        link = min(max(link, x[k] - half), x[k] + half)
        x[k] = link
