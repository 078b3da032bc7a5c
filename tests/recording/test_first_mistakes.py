"""Mistakes of a first hour with a log: each is named in one sentence that says what to type."""

from __future__ import annotations

import json
import zipfile
from datetime import datetime, timedelta

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
    with refused(RecordingError, "bad-recording", "--set log.unit=deg", "--set log.side=motor"):
        read(written(tmp_path, q=np.rad2deg(Q)), robot=ROBOT)
    with refused(RecordingError, "bad-recording", "--set log.side=motor"):
        read(written(tmp_path, q=240.0 * Q), robot=ROBOT)
    geared = read(written(tmp_path, q=240.0 * Q), {"side": "motor", "ratio": 240.0}, ROBOT)
    np.testing.assert_allclose(geared.q, Q, atol=1e-6)


@pytest.mark.parametrize("unit", ["[Nmm]", "(N mm)", "Nmm"])
def test_torques_in_newton_millimetres_are_read_by_their_names(tmp_path, unit):
    path = written(tmp_path, names=("time", "q1", "q2", "q3", *(f"Torque {j} {unit}" for j in (1, 2, 3))))
    np.testing.assert_allclose(read(path, robot=ROBOT).tau, 1e-3 * np.cos(Q), atol=1e-11)
    np.testing.assert_allclose(read(path, {"torque_scale": 2.0}, ROBOT).tau, 2.0 * np.cos(Q), atol=1e-8)


@pytest.mark.parametrize(("name", "factor"), [
    ("tau{} [mNm]", 1e-3), ("tau_{}_mNm", 1e-3), ("Torque {} (kNm)", 1e3), ("Torque {} [N.mm]", 1e-3),
    ("tau{} [Ncm]", 1e-2), ("tau{} [N*m]", 1.0), ("tau_{} in Nm", 1.0)])
def test_units_of_torque_in_column_names_are_converted(tmp_path, name, factor):
    path = written(tmp_path, names=("time", "q1", "q2", "q3", *(name.format(j) for j in (1, 2, 3))))
    np.testing.assert_allclose(read(path, robot=ROBOT).tau, factor * np.cos(Q), rtol=1e-7, atol=1e-8 * factor)


@pytest.mark.parametrize(("name", "share"), [("torque{} [%]", 100), ("torque_percent_{}", 100), ("tau{} (‰)", 1000),
                                             ("tau_permille_{}", 1000)])
def test_torques_in_shares_of_a_rated_torque_need_it(tmp_path, name, share):
    path = written(tmp_path, names=("time", "q1", "q2", "q3", *(name.format(j) for j in (1, 2, 3))))
    with refused(RecordingError, "relative-torque", f"rated torque / {share}", "--set 'log.torque_scale=[...]'"):
        read(path, robot=ROBOT)
    scales = [1.2, 0.6, 0.2]
    np.testing.assert_allclose(read(path, {"torque_scale": scales}, ROBOT).tau, scales * np.cos(Q), atol=1e-8)


def test_velocities_in_turns_per_minute_are_read_by_their_names(tmp_path):
    path = tmp_path / "log.csv"
    np.savetxt(path, np.column_stack([T, Q, np.cos(Q), np.cos(Q)]), delimiter=",", comments="", fmt="%.9g",
               header="time,q1,q2,q3,speed1 [rpm],speed2 [rpm],speed3 [rpm],tau1,tau2,tau3")
    np.testing.assert_allclose(read(path, robot=ROBOT).dq, np.pi / 30 * np.cos(Q), atol=1e-8)


def test_the_word_joint_in_some_column_names_is_no_other_signal(tmp_path):
    path = written(tmp_path, names=("time", "q_1", "q_joint_2", "q_3", "tau1", "tau2_joint", "tau3"))
    np.testing.assert_allclose(read(path, robot=ROBOT).q, Q, atol=1e-8)


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
    assert found.size == pytest.approx(0.4, abs=0.02) and not found.is_single
    q[:, 1:] = Q[:, 1:]
    assert find_jumps(T, q).is_single


def test_a_motion_a_spike_and_a_held_position_do_not_jump():
    assert find_jumps(T, Q) is None
    spike = Q.copy()
    spike[900] += 0.4
    assert find_jumps(T, spike) is None
    pause = np.r_[0:700, 1100:len(T)]
    assert find_jumps(T[pause], Q[pause]) is None  # the motion during a gap of the time stamps
    assert find_jumps(T[:len(pause)], Q[pause]) is not None
    assert find_jumps(T, np.repeat(Q[::20], 20, axis=0)) is None  # a tenth of a second between two values
    resting = np.zeros_like(Q)
    resting[1000:1100] = 0.5 * (1.0 - np.cos(np.linspace(0.0, 2.0 * np.pi, 100)))[:, None]
    assert find_jumps(T, resting) is None


@pytest.mark.parametrize(("form", "separator", "comma"), [
    ("%d.%m.%Y %H:%M:%S,%f", ";", ","), ("%d.%m.%Y %H:%M:%S.%f", ";", ","), ("%d.%m.%Y %H:%M:%S.%f", ",", "."),
    ("%Y-%m-%dT%H:%M:%S.%f", ";", ",")])
def test_dates_with_dots_and_numbers_with_commas_are_read(tmp_path, form, separator, comma):
    plain = written(tmp_path)
    title, *lines = plain.read_text().splitlines()
    start, rows = datetime(2026, 3, 31, 23, 59, 58), [title.replace(",", separator)]
    for line in lines:
        seconds, *numbers = line.split(",")
        rows.append(separator.join([(start + timedelta(seconds=float(seconds))).strftime(form),
                                    *(number.replace(".", comma) for number in numbers)]))
    path = tmp_path / "dated.csv"
    path.write_text("\n".join(rows) + "\n")
    found = read(path, robot=ROBOT)
    np.testing.assert_allclose(found.t, T - T[0], atol=2e-6)
    np.testing.assert_allclose(found.q, read(plain, robot=ROBOT).q, atol=1e-12)


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


def test_columns_of_an_unknown_name_are_proposed_and_the_proposal_works(tmp_path):
    """The proposal is one family of numbered names without another meaning; a T1 is no time, a target is no sensor."""
    for family in ("Moment_A", "T", "target_moment_"):
        names = ("time", "q1", "q2", "q3", *(f"{family}{j}" for j in (1, 2, 3)))
        path = written(tmp_path, names=names)
        if family != "Moment_A":
            with refused(RecordingError, "no-column", f'["{family}1", "{family}2", "{family}3"]') as found:
                read(path, robot=ROBOT)
            assert found.value.where == "log.torque"
            assert ("commanded" in str(found.value)) == (family == "target_moment_")
        np.testing.assert_allclose(read(path, {"torque": list(names[4:])}, ROBOT).tau, np.cos(Q), atol=1e-8)
    path = written(tmp_path, names=("Zeit", "q1", "q2", "q3", "tau1", "tau2", "tau3"))
    with refused(RecordingError, "no-column", "--set 'log.time=Zeit'"):
        read(path, robot=ROBOT)


def test_a_log_with_commands_and_without_torques_leads_to_the_actuators(tmp_path):
    with refused(RecordingError, "no-torque", "dynid actuators"):
        read(written(tmp_path, names=("time", "q1", "q2", "q3", "q_des_1", "q_des_2", "q_des_3")), robot=ROBOT)


def test_names_in_greek_letters_and_short_words(tmp_path):
    for position, torque in (("\u03b8", "\u03c4"), ("pos", "eff")):
        names = ("t", *(f"{position}{j}" for j in range(3)), *(f"{torque}{j}" for j in range(3)))
        np.testing.assert_allclose(read(written(tmp_path, names=names), robot=ROBOT).tau, np.cos(Q), atol=1e-8)


def test_units_below_the_header_are_used(tmp_path):
    """Degrees and milliseconds that only the line of units states."""
    lines = written(tmp_path, t=1e3 * T, q=np.rad2deg(Q)).read_text().splitlines()
    path = tmp_path / "units.csv"
    path.write_text("\n".join([lines[0], "[ms]," + 3 * "deg," + "Nm,Nm,Nm", *lines[1:]]))
    found = read(path, robot=ROBOT)
    np.testing.assert_allclose(found.q, Q, atol=1e-8)
    np.testing.assert_allclose(found.t, T, atol=1e-8)


@pytest.mark.parametrize("above", ["sep=,\n", "Recorder 1.2\nDate: 2026-03-01\n\n", "Robot,arm\n"])
def test_lines_above_the_header_are_skipped(tmp_path, above):
    plain = written(tmp_path)
    path = tmp_path / "above.csv"
    path.write_text(above + plain.read_text())
    np.testing.assert_array_equal(read(path, robot=ROBOT).q, read(plain, robot=ROBOT).q)


def test_a_time_of_day_is_a_time(tmp_path):
    lines = written(tmp_path).read_text().splitlines()
    clock = [f"12:00:{second:09.6f}" for second in T]
    path = tmp_path / "clock.csv"
    path.write_text("\n".join([lines[0], *(f"{at},{line.partition(',')[2]}" for at, line in zip(clock, lines[1:],
                                                                                           strict=True))]))
    np.testing.assert_allclose(read(path, robot=ROBOT).t, T, atol=1e-6)


@pytest.mark.parametrize("at_once", [None, 700])
@pytest.mark.parametrize("start", [None, 6.0])
def test_a_time_of_day_goes_on_after_midnight(tmp_path, at_once, start):
    path = written(tmp_path, (86395.0 + T) % 86400.0)
    found = read(path, {} if start is None else {"start": start}, ROBOT, at_once=at_once)
    expected = T if start is None else T[T >= start - 1e-9]
    np.testing.assert_allclose(found.t - found.t[0], expected - expected[0], atol=1e-5)
    assert sum("midnight" in note for note in found.notes) == 1
    with refused(RecordingError, "time-backwards"):
        read(written(tmp_path, np.where(T < 5, T + 400, T)), robot=ROBOT)


def test_python_objects_are_not_read_and_named(tmp_path):
    path = tmp_path / "log.npz"
    np.savez(path, t=T, q=np.array(Q.tolist(), dtype=object), tau=np.cos(Q))
    with refused(RecordingError, "no-column", "Python objects are not read: q"):
        read(path, robot=ROBOT)
    np.save(tmp_path / "log.npy", {"t": T, "q": Q, "tau": np.cos(Q)}, allow_pickle=True)
    with refused(RecordingError, "bad-recording", "Python objects", "numpy.savez"):
        read(tmp_path / "log.npy", robot=ROBOT)


@pytest.mark.parametrize("form", ["lines", "list", "columns", "rows of pandas", "nested"])
def test_json_logs_are_read(tmp_path, form):
    path = tmp_path / "log.json"
    rows = [{"t": t, "q": q.tolist(), "tau": np.cos(q).tolist()} for t, q in zip(T.tolist(), Q, strict=True)]
    if form == "nested":
        rows = [{"stamp": {"sec": int(row["t"]), "nanosec": round(1e9 * (row["t"] % 1))}, "position": row["q"],
                 "effort": row["tau"], "name": ["a", "b", "c"]} for row in rows]
    content = {"t": T.tolist(), "q": Q.tolist(), "tau": np.cos(Q).tolist()} if form == "columns" else rows
    if form == "rows of pandas":  # what DataFrame.to_json writes
        content = {name: {str(k): row[name] for k, row in enumerate(rows)} for name in rows[0]}
    path.write_text("\n".join(map(json.dumps, rows)) if form in ("lines", "nested") else json.dumps(content))
    found = read(path, robot=ROBOT)
    np.testing.assert_allclose(found.t, T, atol=1e-8)
    np.testing.assert_allclose(found.tau, np.cos(Q), atol=1e-12)


@pytest.mark.parametrize(("text", "code"), [
    ("[1, 2, 3]", "unknown-format"), ('{"q": [1, 2', "bad-recording"),
    ('{"t": 0, "q": [1, 2, 3]}\n{"t": 1}\n', "damaged-file"),
    ('[{"t": 0, "q": [1, 2]}, {"t": 1, "q": [1]}]', "damaged-file")])
def test_json_that_is_no_log_is_one_sentence(tmp_path, text, code):
    path = tmp_path / "log.json"
    path.write_text(text)
    with refused(RecordingError, code, path.name):
        read(path, robot=ROBOT)


def test_a_joint_that_is_not_logged_can_be_locked(tmp_path):
    path = tmp_path / "log.csv"
    np.savetxt(path, np.column_stack([T, Q[:, [0, 2]], np.cos(Q[:, [0, 2]])]), delimiter=",", comments="",
               header="time,q1,q3,tau1,tau3")
    second = ROBOT.joint_names[1]
    with refused(RecordingError, "no-column", f"--lock {second}="):
        read(path, robot=ROBOT)
    np.testing.assert_allclose(read(path, robot=ROBOT.lock({second: 0.3})).q, Q[:, [0, 2]])


def test_files_of_two_recorders_with_other_rates_are_not_paired(tmp_path):
    path, other = written(tmp_path, names=("time", "q1", "q2", "q3", "x", "y", "z")), tmp_path / "tau.csv"
    np.savetxt(other, np.cos(Q[::2]), delimiter=",", header="a,b,c", comments="")
    with refused(RecordingError, "lengths-differ", "interpolate"):
        read(path, {"torque": {"file": "tau.csv"}}, ROBOT)
    with refused(RecordingError, "wrong-setting", "time", "columns"):
        read(path, {"torque": {"file": "tau.csv", "time": "a"}}, ROBOT)


@pytest.mark.parametrize(("origin", "factor", "at_once"), [(0.0, 1.0, None), (1.7e9, 1e9, None), (1.7e9, 1e6, 300)])
def test_files_of_two_recorders_are_joined_by_the_time_of_each(tmp_path, origin, factor, at_once):
    def stamps(t):
        return [int(origin * factor) + round(x * factor) if factor > 1.0 else x for x in t.tolist()]

    states, torques = tmp_path / "states.csv", tmp_path / "torques.csv"
    own = np.concatenate([np.arange(0.503, 4.0, 0.0073), np.arange(4.5, T[-1] - 0.5, 0.0073)])
    tau = np.column_stack([np.interp(own, T, x) for x in np.cos(Q).T])
    for path, t, values, title in ((states, T, Q, "time,q1,q2,q3"), (torques, own, tau, "clock,a,b,c")):
        rows = [",".join(map(repr, [one, *row])) for one, row in zip(stamps(t), values.tolist(), strict=True)]
        path.write_text("\n".join([title, *rows]) + "\n")
    place = {"file": "torques.csv", "columns": ["a", "b", "c"], "time": "clock"}
    found = read(states, {"torque": place}, ROBOT, at_once=at_once)
    covered = ((T >= own[0] - 0.0073) & (T <= own[-1] + 0.0073) & ~((T > own[479]) & (T < 4.5)))
    t = T[covered]
    np.testing.assert_allclose(found.t, t - t[0], atol=1.1 / factor if factor > 1.0 else 1e-12)
    np.testing.assert_allclose(found.q, Q[covered], atol=1e-12)
    expected = np.column_stack([np.interp(t, own, x) for x in tau.T])
    np.testing.assert_allclose(found.tau, expected, atol=1e-5)
    assert any(f"{len(T) - len(t)} of {len(T)} rows" in note for note in found.notes)
    torques.write_text(torques.read_text().replace(f"\n{stamps(own)[0]!r},", f"\n{stamps(own)[0]!r},nan,", 1)
                       .replace(repr(tau[0, 0].item()) + ",", "", 1))
    with refused(RecordingError, "bad-row", "torques.csv row 2:"):
        read(states, {"torque": place}, ROBOT)


def test_files_without_a_common_time_are_not_joined(tmp_path):
    path, other = written(tmp_path, names=("time", "q1", "q2", "q3", "x", "y", "z")), tmp_path / "tau.csv"
    np.savetxt(other, np.column_stack([T + 1e6, Q]), delimiter=",", header="t,a,b,c", comments="")
    place = {"file": "tau.csv", "columns": ["a", "b", "c"], "time": "t"}
    with refused(RecordingError, "no-common-time", "tau.csv"):
        read(path, {"torque": place}, ROBOT)
    with refused(RecordingError, "bad-recording", "--set log.time=NAME"):
        read(path, {"torque": place, "rate": 100.0}, ROBOT)
