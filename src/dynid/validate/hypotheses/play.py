"""Play: a link that follows its motor only at either end of a gap."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.recording import Samples
from dynid.recording.preparation.filters import differentiate, differentiate_twice, low_pass

_HARDLY_FILTERED = 0.05  # of the rate: cut-off where the samples name none


def lag_of_link(log: Samples, j: int, gap: float) -> tuple[Array, Array, Array]:
    """How far the link of joint j is off its motor's position (samples,), with two derivatives, when the gear has a gap
    (rad or m): what was logged is the motor's position. Filtered as the positions were."""
    off = np.zeros((len(log), 1))
    half = 0.5 * abs(gap)
    for start, stop in log.segments:
        off[start:stop, 0] = _play(log.q[start:stop, j].tolist(), half) - log.q[start:stop, j]
    cutoff = log.settings.get("cutoff")
    if not isinstance(cutoff, float | int) or not 0 < cutoff < 0.45 * log.rate:
        cutoff = _HARDLY_FILTERED * log.rate
    off = low_pass(off, float(cutoff), log.rate, 4, log.segments)
    return (off[:, 0], differentiate(off, log.rate, log.segments)[:, 0],
            differentiate_twice(off, log.rate, log.segments)[:, 0])


def _play(motor: list[float], half: float) -> Array:
    """Position of the link: where it was, unless the motor pushes it by one end of the gap."""
    link, out = motor[0], []
    for q in motor:
        if q - half > link:
            link = q - half
        elif q + half < link:
            link = q + half
        out.append(link)
    return np.array(out)
