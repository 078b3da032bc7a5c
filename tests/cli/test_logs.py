"""Windows, damaged rows and log tables at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dynid.model import Model
from dynid.robot import Robot

T = np.arange(1000) / 100.0


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: str, phase: float = 0.0) -> None:
    """A log of the built-in scara2, exact."""
    q, dq, ddq = (np.column_stack([0.8 * 3.0 ** k * np.sin(3.0 * T + phase + k * np.pi / 2),
                                   0.7 * 4.0 ** k * np.sin(4.0 * T + 2 * phase + k * np.pi / 2)]) for k in range(3))
    model = Model(Robot.builtin("scara2"))
    tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    Path(path).parent.mkdir(exist_ok=True)
    np.savetxt(path, np.column_stack([T, q, tau]), delimiter=",", header="time,q1,q2,tau1,tau2", comments="")


def test_a_window_for_every_command(dynid):
    write("log.csv")
    write("other.csv", 0.5)
    shown = dynid("identify", "scara2", "log.csv", "--method", "ols", "--start", "1", "--stop", "9", "-o", "out",
                  "--no-simulation", "--json")
    assert shown.code == 0, shown.err
    assert [(log["rows"], log["seconds"]) for log in json.loads(shown.out)["logs"]] == [(800, pytest.approx(7.99))]
    shown = dynid("validate", "out", "other.csv", "--stop", "5", "--no-simulation", "--json")
    assert shown.code == 0, shown.err
    assert json.loads(shown.out)["logs"][0]["rows"] == 500
    shown = dynid("compare", "scara2", "log.csv", "--methods", "ols", "--start", "50")
    assert shown.code == 2 and shown.error == "empty-window" and "9.99 s" in shown.err
    shown = dynid("identify", "scara2", "log.csv", "--start", "3", "--stop", "2")
    assert shown.code == 2 and shown.error == "wrong-setting"


def test_dropped_rows_are_printed(dynid):
    write("log.csv")
    lines = Path("log.csv").read_text().splitlines()
    lines[1] = lines[2] = "?,?,?,nan,1e300"
    Path("log.csv").write_text("\n".join(lines) + "\n")
    shown = dynid("identify", "scara2", "log.csv", "--method", "ols", "--no-simulation")
    assert shown.error == "bad-row" and "log.csv row 2" in shown.err and "bad_rows" in shown.err
    shown = dynid("identify", "scara2", "log.csv", "--method", "ols", "--set", "log.bad_rows=drop", "--no-simulation",
                  "-o", "out")
    assert shown.code == 0, shown.err
    assert "log.csv: ignored 2 rows from 2 to 3, of 1000" in " ".join(shown.out.split())
    assert "ignored" in Path("out/report.html").read_text(encoding="utf-8")
    shown = dynid("compare", "scara2", "log.csv", "--methods", "ols", "--set", "log.bad_rows=drop", "--set",
                  "simulation.run=false")
    assert shown.code == 0 and "ignored 2 rows" in " ".join(shown.out.split()), shown.err
    shown = dynid("validate", "out", "log.csv", "--no-simulation")
    assert "ignored 2 rows" in " ".join(shown.out.split())


def test_a_run_file_with_logs_of_one_name(dynid):
    for folder, phase in (("a", 0.0), ("b", 0.3), ("c", 0.6), ("d", 0.9)):
        write(f"{folder}/log.csv", phase)
    Path("run.toml").write_text('robot = "scara2"\nmethod = "ols"\nvalidate_on = ["c/log.csv", "d/log.csv"]\n'
                                '[simulation]\nrun = false\n'
                                '[[logs]]\nfile = "a/log.csv"\n[[logs]]\nfile = "b/log.csv"\nstart = 2\n')
    shown = dynid("identify", "run.toml", "--stop", "8", "--full")
    assert shown.code == 0, shown.err
    text = " ".join(shown.out.split())
    assert "c/log.csv" in text and "d/log.csv" in text
    shown = dynid("identify", "run.toml", "--stop", "8", "--json")
    assert [log["rows"] for log in json.loads(shown.out)["logs"]] == [800, 600, 800, 800]
    shown = dynid("identify", "run.toml", "--set", "logs=[{fil='a/log.csv'}]")
    assert shown.code == 2 and shown.error == "wrong-setting"
