"""From a robot file and a log to a model in headless Chromium: upload, run, report, downloads, replay."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Watch, asked, finished, load_robot_and_log, newest, open_step

from dynid.model import Model
from dynid.robot import Robot

Files = tuple[Path, Path]
TRUTH = {"MZ2": 1.5 * 0.15, "Fv1": 0.4, "Fc1": 0.8, "Fv2": 0.2, "Fc2": 0.3}
POSED = """async () => { const { on } = await import('/static/store.js');
           on('posed', (row) => { window.posed = row; }); }"""

METHOD = "run.method = 'pc-wls';"


@pytest.fixture(scope="module")
def identified(tab: tuple[Any, Watch], two_joints: Files) -> dict[str, Any]:
    """The result of a run that was made by clicks alone."""
    page, watch = tab
    load_robot_and_log(page, *two_joints)
    open_step(page, "run")
    page.select_option("#panel-run [data-where='method'] select", "pc-wls")
    page.click("#panel-run button:text-is('Identify')")
    finished(page)
    watch.check()
    return newest(page)


def test_uploaded_files_end_in_an_open_report(page: Any, identified: dict[str, Any]) -> None:
    """Numbers are those the log was made with; the report opens in its frame, and in a tab of its own."""
    values = {one["name"]: one for one in asked(page, f"/api/results/{identified['id']}/curves.json")["parameters"]}
    for name, truth in TRUTH.items():
        assert values[name]["value"] == pytest.approx(truth, rel=0.03)
    assert identified["relative_error"] < 2.0
    open_step(page, "use")
    report = page.frame_locator("#panel-use iframe")
    assert "identified by pc-wls" in report.locator("h1").inner_text()
    with page.context.expect_page() as opened:
        page.click("#panel-use a:text-is('Open the report in a new tab')")
    assert "identified by pc-wls" in opened.value.locator("h1").inner_text()
    assert page.locator("#panel-use section[aria-label='Verdict'] .note").inner_text()


def test_identified_urdf_moves_with_the_torques_of_the_true_robot(page: Any, identified: dict[str, Any],
                                                                  two_joints: Files, tmp_path: Path) -> None:
    """The downloaded URDF, read again, against the file the log was made with."""
    open_step(page, "use")
    with page.expect_download() as download:
        page.click("#panel-use .downloads a:has-text('URDF')")
    file = tmp_path / "identified.urdf"
    download.value.save_as(file)
    rng = np.random.default_rng(3)
    q, dq, ddq = rng.uniform(-1.0, 1.0, (3, 50, 2))
    found, true = (Model(robot).inverse_dynamics(Model(robot).parameters.nominal, q, dq, ddq)
                   for robot in (Robot.from_urdf(file), Robot.from_urdf(two_joints[0])))
    assert np.linalg.norm(found - true) < 0.02 * np.linalg.norm(true)


def test_shown_command_gives_the_same_numbers(page: Any, identified: dict[str, Any], tmp_path: Path) -> None:
    """`dynid identify` on the run file that the page shows, as the command that it shows."""
    open_step(page, "use")
    assert page.inner_text("#run-toml") == asked(page, "/api/state")["run_toml"]
    words = shlex.split(page.inner_text("#command"))
    assert words[:2] == ["dynid", "identify"]
    words = [str(tmp_path / "again") if word == "FOLDER" else word for word in words[1:]]
    done = subprocess.run([sys.executable, "-m", "dynid", *words, "--json"], capture_output=True, text=True, check=True,
                          cwd=tmp_path)
    ours, theirs = json.loads(done.stdout), asked(page, f"/api/results/{identified['id']}/results.json")
    assert ours["parameters"] == theirs["parameters"]
    assert ours["relative_error"] == theirs["relative_error"]


def test_robot_replays_the_log(page: Any, identified: dict[str, Any], two_joints: Files) -> None:
    """Played, the robot stands at the cursor as the log says."""
    log = np.genfromtxt(two_joints[1], delimiter=",", names=True)
    page.evaluate(POSED)
    open_step(page, "log")
    page.wait_for_selector("#transport:visible")
    page.click("#transport button:text-is('Play')")
    page.wait_for_function("() => Number(document.querySelector('#transport input').value) > 0.5")
    page.click("#transport button:text-is('Pause')")
    time = float(page.input_value("#transport input"))
    exact = page.evaluate("async () => (await import('/static/clock.js')).clock.time")
    assert exact == pytest.approx(time, abs=0.02)
    for joint, posed in enumerate(page.evaluate("window.posed")):
        assert posed == pytest.approx(np.interp(exact, log["time"], log[f"q{joint + 1}"]), abs=5e-3)


def test_turned_sign_turns_the_replay(page: Any, identified: dict[str, Any], two_joints: Files) -> None:
    """A wrong sign is seen: the joint replays the other way round, and back."""
    page.evaluate(POSED)
    open_step(page, "log")
    toggle = page.locator("#panel-log button[data-focus='sign 1']")
    toggle.wait_for()

    def at_two_seconds() -> list[float]:
        page.evaluate("async () => (await import('/static/clock.js')).clock.seek(2)")
        return page.evaluate("window.posed")

    page.wait_for_selector("#transport:visible")
    before = at_two_seconds()
    for pressed, sign in (("true", -1.0), ("false", 1.0)):
        toggle.click()
        page.wait_for_selector(f"#panel-log button[data-focus='sign 1'][aria-pressed='{pressed}']")
        page.wait_for_function("() => document.querySelector('#panel-log > p[role=status]').textContent === ''")
        assert at_two_seconds() == pytest.approx([before[0], sign * before[1]], abs=1e-6)


def test_click_on_a_residual_moves_the_robot_there(page: Any, identified: dict[str, Any], two_joints: Files) -> None:
    log = np.genfromtxt(two_joints[1], delimiter=",", names=True)
    page.evaluate(POSED)
    open_step(page, "compare")
    plot = page.locator("#panel-compare figure").first
    plot.locator(".plot-container .main-svg").first.wait_for()
    plot.scroll_into_view_if_needed()
    moved = "() => document.querySelector('#panel-compare [role=status]').textContent.startsWith('At ')"
    for _ in range(200):  # the plot takes a click where it has drawn the point below the pointer, and may still draw
        box = plot.bounding_box()
        page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.8 * box["height"])
        page.wait_for_timeout(300)
        page.mouse.click(box["x"] + 0.6 * box["width"], box["y"] + 0.8 * box["height"])
        page.wait_for_timeout(100)
        if page.evaluate(moved):
            break
        page.mouse.move(box["x"], box["y"])
    assert page.evaluate(moved)
    time = page.evaluate("async () => (await import('/static/clock.js')).clock.time")
    assert 8.0 < time < 14.0
    for joint, posed in enumerate(page.evaluate("window.posed")):
        assert posed == pytest.approx(np.interp(time, log["time"], log[f"q{joint + 1}"]), abs=5e-3)


def test_second_tab_and_refresh_lose_nothing(new_page: Callable[..., Any], identified: dict[str, Any]) -> None:
    """A change in one tab is seen in the other; changes of both at once are both kept; a refresh shows the same."""
    first = new_page()
    second = new_page(another=True)
    for page in (first, second):
        open_step(page, "run")
    first.select_option("#panel-run [data-where='method'] select", "wls")
    second.wait_for_function("() => document.querySelector('#panel-run [data-where=method] select').value === 'wls'")
    edit = "const { change } = await import('/static/store.js'); const done = change((run) => { %s });"
    first.evaluate(f"async () => {{ {edit % METHOD} window.done = done; }}")
    second.evaluate(f"async () => {{ {edit % 'run.model.rotor = true;'} await done; }}")
    first.evaluate("() => window.done")
    settings = asked(first, "/api/state")["settings"]
    assert settings["method"] == "pc-wls" and settings["model"]["rotor"] is True
    second.evaluate(f"async () => {{ {edit % 'run.model.rotor = false;'} await done; }}")
    first.reload()
    first.wait_for_selector("#panel-run [data-where='method'] select")
    assert first.input_value("#panel-run [data-where='method'] select") == "pc-wls"
    assert first.evaluate("location.hash") == "#run"
