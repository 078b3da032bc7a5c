"""States of terms with memory along a log, computed once for all of its samples in order."""

from __future__ import annotations

from threading import Lock
from typing import Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from dynid.arrays import Array, like
from dynid.model import LinearModel
from dynid.model.term import MotionSegment
from dynid.recording import Samples


@runtime_checkable
class Remembers(Protocol):
    """A model with columns that need times or the order of samples, such as `Model`."""

    @property
    def channels(self) -> int: ...

    def memory(self, motion: MotionSegment) -> Array: ...


_FOUND_STATES: WeakKeyDictionary[Samples, WeakKeyDictionary[Remembers, Array]] = WeakKeyDictionary()
_COMPUTING = Lock()


def memory_of(model: LinearModel, samples: Samples) -> Array | None:
    """Return the states of the model's terms at every sample (samples, channels), segment by segment; None for a
    model without memory."""
    if not isinstance(model, Remembers) or not model.channels:
        return None
    with _COMPUTING:
        own = _FOUND_STATES.setdefault(samples, WeakKeyDictionary())
        if model not in own:
            found = like(samples.q, (len(samples), model.channels))
            found[:] = 0.0
            for start, stop in samples.segments:
                rows = slice(int(start), int(stop))
                found[rows] = model.memory(MotionSegment(samples.t[rows], samples.q[rows], samples.dq[rows],
                                                  samples.ddq[rows],
                                                  None if samples.temperature is None else samples.temperature[rows]))
            own[model] = found
        return own[model]
