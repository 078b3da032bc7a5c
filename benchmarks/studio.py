"""The studio in headless Chromium on a real log of 25 s and 7 joints: times from upload to report, and memory."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import sync_playwright

from dynid.errors import NotPossibleError

SOURCE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE / "tests"))
from browser import ARGUMENTS, asked, chromium, finished, load_robot_and_log, open_step, opened, served  # noqa: E402

DATA = Path(os.environ.get("DYNID_DATA", SOURCE.parent / "shared" / "data")) / "kuka_lwr4"
ROBOT, LOG = DATA / "kuka_lwr4.urdf", DATA / "measurements_1.npz"
REPEATS = 3
BARS = {"page_s": 1.5, "robot_s": 4.0, "server_mb": 60.0, "upload_to_report_s": 8.0, "stop_s": 1.0, "packages_mb": 8.0}
WORDS = {"page_s": "from the address to a page that works, s", "robot_s": "from a chosen URDF to the robot, s",
         "server_mb": "memory of the server after all this, MB",
         "upload_to_report_s": "from chosen files to the open report, warm, s", "stop_s": "Stop, s",
         "packages_mb": "packages beyond dynid's own, MB"}


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    if not DATA.is_dir():
        raise NotPossibleError("the log 'kuka_lwr4' is not below the data folder; set DYNID_DATA to where it is")
    program = chromium()
    if program is None:
        raise NotPossibleError("no Chromium is on the path, and DYNID_CHROMIUM names none")
    found: dict[str, float] = {"packages_mb": packages()}
    with (tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright,
          served(Path(folder, "work")) as studio):
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        page = opened(browser.new_page(), studio.address)
        progress("the worker gets ready")
        while not asked(page, "/api/state")["worker"]["ready"]:
            time.sleep(0.3)
        for repeat in range(REPEATS):
            progress(f"round {repeat + 1} of {REPEATS}")
            for name, value in _round(browser.new_context(), studio.address).items():
                found[name] = min(found.get(name, value), value)
        progress("Stop")
        found["stop_s"] = _stopped(page)
        found["server_mb"] = psutil.Process(studio.process.pid).memory_info().rss / 1e6
        browser.close()
    return {name: found[name] for name in BARS}


def _round(context: Any, address: str) -> dict[str, float]:
    """Return the seconds of each step of a user on the page."""
    page = context.new_page()
    page.set_default_timeout(120_000)
    began = time.perf_counter()
    opened(page, address)
    ready = time.perf_counter() - began
    _empty(page)
    began = time.perf_counter()
    page.set_input_files("#upload-robot", str(ROBOT))
    page.wait_for_selector("#panel-robot .joints")
    robot = time.perf_counter() - began
    _empty(page)
    began = time.perf_counter()
    load_robot_and_log(page, ROBOT, LOG)
    open_step(page, "run")
    page.click("#panel-run button:text-is('Identify')")
    page.wait_for_selector("#progress[data-state='running']")
    finished(page)
    open_step(page, "use")
    page.frame_locator("#panel-use iframe").locator("h1").wait_for()
    report = time.perf_counter() - began
    _empty(page)
    context.close()
    return {"page_s": ready, "robot_s": robot, "upload_to_report_s": report}


def _stopped(page: Any) -> float:
    """Seconds from Stop, pressed in the middle of a run, to its end."""
    load_robot_and_log(page, ROBOT, LOG)
    open_step(page, "run")
    page.click("#panel-run button:text-is('Identify')")
    page.wait_for_selector("#progress[data-state='running']")
    page.wait_for_timeout(200)  # a default run of this log takes about a second
    began = time.perf_counter()
    page.click("#progress button:text-is('Stop')")
    finished(page, "stopped")
    return time.perf_counter() - began


def _empty(page: Any) -> None:
    """Return whether the studio has no robot, no logs and no files, as at its first start."""
    page.evaluate("""async () => {
        const { change, refresh, store } = await import('/static/store.js');
        await change((run) => { Object.assign(run, { robot: "", logs: [] }); });
        const own = { method: "DELETE", headers: { "X-Dynid": "studio" } };
        for (const { name } of store.state.files) await fetch(`/api/files/${name}`, own);
        await refresh();
    }""")
    open_step(page, "robot")


def packages() -> float:
    """Return the size, MB, of the packages that the extra `studio` installs in addition to those of dynid."""
    ours = _needed([one for one in distribution("dynid").requires or () if "extra ==" not in one])
    more = _needed(["starlette", "uvicorn"]) - ours
    files = [distribution(name).locate_file(file) for name in more for file in distribution(name).files or ()
             if file.suffix != ".pyc"]
    return sum(Path(str(file)).stat().st_size for file in files if Path(str(file)).is_file()) / 1e6


def _needed(requirements: list[str]) -> set[str]:
    """Names of installed packages that these need, themselves included."""
    found: set[str] = set()
    waiting = list(requirements)
    while waiting:
        match = re.match(r"[A-Za-z0-9._-]+", waiting.pop())
        name = match[0].lower().replace("_", "-") if match else ""
        if not name or name in found:
            continue
        try:
            requires = distribution(name).requires or ()
        except PackageNotFoundError:
            continue
        found.add(name)
        waiting += [one for one in requires if "extra ==" not in one]
    return found


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    return [("studio, Chromium without a window", "measured", "bar"),
            *((WORDS[name], f"{result[name]:.2f}", f"{BARS[name]:g}") for name in BARS)]
