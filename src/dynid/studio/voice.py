"""Messages of a worker to the server: one line of JSON each, and the bytes of an answer after its line."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import IO, Any


class ProgressChannel:
    """Channel for progress messages and the answer of a task; thread-safe."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out, self._lock = out, threading.Lock()

    def say(self, kind: str, body: bytes = b"", **facts: Any) -> None:
        """Send one message to the server."""
        head = {"kind": kind, **facts, **({"bytes": len(body)} if body else {})}
        with self._lock:
            self._out.write(json.dumps(head, allow_nan=False).encode() + b"\n" + body)
            self._out.flush()

    def progress(self, sentence: str, share: float | None = None, data: Mapping[str, Any] | None = None) -> None:
        """Send the progress of the task to the server."""
        facts: dict[str, Any] = {"sentence": sentence, "share": share, **({} if data is None else {"data": data})}
        self.say("progress", **facts)
