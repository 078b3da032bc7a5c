"""Actuators from positions and commands, against servos simulated by MuJoCo and by formulas of their own."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from example_scripts import example
from refusals import refused

import dynid
from dynid.actuators import ActuatorLog, friction_choice, identify_actuators, pendulum
from dynid.actuators.estimate import DelayedCommand, SimulatedLog
from dynid.actuators.input_checks import unwrapped
from dynid.actuators.result_checks import role
from dynid.errors import NotPossibleError
from reproductions._mujoco_servos import Machine
from reproductions._servos import Servo, motions, simulate

GAINS = {"kp": 8.0, "kd": 0.15}
PLAIN = {"coulomb": 0.08, "viscous": 0.05}
VOLTAGE = {"kp": 32.0, "gain": 0.0395, "limit": 0.9625, "vin": 12.0, "kt": 1.0, "resistance": 2.0}
ROBOT = pendulum(0.5, 0.15, joint="j")
RATE = 100.0
COUNT = 2 * np.pi / 4096  # rad, of the encoder


def servo_log(law="pd", gains=GAINS, friction=PLAIN, delay=0.01, seed=3, rows=600, rate=RATE, **more):
    commands = motions(1, rows, rate, seed)
    q = simulate([Servo(0.5, 0.15, 0.01, law, gains, friction, delay=delay, **more)], commands, rate)
    return dynid.Recording.from_commands(np.arange(rows) / rate, q[0][:, None], commands[0][:, None], joints=("j",))


@pytest.fixture(scope="module")
def log():
    return servo_log()


def near(value, truth, share=0.02):
    assert value.identified and value.value == pytest.approx(truth, rel=share), value
    low, high = value.interval
    assert low - 2 * value.std < truth < high + 2 * value.std


def test_a_pendulum_with_a_pd_law_is_recovered_with_its_delay(log):
    found = identify_actuators(ROBOT, log, gains=GAINS, friction="m1")
    near(found["j", "armature"], 0.01)
    near(found["j", "coulomb"], 0.08)
    near(found["j", "viscous"], 0.05)
    near(found["j", "delay"], 0.01, 0.05)
    assert found.mean_error < 1.1 * COUNT / 4 < found.linear_error  # rounding alone gives a quarter of a count
    assert found.findings == ()


def test_mujoco_agrees():
    """Friction, armature and damping of MuJoCo, whose stiction is a soft constraint of its own."""
    mujoco = pytest.importorskip("mujoco")
    xml = ('<mujoco><option timestep="0.0002" integrator="implicitfast"/><worldbody><body>'
           '<joint name="j" type="hinge" axis="0 -1 0" armature="0.01" damping="0.05" frictionloss="0.08" '
           'solreffriction="0.0004 1" solimpfriction="0.9999 0.9999 0.001 0.5 2"/>'
           '<inertial pos="0 0 -0.15" mass="0.5" diaginertia="1e-9 1e-9 1e-9"/></body></worldbody>'
           '<actuator><motor joint="j"/></actuator></mujoco>')
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    command = motions(1, 500, RATE, 5)[0]
    data.qpos[0], q = command[0], np.zeros(500)
    for row in range(500):
        q[row] = np.round(data.qpos[0] * 4096 / (2 * np.pi)) * 2 * np.pi / 4096
        for _ in range(50):
            data.ctrl[0] = 8.0 * (command[row] - data.qpos[0]) - 0.15 * data.qvel[0]
            mujoco.mj_step(model, data)
    recording = dynid.Recording.from_commands(np.arange(500) / RATE, q[:, None], command[:, None], joints=("j",))
    found = identify_actuators(ROBOT, recording, gains=GAINS, friction="m1", diagnose=False)
    assert found["j", "armature"].value == pytest.approx(0.01, rel=0.02)
    assert found["j", "coulomb"].value == pytest.approx(0.08, rel=0.03)
    assert found["j", "viscous"].value == pytest.approx(0.05, rel=0.05)
    assert abs(found["j", "delay"].value) < 4e-4


def test_an_unknown_gain_is_estimated_and_two_dampings_are_named(log):
    found = identify_actuators(ROBOT, log, gains={"kd": 0.15}, friction="m1", diagnose=False)
    near(found["j", "kp"], 8.0)
    both = identify_actuators(ROBOT, log, friction="m1", diagnose=False)
    assert not both["j", "kd"].identified and not both["j", "viscous"].identified
    assert both["j", "kd"].interval is None
    note = next(note for note in both.notes if note.code == "not-distinguished")
    assert "viscous of j" in note.text and "kd of j" in note.text
    assert "replace each other" in note.text and "known mass" not in note.text  # their sum is determined, no ratio


def test_a_wrong_gain_a_wrong_mass_and_a_wrong_delay_are_named(log):
    for robot, gains, scale in ((ROBOT, {"kp": 9.6, "kd": 0.18}, 1 / 1.2),
                                (pendulum(0.6, 0.15, joint="j"), GAINS, 1.2)):
        found = identify_actuators(robot, log, gains=gains, friction="m1")
        finding = next(one for one in found.findings if one.code == "scale-contradicted")
        assert finding.evidence["estimate"] == pytest.approx(scale, rel=0.02)
    late = identify_actuators(ROBOT, log, gains=GAINS, friction="m1", delay=0.0)
    finding = next(one for one in late.findings if one.code == "delay-contradicted")
    assert finding.evidence["estimate"] == pytest.approx(0.01, rel=0.1)


def test_saturation_is_named():
    found = identify_actuators(ROBOT, servo_log(torque_limit=0.7), gains=GAINS, friction="m1")
    finding = next(one for one in found.findings if one.code == "saturation")
    assert finding.evidence["limit"] == pytest.approx(0.7, rel=0.05)


def test_the_voltage_law_cannot_distinguish_back_emf_and_viscous_friction():
    known = {name: VOLTAGE[name] for name in ("kp", "gain", "limit", "vin")}
    found = identify_actuators(ROBOT, servo_log("voltage", VOLTAGE), law="voltage", gains=known, friction="m1",
                               diagnose=False)
    assert not found["j", "viscous"].identified and not found["j", "kt"].identified
    whole = identify_actuators(ROBOT, servo_log("voltage", VOLTAGE), law="voltage", gains={**known, "kt": 1.0},
                               friction="m1", diagnose=False)
    near(whole["j", "resistance"], 2.0)
    near(whole["j", "armature"], 0.01)


def test_pid_cascade_and_current_laws_are_recovered():
    """An integral term, two nested loops, and measured currents that are held between rows."""
    pid = {"kp": 8.0, "ki": 12.0, "kd": 0.15}
    found = identify_actuators(ROBOT, servo_log("pid", pid), law="pid", gains=pid, friction="m1", diagnose=False)
    near(found["j", "armature"], 0.01)
    near(found["j", "coulomb"], 0.08)
    near(found["j", "delay"], 0.01, 0.05)
    cascade = {"kp": 30.0, "kv": 0.3, "ki": 1.5, "kt": 0.9}
    found = identify_actuators(ROBOT, servo_log("cascade", cascade), law="cascade", friction="m1", diagnose=False,
                               gains={name: cascade[name] for name in ("kp", "kv", "ki")})
    near(found["j", "kt"], 0.9)
    near(found["j", "armature"], 0.01)
    command = motions(1, 600, RATE, 3)
    q = simulate([Servo(0.5, 0.15, 0.01, "current", {"kt": 0.6}, PLAIN)], command, RATE)[0][:, None]
    log = dynid.Recording.from_commands(np.arange(600) / RATE, q, q, joints=("j",), current=command[0][:, None])
    found = identify_actuators(ROBOT, log, law="current", friction="m1", diagnose=False)
    near(found["j", "kt"], 0.6, 0.03)
    assert not found["j", "delay"].identified


def test_delay_and_offset_of_a_command_are_found():
    t = np.arange(400) / 100.0
    command = np.column_stack([np.sin(3 * t), np.cos(2 * t)])
    measured = np.column_stack([np.interp(t - 0.12, t, command[:, 0]) + 0.3, command[:, 1] - 0.1])
    found = DelayedCommand.from_logs([SimulatedLog("", t, measured, measured, command)])
    np.testing.assert_allclose(found.delay, [0.12, 0.0], atol=0.0026)
    np.testing.assert_allclose(found.offset, [0.3, -0.1], atol=0.01)
    assert found.mean_error < 0.005
    still = DelayedCommand.from_logs([SimulatedLog("", t, measured, measured, None)])
    np.testing.assert_allclose(still.offset, np.median(measured, axis=0))
    np.testing.assert_allclose(still.error, np.mean(np.abs(measured - still.offset), axis=0))


@pytest.mark.parametrize("law", ["pd", "pid", "voltage"])
def test_a_simulation_worse_than_the_delayed_command_is_not_usable(law):
    """A position that follows its command exactly, 60 ms late, is no motion of a pendulum with a weak drive."""
    t = np.arange(300) / RATE
    command = 0.6 * np.sign(np.sin(2.5 * t))
    log = dynid.Recording.from_commands(t, np.interp(t - 0.06, t, command)[:, None], command[:, None], joints=("j",))
    gains = {"pd": {"kp": 0.05, "kd": 0.0}, "pid": {"kp": 0.05, "ki": 0.0, "kd": 0.0},
             "voltage": {"kp": 0.05, "vin": 1.0, "kt": 1.0, "resistance": 2.0}}[law]
    found = identify_actuators(ROBOT, log, law=law, gains=gains, friction="m1", delay=0.0, diagnose=False)
    facts = found.to_dict()
    assert found.mean_error > found.delayed_command.mean_error and "the command, delayed" in found.unusable
    assert not facts["usable"] and found.posterior.unusable == found.unusable
    assert facts["simulation"]["delayed_command"]["delay"]["j"] == pytest.approx(0.06, abs=0.01)
    assert found.findings[0].code == "worse-than-command" and found.findings[0].severity == "fatal"


def test_current_law_needs_no_commands():
    command = motions(1, 600, RATE, 3)
    q = simulate([Servo(0.5, 0.15, 0.01, "current", {"kt": 0.6}, PLAIN)], command, RATE)[0][:, None]
    log = dynid.Recording(np.arange(600) / RATE, q, np.zeros_like(q), joints=("j",), current=command[0][:, None])
    assert log.reference is None
    found = identify_actuators(ROBOT, log, law="current", friction="m1", diagnose=False)
    near(found["j", "kt"], 0.6, 0.03)
    assert found.delayed_command.is_constant and not found.unusable


def test_divergence_on_a_part_of_the_logs_leaves_m1_with_a_note(monkeypatch):
    """The search of a half of the logs may diverge although that of all logs does not."""
    def diverge(*_, **__):
        raise NotPossibleError("the simulation diverges near kt = 1", code="simulation-diverges")

    log = servo_log(rows=300)
    monkeypatch.setattr(friction_choice, "left_out_errors", diverge)
    found = identify_actuators(ROBOT, log, gains=GAINS, delay=0.0, diagnose=False)
    assert found.friction == "m1" and found.comparison == ()
    text = next(note.text for note in found.notes if note.code == "friction-not-compared")
    assert "diverges near kt = 1" in text and "M1" in text


def test_encoder_bias_and_backlash_are_recovered():
    wide = motions(1, 800, RATE, 11, reach=1.5)
    servo = Servo(0.5, 0.15, 0.01, "pd", GAINS, PLAIN, delay=0.01, bias=0.04)
    q = simulate([servo], wide, RATE)[0]
    log = dynid.Recording.from_commands(np.arange(800) / RATE, q[:, None], wide[0][:, None], joints=("j",))
    found = identify_actuators(ROBOT, log, gains=GAINS, friction="m1", also=("bias",), diagnose=False)
    assert found["j", "bias"].value == pytest.approx(0.04, abs=0.01)
    found = identify_actuators(ROBOT, servo_log(backlash=0.02, rows=800), gains=GAINS, friction="m1",
                               also=("backlash",), diagnose=False)
    assert found["j", "backlash"].value == pytest.approx(0.02, abs=0.003)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["leg", "arm"])
def test_a_leg_and_an_arm_of_mujoco_are_recovered(kind):
    """A hanging leg of 3 joints and an arm of 6 joints by MuJoCo, PD law, encoders of 12 bits."""
    pytest.importorskip("mujoco")
    machine = Machine.from_kind(kind, 21)
    found = identify_actuators(machine.robot(), machine.log(21), gains=machine.gains, friction="m1", diagnose=False)
    for joint, values in machine.truth.items():
        for parameter, share in (("armature", 0.05), ("viscous", 0.1), ("coulomb", 0.05)):
            one = found[joint, parameter]
            assert one.identified and one.value == pytest.approx(values[parameter], rel=share), one
    assert found.mean_error < 1.6 * COUNT / 4


def test_logged_currents_are_simulated_over_long_pieces():
    """With a state to estimate every half second, this search ended at three times the error of rounding."""
    friction = {"coulomb": 0.05, "viscous": 0.05, "stribeck": 0.04, "stribeck_speed": 0.3, "load_motor": 0.1,
                "load_external": 0.1, "stribeck_load_motor": 0.08, "stribeck_load_external": 0.08}
    command = motions(1, 1000, RATE, [7001, 100, 4])
    q = simulate([Servo(0.5, 0.15, 0.01, "current", {"kt": 0.6}, friction)], command, RATE)[0][:, None]
    log = dynid.Recording.from_commands(np.arange(1000) / RATE, q, q, joints=("j",), current=command[0][:, None])
    found = identify_actuators(ROBOT, log, law="current", friction="m4", diagnose=False)
    assert found.mean_error < 1.1 * COUNT / 4
    near(found["j", "kt"], 0.6)
    near(found["j", "armature"], 0.01)


@pytest.mark.slow
def test_two_logs_may_have_gains_of_their_own():
    logs = [ActuatorLog(servo_log(gains={"kp": kp, "kd": 0.15}, seed=seed), {"kp": kp})
            for kp, seed in ((8.0, 3), (4.0, 4))]
    found = identify_actuators(ROBOT, logs, gains={"kd": 0.15}, friction="m1", diagnose=False)
    near(found["j", "armature"], 0.01)
    near(found["j", "coulomb"], 0.08)


@pytest.mark.slow
def test_the_friction_model_is_chosen_by_parts_left_out(log):
    assert identify_actuators(ROBOT, log, gains=GAINS, diagnose=False).friction == "m1"
    load = {"coulomb": 0.04, "viscous": 0.05, "load_motor": 0.2, "load_external": 0.2}
    loaded = identify_actuators(ROBOT, servo_log(friction=load, rows=900), gains=GAINS, diagnose=False)
    assert loaded.friction != "m1"
    errors = {one.model: one.error for one in loaded.comparison}
    assert errors[loaded.friction] < errors["m1"]


def test_results_survive_json(log, tmp_path):
    found = identify_actuators(ROBOT, log, gains=GAINS, friction="m1", diagnose=False)
    assert found.save(tmp_path / "a.json").read_text().startswith("{")
    assert "armature" in found._repr_html_()


def test_equal_joints_share_a_role():
    assert role("FL_hip_joint") == role("RR_hip_joint") != role("FL_calf_joint")


def changed(log, **fields):
    from dataclasses import replace
    return replace(log, **fields)


def test_bad_logs_are_refused_with_a_reason(log):
    kind = dynid.RecordingError
    still = np.zeros_like(log.q)
    for code, bad in (("log-at-rest", changed(log, q=still)), ("command-is-position", changed(log, reference=log.q)),
                      ("no-command", changed(log, reference=None)), ("too-short", log[:20]),
                      ("wrong-unit", changed(log, q=np.rad2deg(log.q), reference=np.rad2deg(log.reference))),
                      ("wrong-unit", changed(log, q=np.round(log.q * 652 + 2048), reference=log.q * 652)),
                      ("wrong-unit", changed(log, q=log.q / np.abs(log.q).max() * 100, reference=log.reference * 100)),
                      ("dropped-packets", changed(log, t=np.cumsum(np.tile([0.01, 0.01, 0.05], 200))))):
        with refused(kind, code):
            identify_actuators(ROBOT, bad, gains=GAINS, friction="m1")
    with refused(kind, "wrong-unit", "commands of j", "units are not the same", "convert the commands"):
        identify_actuators(ROBOT, changed(log, reference=np.rad2deg(log.reference)), gains=GAINS, friction="m1")
    for code, options in (("unknown-law", {"law": "magic"}), ("unknown-friction", {"friction": "m9"}),
                          ("unknown-gain", {"gains": {"kz": 1.0}}), ("missing-gain", {"law": "voltage"}),
                          ("unknown-parameter", {"also": ("mass",)})):
        with refused(dynid.ModelError, code):
            identify_actuators(ROBOT, log, **options)


def test_an_encoder_that_starts_again_after_a_turn_is_followed(log):
    """Positions, or both positions and commands, that wrap at half a turn as those of a servo of one turn do."""
    def wrapped(x):
        return (x + np.pi) % (2 * np.pi) - np.pi
    far, sent = log.q + 3.0, log.reference + 3.0  # rad: the motion crosses half a turn
    for q, command in ((wrapped(far), sent), (wrapped(far), wrapped(sent))):
        found, remarks = unwrapped(changed(log, q=q, reference=command), ROBOT)
        assert np.abs(np.diff(found.q, axis=0)).max() < 1.0 and "jumps by a turn" in remarks[0]
        np.testing.assert_allclose(found.reference - found.q, log.reference - log.q, atol=1e-12)
    assert unwrapped(log, ROBOT) == (log, [])
    ticks = changed(log, q=wrapped(far) * 652)
    assert unwrapped(ticks, ROBOT)[0] is ticks  # ticks are refused, not unwrapped


@pytest.mark.slow
def test_go2_hanging_is_simulated_on_the_other_half_within_6_mrad():
    folder = Path(os.environ.get("DYNID_DATA", "../shared/data")) / "go2_hanging"
    if not folder.exists():
        pytest.skip(f"{folder} does not exist")
    for row in example("actuators", "reproductions").go2_halves(folder):
        assert row["error"] <= 6.0 < row["nominal"], row


def test_a_given_friction_model_is_searched_from_the_solution_of_the_simplest_one():
    """From the first stage, this search ended at the bound of the Stribeck speed, with a tenth more error."""
    friction = {"coulomb": 0.05, "viscous": 0.05, "stribeck": 0.04, "stribeck_speed": 0.3}
    log = servo_log(friction=friction, delay=0.02, seed=[4000, 50], rows=500, rate=50.0)
    found = identify_actuators(ROBOT, log, gains=GAINS, friction="m2", diagnose=False)
    assert found.mean_error < 1.05 * COUNT / 4
    for name, truth in friction.items():
        low, high = found["j", name].interval
        assert low < truth < high


@pytest.mark.slow
def test_a_speed_limit_is_estimated_with_the_other_parameters():
    """The target of the servo is a ramp inside the intervals of the log, in steps of half a millisecond."""
    fine, every, rows, limit = 2000.0, 20, 800, 2.5
    rng = np.random.default_rng(4701)
    command = np.repeat(rng.uniform(-0.9, 0.9, rows // 100), 100) + 0.2 * motions(1, rows, RATE, 4701)[0]
    target = np.repeat(command, every)
    for k in range(1, len(target)):
        target[k] = target[k - 1] + np.clip(command[(k - 1) // every] - target[k - 1], -limit / fine, limit / fine)
    middle = np.append(0.5 * (target[1:] + target[:-1]), target[-1])
    q = simulate([Servo(0.5, 0.15, 0.01, "voltage", VOLTAGE, PLAIN, delay=0.01)], middle[None], fine)[0][::every]
    log = dynid.Recording.from_commands(np.arange(rows) / RATE, q[:, None], command[:, None], joints=("j",))
    known = {name: value for name, value in VOLTAGE.items() if name != "resistance"}
    found = identify_actuators(ROBOT, log, law="voltage", gains=known, friction="m1", also=("speed_limit",),
                               diagnose=False)
    for name, truth in {"speed_limit": limit, "resistance": 2.0, "delay": 0.01, **PLAIN}.items():
        near(found["j", name], truth)
