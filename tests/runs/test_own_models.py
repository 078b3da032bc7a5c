"""A user's own term, and a user's own model, through `dynid identify`: parameters, verdict, report, and back again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

from dynid.cli.main import main
from dynid.errors import DynidError, ModelError
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.robot import Robot
from dynid.runs import RunSettings, make_model
from dynid.runs.results import load

ROBOT = Robot.builtin("arm3r")
DRAG = '''
from dataclasses import dataclass

import dynid
from dynid.model.terms import joint_parameter

@dynid.terms.register_term
@dataclass(frozen=True)
class Drag:
    """Torque that grows with the square of speed at every joint."""
    kind = "drag"

    def parameters(self, robot):
        return tuple(joint_parameter(robot, "Fd", j, "N m s^2/rad^2", positive=True) for j in range(robot.dof))

    def entries(self, robot, q, dq, ddq):
        for j in range(robot.dof):
            yield j, j, abs(dq[:, j]) * dq[:, j]
'''
OWN = '''
import numpy as np
from dynid.model import Model, Viscous, RigidBodies, Coulomb

class Wrapped:
    """Any object with dof, parameters and regressor."""
    def __init__(self, robot):
        self.inner = Model(robot, (RigidBodies(), Viscous(), Coulomb()))
        self.dof, self.parameters = robot.dof, self.inner.parameters

    def regressor(self, q, dq, ddq):
        return self.inner.regressor(q, dq, ddq)

def model(robot):
    return Wrapped(robot)
'''


def record(drag: float = 0.0, seed: int = 0) -> Recording:
    rng = np.random.default_rng(seed)
    model = Model(ROBOT, make_terms(ROBOT, friction=("viscous", "coulomb")))
    t = np.arange(4000) / 200.0
    w = 2 * np.pi * np.array([0.1, 0.25, 0.4, 0.55])
    a, phase = rng.uniform(0.1, 0.5, (3, 4)), rng.uniform(0, 6, (3, 4))
    angle = w * t[:, None, None] + phase
    q, dq, ddq = ((a * f).sum(axis=2) for f in (np.sin(angle), w * np.cos(angle), -w ** 2 * np.sin(angle)))
    tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq) + drag * np.abs(dq) * dq
    return Recording(t, q, tau + 0.005 * rng.normal(size=q.shape), joints=ROBOT.joint_names)


def identify(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["identify", *arguments])
    return int(left.value.code or 0)


def test_a_term_in_a_file_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "drag.py").write_text(DRAG)
    write_csv(record(drag=0.7), tmp_path / "log.csv")
    run_file = tmp_path / "run.toml"
    run_file.write_text('robot = "arm3r"\nlogs = ["log.csv"]\nmethod = "wls"\n[model]\npython = "drag.py"\n'
                        'friction = ["viscous", "coulomb", "drag"]\n')
    assert identify(str(run_file), "--trust", "-o", str(tmp_path / "out"), "--json") == 0
    said = json.loads(capsys.readouterr().out)
    for j in (1, 2, 3):
        found = said["parameters"][f"Fd{j}"]
        assert abs(found["value"] - 0.7) < 4 * found["std"] and found["std"] < 0.05
    assert (tmp_path / "out" / "report.html").stat().st_size > 100_000
    estimate, settings = load(tmp_path / "out", trust=True)
    assert settings.model.python is not None and "Fd2" in estimate.names


def test_a_model_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.py").write_text(OWN)
    for k in (0, 1):
        write_csv(record(seed=k), tmp_path / f"log{k}.csv")
    run_file = tmp_path / "run.toml"
    run_file.write_text('robot = "arm3r"\nlogs = ["log0.csv"]\nvalidate_on = ["log1.csv"]\nmethod = "wls"\n'
                        '[model]\npython = "own.py"\n')
    assert identify(str(run_file), "--trust", "-o", str(tmp_path / "out"), "--json") == 0
    own = json.loads(capsys.readouterr().out)
    assert identify(str(run_file), "--json", "--set", 'model={friction=["viscous","coulomb"]}') == 0
    built_in = json.loads(capsys.readouterr().out)
    for name, found in built_in["parameters"].items():
        assert own["parameters"][name]["value"] == pytest.approx(found["value"], rel=1e-6, abs=1e-9)
        assert own["parameters"][name]["std"] == pytest.approx(found["std"], rel=1e-6)
    mine, theirs = (said["validation"][0]["relative_error"] for said in (own, built_in))
    assert mine == pytest.approx(theirs, rel=1e-6)
    assert (tmp_path / "out" / "report.html").exists()
    assert load(tmp_path / "out", trust=True)[0].names == tuple(own["parameters"])


@pytest.mark.parametrize(("text", "match"), [
    ("x = 1 / 0", (DynidError, "bad-call", "own.py", "ZeroDivisionError")),
    ("def model(robot):\n    return 3", (ModelError, "bad-model", "'dof'")),
    (None, (DynidError, "bad-call", "[model]", "own.py"))])
def test_what_is_wrong_with_it_is_said(tmp_path: Path, text: str | None, match: tuple[Any, ...]) -> None:
    if text is not None:
        (tmp_path / "own.py").write_text(text)
    with refused(*match):
        make_model(RunSettings.from_values({"robot": "arm3r", "logs": ["log.csv"],
                                            "model": {"python": str(tmp_path / "own.py")}}, trust=True))
