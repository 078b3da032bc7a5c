"""Excitation in a loop: what a weak log leaves open is determined by the logs that the loop adds."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from dynid.errors import DynidError, NotPossibleError
from dynid.excitation import Search
from dynid.excitation.trajectories.families import family_named
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.robot import Robot
from dynid.runs.arguments import run_settings
from dynid.runs.identification import run
from dynid.runs.improve_loop import VIRTUAL, improve_in_loop, recorder_for
from dynid.runs.motion_design import MotionRequest, terms_model
from dynid.runs.results import load, save

FRICTION = ("viscous", "coulomb", "offset")


@pytest.fixture(scope="module")
def weak(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result of a log in which the first joint of the 3R arm hardly moves."""
    folder = tmp_path_factory.mktemp("weak")
    robot = Robot.builtin("arm3r")
    model = terms_model(robot, FRICTION, False)
    t = np.arange(0.0, 8.0, 0.005)
    w, size = np.array([0.7, 1.9, 2.7]), np.array([0.02, 0.5, 0.6])
    q, dq, ddq = size * np.sin(np.outer(t, w)), size * w * np.cos(np.outer(t, w)), -size * w ** 2 * np.sin(
        np.outer(t, w))
    theta = np.array([item.nominal or 0.0 for item in model.parameters])
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.02 * np.random.default_rng(0).normal(size=q.shape)
    write_csv(Recording(t=t, q=q, tau=tau, joints=robot.joint_names, source="weak"), folder / "weak.csv")
    chosen = run_settings("arm3r", [str(folder / "weak.csv")], {
        "method": "wls", "model": {"friction": list(FRICTION)}, "simulation": {"run": False}}, [])
    save(run(chosen), folder / "result", report=False)
    return folder / "result"


def asked(result: Path) -> MotionRequest:
    return MotionRequest(improve=result, search=Search(None, 1, 0), family=family_named("fourier", 6.0, 3))


def test_the_loop_determines_what_was_poorly_determined(weak: Path, tmp_path: Path) -> None:
    robot, request = Robot.builtin("arm3r"), asked(weak)
    found = improve_in_loop(robot, request, recorder_for(VIRTUAL, robot, request), tmp_path, 2)
    assert [one.number for one in found] == [0, 1, 2]
    before, after = found[0], found[-1]
    gone = {*before.not_identified, *before.poorly_determined} - {*after.not_identified, *after.poorly_determined}
    assert {"YY1R", "XX2R"} <= gone and not after.not_identified  # inertia about the first axis
    worst = [max(one.largest.values()) for one in found]
    assert worst[1] < 0.5 * worst[0] and worst[2] < worst[1]
    # Values are those of the machine that was in between, with honest standard errors.
    estimate, settings = load(after.result)
    truth = estimate.base.reduce(np.array([item.nominal or 0.0 for item in estimate.model.parameters]))
    assert np.mean(np.abs(estimate.values - truth) < 3.0 * estimate.std) > 0.9
    assert len(settings.logs) == 3


def test_a_program_of_the_users_records(weak: Path, tmp_path: Path) -> None:
    robot, request = Robot.builtin("arm3r"), asked(weak)
    script = tmp_path / "play.py"
    script.write_text("import sys\nassert open(sys.argv[1]).read()\nopen(sys.argv[2], 'w').write('t,q1\\n')\n")
    played = tmp_path / "log.csv"
    record = recorder_for(f"{sys.executable} {script} {{motion}} {{log}}", robot, request)
    record(script, played, 1)
    assert played.read_text() == "t,q1\n"


def test_what_cannot_be_done_is_refused(weak: Path, tmp_path: Path) -> None:
    robot, request = Robot.builtin("arm3r"), asked(weak)
    with refused(DynidError, "no-recorder", "{log}", "--record virtual"):
        recorder_for("play {motion}", robot, request)
    with refused(NotPossibleError, "recorder-failed", "exit code 3"):
        recorder_for(f"{sys.executable} -c 'raise SystemExit(3)' {{motion}} {{log}}", robot, request)(
            tmp_path / "motion.csv", tmp_path / "log.csv", 1)
    with refused(NotPossibleError, "recorder-failed", "did not write"):
        recorder_for(f"{sys.executable} -c '' {{motion}} {{log}}", robot, request)(
            tmp_path / "motion.csv", tmp_path / "log.csv", 1)
    with refused(DynidError, "no-settings", "dynid identify"):
        improve_in_loop(robot, asked(tmp_path), recorder_for(VIRTUAL, robot, request), tmp_path / "out", 1)
