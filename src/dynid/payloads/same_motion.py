"""Torque errors of the same motion without load, at the times of the loaded log (Ardiani, eq. 4.4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.estimate import Estimate
from dynid.recording import Samples
from dynid.signals import fast_length

# Of a motion's size: how far the same motion is off at most, root mean square; loads pull it away.
MAX_MOTION_DIFFERENCE = 0.2


def same_motion_torques(estimate: Estimate, loaded: Samples, others: Sequence[Samples]) -> tuple[Array, float]:
    """Return torques (samples, dof) of the loaded log corrected by the model error along the same motion without load,
    and the time shift between the two, s.

    y_wl - (y_wol - W beta): for equal motions, W beta cancels in the difference to the unloaded model, which gives eq.
    4.4; for slightly different motions the model corrects the difference.
    """
    found = [(*_shift(loaded, other), other) for other in others]
    if not found:
        raise NotPossibleError("method 'same-motion' needs a log of the same motion without load",
                               code="no-same-motion")
    off, rows, other = min(found, key=lambda item: item[0])
    if off > MAX_MOTION_DIFFERENCE:
        raise NotPossibleError(
            "method 'same-motion' needs a log of the same motion without load: "
            f"the nearest, {other.source}, differs by {100 * off:.0f} % of the "
            f"motion of {loaded.source}", "record it, or use method 'together'", code="no-same-motion")
    error = other.tau - estimate.predict(other.q, other.dq, other.ddq)
    error[~other.keep] = 0.0
    at = np.clip(np.arange(len(loaded)) - rows, 0, len(other) - 1)
    return loaded.tau - error[at], rows / loaded.rate


def _shift(loaded: Samples, other: Samples) -> tuple[float, int]:
    """Return the distance of two motions relative to their size, and by how many rows the loaded one is delayed."""
    if loaded.dof != other.dof or abs(loaded.rate / other.rate - 1.0) > 1e-6:
        return np.inf, 0
    size = fast_length(len(loaded) + len(other))
    total, middle = np.zeros(size), loaded.q.mean(axis=0)
    for j in range(loaded.dof):
        spectra = [np.fft.rfft(x.q[:, j] - middle[j], size) for x in (loaded, other)]
        total += np.fft.irfft(spectra[0] * np.conj(spectra[1]), size)
    rows = int(np.argmax(total))
    rows = rows if rows < len(loaded) else rows - size
    low, high = max(0, rows), min(len(loaded), len(other) + rows)
    if high - low < 0.5 * len(loaded):
        return np.inf, 0
    apart = loaded.q[low:high] - other.q[low - rows:high - rows]
    return float(np.sqrt(np.mean(apart ** 2) / np.mean((loaded.q - middle) ** 2))), rows
