"""Logs without torques: read from files, written and read again, and refused where torques are named all the same."""

import numpy as np
import pytest
from refusals import refused

import dynid
from dynid.recording.write import write_csv, write_npz

JOINTS = ("FL_hip_joint", "FL_calf_joint")


def servo_log(rows=50):
    t = np.arange(rows) / 100
    q = np.column_stack([np.sin(3 * t), np.cos(2 * t)])
    return dynid.Recording.from_commands(t, q, q + 0.1, joints=JOINTS, current=2 * q, voltage=np.full_like(q, 12.0),
                                         duty=0.5 * q)


@pytest.mark.parametrize("write", [write_csv, write_npz])
def test_a_log_without_torques_survives_a_file(tmp_path, write):
    log = servo_log()
    path = write(log, tmp_path / ("log.csv" if write is write_csv else "log.npz"))
    back = dynid.read(path, torque_free=True)
    assert back.is_torque_free and "torque" not in back.signals
    for name in ("t", "q", "reference", "current", "voltage", "duty"):
        np.testing.assert_allclose(getattr(back, name), getattr(log, name), atol=1e-12, err_msg=name)


def test_columns_without_the_ending_of_the_joint_names_are_found(tmp_path):
    log = servo_log()
    path = tmp_path / "traj.csv"
    table = np.column_stack([log.t, log.q, log.reference])
    np.savetxt(path, table, delimiter=",", comments="", header="time,q_FL_hip,q_FL_calf,q_des_FL_hip,q_des_FL_calf")
    back = dynid.read(path, torque_free=True, joints=list(JOINTS))
    assert back.joints == JOINTS
    np.testing.assert_allclose(back.reference, log.reference, atol=1e-12)


def test_one_supply_voltage_serves_all_joints(tmp_path):
    log = servo_log()
    path = tmp_path / "traj.csv"
    np.savetxt(path, np.column_stack([log.t, log.q, log.reference, log.voltage[:, 0]]), delimiter=",", comments="",
               header="time,q1,q2,c1,c2,vin")
    back = dynid.read(path, torque_free=True, position="q{i}", reference="c{i}", supply_voltage="vin")
    np.testing.assert_allclose(back.voltage, 12.0)
    assert back[10:20].voltage.shape == (10, 2)


def test_torques_in_a_mapping_without_torques_are_refused(tmp_path):
    with refused(dynid.RecordingError, "wrong-setting", "torque_free"):
        dynid.recording.mapping.Mapping.from_settings({"torque_free": True, "torque": "tau{i}"})
