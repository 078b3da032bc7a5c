"""A studio in a thread of the test with httpx in place of a browser, and a small robot with a log."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from dynid import Model, Robot, make_terms
from dynid.excitation import FourierSeries
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.studio.server import Opened, StudioServer, open_studio
from dynid.studio.workspace import Caps

URDF = """<robot name="{name}">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.1 0 0"/><mass value="2"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.03"/></inertial>{visual}</link>
  <link name="lower"><inertial><origin xyz="0.15 0.01 0"/><mass value="1"/>
    <inertia ixx="0.004" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="4" effort="40"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.3 0 0"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="5" effort="20"/></joint>
</robot>
"""


def urdf(name: str = "two-links", visual: str = "") -> str:
    """A planar arm of two links that gravity pulls at."""
    return URDF.format(name=name, visual=visual)


def log_of(robot: Robot, path: Path, *, seconds: float = 8.0, rate: float = 200.0, seed: int = 0) -> Path:
    """A log of a random motion with the torques of the robot's own model, viscous and dry friction and noise."""
    rng = np.random.default_rng(seed)
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb")))
    theta = np.array([0.3 if p.nominal is None else p.nominal for p in model.parameters])
    a, b = 0.12 * rng.normal(size=(2, robot.dof, 4))
    t = np.arange(round(seconds * rate)) / rate
    motion = FourierSeries(a, b, np.zeros(robot.dof), seconds).at(t)
    tau = model.inverse_dynamics(theta, motion.q, motion.dq, motion.ddq)
    tau += 0.005 * np.abs(tau).max(axis=0) * rng.normal(size=tau.shape)
    write_csv(Recording(t, motion.q, tau, joints=robot.joint_names), path)
    return path


class Client(httpx.Client):
    """A browser that came by the printed address."""

    def __init__(self, opened: Opened) -> None:
        super().__init__(base_url=f"http://127.0.0.1:{opened.door.port}", headers={"X-Dynid": "studio"}, timeout=120.0)
        assert self.get("/", params={"token": opened.door.new_token()}).status_code == 200

    def state(self) -> dict[str, Any]:
        return self.get("/api/state").json()

    def upload(self, name: str, role: str, content: bytes | str) -> httpx.Response:
        return self.post("/api/files", params={"name": name, "role": role}, content=content)

    def settings(self, **settings: Any) -> httpx.Response:
        return self.put("/api/run", json={"revision": self.state()["revision"], "settings": settings})

    def task(self, name: str, **params: Any) -> httpx.Response:
        return self.post(f"/api/tasks/{name}", json=params)

    def job(self, kind: str, **params: Any) -> dict[str, Any]:
        """A job, followed to its end."""
        answer = self.post(f"/api/jobs/{kind}", json=params)
        assert answer.status_code == 200, answer.text
        return self.finished()

    def finished(self, seconds: float = 240.0) -> dict[str, Any]:
        """The present job, once it has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            job = self.state()["job"]
            if job["state"] != "running":
                return job
            time.sleep(0.05)
        raise AssertionError(f"the job did not end: {job}")

    @contextmanager
    def heard(self, until: str = "done") -> Iterator[list[tuple[str, dict[str, Any]]]]:
        """Collect the events of one job: listening begins before the block, and ends with the job's state `until`."""
        found: list[tuple[str, dict[str, Any]]] = []
        begun = threading.Event()

        def listen() -> None:
            for one in self.events(until):
                found.append(one)
                begun.set()

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        assert begun.wait(60.0)
        yield found
        listener.join(60.0)

    def events(self, until: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
        """Events as they come; ends when a job that was seen running has the state `until`."""
        with self.stream("GET", "/api/events") as answer:
            name, running = "", False
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    facts = json.loads(line.removeprefix("data: "))
                    yield name, facts
                    running = running or (name == "job" and facts["state"] == "running")
                    if running and name == "job" and facts["state"] == until:
                        return


@contextmanager
def served(folder: Path, run: Path | None = None, caps: Caps | None = None, idle: int = 30) -> Iterator[Opened]:
    """A studio that answers, until the end of the block; a connection without requests is closed after `idle` s."""
    opened = open_studio(folder, run, caps=caps, warm=False)
    server = StudioServer(opened)
    server.config.timeout_keep_alive = idle
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[opened.socket])), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield opened
    finally:
        server.should_exit = True
        thread.join(60.0)
        opened.lock.close()
