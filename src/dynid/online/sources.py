"""Sources: where the samples of a stream come from, as blocks of stamps, positions and torques.

A text source gives a line a sample: JSON, {"t": 0.01, "q": [..], "tau": [..]}, or numbers with commas, the stamp, the
positions and the torques. A head of column names is passed over.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import numpy as np

from dynid.arrays import Array
from dynid.errors import RecordingError
from dynid.recording import Recording

Block = tuple[Array, Array, Array]  # t (m,), q (m, dof), tau (m, dof); m may be 0 while nothing comes
Complain = Callable[[str], None]

_TICK = 0.05  # s between looks at a source that has nothing
_AT_ONCE = 256  # samples of a block


def replayed(recording: Recording, speed: float, after: float = -np.inf) -> Iterator[Block]:
    """A log at `speed` times its own pace, 0 for as fast as possible; only samples later than `after` (s)."""
    first = int(np.searchsorted(recording.t, after, side="right"))
    began, at = time.monotonic(), first
    while at < len(recording):
        stop = min(at + _AT_ONCE, len(recording))
        if speed > 0.0:
            due = recording.t[first] + speed * (time.monotonic() - began)
            stop = min(stop, int(np.searchsorted(recording.t, due, side="right")))
            if stop <= at:
                time.sleep(_TICK)
                yield recording.t[:0], recording.q[:0], recording.tau[:0]
                continue
        yield recording.t[at:stop], recording.q[at:stop], recording.tau[at:stop]
        at = stop


def lines_of(file: IO[str], dof: int, complain: Complain) -> Iterator[Block]:
    """Samples from the lines of a file until it ends, such as standard input."""
    for line in file:
        sample = parsed(line, dof, complain)
        if sample is not None:
            yield sample


def growing(path: Path, dof: int, complain: Complain, patience: float) -> Iterator[Block]:
    """Samples from the lines of a file that another process writes; it ends when nothing came for `patience` s."""
    try:
        file = open(path, encoding="utf-8", errors="replace")
    except OSError as problem:
        raise RecordingError(f"cannot read {path}: {problem.strerror}") from None
    with file:
        kept, quiet = "", time.monotonic()
        while time.monotonic() - quiet < patience:
            text = file.read()
            if not text:
                time.sleep(_TICK)
                yield _nothing(dof)
                continue
            quiet = time.monotonic()
            *lines, kept = (kept + text).split("\n")  # the last one may not be whole yet
            for line in lines:
                sample = parsed(line, dof, complain)
                if sample is not None:
                    yield sample


def datagrams(port: int, dof: int, complain: Complain, patience: float, host: str = "127.0.0.1") -> Iterator[Block]:
    """Samples from lines in UDP datagrams at a port; it ends when nothing came for `patience` s."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        try:
            door.bind((host, port))
        except (OSError, OverflowError) as problem:
            raise RecordingError(f"cannot listen at UDP port {port}: {problem}") from None
        door.settimeout(_TICK)
        quiet = time.monotonic()
        while time.monotonic() - quiet < patience:
            try:
                text = door.recv(65536).decode("utf-8", errors="replace")
            except TimeoutError:
                yield _nothing(dof)
                continue
            quiet = time.monotonic()
            for line in text.splitlines():
                sample = parsed(line, dof, complain)
                if sample is not None:
                    yield sample


def parsed(line: str, dof: int, complain: Complain) -> Block | None:
    """One sample from a line of text; None, with a complaint, for one that cannot be read."""
    line = line.strip()
    if not line or line.startswith("#"):
        return None
    try:
        if line.startswith("{"):
            found = json.loads(line)
            t, q, tau = float(found["t"]), np.array(found["q"], dtype=float), np.array(found["tau"], dtype=float)
        else:
            numbers = np.array([float(part) for part in line.replace(";", ",").split(",")])
            t, q, tau = float(numbers[0]), numbers[1:1 + dof], numbers[1 + dof:]
    except (ValueError, KeyError, TypeError, IndexError):
        if any(c.isdigit() for c in line.split(",")[0][:1]) or line.startswith("{"):
            complain(f"a line could not be read: '{line[:60]}'")
        return None  # a head of names
    if q.shape != (dof,) or tau.shape != (dof,):
        complain(f"a line has {q.size} positions and {tau.size} torques, the robot has {dof} joints")
        return None
    return np.array([t]), q[None], tau[None]


def standard_input(dof: int, complain: Complain) -> Iterator[Block]:
    """Samples from standard input."""
    return lines_of(sys.stdin, dof, complain)


def _nothing(dof: int) -> Block:
    return np.zeros(0), np.zeros((0, dof)), np.zeros((0, dof))
