"""Whole stretches of time cut out of long data, for what need not see every row and would fill the memory if it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from dynid.arrays import Ints
from dynid.recording import Samples
from dynid.recording.decimate import reach
from dynid.regression.residuals import PIECE

ENOUGH_ROWS = 131072  # rows at full rate that are kept of longer data
_SECONDS = 15.0  # s of a stretch at least: long against the filters' ends and the periods that spectra resolve
_FEWEST = 4  # stretches, also where they are long


def stretches(data: Sequence[Samples]) -> dict[int, Samples]:
    """Return the logs with about `ENOUGH_ROWS` rows in stretches that are spread over all of them.

    The stretches of a log are the segments of new, small samples in memory. Rows within the reach of a filter from a
    new border are not kept. Data with fewer than twice as many rows, or with signals of filtered rows, stay as they
    are.

    Args:
        data: the logs.

    Returns:
        The samples by the place of their log in `data`; a log of which no stretch is kept is left out.
    """
    if sum(map(len, data)) < 2 * ENOUGH_ROWS or any(samples.filtered is not None for samples in data):
        return dict(enumerate(data))
    size = min(max(PIECE, round(_SECONDS * max(samples.rate for samples in data))), ENOUGH_ROWS)
    every = []
    for k, samples in enumerate(data):
        for start, stop in samples.segments:
            edges = np.linspace(start, stop, max(1, (stop - start) // size) + 1).round().astype(int)
            every += [(k, low, high, start, stop) for low, high in pairwise(edges)]
    cuts = every[::-(-len(every) // max(ENOUGH_ROWS // size, _FEWEST))]
    found = {}
    for k, samples in enumerate(data):
        own = np.array([cut[1:] for cut in cuts if cut[0] == k], dtype=np.int64)
        if len(own):
            found[k] = _cut(samples, own)
    return found


def _cut(samples: Samples, cuts: Ints) -> Samples:
    """Samples of some rows alone; cuts (n, 4): first row and row behind the last, and those of their segment."""
    def taken(name: str) -> Any:
        signal = getattr(samples, name)
        return None if signal is None else np.concatenate([signal[a:b] for a, b in cuts[:, :2]])

    ends = np.cumsum(cuts[:, 1] - cuts[:, 0])
    starts = np.concatenate([[0], ends[:-1]])
    border = round(float(samples.settings.get("border") or 0.0) * samples.rate)
    border = max(border, 0 if samples.decimation is None else reach(samples.decimation))
    keep = np.concatenate([samples.keep[a:b] for a, b in cuts[:, :2]])
    for (low, high, first, last), start, end in zip(cuts, starts, ends, strict=True):
        margin = min(border, (end - start) // 4)
        keep[start:start + (margin if low > first else 0)] = False
        keep[end - (margin if high < last else 0):end] = False
    names = ("t", "q", "dq", "ddq", "tau", "raw_tau", "temperature", "wrench")
    return replace(samples, **{name: taken(name) for name in names}, keep=keep,
                   segments=np.column_stack([starts, ends]).astype(np.int64))
