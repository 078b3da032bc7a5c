"""Logs at the rows that regression uses alone, for questions that are asked many times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.recording import Samples
from dynid.regression.equations import log_pieces, piece_entries


def thinned(logs: tuple[Samples, ...]) -> tuple[Samples, ...]:
    """The same logs without the rows between those that decimation leaves: torques as decimation makes them, the motion
    as it is at the same instants.

    A fit to them takes a small part of the time. Columns with jumps, such as signs, are not low-passed as the torques
    are, so what is found with them is to be judged with the logs themselves.
    """
    return tuple(_thinned(log) for log in logs)


def every(log: Samples, step: int) -> Samples:
    """One in `step` rows of a log without decimation, as one segment: for what does not look at neighbours in time."""
    rows = np.arange(0, len(log), step)
    return replace(log, t=log.t[rows], q=log.q[rows], dq=log.dq[rows], ddq=log.ddq[rows], tau=log.tau[rows],
                   keep=log.keep[rows], raw_tau=None, segments=np.array([[0, len(rows)]]), rate=log.rate / step)


def _thinned(log: Samples) -> Samples:
    if log.decimation is None:
        return log
    pieces = [piece for piece in log_pieces(log) if len(piece.rows)]
    rows = np.concatenate([np.array(piece.rows) for piece in pieces])
    tau = np.concatenate([piece_entries(log, piece, lambda full: log.tau[full].T).T for piece in pieces])
    counts = [sum(len(piece.rows) for piece in pieces if piece.segment == (int(a), int(b))) for a, b in log.segments]
    ends = np.cumsum(counts)
    segments = np.column_stack([np.concatenate([[0], ends[:-1]]), ends]).astype(np.int64)
    return replace(log, t=log.t[rows], q=log.q[rows], dq=log.dq[rows], ddq=log.ddq[rows], tau=tau, keep=log.keep[rows],
                   raw_tau=None, segments=segments[np.array(counts) > 0], rate=log.rate / log.decimation.total,
                   decimation=None)
