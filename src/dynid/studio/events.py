"""Server-sent events: changes are sent to every open page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

_KEEPALIVE_SECONDS = 15.0  # s between signs of life
_MAX_QUEUED_EVENTS = 200  # events kept for a page that does not read; then it starts anew


class EventHub:
    """The open pages and their event queues."""

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[bytes | None]] = set()
        self._closed = False

    def send(self, name: str, facts: Mapping[str, Any]) -> None:
        """Send an event to all pages."""
        text = event(name, facts)
        for queue in list(self._listeners):
            if queue.qsize() >= _MAX_QUEUED_EVENTS:
                self._listeners.discard(queue)
                queue.put_nowait(None)
            else:
                queue.put_nowait(text)

    def close(self) -> None:
        """End the streams of all pages, and refuse new ones."""
        self._closed = True
        for queue in self._listeners:
            queue.put_nowait(None)
        self._listeners.clear()

    async def listen(self, first: list[bytes]) -> AsyncIterator[bytes]:
        """Yield the events of one page, starting with `first`."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._listeners.add(queue)
        try:
            for text in first:
                yield text
            while not self._closed or not queue.empty():
                try:
                    text_or_end = await asyncio.wait_for(queue.get(), _KEEPALIVE_SECONDS)
                except TimeoutError:
                    text_or_end = event("ping", {})
                if text_or_end is None:
                    return
                yield text_or_end
        finally:
            self._listeners.discard(queue)


def event(name: str, facts: Mapping[str, Any]) -> bytes:
    """Return one server-sent event as text."""
    return f"event: {name}\ndata: {json.dumps(facts)}\n\n".encode()
