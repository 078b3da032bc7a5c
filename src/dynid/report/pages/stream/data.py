"""StreamData: what the page of a stream is made of."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.arrays import Array


@dataclass(frozen=True, eq=False)
class StreamData:
    """What the page shows. t (looks,): s. values, stds (looks, base): the estimate at each look and its deviations,
    infinite where a parameter was not identified. names, units (base,). restarts: times, s, by the look after them.
    changes: what explains each, in words. events: time (s) and sentence. method, samples: of the stream."""

    title: str
    method: str
    samples: int
    t: Array
    values: Array
    stds: Array
    names: tuple[str, ...]
    units: tuple[str, ...]
    restarts: tuple[float, ...]
    changes: tuple[str, ...]
    events: tuple[tuple[float, str], ...]
