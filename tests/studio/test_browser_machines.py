"""A robot with a moving base and a servo in headless Chromium: the scene follows the base, and actuators are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import asked, finished, load_robot_and_log, newest, open_step, upload
from scipy.spatial.transform import Rotation
from walkers import quadruped

from dynid.floating import Contact
from dynid.floating.virtual_walker import SensorNoise, standing_motion, virtual_log
from dynid.robot import Robot
from reproductions._servos import Servo, motions, simulate

START = np.array([1.5, 0.4, 0.32])  # m, of the base in the world
RATE, ROWS, MASS, LENGTH = 100.0, 600, 0.5, 0.15
TRUTH = {"armature": 0.01, "coulomb": 0.05, "viscous": 0.05, "delay": 0.02}
GAINS = {"kp": 8.0, "kd": 0.15}


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Any]:
    """A quadruped, a CSV of its motion with the pose of its base, and the log itself."""
    folder = tmp_path_factory.mktemp("walk")
    (folder / "dog.xml").write_text(quadruped())
    robot, legs = Robot.load(folder / "dog.xml"), ("FL", "FR", "RL", "RR")
    feet = [Contact(f"{leg}_toe") for leg in legs]
    motion = standing_motion(robot, feet, np.tile([0.0, 0.8, -1.6], 4), duration=4.0, rate=100.0, tilt=0.3, seed=3)
    log = virtual_log(robot, feet, motion, noise=SensorNoise(position=1e-5, torque=0.02))
    names = robot.joint_names[6:]
    columns = {"time": log.t} | {f"q_{name}": log.q[:, k] for k, name in enumerate(names)}
    columns |= {f"tau_{name}": log.tau[:, k] for k, name in enumerate(names)}
    columns |= {f"base_pos_{axis}": log.position[:, k] + START[k] for k, axis in enumerate("xyz")}
    columns |= {f"base_quat_{axis}": log.orientation[:, k] for k, axis in enumerate("xyzw")}
    columns |= {f"{leg}_contact": log.standing[:, k] for k, leg in enumerate(legs)}
    np.savetxt(folder / "walk.csv", np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns),
               comments="", fmt="%.9g")
    return folder / "dog.xml", folder / "walk.csv", log


def test_scene_follows_the_base(page: Any, walk: tuple[Path, Path, Any]) -> None:
    robot, file, log = walk
    load_robot_and_log(page, robot, file)
    assert "base quaternion w" in page.inner_text("#panel-log")
    for time in (1.0, 2.5):
        open_step(page, "log")
        page.evaluate("""(time) => { const slider = document.querySelector("#transport input[type=range]");
                      slider.value = time; slider.dispatchEvent(new Event("input")); }""", time)
        open_step(page, "robot")
        shown = [page.get_attribute(f"#joint-{k}", "aria-valuetext") for k in range(6)]
        row = int(np.argmin(np.abs(log.t - time)))
        angles = Rotation.from_quat(log.orientation[row]).as_euler("XYZ", degrees=True)
        expected = [*(log.position[row] + START), *angles]
        drawn = [float(text.split()[0].replace("\N{MINUS SIGN}", "-")) for text in shown]
        # Three digits are shown, and the slider stops at steps of 2 ms.
        np.testing.assert_allclose(drawn, expected, rtol=0.01, atol=0.15)
        assert np.abs(np.array(drawn[:3]) - expected[:3]).max() < 0.01
        assert [text.split()[1] for text in shown] == ["m"] * 3 + ["°"] * 3


@pytest.mark.slow
def test_a_motion_with_standing_feet_is_searched(page: Any, walk: tuple[Path, Path, Any]) -> None:
    """The feet are found by their names. A foot that the robot does not have is named, and the corrected form works."""
    robot, file, _ = walk
    load_robot_and_log(page, robot, file)
    open_step(page, "motion")
    feet = page.locator("#panel-motion [data-where='motion.standing'] input")
    assert feet.input_value() == "FL_toe, FR_toe, RL_toe, RR_toe"
    page.locator("#panel-motion [data-where='motion.seconds'] input").fill("0.5")
    page.locator("#panel-motion [data-where='motion.duration'] input").fill("4")
    feet.fill("FL_toe, XX_toe")
    page.click("#panel-motion button:text-is('Optimise a motion')")
    page.wait_for_selector("text=/frame.*XX_toe/")
    feet.fill("FL_toe, FR_toe, RL_toe, RR_toe")
    page.click("#panel-motion button:text-is('Optimise a motion')")
    page.wait_for_selector("#panel-motion section[aria-label='Motion']", timeout=120_000)
    assert "--standing FL_toe,FR_toe,RL_toe,RR_toe" in page.inner_text("#panel-motion pre")


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
    result.locator(".js-plotly-plot .scatterlayer").first.wait_for()
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
