"""A studio in a process of its own and pages of headless Chromium that look at it: for tests, benchmark, pictures."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--no-first-run")
WINDOW = {"width": 1400, "height": 900}  # pixels
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def chromium() -> str | None:
    """The path of a Chromium that is installed: DYNID_CHROMIUM, or one on the path."""
    return os.environ.get("DYNID_CHROMIUM") or next((found for name in NAMES if (found := shutil.which(name))), None)


@dataclass(frozen=True, eq=False)
class Served:
    """A running studio: its process, its origin, and the folder it works in."""

    process: subprocess.Popen[str]
    origin: str
    folder: Path

    @property
    def address(self) -> str:
        """Another address with a token, which works once: the studio prints it when a line is entered."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return _printed_address(self.process)


def _printed_address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(r"http\S+", line)
        if found is not None:
            return found[0]
    raise AssertionError("the studio printed no address")


# The command without the run on a small robot by which a studio gets ready.
UNPREPARED = """
import functools, sys
from dynid.cli.main import main
from dynid.studio import server
server.open_studio = functools.partial(server.open_studio, warm=False)
main(sys.argv[1:])
"""


@contextmanager
def served(folder: Path, *, warm: bool = True) -> Iterator[Served]:
    """A studio that works in `folder`, ended at the end; `warm`: it gets ready for the first run, as for users."""
    words = ["studio", "--no-browser", "--folder", str(folder)]
    process = subprocess.Popen([sys.executable, *(("-m", "dynid") if warm else ("-c", UNPREPARED)), *words],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Served(process, "/".join(_printed_address(process).split("/", 3)[:3]), folder)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass(eq=False)
class Watch:
    """Console errors of pages, and requests that leave the studio."""

    origin: str
    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    requests: int = 0

    def follow(self, page: Any) -> Any:
        """The page, watched from now on."""
        page.on("console", self._said)
        page.on("pageerror", lambda problem: self.errors.append(str(problem)))
        page.on("request", self._asked)
        return page

    def clear(self) -> None:
        """Forget what was seen so far."""
        self.errors, self.outside, self.requests = [], [], 0

    def check(self) -> None:
        """Assert that the pages asked the studio, nothing else, and had no error."""
        assert self.requests > 0
        assert self.outside == []
        assert self.errors == []

    def _said(self, message: Any) -> None:
        # An answer of 4xx is how the server says that something is wrong; the page shows its sentence.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(f"{message.text} at {message.location.get('url')}")

    def _asked(self, request: Any) -> None:
        self.requests += 1
        if not request.url.startswith((self.origin + "/", "data:", "blob:", "about:")):
            self.outside.append(request.url)


def new_context(browser: Any, **options: Any) -> Any:
    """A browser context in a window of 1400 by 900 pixels, whose pages wait long enough for a busy machine."""
    context = browser.new_context(**{"viewport": WINDOW, **options})
    context.set_default_timeout(120_000)
    return context


def opened(page: Any, address: str) -> Any:
    """The page at an address once it has heard from the server."""
    page.goto(address)
    page.wait_for_selector("html[data-ready]", timeout=120_000)
    return page


def upload(page: Any, role: str, *files: Path) -> None:
    """Choose files in the input of a role on the step that is open, and wait until they are there."""
    page.set_input_files(f"#upload-{role}", [str(file) for file in files])
    page.wait_for_function("""(name) => [...document.querySelectorAll('.files a')]
                           .some((one) => one.textContent === name)""", arg=files[-1].name)


def open_step(page: Any, name: str) -> None:
    """Go to a step by its tab."""
    page.click(f"#tab-{name}")
    page.wait_for_selector(f"#panel-{name}:visible")


def load_robot_and_log(page: Any, robot: Path, log: Path) -> None:
    """Steps 1 and 3: the robot in the scene, the log read and ready to replay."""
    open_step(page, "robot")
    upload(page, "robot", robot)
    page.wait_for_selector("#panel-robot .joints", timeout=120_000)
    open_step(page, "log")
    upload(page, "log", log)
    page.wait_for_selector("#transport:visible", timeout=120_000)


def finished(page: Any, state: str = "done", timeout: float = 240_000) -> None:
    """Wait until the job has ended in a state."""
    page.wait_for_selector(f"#progress[data-state='{state}']", timeout=timeout)


def asked(page: Any, path: str) -> Any:
    """What the server answers to a GET of the page, as plain data."""
    return page.evaluate("async (path) => (await fetch(path)).json()", path)


def newest(page: Any, kind: str = "run") -> dict[str, Any]:
    """The newest result of a kind."""
    found = [one for one in asked(page, "/api/state")["results"] if one["kind"] == kind]
    return max(found, key=lambda one: (one["created"], one["id"]))


def write_endless_log(path: Path, joints: Sequence[str]) -> None:
    """A log whose rows have dates, which are read line by line: several minutes of reading."""
    names = [f"{signal}_{joint}" for signal in ("position", "torque") for joint in joints]
    row = ",".join(["2026-03-31 23:59:58.5", *["0.1"] * len(names)]) + "\n"
    with path.open("w") as file:
        file.write(",".join(["time", *names]) + "\n")
        for _ in range(100):
            file.write(row * 100_000)


def wait_for_reader(path: Path, patience: float = 60.0) -> None:
    """Wait until a process that this one started has a file open."""
    end = time.monotonic() + patience
    while True:
        with suppress(psutil.Error):
            for process in psutil.Process().children(recursive=True):
                if any(Path(one.path) == path.resolve() for one in process.open_files()):
                    return
        assert time.monotonic() < end, f"{path.name} is not read"
        time.sleep(0.05)
