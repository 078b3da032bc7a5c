"""Logs of a first hour: what is recognised is stated, and what is wrong is one sentence with the option that helps."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from motions import fourier

from dynid.model import Model, make_terms
from dynid.robot import Robot

QUICK = ("--method", "wls", "--friction", "viscous,coulomb,offset", "--no-simulation")
JOINTS = Robot.builtin("arm3r").joint_names


@pytest.fixture
def columns(tmp_path, monkeypatch):
    """Columns of a log of the three-joint arm, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))
    q, dq, ddq = fourier(3, seconds=20.0)
    tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    tau += 0.01 * np.random.default_rng(0).normal(size=tau.shape)
    table = {"time": np.linspace(0.0, 20.0, len(q), endpoint=False)}
    for name, signal in (("q", q), ("dq", dq), ("tau", tau)):
        table |= {f"{name}{j + 1}": signal[:, j] for j in range(3)}
    return table


def write(columns, name="log.csv", encoding="utf-8", form="%.9g", names=None):
    text = ",".join(names or columns) + "\n" + "\n".join(
        ",".join(one if isinstance(one, str) else form % one for one in row)
        for row in zip(*columns.values(), strict=True))
    with open(name, "w", encoding=encoding) as file:
        file.write(text + "\n")
    return name


def identified(dynid, *more):
    return dynid("identify", "arm3r", "log.csv", *QUICK, "--strict", *more)


def options(shown, among=0):
    """Return the n-th option of a message as words of a command line."""
    return shlex.split(re.findall(r"--set '[^']*'|--set \S+|--lock \S+", shown)[among].rstrip(".,;"))


def refused(dynid, code, *more):
    """Return the message of a refused log."""
    shown = identified(dynid, *more)
    assert (shown.code, shown.error) == (2, code), shown
    return shown.err.replace("\n", " ")


@pytest.mark.parametrize(("factor", "unit"), [(180.0 / np.pi, "deg"), (30.0 / np.pi, "rpm"), (np.pi / 180.0, "rad")])
def test_velocities_in_another_unit_are_stated_with_the_option(dynid, columns, factor, unit):
    write({name: factor * column if name.startswith("dq") else column for name, column in columns.items()})
    shown = identified(dynid)
    assert shown.code == 0 and f"--set log.velocity_unit={unit}" in shown.out and "time stamps" not in shown.out
    if unit != "rad":
        assert "velocities are" not in identified(dynid, "--set", f"log.velocity_unit={unit}").out


def test_columns_of_further_joints_are_stated(dynid, columns):
    write({**columns, "q4": columns["q1"], "tau4": columns["tau1"]})
    shown = identified(dynid)
    assert shown.code == 0 and "Note: log.csv: the log also has columns of other joints" in shown.out
    write(columns)
    assert "Note: log.csv" not in identified(dynid).out


def test_one_joint_in_degrees_is_read_in_degrees_alone(dynid, columns):
    write({**columns, "q2": np.rad2deg(columns["q2"]), "dq2": np.rad2deg(columns["dq2"])})
    said = refused(dynid, "bad-recording")
    assert '--set \'log.unit=["rad", "deg", "rad"]\'' in said
    assert identified(dynid, "--set", 'log.unit=["rad", "deg", "rad"]').out.startswith("Good model")


@pytest.mark.parametrize("cells", ["", "n/a", None])
def test_a_torque_without_numbers_is_declared_unmeasured(dynid, columns, cells):
    """Its column is empty, text, or absent."""
    if cells is None:
        del columns["tau2"]
    else:
        columns["tau2"] = [cells] * len(columns["time"])
    write(columns)
    said = refused(dynid, "no-column" if cells is None else "bad-row")
    typed = options(said, -1)
    assert typed == ["--set", f'log.unmeasured=["{JOINTS[1]}"]']
    assert identified(dynid, *typed).out.startswith("Good model")


@pytest.mark.parametrize("form", ["%.0f", "%.3g"])
def test_a_clock_with_too_few_digits_is_refused(dynid, columns, form):
    start = 0.0 if form == "%.0f" else 1.7e9
    columns["time"] = [form % (start + one) for one in columns["time"]]
    write(columns)
    said = refused(dynid, "coarse-clock")
    assert "--set log.rate=N" in said
    rate = 1.0 / (20.0 / len(columns["q1"]))
    assert identified(dynid, "--set", f"log.rate={rate:g}").out.startswith("Good model")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_a_degree_sign_of_windows_is_read(dynid, columns, encoding):
    degrees = {name: np.rad2deg(column) if name[0] in "qd" else column for name, column in columns.items()}
    names = [f"{name} [°]" if name[0] == "q" else f"{name} [°/s]" if name[0] == "d" else name for name in columns]
    write(degrees, encoding=encoding, names=names)
    assert identified(dynid).out.startswith("Good model")


def test_a_column_that_is_there_twice_is_chosen_by_what_is_typed(dynid, columns):
    names = ["time", "q1", "q2", "q2", "q3", "tau1", "tau2", "tau3"]
    rows = {str(place): columns[name] for place, name in enumerate(names)}
    write(rows, names=names)
    typed = options(refused(dynid, "bad-recording"))
    assert typed == ["--set", 'log.position=["q1", "q2#1", "q3"]']
    assert identified(dynid, *typed).out.startswith("Good model")


def test_currents_need_only_their_gains(dynid, columns):
    gains = (5.0, 7.0, 3.0)
    for j, gain in enumerate(gains, 1):
        columns[f"current{j}_mA"] = columns.pop(f"tau{j}") / gain
    write(columns)
    assert "--set 'log.drive_gain=[...]'" in refused(dynid, "bad-recording")
    assert identified(dynid, "--set", "log.drive_gain=[5, 7, 3]").out.startswith("Good model")


def test_columns_without_names_are_given_by_number(dynid, columns):
    columns = {name: column for name, column in columns.items() if not name.startswith("dq")}
    write(columns, names=[f"{column[0]:.9g}" for column in columns.values()])
    said = refused(dynid, "no-column")
    typed = [word for place in (1, 2, 3) for word in options(said, place)]
    assert typed[1::2] == ["log.time=1", "log.position=2-4", "log.torque=5-7"]
    assert identified(dynid, *typed).out.startswith("Good model")


def test_a_joint_that_the_log_lacks_can_be_locked(dynid, columns):
    names = {"time": "time"} | {f"{s}{j}": f"{s}_{JOINTS[j - 1]}" for s in ("q", "tau") for j in (1, 2)}
    write({name: columns[old] for old, name in names.items()})
    assert options(refused(dynid, "no-column"), -1) == ["--lock", f"{JOINTS[2]}=POSITION"]


def test_a_setting_of_the_log_needs_its_table(dynid, columns):
    write(columns)
    assert "--set log.unit=VALUE" in refused(dynid, "unknown-setting", "--set", "unit=deg")
    assert "--gravity takes 3 numbers, X,Y,Z" in refused(dynid, "not-a-number", "--gravity", "0,0")


def test_every_command_that_reads_a_log_takes_the_advice(dynid, columns):
    """The message on degrees says --set log.unit=deg, whatever the command."""
    write(columns)
    assert identified(dynid, "-o", "out").code == 0
    write({name: np.rad2deg(column) if name[0] in "qd" else column for name, column in columns.items()}, "degrees.csv")
    for command in (("inspect", "arm3r", "--log", "degrees.csv"), ("validate", "out", "degrees.csv", "--no-simulation"),
                    ("payload", "out", "degrees.csv"), ("contact", "out", "degrees.csv"),
                    ("watch", "arm3r", "--from", "degrees.csv", "--speed", "0")):
        shown = dynid(*command)
        assert shown.code == 2 and "--set log.unit=deg" in shown.err, command
        again = dynid(*command, "--set", "log.unit=deg")
        assert again.code == 0, (command, again.err)
        assert dynid(*command, "--set", "prepare.cutoff=8").error == "unknown-setting"
    shown = dynid("validate", "out", "degrees.csv", "--no-simulation", "--set", "log.unit=deg", "--json")
    assert json.loads(shown.out)["validation"][0]["relative_error"] < 2.0


def test_settings_of_a_log_are_on_top_of_those_of_the_result(dynid, columns):
    """The result's columns stay as they are mapped, with another unit."""
    names = ["time", *(f"axis_{j}" for j in (1, 2, 3)), *(f"moment_{j}" for j in (1, 2, 3))]
    own = {name: columns[name] for name in ("time", "q1", "q2", "q3", "tau1", "tau2", "tau3")}
    write(own, names=names)
    mapped = ("--set", "log.position=axis_{i}", "--set", "log.torque=moment_{i}")
    assert identified(dynid, *mapped, "-o", "out").code == 0
    degrees = {name: np.rad2deg(column) if name[0] == "q" else column for name, column in own.items()}
    write(degrees, "d.csv", names=names)
    assert dynid("validate", "out", "d.csv", "--no-simulation", "--set", "log.unit=deg").code == 0


def test_one_false_alarm_is_singular(dynid, columns):
    write(columns)
    assert identified(dynid, "-o", "out").code == 0
    assert "1 false alarm per hour" in dynid("contact", "out", "log.csv").out
    assert "2 false alarms per hour" in dynid("contact", "out", "log.csv", "--alarms", "2").out


@pytest.mark.parametrize(("order", "array"), [((1, 2, 0), False), ((2, 1, 0), False), ((2, 0, 1), True)])
def test_typed_order_of_exchanged_torques_is_right_and_keeps_the_velocities(dynid, columns, order, array):
    torques = [columns[f"tau{j + 1}"] for j in order]
    if array:
        np.savez("log.csv.npz", t=columns["time"], tau=np.column_stack(torques),
                 **{name: np.column_stack([columns[f"{name}{j}"] for j in (1, 2, 3)]) for name in ("q", "dq")})
        Path("log.csv.npz").rename("log.csv")
    else:
        write({**columns, **{f"tau{j + 1}": torque for j, torque in enumerate(torques)}})
    shown = identified(dynid)
    assert shown.code == 3 and "torques swapped" in shown.out
    typed = options(shown.out)
    columns_of = [order.index(j) + 1 for j in range(3)]
    wanted = f'{{array = "tau", columns = {columns_of}}}' if array else json.dumps([f"tau{k}" for k in columns_of])
    assert typed == ["--set", f"log.torque={wanted}"]
    again = identified(dynid, *typed, "--json")
    found = json.loads(again.out)
    assert again.code == 0 and found["verdict"]["summary"]["grade"] == "good"
    assert any(step.startswith("the measured velocity is used") for step in found["steps"])


def test_columns_that_a_mapping_names_are_not_guessed_to_be_another_signal(dynid, columns):
    """A signal that then has too few columns is noted, and the log is read."""
    write(columns)
    shown = dynid("inspect", "arm3r", "--log", "log.csv", "--set", 'log.reference=["dq1", "q2", "q3"]')
    assert "no velocity number 1" in shown.out and "no velocity is used" in shown.out and shown.code == 0
