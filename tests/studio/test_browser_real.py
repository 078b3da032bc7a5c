"""A real URDF and a real log of seven joints in headless Chromium, from upload to the open report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import finished, load_robot_and_log, newest, open_step

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
