"""Files of recorders with the defects of real recordings: each gives a model or one clear sentence."""

from __future__ import annotations

import json

import numpy as np
import pytest
from recorders import ARMATURE, COULOMB, KT, RESISTANCE, bam_file
from refusals import refused

import dynid
from dynid.actuators.bam_files import SERVO_FAMILIES, bam_log, motor_constants
from dynid.runs.actuators import actuator_settings, find_actuators


def found_in(*sources, **given):
    settings = actuator_settings(str(sources[0]), [str(one) for one in sources[1:]], {"friction": "m1", **given})
    return find_actuators(settings, diagnose=False)


def test_a_folder_of_bam_logs_needs_no_further_words(tmp_path):
    """Two masses, two gains, a drop with the torque switched off, a log without motion, and another kind of file."""
    bam_file(tmp_path / "1.json", "lift_and_drop", kp=16, mass=0.3, seed=1)
    bam_file(tmp_path / "2.json", "sin_time_square", kp=8, mass=0.5, seed=2, sag=0.1)
    bam_file(tmp_path / "3.json", "nothing", seed=3)
    (tmp_path / "params.json").write_text(json.dumps({"kt": 1.0, "model": "m1"}))
    found = found_in(tmp_path)
    assert found.settings.law == "voltage"
    estimate = found.estimate
    joint = estimate.joints[0]
    for name, truth, share in (("kt", KT, 0.03), ("resistance", RESISTANCE, 0.05), ("armature", ARMATURE, 0.05),
                               ("coulomb", COULOMB, 0.1)):
        assert estimate[joint, name].identified
        assert estimate[joint, name].value == pytest.approx(truth, rel=share), name
    notes = " ".join(note.text for note in estimate.notes)
    assert "Left out" in notes and "3.json" in notes and "params.json" in notes
    assert [len(log.source) > 0 for log in estimate.logs] == [True, True]
    same = found_in(*(tmp_path / name for name in ("1.json", "2.json")))
    assert same.estimate[joint, "kt"].value == pytest.approx(estimate[joint, "kt"].value)


def test_a_switched_off_torque_is_a_supply_of_zero(tmp_path):
    log = bam_log(bam_file(tmp_path / "1.json", "lift_and_drop"))
    assert log.recording.voltage is not None and log.recording.duty is None
    late = log.recording.t > 2.1
    assert np.all(log.recording.voltage[late] == 0) and np.all(log.recording.voltage[log.recording.t < 1.9] > 7)


@pytest.mark.parametrize(("motor", "gain"), [
    ("sts3215", 0.166), ("ST3025", 0.166), ("mx106", 0.158), ("MX-64", 0.158), ("xl320", 0.05048199),
    ("xl330", 0.00246), ("xm430-w350", 0.00575504)])
def test_drives_are_known_by_the_family_of_the_motor(motor, gain):
    assert motor_constants(SERVO_FAMILIES, motor)["gain"] == gain


def test_unusable_bam_logs_get_a_sentence(tmp_path):
    path = bam_file(tmp_path / "1.json", "sin_time_square", motor="lift7", duration=1.5)
    with refused(dynid.ModelError, "unknown-motor"):
        found_in(path)
    assert bam_log(path, ("gain",)).gains["kp"] == 16
    still = bam_file(tmp_path / "2.json", "nothing", duration=1.5)
    with refused(dynid.RecordingError, "log-at-rest"):
        found_in(still)
    table = json.loads(path.read_text())
    for change in ({"mass": None}, {"entries": []}, {"length": "long"}):
        (tmp_path / "3.json").write_text(json.dumps({**table, **change}))
        with pytest.raises(dynid.RecordingError) as problem:
            found_in(tmp_path / "3.json")
        assert "3.json" in str(problem.value)
