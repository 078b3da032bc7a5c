"""Files of BAM: published parameters are read and written again, and a log is identified with its own bench."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from dynid.actuators.bam_files import (
    SERVO_FAMILIES,
    BamParameters,
    bam_log,
    bench_law,
    motor_constants,
    read_bam_parameters,
    write_bam_parameters,
)
from dynid.actuators.chains import PENDULUM_THICKNESS
from dynid.errors import ModelError, RecordingError
from dynid.recording.json_tables import PendulumBench, write_bam
from dynid.recording.recording import Recording

# params/mx106/m5.json and params/feetech_sts3215_7_4V/m1.json of Rhoban/bam
MX106 = {"kt": 2.2087822411811935, "R": 2.0142427292798475, "armature": 0.026018155628771758,
         "friction_base": 1.8812712661235184e-10, "friction_stribeck": 0.12242747179820507,
         "load_friction_motor": 0.20763710226562626, "load_friction_external": 0.022684350817709906,
         "load_friction_motor_stribeck": 0.19519320110890795, "load_friction_external_stribeck": 0.08490162305974122,
         "dtheta_stribeck": 1.7457130513692263, "alpha": 1.138313248724122, "friction_viscous": 0.05066487276724427,
         "model": "m5", "actuator": "mx106"}
STS3215 = {"kt": 1.21164135295077, "R": 2.6761663274455603, "armature": 0.02840336348682085,
           "q_offset": -0.05116067663549731, "friction_base": 0.05239296084748866,
           "friction_viscous": 0.05908515565091076, "model": "m1", "actuator": "sts3215"}


@pytest.mark.parametrize("table", [MX106, STS3215])
def test_published_parameters_survive(tmp_path: Path, table: dict) -> None:
    (tmp_path / "in.json").write_text(json.dumps(table))
    found = read_bam_parameters(tmp_path / "in.json")
    assert json.loads(write_bam_parameters(found, tmp_path / "out.json").read_text()) == table
    assert found.values["resistance"] == table["R"] and found.values["coulomb"] == table["friction_base"]


@pytest.mark.parametrize(("text", "name"), [
    ("{", "in.json"), ("[]", "m1 to m6"), ('{"model": "m9"}', "m1 to m6"), ('{"model": "m1", "kt": "x"}', "kt"),
    ('{"model": "m1", "friction_viscous": NaN}', "friction_viscous"),
    ('{"model": "m2", "friction_base": 1, "friction_viscous": 1}', "friction_stribeck"),
])
def test_other_files_are_refused(tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / "in.json").write_text(text)
    with refused(RecordingError, "bad-recording", "in.json", name):
        read_bam_parameters(tmp_path / "in.json")
    with refused(RecordingError, "bad-recording", "missing.json"):
        read_bam_parameters(tmp_path / "missing.json")


def test_a_log_brings_its_bench(tmp_path: Path) -> None:
    t = np.arange(300) / 100
    log = Recording.from_commands(t, np.sin(t - 0.1)[:, None], np.sin(t)[:, None], voltage=np.zeros((300, 1)))
    path = write_bam(log, PendulumBench(0.5, 0.2, 0.06, kp=16, vin=7.4, motor="STS3215"), tmp_path / "log.json")
    found = bam_log(path)
    assert found.recording.voltage is None  # the recorder wrote zeros
    assert found.gains == {"kp": 16.0, "vin": 7.4, "gain": 0.166, "limit": 0.97}
    assert found.robot is not None
    ten = found.robot.inertias[0]
    assert ten[9] == pytest.approx(0.56)
    assert ten[0] == pytest.approx((0.5 + 0.02) * 0.04 * (1 + PENDULUM_THICKNESS ** 2))


@pytest.mark.parametrize(("motor", "gain"), [("sts3215", 0.166), ("feetech_sts3250", 0.166), ("MX-64", 0.158),
                                             ("xl320", 0.05048199), ("xl330", 0.00246), ("XC330-M288", 0.00246),
                                             ("XM430-W350", 0.00575504)])
def test_the_drive_of_a_motor_is_known_by_its_name(motor: str, gain: float) -> None:
    assert motor_constants(SERVO_FAMILIES, motor)["gain"] == gain


def test_a_motor_that_receives_currents_has_the_loop_of_its_recorder(tmp_path: Path) -> None:
    """kp (q_des - q) - damping sqrt(kp) dq, in A, is kv (kp_c (q_des - q) - dq) of the cascade."""
    t = np.arange(300) / 100
    log = Recording.from_commands(t, np.sin(t - 0.1)[:, None], np.sin(t)[:, None])
    paths = [write_bam(log, PendulumBench(8.0, 0.6, 1.0, kp=16.0, motor=motor, damping=2.0), tmp_path / f"{motor}.json")
             for motor in ("erob80_100", "sts3215")]
    found = bam_log(paths[0])
    assert found.gains == {"kp": 2.0, "kv": 8.0, "current_limit": 12.0}
    assert found.recording.voltage is None and found.recording.joints == ("erob80_100",)
    assert [bench_law([path]) for path in paths] == ["cascade", "voltage"]
    with refused(RecordingError, "different-motors", "erob80_100", "sts3215"):
        bench_law(paths)
    table = json.loads(paths[0].read_text())
    for entry in table["entries"][150:]:
        entry["torque_enable"] = False
    paths[0].write_text(json.dumps(table))
    switched = bam_log(paths[0]).recording.voltage
    assert switched is not None and switched[:150].all() and not switched[150:].any()


def test_only_one_actuator_of_the_voltage_law(tmp_path: Path) -> None:
    with refused(ModelError, "wrong-law", "pd"):
        write_bam_parameters(_estimate("pd", ("a",)), tmp_path / "out.json")
    with refused(ModelError, "which-joint", "a, b"):
        write_bam_parameters(_estimate("voltage", ("a", "b")), tmp_path / "out.json")
    with refused(ModelError, "unknown-joint", "'c'"):
        write_bam_parameters(_estimate("voltage", ("a", "b")), tmp_path / "out.json", joint="c")
    write_bam_parameters(_estimate("voltage", ("a", "b")), tmp_path / "out.json", joint="b", actuator="sts3215")
    assert read_bam_parameters(tmp_path / "out.json") == BamParameters(
        "m1", "sts3215", {"armature": 2.0, "coulomb": 2.0, "viscous": 2.0, "kt": 2.0, "resistance": 2.0, "delay": 0.0})


def _estimate(law: str, joints: tuple[str, ...]):
    from dynid.actuators.estimate import ActuatorEstimate, ActuatorValue
    values = tuple(ActuatorValue(joint, name, "", -0.001 if name == "delay" else 1.0 + k, 0.1, True)
                   for k, joint in enumerate(joints)
                   for name in ("armature", "coulomb", "viscous", "kt", "resistance", "delay"))
    return ActuatorEstimate("robot", joints, law, "m1", values, (), (), (), (), 0.0, 0, 0.0)
