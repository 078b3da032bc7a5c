"""What `dynid actuators` prints for a robot with many joints: one row per joint, at most five findings, a next step."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

from dynid.actuators.estimate import ActuatorEstimate, ActuatorValue, SimulatedLog
from dynid.actuators.parameter_combinations import experiment
from dynid.cli import actuators
from dynid.findings import Note

JOINTS = tuple(f"{leg}_{part}_joint" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf"))
UNITS = {"armature": "kg m^2", "coulomb": "N m", "viscous": "N m s/rad", "offset": "N m", "kp": "N m/rad",
         "kd": "N m s/rad", "delay": "s"}


def estimate(error: float = 1e-3) -> ActuatorEstimate:
    values = tuple(ActuatorValue(joint, name, unit, 0.0123 * (j + 1), 1e-3, name != "kd")
                   for j, joint in enumerate(JOINTS) for name, unit in UNITS.items())
    notes = tuple(Note(code, f"{code} of {joint} is a remark.") for joint in JOINTS
                  for code in ("scale", "not-distinguished", "at-bound", "log", "given-untested", "other"))
    log = SimulatedLog("log.csv", np.arange(3.0), np.zeros((3, 12)), np.full((3, 12), error),
                       np.outer([0.0, 0.4, 0.1], np.ones(12)))
    return ActuatorEstimate("quadruped", JOINTS, "pd", "m1", values, notes, (), (), (log,), 2e-3, 1, 0.0)


@pytest.fixture
def printed(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def make(written: dict[str, str], full: bool, error: float = 1e-3) -> list[str]:
        actuators._print(SimpleNamespace(estimate=estimate(error)), written, full)
        return capsys.readouterr().out.splitlines()
    return make


def test_one_row_per_joint_in_80_columns(printed):
    lines = printed({}, False)
    assert max(map(len, lines)) <= 80
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.split() and line.split()[0] in JOINTS}
    assert tuple(rows) == JOINTS
    for j, cells in enumerate(rows.values()):
        assert [float(cell.strip("()")) for cell in cells] == pytest.approx([0.0123 * (j + 1)] * 7, rel=0.05)
        assert [cell.startswith("(") for cell in cells] == [name == "kd" for name in UNITS]
    above = "\n".join(lines[:lines.index(next(line for line in lines if line.strip().startswith("─")))])
    assert all(re.search(rf"(?<!\S){re.escape(word)}(?!\S)", above) for unit in UNITS.values() for word in unit.split())


def test_at_most_five_remarks_and_what_to_do_next(printed):
    short, whole = printed({}, False), printed({}, True)
    assert sum(line.startswith("- ") for line in short) == 5
    assert sum(line.startswith("- ") for line in whole) == 6 * len(JOINTS)
    assert any("67 more" in line and "--full" in line for line in short)
    assert any("-o FOLDER" in line for line in short)
    assert any(line.strip() == "dynid export out --for mjcf -o robot.xml"
               for line in printed({"actuators": "out/actuators.json"}, False))


def test_first_line_compares_with_the_delayed_command(printed):
    """Measured positions are zero: with 0.5 s of delay, the command is 0, 0.2 and 0.25 rad, and its median 0.2 rad."""
    good, bad = printed({}, False), printed({"actuators": "out/actuators.json"}, False, 0.5)
    assert " ".join(good[:2]).startswith("Simulated positions have a mean error of 1 mrad (the command, delayed, plus "
                                         "an offset: 83.3 mrad)")
    assert " ".join(bad[:2]).startswith("Not usable: simulated positions have a mean error of 500 mrad")
    assert not any("dynid export" in line for line in bad)


def test_a_known_gain_is_proposed_where_it_separates_the_parameters():
    assert "--gain kp=" in experiment({"kp", "armature"}) and "--gain kd=" in experiment({"kd", "viscous"})
    assert "--gain" not in experiment({"delay"})
