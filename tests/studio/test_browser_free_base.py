"""The studio's scene follows the logged pose of a base that moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import load_robot_and_log, open_step
from scipy.spatial.transform import Rotation
from walkers import quadruped

from dynid.floating import Contact
from dynid.floating.virtual_walker import SensorNoise, standing_motion, virtual_log
from dynid.robot import Robot

START = np.array([1.5, 0.4, 0.32])  # m, of the base in the world


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
