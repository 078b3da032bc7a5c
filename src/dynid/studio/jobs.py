"""The job of a studio, at most one at a time, and server-sent events with its state for every open page."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from dynid.studio.errors import Refusal
from dynid.studio.worker_process import WorkerProcess
from dynid.studio.workspace import StudioFolder

KINDS = ("run", "compare", "motion", "live", "payload", "code", "actuators")
_MIN_EVENT_INTERVAL = 0.1  # s between two progress events of one job
_KEEPALIVE_SECONDS = 15.0  # s between keep-alive messages
_MAX_QUEUED_EVENTS = 200  # events stored for a page that does not read; after that it has to reconnect


@dataclass(frozen=True)
class StudioJob:
    """A job of the studio.

    Attributes:
        id, kind, state: identifier, kind of the job (one of KINDS), and running, done, failed or stopped.
        share: completed share, 0 to 1, or None if the job has no defined end.
        sentence, seconds, data: progress message, elapsed time, s, and live data.
        error, result: error of a failed job, and identifier of the result of a finished job.
        grade: good, fair or poor, the colour of a finished job; None if its result has no grade.
    """

    id: str
    kind: str
    state: str = "running"
    share: float | None = 0.0
    sentence: str = "starting"
    seconds: float = 0.0
    error: Mapping[str, Any] | None = None
    result: str | None = None
    grade: str | None = None
    data: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the job as plain data for JSON."""
        return {**vars(self), "seconds": round(self.seconds, 3)}


class Jobs:
    """The running or last job of a studio. changed: function that is called when a job has ended."""

    def __init__(self, worker: WorkerProcess, events: EventHub, space: StudioFolder,
                 changed: Callable[[], None]) -> None:
        self.worker, self.events, self.space, self.changed = worker, events, space, changed
        self.current: StudioJob | None = None
        self._task: asyncio.Task[None] | None = None
        self._began, self._sent = 0.0, 0.0

    def start(self, kind: str, identity: str, params: Mapping[str, Any]) -> StudioJob:
        """Start a job; refused while another one is running."""
        if kind not in KINDS:
            raise Refusal(404, f"there is no job '{kind[:40]}'; there are {', '.join(KINDS)}")
        if self.running:
            raise Refusal(409, "another job is running; stop it, or wait for its end", where="job")
        self.space.begin_result(identity)
        self.current, self._began, self._sent = StudioJob(identity, kind), time.monotonic(), 0.0
        self._tell(self.current)
        self._task = asyncio.create_task(self._carry_out(kind, {**params, "id": identity}))
        return self.current

    @property
    def running(self) -> bool:
        return self.current is not None and self.current.state == "running"

    async def stop(self) -> StudioJob | None:
        """Stop the present job at once and discard unfinished output."""
        task = self._task
        if self.running and task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await self.worker.stop()
            assert self.current is not None
            self.space.settle_result(self.current.id)
            self._tell(replace(self.current, state="stopped", sentence="stopped"))
            self.changed()
        return self.current

    async def _carry_out(self, kind: str, params: Mapping[str, Any]) -> None:
        job = self.current
        assert job is not None
        try:
            answer = json.loads(await self.worker.ask(f"job:{kind}", params, self._heard) or b"{}")
            job = replace(self.current or job, state="done", share=1.0, sentence=answer.get("sentence", "done"),
                          result=answer.get("result"), grade=answer.get("grade"), data=answer.get("data"))
        except Refusal as problem:
            job = replace(self.current or job, state="failed", sentence=str(problem), error=problem.to_dict())
        self.space.settle_result(job.id)
        self._tell(job)
        self.changed()

    def _heard(self, message: dict[str, Any]) -> None:
        """Process a message of the worker: its progress, or the state of a live stream."""
        if self.current is None:
            return
        if message["kind"] == "look":
            self.events.send("look", message["look"])
            return
        job = replace(self.current, **{key: message[key] for key in ("share", "sentence", "data") if key in message})
        self._tell(job, quietly="data" not in message and job.sentence == self.current.sentence)

    def _tell(self, job: StudioJob, quietly: bool = False) -> None:
        now = time.monotonic()
        self.current = replace(job, seconds=now - self._began)
        if not quietly or now - self._sent > _MIN_EVENT_INTERVAL:
            self._sent = now
            self.events.send("job", self.current.to_dict())


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
