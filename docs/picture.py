"""Make the pictures of docs/images from real output: what `dynid inspect arm3r` prints, the report of `dynid demo`, and
its pages of friction and of flexible joints.

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

from dynid.cli.robot_tables import print_inspection
from dynid.estimate import Problem, choose_terms, identify
from dynid.model import FlexibleModel, Model, make_terms
from dynid.recording import Samples
from dynid.recording.measured import add_motor_side
from dynid.recording.sample_preparation import prepare
from dynid.report import ReportData, write_report
from dynid.report.pages.identification import flexibility, friction
from dynid.robot import Robot
from dynid.runs.consistency_check import inspect_robot
from dynid.runs.demonstration import demo
from dynid.simulation import PD, Reference, VirtualRobot
from dynid.validate import deflections, reconstruct, verdict

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
        report = Path(demo("dynid-demo").written["report"]).resolve()
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
    samples = Samples.from_arrays(q, dq, ddq, tau, rate=200.0)
    problem = Problem.from_model(choose_terms(Model(robot), samples).model, samples)
    estimate = identify(problem)
    fit = reconstruct(estimate, samples)
    data = ReportData("arm3r", estimate, fit, verdict(estimate, problem, reconstruction=fit), robot=robot)
    with tempfile.TemporaryDirectory() as folder:
        page = write_report(data, Path(folder) / "friction.html", sections=(friction.SECTION,))
        subprocess.run([browser, *QUIET, f"--user-data-dir={folder}/browser", "--window-size=1200,840",
                        "--virtual-time-budget=8000", f"--screenshot={IMAGES / 'friction.png'}",
                        page.resolve().as_uri()], check=True, capture_output=True, timeout=120)


def flexibility_picture(browser: str) -> None:
    """flexibility.png: torque over bend of a simulated arm with flexible joints, as the report draws it."""
    robot = Robot.builtin("arm3r")
    model = FlexibleModel(Model(robot, make_terms(robot, friction=["viscous"])))
    values = {"K": 1000.0, "D": 6.0, "Jm": 0.2, "Fvm": 0.5, "Fcm": 0.4, "Fv": 0.2}
    theta = [values.get(one.symbol, one.nominal or 0.0) for one in model.parameters]
    t, rates = np.arange(8000)[:, None] / 1000, 2 * np.pi * np.array([0.8, 0.45, 1.1])
    reference = Reference(0.6 * np.sin(rates * t), 0.6 * rates * np.cos(rates * t),
                          -0.6 * rates ** 2 * np.sin(rates * t), 1000.0)
    machine = VirtualRobot(model, theta, PD(np.full(3, 400.0), np.full(3, 30.0)), encoder=2 * np.pi / 2 ** 18,
                           torque_noise=0.02, sensor_noise=0.03)
    log = add_motor_side(machine.record(reference), model.bending)
    samples = prepare(log)
    problem = Problem.from_model(model, samples, recordings=log)
    estimate = identify(problem, method="iv")
    fit = reconstruct(estimate, samples)
    data = ReportData("arm3r", estimate, fit, verdict(estimate, problem, reconstruction=fit), robot=robot,
                      deflections=deflections(estimate, (samples,), (log,)))
    with tempfile.TemporaryDirectory() as folder:
        page = write_report(data, Path(folder) / "flexibility.html", sections=(flexibility.SECTION,))
        subprocess.run([browser, *QUIET, f"--user-data-dir={folder}/browser", "--window-size=1200,1080",
                        "--virtual-time-budget=8000", f"--screenshot={IMAGES / 'flexibility.png'}",
                        page.resolve().as_uri()], check=True, capture_output=True, timeout=120)


def main() -> None:
    """Make all pictures whose programs are installed."""
    inspect_picture()
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        print("pictures of the report are left as they are: they take Chromium")
    else:
        report_picture(browser)
        friction_picture(browser)
        flexibility_picture(browser)


if __name__ == "__main__":
    main()
