"""States of terms with memory along a log, computed once for all of its samples in order."""

from __future__ import annotations

from threading import Lock
from weakref import WeakKeyDictionary

from dynid.arrays import Array, like
from dynid.model import LinearModel, complete
from dynid.model.term import MotionSegment
from dynid.recording import Samples

_FOUND_STATES: WeakKeyDictionary[Samples, WeakKeyDictionary[LinearModel, Array]] = WeakKeyDictionary()
_COMPUTING = Lock()


def memory_of(model: LinearModel, samples: Samples) -> Array | None:
    """Return the states of the model's terms at every sample (samples, channels), segment by segment; None for a
    model without memory."""
    whole = complete(model)
    if not whole.channels:
        return None
    with _COMPUTING:
        own = _FOUND_STATES.setdefault(samples, WeakKeyDictionary())
        if model not in own:
            found = like(samples.q, (len(samples), whole.channels))
            found[:] = 0.0
            for start, stop in samples.segments:
                rows = slice(int(start), int(stop))
                warm = None if samples.temperature is None else samples.temperature[rows]
                found[rows] = whole.memory(MotionSegment(samples.t[rows], samples.q[rows], samples.dq[rows],
                                                         samples.ddq[rows], warm))
            own[model] = found
        return own[model]
