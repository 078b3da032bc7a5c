"""Make the pictures of docs/images from real output: what `dynid inspect arm3r` prints, the report of `dynid demo`, and
its page of friction.

The report is photographed by Chromium without a window; without Chromium only the first picture is made.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from contextlib import chdir
from pathlib import Path

import numpy as np
from rich.console import Console

from dynid.cli.tables import print_inspection
from dynid.estimate import Problem, choose_terms, identify
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.report import ReportData, write_report
from dynid.report.pages.identification import friction
from dynid.robot import Robot
from dynid.runs.demo import demo
from dynid.runs.inspection import inspect_robot
from dynid.validate import reconstruct, verdict

IMAGES = Path(__file__).resolve().parent / "images"
SIZE = "1200,1632"  # pixels: the verdict, and the torques of the first two joints
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]


def inspect_picture() -> None:
    """inspect.svg: text in the reader's own monospace font, since a picture in a document fetches nothing."""
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=88, file=nowhere, force_terminal=True, highlight=False)
        print_inspection(inspect_robot(Robot.builtin("arm3r")), console)
    svg = console.export_svg(title="dynid inspect arm3r", unique_id="inspect")
    (IMAGES / "inspect.svg").write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), encoding="utf-8")


def report_picture(browser: str) -> None:
    """report.png: the top of the demonstration's report."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        report = demo("dynid-demo").report.resolve()
        subprocess.run([browser, *QUIET, f"--user-data-dir={folder}/browser", f"--window-size={SIZE}",
                        "--virtual-time-budget=8000", f"--screenshot={IMAGES / 'report.png'}", report.as_uri()],
                       check=True, capture_output=True, timeout=120)


def friction_picture(browser: str) -> None:
    """friction.png: friction over velocity of a simulated arm with curves and load, as the report draws it."""
    robot = Robot.builtin("arm3r")
    truth = Model(robot, make_terms(robot, extra=[{"kind": "curve", "speed": 3.0}, {"kind": "load"}]))
    values = {"Fv": 0.2, "Fc": 0.3, "Ft3_": 0.2, "Ft5_": 0.5, "Ft6_": 0.8, "Fl": 0.1}
    theta = [values.get(one.symbol, one.nominal or 0.0) for one in truth.parameters]
    rng, t = np.random.default_rng(0), np.arange(4000)[:, None] / 200
    rates, sizes, phases = 2 * np.pi * np.arange(1, 6) / 10, rng.normal(size=(3, 5)), rng.uniform(0, 6, (3, 5))
    angles = rates * t[:, :, None] + phases
    q, dq, ddq = ((sizes * part).sum(axis=2) for part in (np.sin(angles), rates * np.cos(angles),
                                                          -rates ** 2 * np.sin(angles)))
    tau = truth.inverse_dynamics(theta, q, dq, ddq) + 0.1 * rng.normal(size=q.shape)
    samples = Samples.of(q, dq, ddq, tau, rate=200.0)
    problem = Problem.of(choose_terms(Model(robot), samples).model, samples)
    estimate = identify(problem)
    fit = reconstruct(estimate, samples)
    data = ReportData("arm3r", estimate, fit, verdict(problem, estimate, fit), robot=robot)
    with tempfile.TemporaryDirectory() as folder:
        page = write_report(data, Path(folder) / "friction.html", sections=(friction.SECTION,))
        subprocess.run([browser, *QUIET, f"--user-data-dir={folder}/browser", "--window-size=1200,840",
                        "--virtual-time-budget=8000", f"--screenshot={IMAGES / 'friction.png'}",
                        page.resolve().as_uri()], check=True, capture_output=True, timeout=120)


def main() -> None:
    """Make what can be made."""
    inspect_picture()
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        print("report.png and friction.png are left as they are: they take Chromium")
    else:
        report_picture(browser)
        friction_picture(browser)


if __name__ == "__main__":
    main()
