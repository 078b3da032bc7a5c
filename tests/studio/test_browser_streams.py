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


def fill(page: Any, **values: str) -> None:
    """Type values into fields of the step Motion."""
    for name, text in values.items():
        page.locator(f"#panel-motion [data-where='motion.{name}'] input").fill(text)


def searched(page: Any) -> dict[str, Any]:
    """Search for a motion; the request of the page."""
    with page.expect_request("**/api/jobs/motion") as request:
        page.click("#panel-motion button:text-is('Optimise a motion')")
    page.wait_for_selector("#progress[data-state='running']")
    finished(page)
    page.wait_for_selector("#panel-motion section[aria-label='Motion']")
    return request.value.post_data_json


def test_motion_is_searched_played_and_taken_away(loaded: Any, tmp_path: Path) -> None:
    """An unchecked motion is no success: it is downloaded only after its warnings were confirmed. The downloaded motion
    stays inside the robot's limits, and is the one that is played."""
    page = loaded
    open_step(page, "motion")
    fill(page, seconds="3")
    searched(page)
    warnings = newest(page, "motion")["warnings"]
    assert warnings[0].startswith("NOT checked against") and "emergency stop" in warnings[0]
    assert page.get_attribute("#progress", "data-grade") == "fair"
    assert "done" not in (page.get_attribute("#tab-motion", "class") or "")
    shown = page.inner_text("#panel-motion fieldset.note")
    assert "NOT checked against" in shown and "emergency stop" in shown and "“Height of the floor”" in shown
    texts = page.locator("#panel-motion, #progress").evaluate_all("""(all) => all.map((one) => {
        const copy = one.cloneNode(true);
        for (const pre of copy.querySelectorAll('pre')) pre.remove();
        return copy.textContent;
    })""")
    assert not any("--" in text for text in texts)
    assert page.inner_text("#lowest").endswith("m above the base plane")
    page.click("#panel-motion button:text-is('Play')")
    page.wait_for_function("() => Number(document.querySelector('#transport input').value) > 0.2")
    page.click("#transport button:text-is('Pause')")
    assert not page.locator("#panel-motion a[download]").count()
    assert page.locator("#panel-motion button:text-is('Download motion.csv')").is_disabled()
    assert not page.locator("text=/^Run motion.csv on the robot/").count()
    page.check("#panel-motion fieldset.note input")
    assert page.locator("text=/^Run motion.csv on the robot/").is_visible()
    with page.expect_download() as download:
        page.click("#panel-motion a:text-is('Download motion.csv')")
    file = tmp_path / "motion.csv"
    download.value.save_as(file)
    found = np.genfromtxt(file, delimiter=",", names=True)
    first, second = (found[name] for name in found.dtype.names[1:3])
    assert np.abs(first).max() <= 2.0 and np.abs(second).max() <= 2.5
    page.uncheck("#panel-motion fieldset.note input")
    assert not page.locator("#panel-motion a[download]").count()


SAFETY = {"floor": "-0.9", "box": "-1,-1,-0.8,1,1,1.2", "radius": "0.02", "speed": "0.3", "margin": "0.1",
          "home": "0.1,-0.1"}


def test_checked_motion_above_its_floor_needs_no_confirmation(loaded: Any) -> None:
    """Every field of safety is sent as a number or as typed; the scene draws the floor before the search."""
    page = loaded
    open_step(page, "motion")
    page.evaluate("""async () => { const { on } = await import('/static/store.js');
                     on('surrounded', (room) => { window.room = room.map((one) => one.pose); }); }""")
    fill(page, seconds="1", **SAFETY)
    page.check("#panel-motion [data-where='motion.full_range'] input")
    room = page.evaluate("window.room")  # six sides of a box, each with its edges, as poses row by row
    assert len(room) == 12 and sorted({pose[11] for pose in room})[0] == -0.8
    sent = searched(page)
    for name, text in SAFETY.items():
        assert sent[name] == (text if "," in text else float(text))
    assert sent["full_range"] is True
    assert newest(page, "motion")["warnings"] == [] and page.get_attribute("#progress", "data-grade") == "good"
    assert page.locator("#panel-motion a[download='motion.csv']").is_visible()
    assert not page.locator("#panel-motion fieldset.note").count()
    label = page.inner_text("#lowest")
    assert "above the floor" in label
    page.click("#panel-motion button:text-is('Go to the lowest posture')")
    time = page.evaluate("async () => (await import('/static/clock.js')).clock.time")
    around = asked(page, f"/api/results/{newest(page, 'motion')['id']}/motion.json")["surroundings"]
    assert time == pytest.approx(around["lowest"]["time"], abs=1e-6)
    assert f"{around['lowest']['point'][2] + 0.8:.2f} m above the floor" in label


def test_wrong_number_of_safety_is_shown_at_its_field(loaded: Any) -> None:
    """A refused value is named by the label of its field; text that is no number is not taken for an empty field."""
    page = loaded
    open_step(page, "motion")
    fill(page, box="0,0,0,1")
    page.click("#panel-motion button:text-is('Optimise a motion')")
    page.wait_for_selector("#panel-motion [data-where='motion.box'] .problem:visible")
    assert "6 numbers" in page.inner_text("#panel-motion [data-where='motion.box'] .problem")
    fill(page, box="")
    page.locator("#panel-motion [data-where='motion.floor'] input").press_sequentially("1e")
    page.click("#panel-motion button:text-is('Optimise a motion')")
    page.wait_for_selector("#panel-motion [data-where='motion.floor'] .problem:visible")
    assert "is not a number" in page.inner_text("#panel-motion [data-where='motion.floor'] .problem")


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
