"""A real URDF and a real log of seven joints in headless Chromium, from upload to the open report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import finished, load_robot_and_log, newest, open_step

pytestmark = pytest.mark.slow


def test_kuka_log_ends_in_an_open_report(page: Any, data: Callable[..., Path]) -> None:
    """KUKA LWR4+: nothing but two files and a click; `dynid identify` gives 1.7 % on the same files by wls."""
    load_robot_and_log(page, data("kuka_lwr4", "kuka_lwr4.urdf"), data("kuka_lwr4", "measurements_1.npz"))
    open_step(page, "run")
    page.select_option("#panel-run [data-where='method'] select", "wls")
    page.click("#panel-run button:text-is('Identify')")
    finished(page)
    assert newest(page)["relative_error"] == pytest.approx(1.70, abs=0.01)
    open_step(page, "compare")
    page.locator("#panel-compare figure .main-svg").first.wait_for()
    open_step(page, "use")
    assert "identified by wls" in page.frame_locator("#panel-use iframe").locator("h1").inner_text()
