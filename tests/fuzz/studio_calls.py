"""Requests to a studio with damaged files, extreme settings and hostile paths, each from a seed."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from fuzz.mutations import extreme_numbers, mutated_text
from studio_client import Client, served

_EXTREME: tuple[Any, ...] = (0, -1, 1e308, 1e-320, 1e18, "x", "", [], [1], {}, None, True, "../x", "\u202e", "1e400",
                             10**30, ["a"] * 300)
_SETTINGS = ("robot", "logs", "method", "blocks", "gravity", "prepare", "log", "known", "lock", "options", "model",
             "prior", "simulation", "essential", "stream_rows", "payloads", "nonsense")
_TABLES = {"prepare": ("cutoff", "rate", "decimate", "gap", "order"), "log": ("rate", "preset", "position", "time_unit",
           "start"), "options": ("strength",), "simulation": ("horizon",), "known": ("Fv1",), "model": ("friction",)}
_PATHS = ("/api/state", "/api/files/../studio.json", "/api/results/x/y", "/api/meshes/zz", "/api/files/%00",
          "/static/..", "/api/jobs/none", "/api/run", "/api/tasks/none", "/" + "x" * 3000)


class StudioCalls:
    """A studio that is opened with the first case and asked over HTTP: every answer is JSON or a page, and none is a
    failure of the server."""

    def __init__(self, inputs: Path, folder: Path) -> None:
        self._inputs, self._folder, self._stack = inputs, folder, ExitStack()
        self._client: Client | None = None

    def case(self, rng: np.random.Generator) -> str:
        """Make one request; what is wrong with the answer."""
        if self._client is None:
            self._client = Client(self._stack.enter_context(served(self._folder)))
        client, way = self._client, int(rng.integers(0, 5))
        if way == 0:
            name, role = [("arm.urdf", "robot"), ("dh.toml", "robot"), ("log.csv", "log"), ("two.xml", "robot")][
                int(rng.integers(4))]
            change = extreme_numbers if rng.random() < 0.6 else mutated_text
            client.upload(name, role, change((self._inputs / name).read_bytes(), rng))
            answer = client.task("log", file=name) if role == "log" else client.task("robot", robot=name)
        elif way == 1:
            key = str(rng.choice(_SETTINGS))
            value: Any = _EXTREME[int(rng.integers(len(_EXTREME)))]
            if key in _TABLES:
                value = {str(rng.choice(_TABLES[key])): value}
            answer = client.settings(**{"robot": "arm.urdf", "logs": ["log.csv"], key: value})
        elif way == 2:
            answer = client.task(str(rng.choice(["catalogue", "robot", "pose", "log", "columns", "x"])),
                                 **{str(rng.choice(["file", "robot", "q", "log"])): _EXTREME[int(rng.integers(8))]})
        elif way == 3:
            answer = client.request(str(rng.choice(["GET", "PUT", "POST", "DELETE"])), str(rng.choice(_PATHS)),
                                    content=rng.bytes(int(rng.integers(0, 300))))
        else:
            answer = client.put("/api/run", content=mutated_text(b'{"revision": 1, "settings": {"blocks": 3}}', rng))
        if answer.status_code >= 500:
            return f"studio: {answer.request.method} {answer.request.url}: {answer.status_code}: {answer.text[:2000]}"
        return "studio: a traceback" if "Traceback" in answer.text else ""
