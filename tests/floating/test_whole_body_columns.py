"""Columns of base, IMU, feet and contacts by the names that recorders use."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused
from walkers import humanoid, quadruped

from dynid.errors import RecordingError
from dynid.floating.contacts import assign_feet, find_feet, standing_from_loads
from dynid.recording.whole_body import check_motor_order, find_columns, leg_in_name
from dynid.robot import Robot

XYZ = ("x", "y", "z")


def found(*names: str) -> dict[str, tuple[str, ...]]:
    return dict(find_columns(dict.fromkeys(names, (0,)))[0])


@pytest.mark.parametrize(("pattern", "signal"), [
    ("base_pos_{}", "base_position"), ("base_{}", "base_position"), ("trunk_position.{}", "base_position"),
    ("base_lin_vel_{}", "base_velocity"), ("base_linear_velocity_{}", "base_velocity"),
    ("base_ang_vel_{}", "base_angular_velocity"), ("imu_gyro_{}", "imu_angular_rate"),
    ("imu/angular_velocity/{}", "imu_angular_rate"), ("gyroscope_{}", "imu_angular_rate"),
    ("imu_acc_{}", "imu_specific_force"), ("accelerometer_{}", "imu_specific_force"),
    ("imu.linear_acceleration.{}", "imu_specific_force"),
])
def test_vectors_are_found(pattern, signal):
    names = [pattern.format(axis) for axis in XYZ]
    assert found("time", *names) == {signal: tuple(names)}


def test_quaternions_are_ordered_by_their_letters():
    assert found("quat_w", "quat_x", "quat_y", "quat_z")["base_orientation"] == ("quat_x", "quat_y", "quat_z", "quat_w")
    numbered = tuple(f"imu_quaternion_{k}" for k in range(4))
    assert found(*numbered)["base_orientation"] == numbered


def test_feet_and_contacts():
    forces = tuple(f"{leg}_foot_force_{axis}" for leg in ("FL", "FR", "RL", "RR") for axis in XYZ)
    contacts = tuple(f"{leg}_contact" for leg in ("FL", "FR", "RL", "RR"))
    assert found(*forces, *contacts) == {"foot_force": forces, "contact": contacts}
    numbered = tuple(f"foot_force_{k}" for k in range(4))
    assert found(*numbered) == {"foot_force": numbered}
    wrench = tuple(f"{side}_ft_{part}_{axis}" for side in ("left", "right") for part in ("force", "torque")
                   for axis in XYZ)
    assert found(*wrench) == {"foot_force": wrench}


def test_a_missing_force_column_is_named():
    forces = [f"{leg}_foot_force_{axis}" for leg in ("FL", "FR", "RL", "RR") for axis in XYZ]
    forces.remove("RL_foot_force_y")
    signals, notes = find_columns(dict.fromkeys(forces, (0,)))
    assert not signals
    [note] = notes
    assert "next to RL_foot_force_x there is no force y" in note and "--set 'log.foot_force=[...]'" in note


def test_columns_of_joints_and_commands_are_not_taken():
    fields = dict.fromkeys(["FL_hip_q", "FL_hip_tau", "target_base_pos_x", "motor_force_1"], (0,))
    assert not find_columns(fields, ["FL_hip"])[0]


def test_feet_of_robots_are_found_by_name():
    dog, man = Robot.load(quadruped()), Robot.load(humanoid())
    assert find_feet(dog) == ("FL_toe", "FR_toe", "RL_toe", "RR_toe")
    assert find_feet(man) == ("left_sole", "right_sole")
    assert leg_in_name("hind_left_foot") == ("rear", "left") == leg_in_name("LH_FOOT")
    by_name = assign_feet(dog, [f"{leg}_contact" for leg in ("RR", "FL", "RL", "FR")], None, "contact", "log", 4)
    assert by_name.frames == ("RR_toe", "FL_toe", "RL_toe", "FR_toe") and by_name.width == 1
    with refused(RecordingError, "unknown-feet", "FR_toe, RL_toe"):
        assign_feet(dog, ["RR_contact", "FL_contact"], None, "contact", "log", 2)
    numbered = assign_feet(dog, [f"foot_force_{k}" for k in range(4)], None, "foot_force", "log", 4)
    assert numbered.frames == ("FR_toe", "FL_toe", "RR_toe", "RL_toe") and "Unitree" in numbered.note
    with refused(RecordingError, "unknown-feet", "columns"):
        assign_feet(dog, ["a", "b", "c"], None, "contact", "log", 3)


def test_contacts_from_loads():
    """A foot that is lifted has a threshold between its loads; one that never is stands throughout."""
    lifted = np.where(np.arange(1000) % 200 < 50, 0.0, 40.0)
    standing, limits = standing_from_loads(np.column_stack([lifted, 30.0 + 5.0 * np.sin(np.arange(1000))]), None)
    assert np.array_equal(standing[:, 0], lifted > 0) and standing[:, 1].all()
    assert 0 < limits[0] < 40 and limits[1] == -np.inf


def test_a_lightly_loaded_foot_stands():
    """A foot with an eighth of the usual load is in contact, and the noise of a lifted one is not."""
    rng, rows = np.random.default_rng(0), np.arange(2000)
    loads = np.where(rows % 500 < 100, 0.0, np.where(rows % 500 < 200, 8.0, 64.0)) + 0.5 * rng.normal(size=2000)
    standing, _ = standing_from_loads(loads[:, None], None)
    assert np.array_equal(standing[:, 0], rows % 500 >= 100)


def test_numbered_motors_in_another_order_of_legs_are_asked_for():
    columns = [f"motor_state_{k}_q" for k in range(12)]
    joints = [f"{leg}_{part}" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf")]
    with refused(RecordingError, "motor-order", 'log.joints=["FR_hip", "FR_thigh", "FR_calf", "FL_hip"'):
        check_motor_order(columns, joints, "log.csv")
    check_motor_order(columns, [*joints[3:6], *joints[:3], *joints[9:], *joints[6:9]], "log.csv")
    check_motor_order(["q", "tau"], joints, "log.npz")
