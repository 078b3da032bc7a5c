"""`dynid extract` on a result and on a table: sets, reasons, files, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dynid.extraction.sine_motion import new_motion
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.write import write_npz
from dynid.regression import base_parameters
from dynid.robot import Robot


@pytest.fixture
def table(tmp_path):
    """A CSV of the arm's base values, and the values by combination."""
    model = Model(Robot.builtin("arm3r"), make_terms(Robot.builtin("arm3r")))
    base = base_parameters(model)
    values = dict(zip(base.expressions, base.reduce(model.parameters.nominal), strict=True))
    path = tmp_path / "base.csv"
    path.write_text("combination,value\n" + "".join(f"{name},{value:.17g}\n" for name, value in values.items()))
    return path


def test_sets_of_a_table_their_files_and_their_comparison(dynid, table, tmp_path):
    shown = dynid("extract", "arm3r", "--base", table, "--bounds", "tight", "--bounds", "loose", "--loss", "partial",
                  "--loss", "full", "-o", tmp_path / "sets", "--json")
    found = json.loads(shown.out)
    assert shown.code == 0 and [one["name"] for one in found["sets"]] == ["tight, partial", "tight, full",
                                                                          "loose, partial", "loose, full"]
    base = base_parameters(Model(Robot.builtin("arm3r"), make_terms(Robot.builtin("arm3r"))))
    nominal = base.reduce(base.parameters.nominal)
    for one in found["sets"]:
        theta = np.array([one["parameters"][name] for name in base.parameters.names])
        assert np.linalg.norm(base.matrix @ theta - nominal) < 1e-6 * np.linalg.norm(nominal)
        assert one["feasible"] is (one["loss"] == "full") and one["cones"]["possible"]
        assert found["comparison"]["sets"][one["name"]]["torque_error"] < 1e-6
    assert found["comparison"]["by_reason"]["feasible"]["sets"] == ["tight, full", "loose, full"]
    page = (tmp_path / "sets" / "report.html").read_text()
    assert all(words in page for words in ("Reaction forces", "Torques on a new motion", "tight, partial"))
    assert json.loads((tmp_path / "sets" / "extraction.json").read_text())["robot"] == "arm3r"
    again = dynid("extract", "arm3r", "--base", table, "-o", tmp_path / "sets")
    assert again.code == 2 and again.error == "file-exists"


def test_a_result_by_both_steps_and_as_a_method(dynid, tmp_path):
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, friction=("viscous",)))
    theta = model.parameters.vector(model.parameters.nominal)
    parts = [new_motion(robot, seed) for seed in range(3)]
    q, dq, ddq = (np.concatenate([getattr(one, name) for one in parts]) for name in ("q", "dq", "ddq"))
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    logs = []
    for k, one in enumerate(parts):
        rows = slice(k * len(one.q), (k + 1) * len(one.q))
        logs.append(tmp_path / f"log{k}.npz")
        write_npz(Recording(one.t, q[rows], tau[rows], dq=dq[rows], joints=robot.joint_names, source=""), logs[-1])
    made = dynid("identify", "arm3r", *logs, "--method", "extract", "--friction", "viscous", "--set",
                 "options.bounds=loose", "--set", "options.runs=1", "--set", "options.evaluations=1000", "-o",
                 tmp_path / "out", "--json")
    assert made.code == 0, made.err
    assert "Extraction" in (tmp_path / "out" / "report.html").read_text()
    assert json.loads(made.out)["standard_parameters"] is not None
    # Torques weigh combinations by what they do, so that the one-step loss lets others go farther.
    for more, most in (((), 1e-6), (("--one-step", "--form", "penalty"), 0.1)):
        shown = dynid("extract", tmp_path / "out", "--bounds", "loose", "--runs", 1, *more, "--json")
        (one,) = json.loads(shown.out)["sets"]
        assert shown.code == 0 and one["base_relative_distance"] < most


@pytest.mark.parametrize(("arguments", "error"), [
    (("arm3r",), "no-result"), (("arm3r", "--base", "nowhere.csv"), "no-such-file"),
    (("arm3r", "--loss", "half"), "unknown-name"), (("arm3r", "--search", "luck"), "unknown-search")])
def test_bad_calls_are_refused_in_a_sentence(dynid, arguments, error):
    shown = dynid("extract", *arguments)
    assert shown.code == 2 and shown.error == error


def test_an_unknown_form_is_refused_with_the_known_ones(dynid):
    shown = dynid("extract", "arm3r", "--form", "round")
    assert shown.code == 2 and "exact" in shown.err and "penalty" in shown.err
