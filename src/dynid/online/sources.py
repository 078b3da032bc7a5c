"""Sources of a stream: blocks of time stamps, positions and torques.

A text source has one line per sample: JSON, {"t": 0.01, "q": [..], "tau": [..]}, or comma-separated numbers: time
stamp, positions, torques. Commanded positions are "reference" in JSON, or further numbers. A header is skipped.
"""

from __future__ import annotations

import errno
import json
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from dynid.arrays import Array
from dynid.errors import RecordingError
from dynid.files import open_text
from dynid.output_fields import output_fields
from dynid.recording import Recording

Complain = Callable[[str], None]

_POLL_INTERVAL = 0.05  # s between attempts to read a source that has no new data
_AT_ONCE = 256  # samples per block
_LONGEST_LINE = 1 << 16  # characters, the size of a datagram: a longer line is not a sample
_UDP_BUFFER_SECONDS = 5.0  # s of samples in the receive buffer of a UDP source while the estimate is computed
_USUAL_RATE = 1000.0  # Hz, if none is given
_DATAGRAM_OVERHEAD, _BYTES_PER_NUMBER = 768, 24  # bytes of overhead per datagram, and bytes per number
_LEAST_BUFFER, _MOST_BUFFER = 1 << 18, 1 << 28  # bytes
_FORCED_BUFFER_OPTION, _DROPS_OPTION = 33, 40  # SO_RCVBUFFORCE and SO_RXQ_OVFL of Linux, which Python does not define
_STEPS_FOR_PERIOD = 20  # time stamps after which the sample period is known
_PAUSE_LENGTH = 60.0  # s: a longer gap is a pause of the sender, not a loss


class Block(NamedTuple):
    """A block of samples from a source; empty while no data arrive.

    Attributes:
        t: Time stamps (m,), s.
        q: Positions (m, dof).
        tau: Torques (m, dof).
        reference: Commanded positions (m, dof), None if the source has none.
    """

    t: Array
    q: Array
    tau: Array
    reference: Array | None = None


def replayed(recording: Recording, speed: float, after: float = -np.inf) -> Iterator[Block]:
    """Yield the samples of a log that are later than `after` (s), at `speed` times real time, 0 for no waiting."""
    first = int(np.searchsorted(recording.t, after, side="right"))
    began, at = time.monotonic(), first

    def block(start: int, stop: int) -> Block:
        part = recording[start:stop]
        return Block(part.t, part.q, part.tau, part.reference)

    while at < len(recording):
        stop = min(at + _AT_ONCE, len(recording))
        if speed > 0.0:
            due = recording.t[first] + speed * (time.monotonic() - began)
            stop = min(stop, int(np.searchsorted(recording.t, due, side="right")))
            if stop <= at:
                time.sleep(_POLL_INTERVAL)
                yield block(0, 0)
                continue
        yield block(at, stop)
        at = stop


def read_lines(file: IO[str], dof: int, complain: Complain) -> Iterator[Block]:
    """Yield samples from the lines of a file until it ends, such as standard input."""
    whole = True
    while line := file.readline(_LONGEST_LINE):
        began, whole = whole, line.endswith("\n") or len(line) < _LONGEST_LINE
        if not whole or not began:
            if whole:
                complain(f"a line is longer than {_LONGEST_LINE} characters: skipped")
            continue
        sample = parsed(line, dof, complain)
        if sample is not None:
            yield sample


def growing(path: Path, dof: int, complain: Complain, patience: float) -> Iterator[Block]:
    """Yield samples from the lines of a growing file; ends after `patience` s without data."""
    try:
        file = open_text(path, errors="replace")
    except OSError as problem:
        raise RecordingError(f"cannot read {path}: {problem.strerror}", "the output of a program is read with --from -"
                             if problem.errno == errno.EINVAL else "", code="no-such-file") from None
    with file:
        kept, quiet = "", time.monotonic()
        while time.monotonic() - quiet < patience:
            text = file.read(_LONGEST_LINE)
            if not text:
                time.sleep(_POLL_INTERVAL)
                yield _nothing(dof)
                continue
            *lines, kept = (kept + text).split("\n")  # the last line may be incomplete
            kept = kept[:_LONGEST_LINE]  # and may never end
            for line in lines:
                sample = parsed(line, dof, complain)
                if sample is not None:
                    yield sample
            quiet = time.monotonic()  # set here, so that computing time does not count as silence of the source


@dataclass
class Losses:
    """Lost samples of a UDP source.

    Attributes:
        buffer: bytes of the granted receive buffer.
        dropped: datagrams that the system dropped because the buffer was full; None if the system does not count them.
        missing: samples that are missing between the time stamps of samples that arrived.
    """

    buffer: int = 0
    dropped: int | None = None
    missing: int = 0
    _period: float = 0.0  # s between two samples, once known
    _steps: list[float] = field(default_factory=list)
    _last: float | None = None

    def add(self, t: float) -> None:
        """Count the samples that were lost before a sample with time stamp t (s)."""
        step = 0.0 if self._last is None else t - self._last
        self._last = t
        if not 0.0 < step < _PAUSE_LENGTH:
            return
        if not self._period:
            self._steps.append(step)
            if len(self._steps) < _STEPS_FOR_PERIOD:
                return
            self._period = float(np.median(self._steps))
            self.missing = sum(max(0, round(one / self._period) - 1) for one in self._steps)
            self._steps.clear()
        else:
            self.missing += max(0, round(step / self._period) - 1)

    @property
    def sentence(self) -> str:
        """Sentence on the number of lost samples; empty if no sample was lost."""
        if not (self.missing or self.dropped):
            return ""
        known = "" if self.dropped is None else f", {self.dropped} datagrams were dropped by a full receive buffer"
        return f"{self.missing} samples are missing between received ones{known}"

    @output_fields(missing_samples=int | None, dropped_datagrams=int | None, buffer_bytes=int | None)
    def to_dict(self) -> dict[str, int | None]:
        """Return the counts of lost samples as plain data for JSON."""
        return {"missing_samples": self.missing, "dropped_datagrams": self.dropped, "buffer_bytes": self.buffer}


def datagrams(port: int, dof: int, complain: Complain, patience: float, host: str = "127.0.0.1",
              rate: float | None = None, losses: Losses | None = None) -> Iterator[Block]:
    """Yield samples from lines in UDP datagrams at a port; ends after `patience` s without data.

    Args:
        port: number of the UDP port.
        dof: number of joints.
        complain: function that receives a sentence on each line that cannot be read.
        patience: time without data after which the source ends, s.
        host: address at which to listen.
        rate: sampling rate, Hz, from which the size of the receive buffer is computed.
        losses: counter of lost samples, which is updated.
    """
    lost = Losses() if losses is None else losses
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        try:
            door.bind((host, port))
        except (OSError, OverflowError, UnicodeError) as problem:
            raise RecordingError(f"cannot listen at UDP port {port}: {problem}") from None
        lost.buffer = _sized(door, dof, rate or _USUAL_RATE)
        counts = _counts_drops(door)
        lost.dropped = 0 if counts else None
        door.settimeout(_POLL_INTERVAL)
        quiet = time.monotonic()
        while time.monotonic() - quiet < patience:
            try:
                content, ancillary, *_ = door.recvmsg(65536, socket.CMSG_SPACE(4) if counts else 0)
            except TimeoutError:
                yield _nothing(dof)
                continue
            for _level, kind, data in ancillary:
                if kind == _DROPS_OPTION and len(data) >= 4:
                    lost.dropped = int.from_bytes(data[:4], sys.byteorder)
            for line in content.decode("utf-8", errors="replace").splitlines():
                sample = parsed(line, dof, complain)
                if sample is not None:
                    lost.add(float(sample[0][0]))
                    yield sample
            quiet = time.monotonic()


def _sized(door: socket.socket, dof: int, rate: float) -> int:
    """Request a receive buffer for some seconds of samples at a rate (Hz), and return the granted bytes."""
    wanted = int(_UDP_BUFFER_SECONDS * rate * (_DATAGRAM_OVERHEAD + _BYTES_PER_NUMBER * (1 + 2 * dof)))
    wanted = min(max(wanted, _LEAST_BUFFER), _MOST_BUFFER)
    for option in (_FORCED_BUFFER_OPTION, socket.SO_RCVBUF):  # the first needs superuser rights
        try:
            door.setsockopt(socket.SOL_SOCKET, option, wanted)
            break
        except OSError:
            continue
    return door.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)


def _counts_drops(door: socket.socket) -> bool:
    """Request the number of dropped datagrams from the system; return whether it is available."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        door.setsockopt(socket.SOL_SOCKET, _DROPS_OPTION, 1)
    except OSError:
        return False
    return True


def parsed(line: str, dof: int, complain: Complain) -> Block | None:
    """Return one sample from a line of text; None for a header or a line that cannot be read. complain: function that
    receives a sentence on a line that cannot be read."""
    line = line.strip()
    if not line or line.startswith("#"):
        return None
    try:
        if line.startswith("{"):
            found = json.loads(line)
            t, q, tau = float(found["t"]), np.array(found["q"], dtype=float), np.array(found["tau"], dtype=float)
            given = found.get("reference")
            reference = None if given is None else np.array(given, dtype=float)
        else:
            numbers = np.array([float(part) for part in line.replace(";", ",").split(",")])
            t, q, tau, *more = float(numbers[0]), *np.split(numbers[1:], (dof, 2 * dof))
            reference = more[0] if len(more[0]) else None
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError):
        if any(c.isdigit() for c in line.split(",")[0][:1]) or line.startswith("{"):
            complain(f"a line could not be read: '{line[:60]}'")
        return None  # a header line
    if any(x is not None and x.shape != (dof,) for x in (q, tau, reference)):
        commanded = "" if reference is None else f" and {reference.size} commanded positions"
        complain(f"a line has {q.size} positions and {tau.size} torques{commanded}, but the robot has {dof} joints")
        return None
    return Block(np.array([t]), q[None], tau[None], None if reference is None else reference[None])


def _nothing(dof: int) -> Block:
    return Block(np.zeros(0), np.zeros((0, dof)), np.zeros((0, dof)))
