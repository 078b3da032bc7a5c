"""Make the pictures of docs/studio.md: every step of the studio in headless Chromium, on the tutorial's arm.

    python docs/studio_pictures.py [--dark] [--width 1120] [--height 690] [--into FOLDER] [--only actuators]
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE.parent)]
from browser import ARGUMENTS, chromium, finished, open_step, opened, served, upload  # noqa: E402

from reproductions._servos import Servo, motions, simulate  # noqa: E402


def robot(page: Any) -> None:
    upload(page, "robot", Path("arm.urdf"))
    page.wait_for_selector("#panel-robot .joints", timeout=120_000)
    page.check("text=Inertia ellipsoids")
    for joint, value in enumerate((0.6, 0.7, -1.1)):
        page.locator(f"#joint-{joint}").fill(str(value))
    scroll_to(page, "#panel-robot section[aria-label='Robot model']")


def motion(page: Any) -> None:
    page.uncheck("text=Inertia ellipsoids")
    page.locator("#panel-motion [data-where='motion.seconds'] input").fill("25")
    page.click("#panel-motion button:text-is('Optimise a motion')")
    finished(page)
    page.wait_for_selector("#panel-motion section[aria-label='Motion'] .main-svg")
    page.click("#progress button:text-is('Close')")
    scroll_to(page, "#panel-motion section[aria-label='Search']")


def log(page: Any) -> None:
    upload(page, "log", Path("monday.csv"))
    page.wait_for_selector("#panel-log .alert p")  # these look like degrees, it says
    page.select_option("#panel-log [data-where='log.unit'] select", "deg")
    page.wait_for_selector("#panel-log section[aria-label='Signals']", timeout=120_000)
    upload(page, "validation", Path("tuesday.csv"))
    page.wait_for_function("() => document.querySelector('#panel-log > p[role=status]').textContent === ''")
    page.wait_for_selector("#panel-log .main-svg")
    seek(page, 5.0)
    scroll_to(page, "#panel-log section[aria-label='Columns, signs and units']")


def run(page: Any) -> None:
    page.check("text=Rotor inertias")
    page.click("#panel-run button:text-is('Identify')")
    page.wait_for_function("() => document.querySelector('#progress progress').value > 0.2", timeout=120_000)


def compare(page: Any) -> None:
    finished(page)
    open_step(page, "compare")
    page.click("#panel-compare button:text-is('Compare')")
    page.wait_for_selector("#progress[data-state='running']")
    finished(page)
    page.wait_for_selector("#panel-compare .best")
    page.click("#progress button:text-is('Close')")
    torques = page.locator("#panel-compare section[aria-label='Torques and residuals']")
    torques.get_by_label("Joint", exact=True).select_option("1")
    torques.get_by_label("Overlay with", exact=True).select_option(index=1)
    seek(page, 7.3)
    page.click("#transport button:text-is('+')")
    page.wait_for_timeout(1000)
    scroll_to(page, "#panel-compare section[aria-label='Torques and residuals'] .field:nth-child(2)")


def use(page: Any) -> None:
    page.select_option("#panel-use .fields select", index=1)  # the run, the comparison is newer
    page.wait_for_selector("#panel-use .downloads a:has-text('URDF')")
    page.frame_locator("#panel-use iframe").locator("h1").wait_for()
    scroll_to(page, "#panel-use section[aria-label='Verdict']")


def live(page: Any) -> None:
    page.locator("#panel-live [data-focus='Speed, times real time']").fill("1")
    page.click("#panel-live button:text-is('Start')")
    page.wait_for_selector("#panel-live table", timeout=120_000)
    page.wait_for_timeout(6000)
    scroll_to(page, "#panel-live section[aria-label='Now']")


def actuators(page: Any) -> None:
    rate, gains = 100.0, {"kp": 8.0, "kd": 0.15}
    commands = motions(1, 600, rate, 4301)
    q = simulate([Servo(0.5, 0.15, 0.01, "pd", gains, {"coulomb": 0.05, "viscous": 0.05}, delay=0.02)], commands, rate)
    np.savetxt("servo.csv", np.column_stack([np.arange(600) / rate, q[0], commands[0]]), delimiter=",",
               header="time,position,goal", comments="", fmt="%.9g")
    upload(page, "actuators", Path("servo.csv"))
    page.wait_for_selector("#panel-actuators [data-where='actuators.gains.kp']")
    for where, text in (("mass", "0.5"), ("length", "0.15"), ("position", "position"), ("command", "goal"),
                        *((f"gains.{name}", str(value)) for name, value in gains.items())):
        page.fill(f"#panel-actuators [data-where='actuators.{where}'] input", text)
    page.select_option("#panel-actuators [data-where='actuators.friction'] select", "m1")
    page.click("#panel-actuators button:text-is('Identify the actuators')")
    finished(page)
    page.locator("#panel-actuators .js-plotly-plot .scatterlayer").first.wait_for()
    page.click("#progress button:text-is('Close')")
    scroll_to(page, "#panel-actuators section[aria-label='Result']")


STEPS: dict[str, Callable[[Any], None]] = {"robot": robot, "motion": motion, "log": log, "run": run, "compare": compare,
                                           "use": use, "live": live, "actuators": actuators}


def seek(page: Any, time: float) -> None:
    """Put the time cursor somewhere."""
    page.evaluate("async (time) => (await import('/static/clock.js')).clock.seek(time)", time)


def scroll_to(page: Any, selector: str) -> None:
    """Bring a part of a step to the top of the window, below the tabs."""
    page.evaluate("""(selector) => {
        const tabs = document.getElementById('tabs').offsetHeight + 12;
        const steps = document.getElementById('steps');
        const top = (one) => one.getBoundingClientRect().top;
        steps.scrollTop += top(document.querySelector(selector)) - top(steps) - tabs;
    }""", selector)


def main() -> None:
    """Photograph every step, one after the other, as a user goes through them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--width", type=int, default=1120)
    parser.add_argument("--height", type=int, default=690)
    parser.add_argument("--into", type=Path, default=HERE / "images")
    parser.add_argument("--only", choices=["actuators"], help="the step that needs no other")
    options = parser.parse_args()
    into = options.into.resolve()
    with tempfile.TemporaryDirectory() as place, chdir(place), sync_playwright() as playwright:
        for name in ("arm.urdf", "make_logs.py"):
            shutil.copy(HERE / "example" / name, name)
        subprocess.run([sys.executable, "make_logs.py"], check=True)
        with served(Path("my-arm")) as studio:
            browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
            page = browser.new_page(viewport={"width": options.width, "height": options.height},
                                    color_scheme="dark" if options.dark else "light")
            page.set_default_timeout(60_000)
            opened(page, studio.address)
            page.wait_for_function("() => document.getElementById('worker').textContent === ''", timeout=240_000)
            for name, step in STEPS.items() if options.only is None else [(options.only, STEPS[options.only])]:
                if name != "compare":
                    open_step(page, name)
                step(page)
                page.mouse.move(1, 1)
                page.wait_for_timeout(800)
                page.screenshot(path=into / f"studio-{name}.png")
            browser.close()


if __name__ == "__main__":
    main()
