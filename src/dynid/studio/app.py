"""The studio as a web application: the routes that the page requests."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from dynid.errors import DynidError
from dynid.studio.errors import Refusal
from dynid.studio.jobs import EventHub, Jobs, event
from dynid.studio.security import REPORT_POLICY, Authentication, AuthenticationMiddleware, refusal
from dynid.studio.worker_process import WorkerProcess
from dynid.studio.workspace import MOTION_FILES, RUN, Caps, StudioFolder, digest
from dynid.version import __version__

PAGE = Path(__file__).parent / "page"
_PLOTLY_SCRIPT = PAGE.parents[1] / "report" / "static" / "plotly.min.js.gz"  # `report` would load jinja2
READING = ("log", "columns")  # tasks that read logs, which may take long and can be stopped
TASKS = ("catalogue", "robot", "pose", *READING)  # tasks that the page may request
_MAX_BODY_BYTES = 1 << 20  # bytes of a request in JSON
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
_MESH_NAME = re.compile(r"[0-9a-f]{32}")
_SHOWN_IN_PLACE = {".html": "text/html", ".json": "application/json"}
_CONTENT_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".html": "text/html",
                  ".png": "image/png", ".json": "application/json", ".woff2": "font/woff2"}

Handler = Callable[[Request], Awaitable[Response]]


class Studio:
    """A workspace, its worker processes, and the open pages.

    `run` is the run file given on the command line. There are three workers: one for jobs, one that reads logs, and one
    for short requests in the meantime. The button Stop ends the first two. `warm`: whether to compile the code of a
    first run at startup.
    """

    def __init__(self, folder: Path, run: Path | None = None, caps: Caps | None = None, warm: bool = True) -> None:
        self.workspace = StudioFolder(folder, caps)
        self.run = None if run is None else run.resolve()
        self.events = EventHub()
        space = self.workspace
        self.tasks, self.worker, self.reader = (
            WorkerProcess(space.folder, self.run, space.temporary) for _ in range(3))
        self.jobs = Jobs(self.worker, self.events, space, self.changed)
        self._readings: set[asyncio.Task[bytes]] = set()
        self.ready, self.readiness = (False, "getting ready") if warm else (True, "ready")
        self._editing = asyncio.Lock()
        self._opened = asyncio.Event()
        self._problem: Refusal | None = None
        self._background: set[asyncio.Task[Any]] = set()

    # -- startup and shutdown --------------------------------------------------------------------------
    @asynccontextmanager
    async def life(self, app: Starlette) -> AsyncIterator[None]:
        """Start the workers, and end them with the server."""
        for work in (self._open(), *(() if self.ready else (self._warm(),))):
            self._background.add(asyncio.create_task(work))
        try:
            yield
        finally:
            await self.end()
            self.workspace.close()

    async def end(self) -> None:
        """End the streams of all pages and all computation, so that no request waits."""
        self.events.close()
        for task in self._background:
            task.cancel()
        self._opened.set()
        await self.jobs.stop()
        for one in (self.tasks, self.worker, self.reader):
            await one.close()

    async def _open(self) -> None:
        """Load the user's run file from the command line, if it is new."""
        try:
            if self.run is not None:
                known = digest(self.run)
                if known != self.workspace.source:
                    said = json.loads(await self.tasks.ask("open", {}))
                    self.workspace.source = known
                    self.workspace.keep(said["settings"], said["run_toml"])
            else:
                await self.tasks.start()
        except Refusal as problem:
            self._problem = problem
        except OSError as problem:
            self._problem = Refusal(422, f"cannot read {self.run}: {problem.strerror}")
        finally:
            self._opened.set()
            self.changed()

    async def _warm(self) -> None:
        """Load libraries and compile kernels for the first run, after the first requests of the page."""
        await self._opened.wait()
        with suppress(Refusal):
            await self.tasks.ask("catalogue", {})
            await self.worker.ask("warm", {})
        self.ready, self.readiness = True, "ready"
        self.events.send("worker", self.worker_facts())

    def worker_facts(self) -> dict[str, Any]:
        """Return whether the first run has to wait for loading and compiling."""
        return {"ready": self.ready, "sentence": self.readiness}

    # -- state --------------------------------------------------------------------------------------
    def changed(self) -> None:
        """Notify all pages of a changed state."""
        self.events.send("state", {"revision": self.workspace.revision})

    async def state(self) -> dict[str, Any]:
        """Return the state of the studio that a page shows, as JSON."""
        await self._opened.wait()
        if self._problem is not None:
            raise self._problem
        space = self.workspace
        return {"version": __version__, "revision": space.revision, "settings": space.settings,
                "run_toml": space.run_toml, "files": space.listed(), "results": space.result_facts(),
                "command": shlex.join(["dynid", "identify", str(space.folder / RUN), "-o", "FOLDER"]),
                "job": None if self.jobs.current is None else self.jobs.current.to_dict(),
                "worker": self.worker_facts(), "workspace": space.folder.name}

    async def get_state(self, request: Request) -> Response:
        return JSONResponse(await self.state())

    async def put_run(self, request: Request) -> Response:
        """Store new settings of the run, unless another page changed them meanwhile."""
        said = await json_body(request)
        if not isinstance(said.get("settings"), dict) or not isinstance(said.get("revision"), int):
            raise Refusal(400, "the settings of a run sent to the studio must have the form {\"revision\": number, "
                               "\"settings\": {...}}")
        async with self._editing:
            await self._opened.wait()
            if said["revision"] != self.workspace.revision:
                return JSONResponse(await self.state(), 409)
            found = json.loads(await self.tasks.ask("settings", {"settings": said["settings"]}))
            self.workspace.keep(found["settings"], found["run_toml"])
        self.changed()
        return JSONResponse(await self.state())

    async def get_events(self, request: Request) -> Response:
        job = self.jobs.current
        first = [event("state", {"revision": self.workspace.revision}), event("worker", self.worker_facts()),
                 *([] if job is None else [event("job", job.to_dict())])]
        return StreamingResponse(self.events.listen(first), media_type="text/event-stream")

    # -- files --------------------------------------------------------------------------------------
    async def post_file(self, request: Request) -> Response:
        length = request.headers.get("content-length", "")
        try:
            stored = await self.workspace.upload(
                request.query_params.get("name", ""), request.query_params.get("role", ""),
                int(length) if length.isdigit() else None, request.stream())
        except ClientDisconnect:
            raise Refusal(400, "the upload was interrupted") from None
        self.changed()
        return JSONResponse({"file": stored, "revision": self.workspace.revision})

    async def post_example(self, request: Request) -> Response:
        """Add the simulated logs of the demonstration, and select its robot and these logs."""
        async with self._editing:
            await self._opened.wait()
            made = json.loads(await self.tasks.ask("example", {}))
            self.workspace.adopt(made["roles"])
            found = json.loads(await self.tasks.ask("settings", {"settings": made["settings"]}))
            self.workspace.keep(found["settings"], found["run_toml"])
        self.changed()
        return JSONResponse(await self.state())

    async def delete_file(self, request: Request) -> Response:
        self.workspace.remove(request.path_params["name"])
        self.changed()
        return JSONResponse({"revision": self.workspace.revision})

    async def get_file(self, request: Request) -> Response:
        path = self.workspace.file_path(request.path_params["name"])
        if not path.is_file():
            raise Refusal(404, "the requested file is not in the studio's folder")
        return download(path)

    # -- work ---------------------------------------------------------------------------------------
    async def post_task(self, request: Request) -> Response:
        task = request.path_params["task"]
        if task not in TASKS:
            raise Refusal(404, f"there is no task '{task[:40]}'; there are {', '.join(TASKS)}")
        params = await json_body(request)
        await self._opened.wait()
        answer = await (self._read(task, params) if task in READING else self.tasks.ask(task, params))
        return Response(answer, media_type="application/json")

    async def _read(self, task: str, params: dict[str, Any]) -> bytes:
        """Return the answer of the worker that reads logs; refused if reading is stopped."""
        reading = asyncio.create_task(self.reader.ask(task, params))
        self._readings.add(reading)
        try:
            await asyncio.wait([reading])
            return reading.result()
        except asyncio.CancelledError:
            if not reading.cancelled():  # this request was cancelled, not the reading
                reading.cancel()
                raise
            raise Refusal(422, "reading the log was stopped", hint="reload the page to read it again",
                          where="logs") from None
        finally:
            self._readings.discard(reading)

    async def _stop_reading(self) -> bool:
        """Stop reading logs. Return whether any was being read."""
        readings = list(self._readings)
        for one in readings:
            one.cancel()
        await asyncio.gather(*readings, return_exceptions=True)
        return bool(readings)

    async def stop_reading(self, request: Request) -> Response:
        if not await self._stop_reading():
            raise Refusal(404, "no log is being read")
        return JSONResponse({"stopped": True})

    async def post_job(self, request: Request) -> Response:
        params = await json_body(request)
        kind = request.path_params["kind"]
        return JSONResponse(self.jobs.start(kind, self._new_id(kind), params).to_dict())

    async def stop_job(self, request: Request) -> Response:
        has_read = await self._stop_reading()
        job = await self.jobs.stop()
        if job is None and not has_read:
            raise Refusal(404, "there is no job to stop")
        if job is None:
            return JSONResponse({"stopped": True})
        self._background.add(asyncio.create_task(self.worker.start()))  # before another task is requested
        return JSONResponse(job.to_dict())

    def _new_id(self, kind: str) -> str:
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{re.sub('[^a-z]', '', kind)[:12]}"
        taken = {place.name for place in self.workspace.results.iterdir()}
        return next(one for one in (name, *(f"{name}-{k}" for k in range(2, 1000))) if one not in taken)

    # -- results and the page -----------------------------------------------------------------------
    async def get_result(self, request: Request) -> Response:
        identity, name = request.path_params["identity"], request.path_params["name"]
        path = self.workspace.motion_file(identity, name, request.query_params.get("confirmed") == "yes") \
            if name.casefold() in MOTION_FILES else self.workspace.result_file(identity, name)
        kind = _SHOWN_IN_PLACE.get(path.suffix)
        if kind is None:
            return download(path)
        headers = {"Content-Security-Policy": REPORT_POLICY} if kind == "text/html" else {}
        return FileResponse(path, media_type=kind, headers=headers)

    async def get_mesh(self, request: Request) -> Response:
        name = request.path_params["identity"]
        path = self.workspace.folder / "meshes" / f"{name}.bin"
        if not _MESH_NAME.fullmatch(name) or not path.is_file():
            raise Refusal(404, "there is no mesh with this name")
        return FileResponse(path, media_type="application/octet-stream", headers={"Cache-Control": "max-age=86400"})

    async def get_page(self, request: Request) -> Response:
        return page_file("index.html")

    async def get_static(self, request: Request) -> Response:
        return page_file(request.path_params["name"])

    async def get_plotly(self, request: Request) -> Response:
        return FileResponse(_PLOTLY_SCRIPT, media_type="text/javascript",
                            headers={"Cache-Control": "max-age=86400", "Content-Encoding": "gzip"})


def application(studio: Studio, door: Authentication) -> AuthenticationMiddleware:
    """Return the application with its authentication."""
    api: list[tuple[str, str, Handler]] = [
        ("GET", "/", studio.get_page), ("GET", "/static/{name}", studio.get_static),
        ("GET", "/plotly.js", studio.get_plotly),
        ("GET", "/api/state", studio.get_state), ("GET", "/api/events", studio.get_events),
        ("PUT", "/api/run", studio.put_run), ("POST", "/api/files", studio.post_file),
        ("POST", "/api/example", studio.post_example),
        ("DELETE", "/api/files/{name:path}", studio.delete_file), ("GET", "/api/files/{name:path}", studio.get_file),
        ("POST", "/api/tasks/{task}", studio.post_task),
        ("DELETE", "/api/tasks/current", studio.stop_reading), ("DELETE", "/api/jobs/current", studio.stop_job),
        ("POST", "/api/jobs/{kind}", studio.post_job),
        ("GET", "/api/results/{identity}/{name}", studio.get_result),
        ("GET", "/api/meshes/{identity}", studio.get_mesh)]
    routes = [Route(path, answered(handler), methods=[verb]) for verb, path, handler in api]
    return AuthenticationMiddleware(Starlette(routes=routes, lifespan=studio.life), door)


def answered(handler: Handler) -> Handler:
    """Wrap a handler so that errors of the user become messages; unexpected errors are printed on the terminal."""
    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except Refusal as problem:
            return refusal(problem)
        except DynidError as problem:
            return refusal(Refusal(422, problem.reason, hint=problem.advice or None, where=problem.where))
        except asyncio.CancelledError:  # cancelled by a server that is shutting down, which would print a traceback
            return refusal(Refusal(503, "the studio was stopped"))
        except Exception:
            traceback.print_exc(file=sys.stderr)
            return refusal(Refusal(500, "an internal error occurred in the studio; the terminal that started it "
                                        "shows the details"))

    return answer


def _no_number(name: str) -> float:
    """Raise an error for NaN and infinities, which Python accepts in JSON."""
    raise ValueError(f"{name} is not a number")


async def json_body(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request, of limited size; empty without a body."""
    text = b""
    async for chunk in request.stream():
        text += chunk
        if len(text) > _MAX_BODY_BYTES:
            raise Refusal(413, f"a request to the studio may contain at most {_MAX_BODY_BYTES >> 20} MB of JSON")
    try:
        said = json.loads(text or b"{}", parse_constant=_no_number)
        json.dumps(said, ensure_ascii=False).encode("utf-8")  # an incomplete surrogate pair is not valid text
    except (ValueError, RecursionError):
        raise Refusal(400, "the request to the studio is not JSON") from None
    if not isinstance(said, dict):
        raise Refusal(400, "the request to the studio is not a JSON object")
    return said


def page_file(name: str) -> Response:
    """Return a file of the studio's web page, such as a script."""
    path = PAGE / name
    if not _FILE_NAME.fullmatch(name) or not path.is_file():
        raise Refusal(404, f"the page of the studio has no file {name[:80]}")
    return FileResponse(path, media_type=_CONTENT_TYPES.get(path.suffix, "application/octet-stream"))


def download(path: Path) -> Response:
    """Return a file as a download that no browser opens by itself."""
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)
