"""How a worker speaks to the server: a line of JSON a message, with the bytes of an answer behind it."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import IO, Any


class ProgressChannel:
    """How a task speaks: messages on the way, and the answer; several threads may."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out, self._lock = out, threading.Lock()

    def say(self, kind: str, body: bytes = b"", **facts: Any) -> None:
        """One message."""
        head = {"kind": kind, **facts, **({"bytes": len(body)} if body else {})}
        with self._lock:
            self._out.write(json.dumps(head, allow_nan=False).encode() + b"\n" + body)
            self._out.flush()

    def progress(self, sentence: str, share: float | None = None, data: Mapping[str, Any] | None = None) -> None:
        """How far the task is."""
        facts: dict[str, Any] = {"sentence": sentence, "share": share, **({} if data is None else {"data": data})}
        self.say("progress", **facts)
