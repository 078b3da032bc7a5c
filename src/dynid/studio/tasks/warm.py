"""Preparation: a small run loads and compiles all code, so that the user's first run does not wait."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynid.excitation import FourierSeries
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.report import write_report
from dynid.robot import Robot
from dynid.runs.identification import run
from dynid.runs.results import report_data
from dynid.runs.settings import RunSettings
from dynid.studio.confinement import Confinement
from dynid.studio.voice import ProgressChannel

_ROBOT, _SECONDS, _RATE = "arm3r", 6.0, 100.0


def warm(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Identify a small robot from a few seconds of simulated data, with a report; nothing is stored."""
    robot = Robot.builtin(_ROBOT)
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))
    rng = np.random.default_rng(0)
    a, b = 0.1 * rng.normal(size=(2, robot.dof, 4))
    t = np.arange(int(_SECONDS * _RATE)) / _RATE
    motion = FourierSeries(a, b, np.zeros(robot.dof), _SECONDS).at(t)
    theta = np.array([p.nominal or 0.0 for p in model.parameters])
    tau = model.inverse_dynamics(theta, motion.q, motion.dq, motion.ddq)
    tau += 0.01 * np.abs(tau).max(axis=0) * rng.normal(size=tau.shape)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.csv"
        write_csv(Recording(t, motion.q, tau, joints=robot.joint_names), log)
        found = run(RunSettings(robot=_ROBOT, logs=(str(log),)))
        write_report(report_data(found, "", ""), Path(folder) / "report.html")
    return {}
