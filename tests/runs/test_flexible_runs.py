"""Flexible joints through the command: run file, JSON, report, and the result again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from flexible_arm import LAW, flexible_arm, motion

from dynid.cli.main import main
from dynid.model import FlexibleModel
from dynid.recording.write import write_csv
from dynid.runs.results import load
from dynid.simulation import VirtualRobot


def _call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return int(left.value.code or 0)


@pytest.mark.slow
def test_a_run_with_flexible_joints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, theta = flexible_arm()
    log = VirtualRobot(model, theta, LAW, encoder=2.0 * np.pi / 2 ** 18, position_noise=5e-6,
                       torque_noise=0.02).record(motion(seconds=6.0))
    write_csv(log, tmp_path / "log.csv")
    run = tmp_path / "run.toml"
    run.write_text('robot = "arm3r"\nlogs = ["log.csv"]\nmethod = "iv"\n[model]\nfriction = ["viscous"]\n'
                   "[model.flexible]\n")
    assert _call("identify", str(run), "-o", str(tmp_path / "out"), "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["parameters"]["K2"]["value"] == pytest.approx(1000.0, rel=0.01)
    assert said["parameters"]["Jm2"]["value"] == pytest.approx(0.2, rel=0.01)
    assert [one["joint"] for one in said["deflection"]] == ["joint1", "joint2", "joint3"]
    assert said["deflection"][1]["stiffness"]["value"] == pytest.approx(1000.0, rel=0.02)
    assert any("skew" in note for note in said["notes"])
    assert "Flexible joints" in (tmp_path / "out" / "report.html").read_text()
    estimate, settings = load(tmp_path / "out")
    assert isinstance(estimate.model, FlexibleModel) and settings.model.flexible is not None
    assert _call("validate", str(tmp_path / "out"), str(tmp_path / "log.csv")) == 0
    capsys.readouterr()


def test_logs_of_flexible_joints_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`dynid simulate --stiffness` writes both positions, which a flexible model then needs."""
    path, t = motion(seconds=4.0, rate=100.0), np.arange(400) / 100.0
    names = [f"{signal}_joint{j + 1}" for signal in ("q", "dq", "ddq") for j in range(3)]
    rows = np.column_stack([t, path.q, path.dq, path.ddq])
    (tmp_path / "motion.csv").write_text(",".join(["t", *names]) + "\n" + "\n".join(
        ",".join(f"{x:.12g}" for x in row) for row in rows))
    assert _call("simulate", "arm3r", "--trajectory", str(tmp_path / "motion.csv"), "-o", str(tmp_path / "log.csv"),
                 "--stiffness", "1000", "--joint-damping", "2", "--motor-inertia", "0.2", "--controller", "pd") == 0
    assert "motor_position_joint3" in (tmp_path / "log.csv").read_text().splitlines()[0]
    assert _call("simulate", "arm3r", "--trajectory", str(tmp_path / "motion.csv"), "-o", str(tmp_path / "two.csv"),
                 "--joint-damping", "2") == 2
    capsys.readouterr()
    plain = tmp_path / "plain.csv"
    assert _call("simulate", "arm3r", "--trajectory", str(tmp_path / "motion.csv"), "-o", str(plain)) == 0
    assert _call("identify", "arm3r", str(plain), "--set", "model.flexible={}") == 2
    assert "no motor positions" in capsys.readouterr().err
