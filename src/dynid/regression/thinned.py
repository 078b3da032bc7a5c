"""Some of the data, spread over all of them, for what need not see every row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.recording import Samples

_STRETCH = 2000  # rows that are taken together: long against a filter's reach


def thinned(samples: Sequence[Samples], enough: int, stretch: int = _STRETCH) -> tuple[Samples, ...]:
    """The samples with stretches of time spread over all of them, about `enough` rows, each `stretch` long; all where
    there are no more."""
    def rows(part: Samples) -> int:
        return int(np.sum(np.diff(part.segments, axis=1))) // (part.decimation.total if part.decimation else 1)

    every = -(-sum(rows(part) for part in samples) // enough)
    if every <= 1:
        return tuple(samples)
    thin = []
    for part in samples:
        size = stretch * (part.decimation.total if part.decimation else 1)
        cuts = [(a, min(a + size, stop)) for start, stop in part.segments for a in range(int(start), int(stop), size)]
        thin.append(replace(part, segments=np.array(cuts[::every], dtype=np.int64)))
    return tuple(thin)
