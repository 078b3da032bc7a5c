"""What a first-time user meets in the studio, in headless Chromium: an example, mistakes with files, the verdict."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Watch, asked, finished, load_robot_and_log, new_context, newest, open_step, opened, served, upload
from studio_client import log_of, urdf

from dynid import Robot, read
from dynid.recording.write import write_csv
from dynid.runs.demonstration import ROBOT

Files = tuple[Path, Path]
STEPS = ("robot", "motion", "log", "run", "compare", "use", "live", "actuators")
CLOCK = "async () => { window.clock = (await import('/static/clock.js')).clock; }"
# Neither the choice of method and friction nor the simulation is tested.
PLAIN_RUN = """async ([method, ...friction]) => { const { change } = await import('/static/store.js');
               await change((run) => { run.method = method; run.model.friction = friction;
                                       run.simulation.run = false; }); }"""
# Range of the time axis of every plot over time that is drawn.
RANGES = """() => [...document.querySelectorAll('.plot .area')].filter((one) => one._fullLayout?.xaxis.title.text ===
            'time, s').map((one) => one._fullLayout.xaxis.range)"""


@pytest.fixture(scope="module")
def two_results(tab: tuple[Any, Watch], two_joints: Files) -> list[dict[str, Any]]:
    """Two results of one log, by wls and by ols; the newest is last."""
    page, watch = tab
    load_robot_and_log(page, *two_joints)
    open_step(page, "run")
    found = []
    for method in ("wls", "ols"):
        page.evaluate(PLAIN_RUN, [method, "viscous", "coulomb"])
        page.click("#panel-run button:text-is('Identify')")
        page.wait_for_function("""(count) => document.querySelectorAll(
            '#panel-run section[aria-label=Results] tbody tr').length === count""", arg=len(found) + 1, timeout=240_000)
        found.append(newest(page))
    watch.check()
    return found


def state(page: Any) -> dict[str, Any]:
    return asked(page, "/api/state")


def drawn(page: Any, step: str) -> None:
    """Wait until the first plot of a step is there."""
    page.wait_for_function(f"() => document.querySelector('#panel-{step} .plot .area')?._fullLayout?.xaxis?.range")


def test_all_steps_are_visible_on_a_small_laptop(page: Any, two_results: Any) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    for step in STEPS:
        open_step(page, step)
        shown, whole = page.evaluate("[tabs.clientWidth, tabs.scrollWidth]")
        assert whole <= shown, step


def test_back_leads_to_the_step_before(page: Any, two_results: Any) -> None:
    open_step(page, "log")
    open_step(page, "run")
    page.go_back()
    page.wait_for_selector("#panel-log:visible")
    page.go_back()
    page.wait_for_selector("#panel-robot:visible")
    page.go_forward()
    page.wait_for_selector("#panel-log:visible")
    assert page.evaluate("location.hash") == "#log"


def test_a_step_opens_at_its_top(page: Any, two_results: Any) -> None:
    open_step(page, "compare")
    drawn(page, "compare")
    page.evaluate("document.getElementById('steps').scrollTop = 1e6")
    assert page.evaluate("document.getElementById('steps').scrollTop") > 0
    open_step(page, "use")
    page.wait_for_selector("#panel-use .headline")
    assert page.evaluate("document.getElementById('steps').scrollTop") == 0


def test_cursor_is_at_the_clock_when_a_step_is_opened_again(page: Any, two_results: Any) -> None:
    """The time moves on while another step is open."""
    open_step(page, "log")
    drawn(page, "log")
    place = "() => document.querySelector('#panel-log .cursor').style.transform"
    page.evaluate(CLOCK)
    page.evaluate("clock.seek(2)")
    page.wait_for_function(f"() => ({place})() !== ''")
    before = page.evaluate(place)
    open_step(page, "run")
    page.evaluate("clock.seek(15)")
    assert page.evaluate(place) == before
    open_step(page, "log")
    page.wait_for_function("""() => { const area = document.querySelector('#panel-log .area'),
        axis = area._fullLayout.xaxis;
        const at = new DOMMatrix(getComputedStyle(document.querySelector('#panel-log .cursor')).transform).m41;
        return Math.abs(at - axis._offset - axis.l2p(clock.time)) < 1 && clock.time === 15; }""")


def test_a_file_that_cannot_be_read_does_not_become_the_robot(page: Any, two_results: Any, two_joints: Files,
                                                              tmp_path: Path) -> None:
    before = state(page)["settings"]["robot"]
    broken = tmp_path / "broken.urdf"
    broken.write_text("<robot name='x'><link name='a'></robot>")
    for file in (broken, two_joints[1]):
        page.set_input_files("#upload-robot", str(file))
        page.wait_for_selector(f"#panel-robot .alert:has-text('{file.name}')")
        found = state(page)
        assert found["settings"]["robot"] == before
        assert not any(one["name"] == file.name and one["role"] == "robot" for one in found["files"])
    assert page.locator("#panel-robot .joints").is_visible()
    assert "done" in page.get_attribute("#tab-robot", "class")


def test_the_same_log_is_used_once(page: Any, two_results: Any, two_joints: Files, tmp_path: Path) -> None:
    """Sent again under its name or under another one; what happened is said."""
    before = state(page)["settings"]["logs"]
    copy = tmp_path / "copy.csv"
    copy.write_bytes(two_joints[1].read_bytes())
    open_step(page, "log")
    for file, words in ((two_joints[1], "used once"), (copy, "same content as log.csv")):
        page.set_input_files("#upload-log", str(file))
        page.wait_for_selector(f"#panel-log .drop [role=status]:has-text('{words}')")
        assert state(page)["settings"]["logs"] == before


def test_a_new_log_is_the_one_shown_and_can_be_removed(page: Any, two_results: Any, two_joints: Files,
                                                       tmp_path: Path) -> None:
    lines = two_joints[1].read_text().splitlines()
    second = tmp_path / "second.csv"
    second.write_text("\n".join(lines[:1200]) + "\n")
    open_step(page, "log")
    page.wait_for_selector("#shown-log:has-text('log.csv')")
    upload(page, "log", second)
    page.wait_for_selector("#shown-log:has-text('second.csv')")
    page.click("#panel-log button[aria-label='Remove second.csv']")
    page.wait_for_selector("#shown-log:has-text('log.csv')")
    assert [Path(one).name for one in state(page)["settings"]["logs"]] == ["log.csv"]


def test_advice_on_a_unit_names_the_field_of_the_page(page: Any, two_results: Any, two_joints: Files, tmp_path: Path
                                                      ) -> None:
    table = np.loadtxt(two_joints[1], delimiter=",", skiprows=1)
    speeds = np.rad2deg(np.gradient(table[:, 1:3], table[:, 0], axis=0))
    log = tmp_path / "degrees.csv"
    np.savetxt(log, np.hstack([table, speeds]), delimiter=",", header="time,q1,q2,tau1,tau2,dq1,dq2", comments="")
    open_step(page, "log")
    page.wait_for_selector("#tab-log.done")
    upload(page, "log", log)
    note = page.locator("#panel-log li.hint:has-text('times the derivatives of the positions')")
    note.wait_for(state="attached")
    told = note.text_content()
    assert "set “Unit of velocities” to deg" in told and "--set" not in told
    page.click("#panel-log button[aria-label='Remove degrees.csv']")
    page.wait_for_selector("#tab-log.done")


def test_milliseconds_are_refused_and_the_step_is_not_green(page: Any, two_results: Any, two_joints: Files,
                                                            tmp_path: Path) -> None:
    """The setting that mends it is beside the message; with it the step is green again."""
    table = np.loadtxt(two_joints[1], delimiter=",", skiprows=1)
    table[:, 0] *= 1e3
    log = tmp_path / "milliseconds.csv"
    np.savetxt(log, table, delimiter=",", header="time,q1,q2,tau1,tau2", comments="", fmt="%.7g")
    open_step(page, "log")
    page.wait_for_selector("#tab-log.done")
    upload(page, "log", log)
    problem = page.locator("#panel-log [data-where='log.time_unit'] .problem")
    problem.wait_for()
    told = problem.inner_text()
    assert "set “Unit of time” to ms" in told and "--set" not in told and "[log]" not in told
    assert page.locator("#panel-log .note.good").count() == 0 or not page.locator("#panel-log .note.good").is_visible()
    page.wait_for_selector("#tab-log:not(.done)")
    page.click("#panel-log button[aria-label='Remove milliseconds.csv']")
    page.wait_for_selector("#tab-log.done")


def test_only_well_determined_parameters_are_called_so(page: Any, two_results: Any) -> None:
    """No standard error above the limit is well determined; names carry meaning and unit."""
    open_step(page, "compare")
    page.wait_for_selector("#panel-compare table:has(caption:text-is('Parameters'))")
    known = {one["name"]: one for one in
             asked(page, f"/api/results/{two_results[-1]['id']}/curves.json")["parameters"]}
    rows = page.locator("#panel-compare table:has(caption:text-is('Parameters')) tbody tr").all()
    assert len(rows) == len(known)
    for row in rows:
        name, one = row.locator("abbr"), known[row.locator("abbr").inner_text()]
        assert name.get_attribute("title") == f"{one['meaning']}, {one['unit']}"
        assert ("well determined" in row.inner_text()) == (one["relative"] is not None and one["relative"] <= 50.0)
        assert re.search(r"\b(shoulder|elbow|upper|lower|link|joint) ?\d?", one["meaning"]), one["meaning"]


def test_every_axis_has_its_unit_and_every_parameter_its_name(page: Any, two_results: Any) -> None:
    for step, titles in (("log", ("time, s", "position, rad", "velocity, rad/s", "torque, N m")),
                         ("compare", ("time, s", "shoulder, N m", "residual, N m", "friction, N m",
                                      "velocity of shoulder, rad/s"))):
        open_step(page, step)
        drawn(page, step)
        for title in titles:
            page.locator(f"#panel-{step} .plot svg text", has_text=re.compile(f"^{title}$")).first.wait_for(
                state="attached")
        assert "or N" not in page.inner_text(f"#panel-{step}")
    names = {one["name"] for one in asked(page, f"/api/results/{two_results[-1]['id']}/curves.json")["parameters"]
             if one["std"]}
    shown = "() => [...document.querySelectorAll('#panel-compare .tall .ytick text')].map((one) => one.textContent)"
    page.wait_for_function(f"(count) => ({shown})().length >= count", arg=len(names))
    assert set(page.evaluate(shown)) == names


def test_no_step_scrolls_into_blank_and_a_phone_shows_the_step_first_and_every_button(page: Any,
                                                                                      two_results: Any) -> None:
    """The panel scrolls; the page itself is as high as the window.

    At 390 px nothing is wider than the screen, the heading is in the upper half, the robot is one press away.
    """
    for step in STEPS:
        open_step(page, step)
        high, window = page.evaluate("[document.documentElement.scrollHeight, innerHeight]")
        assert high <= window, step
    page.set_viewport_size({"width": 390, "height": 800})
    for step in STEPS:
        open_step(page, step)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, step
        if page.locator("#progress button:text-is('Close')").is_visible():
            page.click("#progress button:text-is('Close')")
        assert page.locator(f"#panel-{step} h2").bounding_box()["y"] < 400, step
        outside = page.evaluate("""(step) => [...document.querySelectorAll(`#panel-${step} button, #stage button`)]
            .filter((one) => one.offsetParent && !one.closest('.scroll'))
            .filter((one) => { const box = one.getBoundingClientRect(); return box.left < 0 || box.right > 390; })
            .map((one) => one.textContent)""", step)
        assert outside == [], step
    assert not page.locator("#view").is_visible()
    page.click("#hide-scene")
    page.locator("#view").wait_for()


def test_the_selected_tab_stays_in_sight_when_the_width_changes(page: Any, two_results: Any) -> None:
    open_step(page, "use")
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("""() => { const bar = document.getElementById('tabs').getBoundingClientRect(),
        tab = document.getElementById('tab-use').getBoundingClientRect();
        return tab.left >= bar.left - 1 && tab.right <= bar.right + 1; }""")


def test_signs_need_no_scrolling_and_units_no_second_line(page: Any, two_results: Any) -> None:
    """At 1400 px, with two joints; a unit such as kg m^2 has no space at which it could be broken."""
    open_step(page, "log")
    region = page.locator("#panel-log .scroll[aria-label='Columns and signs of each joint']")
    assert region.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    assert region.locator("button").all_inner_texts() == ["+"] * 4
    open_step(page, "run")
    unit = page.evaluate("""async () => (await import('/static/parameters.js')).parameterTable([{ name: 'ZZ1',
        meaning: 'inertia', unit: 'kg m²', value: 1, std: 1, relative: 1, status: '' }])
        .querySelectorAll('td')[2].textContent""")
    assert unit == "kg\u00a0m²"


def test_legend_keeps_clear_of_the_curves_when_the_width_changes(page: Any, two_results: Any) -> None:
    open_step(page, "compare")
    drawn(page, "compare")
    clear = """() => { const area = document.querySelector('#panel-compare .plot .area');
        const legend = area.querySelector('.legend')?.getBoundingClientRect();
        const curves = area.querySelector('.nsewdrag')?.getBoundingClientRect();
        return area._fullLayout.width === area.parentElement.clientWidth && legend && legend.height > 0
            && legend.bottom <= curves.top + 2 && legend.right <= area.getBoundingClientRect().right + 2; }"""
    for width in (390, 1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function(clear)


def test_friction_terms_are_below_their_select_box(page: Any, two_results: Any) -> None:
    open_step(page, "run")
    page.select_option("#panel-run [data-where='model.friction'] select", "chosen")
    terms = page.locator("#panel-run fieldset[data-where='model.friction']")
    terms.wait_for()
    boxes = [page.locator(f"#panel-run .field[data-where='{name}']").bounding_box()
             for name in ("method", "gravity", "model.friction")]
    low = boxes[-1]["y"] + boxes[-1]["height"]
    assert 0.0 <= terms.bounding_box()["y"] - low < 40.0
    assert all(box["y"] + box["height"] <= low for box in boxes)
    page.select_option("#panel-run [data-where='model.friction'] select", "auto")
    terms.wait_for(state="detached")


def test_the_verdict_comes_first_after_a_run(page: Any, two_results: Any) -> None:
    """The bar above the steps says how good the model is, and leads to the verdict."""
    verdict = asked(page, f"/api/results/{two_results[-1]['id']}/curves.json")["verdict"]
    assert verdict["lines"][0].rstrip(".") in page.inner_text("#progress .sentence")
    page.click("#progress button:text-is('Show the result')")
    head = page.locator("#panel-compare .headline")
    head.wait_for()
    assert head.inner_text() == verdict["lines"][0]
    assert head.bounding_box()["y"] < page.viewport_size["height"] / 2
    assert page.locator("#panel-compare section").first.get_attribute("aria-label") == "Verdict"


def test_time_axis_is_shared_by_all_plots(page: Any, two_results: Any) -> None:
    """A drag in the plot of the log zooms that of the result as well; the buttons zoom, move and show all again."""
    for step in ("compare", "log"):
        open_step(page, step)
        drawn(page, step)
    page.evaluate(CLOCK)
    plot = page.locator("#panel-log .plot .nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.25 * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], y, steps=5)
    page.mouse.up()
    page.wait_for_function("() => clock.view !== null")
    low, high = page.evaluate("clock.view")
    assert 3.0 < low < 7.0 and 8.0 < high < 12.0
    same = f"(view) => ({RANGES})().length > 1 && ({RANGES})().every(([a, b]) => a === view[0] && b === view[1])"
    page.wait_for_function(same, arg=[low, high])
    page.click("#transport button[aria-label='Later']")
    page.wait_for_function(same, arg=page.evaluate("clock.view"))
    assert page.evaluate("clock.view[0]") == pytest.approx(low + 0.5 * (high - low))
    page.click("#transport button[title='Show the whole time']")
    page.wait_for_function(f"() => ({RANGES})().every(([a, b]) => b - a > 19)")
    assert page.evaluate("clock.view") is None


def test_two_results_are_overlaid(page: Any, two_results: Any) -> None:
    """Curves of both in the plots, and both values of each parameter in the table."""
    first, second = two_results[-1], two_results[0]
    open_step(page, "compare")
    drawn(page, "compare")
    traces = "() => document.querySelector('#panel-compare .plot .area').data.length"
    page.wait_for_function(f"() => ({traces})() === 3")
    page.locator("#panel-compare .field:has(label:text-is('Overlay with')) select").select_option(second["id"])
    page.wait_for_function(f"() => ({traces})() === 5")
    table = page.locator("#panel-compare table:has(caption:text-is('Parameters of two results'))")
    table.wait_for()
    head = table.locator("thead").inner_text()
    assert first["method"] in head and second["method"] in head
    ours, theirs = ({one["name"]: one for one in asked(page, f"/api/results/{one['id']}/curves.json")["parameters"]}
                    for one in (first, second))
    for row in table.locator("tbody tr").all():
        cells = [cell.inner_text() for cell in row.locator("td").all()]
        name = row.locator("abbr").inner_text()
        for cell, one in ((cells[1], ours[name]), (cells[2], theirs[name])):
            assert float(cell.split(" ± ")[0]) == pytest.approx(one["value"], rel=5e-3)  # three digits


def test_report_shows_what_a_parameter_means_on_hover(page: Any, two_results: Any) -> None:
    """Names in the table and in the combinations of base parameters; a name carries joint or link and unit."""
    known = asked(page, f"/api/results/{two_results[-1]['id']}/curves.json")["parameters"]
    open_step(page, "use")
    report = page.frame_locator("#panel-use iframe")
    for one in known:
        name = report.locator(f"#parameters td.mono:first-child abbr:text-is('{one['name']}')").first
        assert name.get_attribute("title").startswith(f"{one['meaning']}, ")
    combined = report.locator("#parameters td.expression abbr", has_text="M2").first
    assert "link" in combined.get_attribute("title") or "lower" in combined.get_attribute("title")


def test_a_claim_has_the_certainty_of_its_evidence(chrome: Any, tmp_path: Path) -> None:
    """The elbow's torque is scaled. Two joints that contradict each other do not show which of them is wrong."""
    file = tmp_path / "arm.urdf"
    file.write_text(urdf())
    log = read(log_of(Robot.from_urdf(file), tmp_path / "right.csv"), robot=Robot.from_urdf(file))
    write_csv(replace(log, tau=log.tau * [1.0, 1.5]), tmp_path / "wrong.csv")
    with served(tmp_path / "work", warm=False) as running:
        context = new_context(chrome, viewport={"width": 1280, "height": 800})
        page = opened(Watch(running.origin).follow(context.new_page()), running.address)
        load_robot_and_log(page, file, tmp_path / "wrong.csv")
        open_step(page, "run")
        page.evaluate(PLAIN_RUN, ["wls", "viscous", "coulomb"])
        page.click("#panel-run button:text-is('Identify')")
        finished(page)
        open_step(page, "use")
        shown = page.inner_text("#panel-use section[aria-label='Verdict'] ul >> nth=0")
        context.close()
    assert re.search(r"gain of joint \w+ is probably wrong.* \(or that of joint \w+ by the inverse\)", shown), shown


def test_an_example_needs_no_file_and_a_restarted_server_is_found_again(chrome: Any, tmp_path: Path) -> None:
    """The open page says that the server is gone, and goes on by itself when it is back, with all that was there."""
    context = new_context(chrome, viewport={"width": 1280, "height": 800})
    folder = tmp_path / "work"
    with served(folder) as first:
        watch = Watch(first.origin)
        page = opened(watch.follow(context.new_page()), first.address)
        page.click("#example")
        page.wait_for_selector("#tab-log.done", timeout=240_000)
        found = state(page)
        assert found["settings"]["robot"] == ROBOT
        assert {one["role"] for one in found["files"]} == {"log", "validation"}
        assert not page.locator("#example").is_visible()
        origin = first.origin
    page.wait_for_selector("#offline:visible")
    with served(folder, warm=False) as again:
        assert again.origin == origin
        page.wait_for_selector("#offline", state="hidden")
        kept = state(page)
        assert kept["settings"] == found["settings"] and kept["files"] == found["files"]
        open_step(page, "run")
        page.evaluate(PLAIN_RUN, ["wls", "viscous", "coulomb", "offset"])
        page.click("#panel-run button:text-is('Identify')")
        finished(page)
        page.click("#progress button:text-is('Show the result')")
        page.wait_for_selector("#panel-compare .headline.good")
    assert watch.outside == []
    context.close()
