"""Methods side by side, a motion and live views of streams in headless Chromium."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Served, asked, finished, load_robot_and_log, newest, open_step
from ports import free_port, wait_for_listener

pytestmark = pytest.mark.slow


@pytest.fixture
def loaded(page: Any, two_joints: tuple[Path, Path]) -> Any:
    """A page with robot and log; twice the same log is the same run."""
    if not asked(page, "/api/state")["settings"]["logs"]:
        load_robot_and_log(page, *two_joints)
        page.evaluate("""async () => { const { change } = await import('/static/store.js');
                         await change((run) => { run.model.friction = ['viscous', 'coulomb']; }); }""")
    return page


def live_values(page: Any) -> dict[str, float]:
    """Parameters of the table of the live step."""
    rows = page.locator("#panel-live table tbody tr").all()
    return {row.locator("th").inner_text(): float(row.locator("td").first.inner_text()) for row in rows}


def test_methods_stand_side_by_side(loaded: Any) -> None:
    """The table shows the server's numbers, and the best at what it has not seen is marked."""
    page = loaded
    open_step(page, "compare")
    page.click("#panel-compare button:text-is('Compare')")
    page.wait_for_selector("#progress[data-state='running']")
    finished(page)
    page.wait_for_selector("#panel-compare .best")
    methods = asked(page, f"/api/results/{newest(page, 'compare')['id']}/curves.json")["methods"]
    shown = page.locator("#panel-compare section[aria-label='Comparison of methods'] table tbody tr").all()
    assert [row.locator("th").inner_text() for row in shown] == [one["name"] for one in methods]
    best = min(methods, key=lambda one: one["cross_error"])
    assert page.locator("#panel-compare .best th").inner_text() == best["name"]


def test_motion_is_searched_played_and_taken_away(loaded: Any, tmp_path: Path) -> None:
    """The downloaded motion stays inside the robot's limits, and is the one that is played."""
    page = loaded
    open_step(page, "motion")
    page.locator("#panel-motion [data-where='motion.seconds'] input").fill("3")
    page.click("#panel-motion button:text-is('Optimise a motion')")
    page.wait_for_selector("#progress[data-state='running']")
    finished(page)
    page.wait_for_selector("#panel-motion section[aria-label='Motion']")
    page.click("#panel-motion button:text-is('Play')")
    page.wait_for_function("() => Number(document.querySelector('#transport input').value) > 0.2")
    with page.expect_download() as download:
        page.click("#panel-motion a:text-is('Download motion.csv')")
    file = tmp_path / "motion.csv"
    download.value.save_as(file)
    found = np.genfromtxt(file, delimiter=",", names=True)
    first, second = (found[name] for name in found.dtype.names[1:3])
    assert np.abs(first).max() <= 2.0 and np.abs(second).max() <= 2.5


def test_replayed_log_is_watched(loaded: Any) -> None:
    """Parameters come while the log runs and end at what the log was made with; the robot moves along."""
    page = loaded
    open_step(page, "live")
    page.locator("#panel-live [data-focus='Speed, times real time']").fill("10")
    page.click("#panel-live button:text-is('Start')")
    page.wait_for_selector("#progress[data-state='running']")
    page.wait_for_selector("#panel-live table", timeout=120_000)
    finished(page)
    page.wait_for_function("""(truth) => [...document.querySelectorAll('#panel-live table tbody tr')].some((row) =>
        row.querySelector('th').textContent === 'MZ2'
        && Math.abs(Number(row.querySelector('td').textContent) / truth - 1) < 0.05)""", arg=1.5 * 0.15)
    values = live_values(page)
    assert values["Fv1"] == pytest.approx(0.4, rel=0.15)
    assert "Live" in page.inner_text("#caption")


def test_udp_stream_is_watched_until_stop(loaded: Any, studio: Served, two_joints: tuple[Path, Path]) -> None:
    """Samples sent to a port of this machine; Stop ends the listening."""
    page = loaded
    log = np.genfromtxt(two_joints[1], delimiter=",", names=True)
    port = free_port()
    open_step(page, "live")
    page.select_option("#panel-live [data-where='source'] select", "udp")
    page.locator("#panel-live [data-focus='Port']").fill(str(port))
    page.click("#panel-live button:text-is('Start')")
    page.wait_for_selector("#progress[data-state='running']")
    wait_for_listener(port, studio.process.pid)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for attempt in range(20):
            for row in log[100 * attempt:100 * (attempt + 1)]:
                sample = {"t": row["time"], "q": [row["q1"], row["q2"]], "tau": [row["tau1"], row["tau2"]]}
                sender.sendto((json.dumps(sample) + "\n").encode(), ("127.0.0.1", port))
            time.sleep(0.5)
            page.wait_for_timeout(100)
            if page.locator("#panel-live .numbers").count():
                break
    page.wait_for_selector("#panel-live .numbers")
    page.click("#progress button:text-is('Stop')")
    finished(page, "stopped")
