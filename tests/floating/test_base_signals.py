"""Signals of the base in other units, rates and orders are recognised, or refused with one sentence."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from refusals import refused
from walking_runs import walk

from dynid.errors import RecordingError
from dynid.floating.whole_body import floating_log
from dynid.recording.log_reading import read
from dynid.recording.mapping import Mapping
from dynid.robot import Robot


@pytest.fixture
def table():
    """Columns of the walk without forces."""
    return {name: column.copy() for name, column in walk().columns("wrench").items()}


def read_log(folder, columns, **rules):
    path, robot = folder / "log.csv", Robot.load(walk().walker.text)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True))
    log, notes = floating_log(read(path, rules, robot), robot, Mapping(**rules))
    return log, " ".join(notes)


def without(table, *starts):
    return {name: column for name, column in table.items() if not name.startswith(starts)}


@pytest.mark.parametrize(("left_out", "named"), [((), "orientation of the base"), (("base_",), "direction of gravity")])
@pytest.mark.parametrize("factor", [1.0, 180.0 / np.pi])
def test_angular_rates_in_degrees(tmp_path, table, left_out, named, factor):
    for axis in "xyz":
        table[f"imu_gyro_{axis}"] *= factor
    log, notes = read_log(tmp_path, without(table, *left_out))
    np.testing.assert_allclose(log.imu.angular_rate, walk().signals["gyro"], atol=1e-6)
    assert (f"times that of the {named}, so it is read in deg/s" in notes) == (factor > 1.0)


def test_a_pose_at_a_lower_rate_is_interpolated(tmp_path, table):
    """Each pose is written five times; the error of a straight line between poses is much below that of steps."""
    for name in table:
        if name.startswith("base_"):
            table[name] = np.repeat(table[name][::5], 5)[:len(table[name])]
    log, notes = read_log(tmp_path, without(table, "imu"))
    assert "position of the base changes only in every 5th row" in notes and "orientation" in notes
    true, steps = walk().signals["position"], np.repeat(walk().signals["position"][::5], 5, axis=0)[:len(log.t)]
    assert np.std(log.position - true) < 0.3 * np.std(steps - true)
    turned = walk().signals["orientation"]
    assert np.abs(np.sum(log.orientation * turned, axis=1)).min() > 1.0 - 1e-5
    assert not read_log(tmp_path, without({**table, **walk().columns("wrench")}, "imu"))[1].count("changes only")


def test_a_quaternion_in_another_order_than_its_names(tmp_path, table):
    """Columns in the order w x y z have the names x y z w."""
    values = [table[f"base_quat_{axis}"] for axis in "wxyz"]
    table |= {f"base_quat_{axis}": column for axis, column in zip("xyzw", values, strict=True)}
    with refused(RecordingError, "quaternion-order", "--set log.quaternion=wxyz"):
        read_log(tmp_path, table)
    log, _ = read_log(tmp_path, table, quaternion="wxyz")
    np.testing.assert_allclose(log.orientation, walk().signals["orientation"], atol=1e-8)


def test_a_wrong_order_that_was_specified(tmp_path, table):
    with refused(RecordingError, "quaternion-order", "--set log.quaternion=xyzw"):
        read_log(tmp_path, table, quaternion="wxyz")


def test_contacts_as_words(tmp_path, table):
    flags = {name: np.where(column > 0.5, "True", "False") for name, column in table.items() if "contact" in name}
    log, _ = read_log(tmp_path, table | flags)
    np.testing.assert_array_equal(log.standing, walk().signals["contact"])


def test_a_gyroscope_alone(tmp_path, table):
    with refused(RecordingError, "no-base-motion", "log.imu_specific_force"):
        read_log(tmp_path, without(table, "imu_acc", "base_pos"))
    log, _ = read_log(tmp_path, without(table, "imu_acc"))
    assert log.base_motion == "pose"


def test_a_quaternion_of_another_norm(tmp_path, table):
    for axis in "xyzw":
        table[f"base_quat_{axis}"] *= 2.0
    with refused(RecordingError, "not-unit-quaternion", "norm 2"):
        read_log(tmp_path, table)
