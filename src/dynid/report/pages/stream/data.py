"""Data of the page on a stream."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.arrays import Array


@dataclass(frozen=True)
class Shown:
    """A detected change: time t (s) and row, its cause in words, and possible explanations: words, log of the
    evidence, and percent of the new residual that each explains."""

    t: float
    row: int
    cause: str
    explanations: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True, eq=False)
class StreamData:
    """Data of the page on a stream.

    Attributes:
        t: (looks,), times of the stored estimates, s.
        values, stds: (looks, base), estimates and standard errors, infinite if a parameter was not identifiable.
        names, units: (base,).
        restarts: times, s, each with the next look.
        changes: with their explanations.
        events: time (s) and sentence.
        method, samples: of the stream.
    """

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
