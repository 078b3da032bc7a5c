"""The studio's page by itself in headless Chromium: keys alone, Stop, problems in their place, axe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import (
    Served,
    asked,
    finished,
    load_robot_and_log,
    open_step,
    upload,
    wait_for_reader,
    write_endless_log,
)

from dynid import Robot

STEPS = ("robot", "motion", "log", "run", "compare", "use", "live", "actuators")


def by_tab(page: Any, selector: str, most: int = 120) -> None:
    """Press Tab until an element that the selector names has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"Tab never reaches {selector}")


def by_arrows(page: Any, name: str) -> None:
    """Go to a step with the arrow keys of the tabs."""
    page.evaluate("document.activeElement.blur()")
    by_tab(page, "[role=tab]")
    for _ in STEPS:
        if page.evaluate("document.activeElement.id") == f"tab-{name}":
            return
        page.keyboard.press("ArrowRight")
    raise AssertionError(f"the arrow keys never reach step {name}")


def choose_file(page: Any, selector: str, file: Path) -> None:
    """Open the file dialog of an input by the space bar, again where the page was drawn anew in between."""
    chosen: list[Any] = []
    page.once("filechooser", lambda chooser: chosen.append(chooser))
    for _ in range(5):
        by_tab(page, selector)
        page.keyboard.press("Space")
        for _ in range(50):
            if chosen:
                chosen[0].set_files(str(file))
                return
            page.wait_for_timeout(100)
    raise AssertionError(f"the space bar opens no file dialog at {selector}")


def test_whole_run_by_keys_alone(page: Any, two_joints: tuple[Path, Path]) -> None:
    """Robot, log and run without a mouse; joints move by arrow keys; focus is always to be seen."""
    choose_file(page, "#upload-robot", two_joints[0])
    page.wait_for_selector("#panel-robot .joints", timeout=120_000)
    by_tab(page, "#joint-1")
    page.keyboard.press("ArrowRight")
    assert float(page.input_value("#joint-1")) > 0.0
    by_arrows(page, "log")
    choose_file(page, "#upload-log", two_joints[1])
    page.wait_for_selector("#transport:visible", timeout=120_000)
    by_arrows(page, "run")
    by_tab(page, "#panel-run button.main")
    width = "getComputedStyle(document.activeElement).outlineWidth"
    assert page.evaluate(width) == "3px"
    page.keyboard.press("Enter")
    finished(page)
    by_arrows(page, "use")
    page.frame_locator("#panel-use iframe").locator("h1").wait_for()


def test_stop_ends_a_run_and_another_can_begin(page: Any, two_joints: tuple[Path, Path]) -> None:
    load_robot_and_log(page, *two_joints)
    open_step(page, "run")
    page.click("#panel-run button:text-is('Identify')")
    page.wait_for_selector("#progress[data-state='running']")
    page.click("#progress button:text-is('Stop')")
    finished(page, "stopped")  # and not "done": how soon, `dynid bench studio` measures
    page.select_option("#panel-run [data-where='method'] select", "wls")
    page.click("#panel-run button:text-is('Identify')")
    finished(page)


def test_refresh_in_the_middle_of_a_run(page: Any, two_joints: tuple[Path, Path]) -> None:
    """The job goes on, and the page that comes back shows it."""
    load_robot_and_log(page, *two_joints)
    open_step(page, "run")
    results = "async () => (await (await fetch('/api/state')).json()).results.length"
    before = page.evaluate(results)
    page.click("#panel-run button:text-is('Identify')")
    page.wait_for_selector("#progress[data-state='running']")
    page.reload()
    page.wait_for_selector("#progress:visible")
    finished(page)
    assert page.evaluate(results) == before + 1
    page.wait_for_function("(rows) => document.querySelectorAll('#panel-run table tbody tr').length === rows",
                           arg=before + 1)  # the table is drawn after the job's end is shown


def test_bad_column_is_explained_where_it_stands(page: Any, two_joints: tuple[Path, Path]) -> None:
    """A position taken for the time: said below that choice, which is marked; put right, it is gone."""
    load_robot_and_log(page, *two_joints)
    choice = page.locator("#panel-log [data-where='log.time'] select")
    choice.select_option("q1")
    problem = page.locator("#panel-log [data-where='log.time'] .problem")
    problem.wait_for()
    assert "time" in problem.inner_text()
    assert choice.get_attribute("aria-invalid") == "true"
    choice.select_option("time")
    problem.wait_for(state="hidden")
    assert page.locator("#panel-log [data-where='log.time'] select").get_attribute("aria-invalid") is None


def test_markup_in_names_stays_text(page: Any, two_joints: tuple[Path, Path], tmp_path: Path) -> None:
    bad = tmp_path / "bad.urdf"
    text = "&lt;img src=x onerror=window.hacked=1&gt;"
    bad.write_text(two_joints[0].read_text().replace('name="upper"', f'name="{text}"')
                   .replace('link="upper"', f'link="{text}"').replace('name="arm"', f'name="{text}"'))
    upload(page, "robot", bad)
    page.wait_for_function("() => document.querySelector('#panel-robot tbody')?.textContent.includes('<img src=x')")
    assert page.evaluate("window.hacked") is None
    assert page.locator("#panel-robot img").count() == 0


def test_link_that_cannot_exist_is_told(page: Any, two_joints: tuple[Path, Path], tmp_path: Path) -> None:
    bad = tmp_path / "light.urdf"
    bad.write_text(two_joints[0].read_text().replace('<mass value="1.5"/>', '<mass value="-1.5"/>'))
    upload(page, "robot", bad)
    row = page.locator("#panel-robot tr.bad")
    row.wait_for()
    assert "lower" in row.inner_text() and "mass" in row.inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_axe_finds_nothing_serious(new_page: Callable[..., Any], two_joints: tuple[Path, Path], scheme: str,
                                   width: int) -> None:
    """Every step with a robot, a log and results in it, by axe-core."""
    axe = pytest.importorskip("axe_core_python", reason="needs axe-core-python, of the extra dev")
    script = next(Path(axe.__file__).parent.rglob("axe.min.js")).read_text(encoding="utf-8")
    page = new_page(bypass_csp=True, color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    load_robot_and_log(page, *two_joints)
    if not asked(page, "/api/state")["results"]:
        open_step(page, "run")
        page.click("#panel-run button:text-is('Identify')")
        finished(page)
    page.evaluate(script)
    for step in STEPS:
        open_step(page, step)
        page.wait_for_timeout(400)
        found = page.evaluate("""async () => (await axe.run(document, { iframes: false,
                                 resultTypes: ['violations'] })).violations""")
        serious = [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found
                   if one["impact"] in ("serious", "critical")]
        assert serious == [], step


def test_reading_a_log_can_be_stopped(page: Any, studio: Served, two_joints: tuple[Path, Path]) -> None:
    """A log of many rows with dates takes minutes to read; other steps go on meanwhile, and Stop says what happened.

    This holds after changes of the settings too, although a browser sends only six requests at once."""
    load_robot_and_log(page, *two_joints)
    write_endless_log(studio.folder / "files" / "endless.csv", Robot.load(two_joints[0]).joint_names)
    stop = page.locator("#panel-log button:text-is('Stop reading')")
    page.locator("#panel-log .main-svg").first.wait_for()  # the first log is read and drawn
    stop.wait_for(state="hidden")
    page.evaluate("""async () => {
        for (;;) {  // the page itself may write the settings meanwhile
            const state = await (await fetch('/api/state')).json();
            const settings = { ...state.settings, logs: ['files/endless.csv'], log: { unit: 'rad' } };
            const answer = await fetch('/api/run', { method: 'PUT', headers: { 'X-Dynid': 'studio' },
                                                     body: JSON.stringify({ revision: state.revision, settings }) });
            if (answer.ok) return;
        }
    }""")
    page.locator("#panel-log :text-is('Reading endless.csv…')").wait_for()  # the first log may be read again before
    for unit in ("deg", "rad", "deg", "rad"):
        page.evaluate("""async (unit) => {
            const { change } = await import('/static/store.js');
            await change((settings) => { settings.log = { unit }; });
        }""", unit)
        page.wait_for_timeout(200)
    wait_for_reader(studio.folder / "files" / "endless.csv")
    assert page.evaluate("""async () => (await fetch('/api/tasks/catalogue', {
        method: 'POST', headers: { 'X-Dynid': 'studio' }, body: '{}',
        signal: AbortSignal.timeout(60_000) })).status""") == 200
    problem = page.locator("#panel-log .problem:has-text('reading the log was stopped')")
    stop.click()
    for attempt in range(1, 301):
        if problem.is_visible():
            break
        page.wait_for_timeout(200)
        if attempt % 10 == 0:  # a request that reached the server after Stop is read as well: press again
            page.evaluate("document.querySelector('#panel-log button.stop:not([hidden])')?.click()")
    assert problem.is_visible() and not stop.is_visible()
    page.evaluate("import('/static/store.js').then((page) => page.emit('state', page.store.state))")
    assert problem.is_visible()  # also after the page has drawn its steps again
    (studio.folder / "files" / "endless.csv").unlink()
