"""StreamData: what the page of a stream is made of."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.arrays import Array


@dataclass(frozen=True)
class Shown:
    """A change as the page shows it: t (s) and row after which it was, its cause in words, and what may explain it:
    words, log of the evidence, and percent of the new misfit."""

    t: float
    row: int
    cause: str
    explanations: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True, eq=False)
class StreamData:
    """What the page shows. t (looks,): s. values, stds (looks, base): the estimate at each look and its deviations,
    infinite where a parameter was not identified. names, units (base,). restarts: times, s, by the look after them.
    changes: with what explains each. events: time (s) and sentence. method, samples: of the stream."""

    title: str
    method: str
    samples: int
    t: Array
    values: Array
    stds: Array
    names: tuple[str, ...]
    units: tuple[str, ...]
    restarts: tuple[float, ...]
    changes: tuple[Shown, ...]
    events: tuple[tuple[float, str], ...]
