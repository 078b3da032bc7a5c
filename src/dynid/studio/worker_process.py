"""The server's side of a worker: a process that is sent one line of JSON per task and answers line by line.

A message of the worker is a line of JSON; its `bytes` is the number of raw bytes that follow, which the server forwards
unchanged.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dynid.studio.errors import Refusal

Heard = Callable[[dict[str, Any]], None]
_MAX_MESSAGE_BYTES = 1 << 20  # bytes of a message at most
_UNPACKED_MB = "2048"  # MB that a log may unpack to, see docs/logs.md; the user's own setting has priority
_STUDIO_STOPPED = "the studio was stopped"
_WORKER_ENDED = "the computing process ended unexpectedly; it may have run out of memory, or was ended"


class WorkerProcess:
    """A worker that is started when needed, and again after it ended; it answers one request at a time."""

    def __init__(self, folder: Path, trusted: Path | None, temporary: Path) -> None:
        self.folder, self.trusted, self.temporary = folder, trusted, temporary
        self._process: asyncio.subprocess.Process | None = None
        self._turn, self._starting = asyncio.Lock(), asyncio.Lock()
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Id of the worker's process, or None if no process runs."""
        return None if self._process is None or self._process.returncode is not None else self._process.pid

    async def start(self) -> asyncio.subprocess.Process:
        """Return the process, started if needed. The process has its own process group, so that all its children can be
        ended at once; its files are private to the user."""
        async with self._starting:
            if self._closed:
                raise Refusal(503, _STUDIO_STOPPED)
            if self._process is None or self._process.returncode is not None:
                arguments = [str(self.folder), *([] if self.trusted is None else [str(self.trusted)])]
                environment = {"DYNID_MAX_UNPACKED_MB": _UNPACKED_MB, **os.environ, "TMPDIR": str(self.temporary),
                               "OPENBLAS_NUM_THREADS": "1"}
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable, "-P", "-m", "dynid.studio.worker", *arguments, limit=_MAX_MESSAGE_BYTES,
                    cwd=self.folder, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                    start_new_session=True, umask=0o077, env=environment)
            return self._process

    async def ask(self, task: str, params: Mapping[str, Any], heard: Heard | None = None) -> bytes:
        """Return the answer to a task as JSON. heard: function that is called with each message before the answer."""
        async with self._turn:
            process = await self.start()
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.write(json.dumps({"task": task, "params": params}).encode() + b"\n")
                await process.stdin.drain()
                while True:
                    message = json.loads(await process.stdout.readuntil(b"\n"))
                    body = await process.stdout.readexactly(message.get("bytes", 0))
                    if message["kind"] == "done":
                        return body
                    if message["kind"] == "failed":
                        raise Refusal.from_error(message["error"])
                    if heard is not None:
                        heard(message)
            except (asyncio.IncompleteReadError, BrokenPipeError, ConnectionResetError):
                await self.stop()
                if self._closed:
                    raise Refusal(503, _STUDIO_STOPPED) from None
                raise Refusal(500, _WORKER_ENDED, hint="try again: a new process is started") from None
            except asyncio.CancelledError:  # a partial answer may be pending, which nothing reads
                await self.stop()
                raise

    async def stop(self) -> None:
        """End the process and all its children at once."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
            await process.wait()

    async def close(self) -> None:
        """End the process for good: present and later requests are refused."""
        self._closed = True
        async with self._starting:  # also ends a process that is just being started
            await self.stop()
