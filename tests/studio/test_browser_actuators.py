"""Actuators in headless Chromium: a log of a servo with a pendulum is uploaded, and its parameters are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import asked, finished, newest, open_step, upload

from reproductions._servos import Servo, motions, simulate

RATE, ROWS, MASS, LENGTH = 100.0, 600, 0.5, 0.15
TRUTH = {"armature": 0.01, "coulomb": 0.05, "viscous": 0.05, "delay": 0.02}
GAINS = {"kp": 8.0, "kd": 0.15}


@pytest.fixture(scope="module")
def servo_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Positions and commands, in columns whose names say neither."""
    commands = motions(1, ROWS, RATE, 4301)
    servo = Servo(MASS, LENGTH, TRUTH["armature"], "pd", GAINS,
                  {name: TRUTH[name] for name in ("coulomb", "viscous")}, delay=TRUTH["delay"])
    q = simulate([servo], commands, RATE)[0]
    path = tmp_path_factory.mktemp("servo") / "servo.csv"
    np.savetxt(path, np.column_stack([np.arange(ROWS) / RATE, q, commands[0]]), delimiter=",", header="time,is,goal",
               comments="", fmt="%.9g")
    return path


def fill_in(page: Any, servo_log: Path) -> None:
    """Upload the log and state everything but the mass of the pendulum."""
    open_step(page, "actuators")
    if not page.locator("#panel-actuators .files a").count():
        upload(page, "actuators", servo_log)
    page.wait_for_selector("#panel-actuators [data-where='actuators.gains.kp']")
    for where, text in (("length", str(LENGTH)), ("position", "is"), ("command", "goal"),
                        *((f"gains.{name}", str(value)) for name, value in GAINS.items())):
        page.fill(f"#panel-actuators [data-where='actuators.{where}'] input", text)
    page.select_option("#panel-actuators [data-where='actuators.friction'] select", "m1")


def test_a_log_of_a_servo_ends_in_parameters_and_a_plot(page: Any, servo_log: Path) -> None:
    fill_in(page, servo_log)
    page.fill("#panel-actuators [data-where='actuators.mass'] input", str(MASS))
    page.click("#panel-actuators button:text-is('Identify the actuators')")
    finished(page)
    result = page.locator("#panel-actuators section[aria-label='Result']")
    result.locator(".js-plotly-plot .scatterlayer").first.wait_for(timeout=60_000)
    assert "mrad" in result.locator(".note.good").inner_text()
    found = asked(page, f"/api/results/{newest(page, 'actuators')['id']}/curves.json")
    values = {one["name"]: one for one in found["parameters"]}
    for name, truth in TRUTH.items():
        assert values[name]["interval"] is not None and values[name]["value"] == pytest.approx(truth, rel=0.05)
    rows = result.locator("table tbody tr").all_inner_texts()
    assert any("armature, kg m²" in row and " to " in row for row in rows)
    (curves,) = found["curves"]
    error = np.abs(np.array(curves["measured"]) - np.array(curves["simulated"]))
    assert error.mean() == pytest.approx(found["simulation"]["mean_error"], rel=0.1)
    assert "dynid actuators files/servo.csv --pendulum mass=0.5,length=0.15" in result.locator("pre").inner_text()
    names = {one.get_attribute("download") for one in result.locator(".downloads a").all()}
    assert names == {"report.html", "actuators.json", "posterior.json"}
    legend = result.locator(".legendtext").all_text_contents()
    assert {"command", "measured", "simulated"} <= set(legend)


def test_a_pendulum_without_its_mass_is_refused_in_one_sentence(page: Any, servo_log: Path) -> None:
    fill_in(page, servo_log)
    page.click("#panel-actuators button:text-is('Identify the actuators')")
    finished(page, "failed")
    text = page.locator("#panel-actuators .alert").inner_text()
    assert "the pendulum needs its mass" in text and "Traceback" not in text
