"""Mistakes of a first hour with a log: each is named in one sentence that says what to type."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
from refusals import refused

from dynid.errors import DynidError, RecordingError
from dynid.recording.check import find_jumps
from dynid.recording.log_reading import read
from dynid.robot import Robot
from dynid.runs.arguments import run_settings

ROBOT = Robot.builtin("arm3r")
T = np.arange(2000) / 200.0
Q = np.sin(np.outer(T, [1.0, 1.7, 2.3]) + np.arange(3))


def written(folder, t=T, q=Q, names=("time", "q1", "q2", "q3", "tau1", "tau2", "tau3")):
    path = folder / "log.csv"
    np.savetxt(path, np.column_stack([t, q, np.cos(q)]), delimiter=",", header=",".join(names), comments="", fmt="%.9g")
    return path


@pytest.mark.parametrize(("unit", "factor"), [("ms", 1e3), ("us", 1e6), ("ns", 1e9)])
def test_time_in_another_unit_is_refused_by_name_and_read_as_advised(tmp_path, unit, factor):
    path = written(tmp_path, np.round(T * factor))
    with refused(RecordingError, "time-unit", f"--set log.time_unit={unit},") as found:
        read(path, robot=ROBOT)
    assert found.value.where == "log.time_unit"
    np.testing.assert_allclose(read(path, {"time_unit": unit}, ROBOT).t, T, atol=1e-9)


def test_degrees_and_motor_turns_are_told_apart(tmp_path):
    with refused(RecordingError, "bad-recording", "--set log.unit=deg"):
        read(written(tmp_path, q=np.rad2deg(Q)), robot=ROBOT)
    with refused(RecordingError, "bad-recording", "--set log.side=motor"):
        read(written(tmp_path, q=240.0 * Q), robot=ROBOT)
    geared = read(written(tmp_path, q=240.0 * Q), {"side": "motor", "ratio": 240.0}, ROBOT)
    np.testing.assert_allclose(geared.q, Q, atol=1e-6)


def test_a_missing_column_lists_the_columns_and_a_mapping_that_works(tmp_path):
    names = ("time", "axis_u_angle", "axis_v_angle", "axis_w_angle", "moment_u", "moment_v", "moment_w")
    path = written(tmp_path, names=names)
    with refused(RecordingError, "no-column") as found:
        read(path, robot=ROBOT)
    said = str(found.value)
    assert all(name in said for name in names)
    mapping = said.partition("--set 'log.position=")[2].partition("'")[0]
    assert mapping == '["axis_u_angle", "axis_v_angle", "axis_w_angle"]'
    found = read(path, {"position": list(names[1:4]), "torque": list(names[4:])}, ROBOT)
    np.testing.assert_allclose(found.q, Q, atol=1e-8)


def test_a_robot_behind_its_log_is_told_with_the_command_in_order(tmp_path):
    log, robot = written(tmp_path), tmp_path / "arm.urdf"
    robot.write_text("<robot/>")
    for named in (str(robot), "arm3r"):
        with refused(DynidError, "wrong-order", f"dynid identify {named} {log}"):
            run_settings(str(log), [named])


@pytest.mark.parametrize("places", [(700,), (500, 1200, 1201 + 300)])
def test_joined_runs_jump_where_they_were_joined(places):
    q = Q.copy()
    for row in places:
        q[row:] += 0.4
    found = find_jumps(T, q)
    assert found is not None and found.times == tuple(float(T[row - 1]) for row in places)
    assert found.size == pytest.approx(0.4, abs=0.02)


def test_a_motion_a_spike_and_a_held_position_do_not_jump():
    assert find_jumps(T, Q) is None
    spike = Q.copy()
    spike[900] += 0.4
    assert find_jumps(T, spike) is None
    assert find_jumps(T, np.repeat(Q[::20], 20, axis=0)) is None  # a tenth of a second between two values
    resting = np.zeros_like(Q)
    resting[1000:1100] = 0.5 * (1.0 - np.cos(np.linspace(0.0, 2.0 * np.pi, 100)))[:, None]
    assert find_jumps(T, resting) is None


def test_tables_of_spreadsheets_are_read(tmp_path):
    """Decimal commas with semicolons, "Unicode text" (UTF-16 with tabs), and both: as Excel saves them."""
    plain = written(tmp_path)
    text = plain.read_text()
    for name, encoding, separator, comma in (("semicolon.csv", "utf-8", ";", ","), ("unicode.txt", "utf-16", "\t", "."),
                                             ("both.csv", "utf-16", ";", ",")):
        path = tmp_path / name
        path.write_text(text.replace(",", separator).replace(".", comma), encoding=encoding)
        np.testing.assert_allclose(read(path, robot=ROBOT).q, read(plain, robot=ROBOT).q, atol=1e-12)


@pytest.mark.parametrize(("name", "content", "code"), [
    ("empty.csv", b"", "no-rows"), ("header.csv", b"time,q1,q2,q3,tau1,tau2,tau3\n", "no-rows"),
    ("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0", "unknown-format"),
    ("sheet.xlsx", None, "unknown-format"), ("missing.csv", "", "no-such-file")])
def test_a_file_without_a_log_is_one_sentence(tmp_path, name, content, code):
    path = tmp_path / name
    if content is None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("xl/workbook.xml", "<workbook/>")
    elif content != "":
        path.write_bytes(content)
    with refused(RecordingError, code, name):
        read(path, robot=ROBOT)
