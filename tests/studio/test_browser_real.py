"""A real URDF and a real log of seven joints in headless Chromium, from upload to the open report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import asked, finished, load_robot_and_log, newest, open_step, upload

import dynid

pytestmark = pytest.mark.slow


def test_kuka_log_ends_in_an_open_report(page: Any, data: Callable[..., Path]) -> None:
    """KUKA LWR4+: two files and a click give the error that `dynid.identify` gives on the same files."""
    files = data("kuka_lwr4", "kuka_lwr4.urdf"), data("kuka_lwr4", "measurements_1.npz")
    load_robot_and_log(page, *files)
    open_step(page, "run")
    page.select_option("#panel-run [data-where='method'] select", "wls")
    page.click("#panel-run button:text-is('Identify')")
    finished(page)
    expected = dynid.identify(*map(str, files), method="wls").estimate.diagnostics.relative_error
    assert newest(page)["relative_error"] == pytest.approx(expected, rel=1e-6)
    open_step(page, "compare")
    page.locator("#panel-compare figure .main-svg").first.wait_for()
    open_step(page, "use")
    assert "identified by wls" in page.frame_locator("#panel-use iframe").locator("h1").inner_text()


def test_motion_of_a_ur10_above_a_floor_is_nowhere_below_it(page: Any, data: Callable[..., Path],
                                                            tmp_path: Path) -> None:
    """The downloaded motion, row by row at 1 kHz, in Pinocchio: every joint by the radius of its link above the floor,
    and every frame above it. Its meshes are missing, and only its tool has a collision shape."""
    pinocchio = pytest.importorskip("pinocchio")
    from scipy.interpolate import CubicHermiteSpline

    file = data("models", "ur10_robot.urdf")
    open_step(page, "robot")
    upload(page, "robot", file)
    page.wait_for_selector("#panel-robot .joints label:has-text('wrist_3_joint')")
    open_step(page, "motion")
    page.locator("#panel-motion [data-where='motion.seconds'] input").fill("3")
    page.locator("#panel-motion [data-where='motion.floor'] input").fill("0")
    page.click("#panel-motion button:text-is('Optimise a motion')")
    page.wait_for_selector("#progress[data-state='running']")
    finished(page)
    page.wait_for_selector("#panel-motion section[aria-label='Motion']")
    assert "above the floor" in page.inner_text("#lowest")
    with page.expect_download() as download:
        page.click("#panel-motion a:text-is('Download motion.csv')")
    download.value.save_as(tmp_path / "motion.csv")
    radii = {one["link"]: one["radius"] or 0.0
             for one in asked(page, f"/api/results/{newest(page, 'motion')['id']}/results.json")["links"]}
    assert radii["upper_arm_link"] > 0.0 and radii["forearm_link"] > 0.0

    model = pinocchio.buildModelFromUrdf(str(file))
    table = np.genfromtxt(tmp_path / "motion.csv", delimiter=",", names=True)
    q, dq = (np.column_stack([table[f"{kind}_{name}"] for name in model.names[1:]]) for kind in ("q", "dq"))
    state = model.createData()
    joints = dict(zip(model.names[1:], radii.values(), strict=True))
    moved = [k for k, frame in enumerate(model.frames) if frame.parentJoint > 0]
    for row in CubicHermiteSpline(table["t"], q, dq)(np.arange(0.0, table["t"][-1], 1e-3)):
        pinocchio.framesForwardKinematics(model, state, row)
        for joint, radius in joints.items():
            assert state.oMi[model.getJointId(joint)].translation[2] >= radius - 1e-4, joint
        assert min(state.oMf[k].translation[2] for k in moved) >= -1e-4
