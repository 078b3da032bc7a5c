"""Time limit of requests: a connection is closed if a request is not complete in time.

uvicorn limits only the time between two requests. Here the time counts from the moment at which a request could start
until its head and body are complete; every received byte adds the time of a slow network.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class TimedProtocol(H11Protocol):
    """HTTP connections of the studio.

    Attributes:
        seconds: time limit of a request without a body, s.
        slowest: minimum rate of a body, bytes per second.
    """

    seconds = 10.0
    slowest = 64 << 10

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._timer: asyncio.TimerHandle | None = None
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._arrived += len(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    @property
    def _incomplete(self) -> bool:
        """Whether a request is expected or incomplete, other than the next one of a connection that is kept open."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and self.timeout_keep_alive_task is None

    def _watch(self) -> None:
        if not self._incomplete:
            self._forget()
        elif self._timer is None:
            self._began, self._arrived = self.loop.time(), 0
            self._timer = self.loop.call_later(self.seconds, self._check)

    def _check(self) -> None:
        """Close the connection, or check again after the time that the bytes received meanwhile add."""
        self._timer = None
        if not self._incomplete or self.transport.is_closing():
            return
        if self.flow.read_paused:  # it is the studio that is slow
            self._began, self._arrived = self.loop.time(), 0
        end = self._began + self.seconds + self._arrived / self.slowest
        if self.loop.time() < end:
            self._timer = self.loop.call_at(end, self._check)
        else:
            self.transport.abort()

    def _forget(self) -> None:
        timer: Any = self._timer
        if timer is not None:
            timer.cancel()
        self._timer = None
