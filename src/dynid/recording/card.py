"""HTML summary of a recording for notebooks: duration, rate, and range and torque of each joint."""

from __future__ import annotations

import numpy as np

from dynid.html_tables import card, paragraph, table
from dynid.recording.recording import Recording

_CARD_HEADER = ("joint", "lowest, rad or m", "highest", "torque rms, N m or N", "largest")


def recording_card(recording: Recording) -> str:
    """Return the HTML of a recording: one row per joint, then its notes."""
    names = recording.joints or tuple(f"joint {j + 1}" for j in range(recording.dof))
    numbers = np.column_stack([recording.q.min(axis=0), recording.q.max(axis=0),
                               np.sqrt(np.mean(np.square(recording.tau), axis=0)), np.abs(recording.tau).max(axis=0)])
    rows = [(name, *(f"{value:.4g}" for value in row)) for name, row in zip(names, numbers, strict=True)]
    return card(repr(recording)[1:-1], table(_CARD_HEADER, rows), *map(paragraph, recording.notes))
