"""`dynid export`: files for simulators and draws at the command line."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import mujoco
import numpy as np
import pytest
from motions import arm, motion

from dynid.cli.main import main
from dynid.recording.decimate import decimate_columns, decimated_rows
from dynid.robot import Robot
from dynid.runs import RunSettings, run
from reproductions._servos import Servo, motions, simulate


@pytest.fixture(scope="module")
def identified(tmp_path_factory):
    """A result folder of the 3R arm, identified from a virtual log."""
    place = tmp_path_factory.mktemp("identified")
    model, theta = arm()
    samples = motion(model, theta, 0.01 * np.random.default_rng(0).normal(size=(2000, 3)), seconds=10.0)
    names = Robot.builtin("arm3r").joint_names
    head = ["t", *(f"q_{n}" for n in names), *(f"tau_{n}" for n in names)]
    rows = np.column_stack([samples.t, samples.q, samples.tau])
    np.savetxt(place / "log.csv", rows, delimiter=",", header=",".join(head), comments="")
    columns = {"position": [f"q_{n}" for n in names], "torque": [f"tau_{n}" for n in names]}
    sets = [f"log.{key}={json.dumps(value)}" for key, value in columns.items()]
    with pytest.raises(SystemExit):
        main(["identify", "arm3r", str(place / "log.csv"), "--set", "log.time=t", "--set", sets[0], "--set", sets[1],
              "--friction", "viscous,coulomb,offset", "--method", "pc-wls", "--no-simulation",
              "-o", str(place / "out")])
    assert (place / "out" / "estimate.npz").exists()
    return place


@pytest.fixture
def result(tmp_path, monkeypatch, identified):
    """A copy of the result folder, in the working folder of a test."""
    shutil.copytree(identified, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_result_becomes_files_and_draws(dynid, result):
    (result / "drives.toml").write_text("[joint1]\nstiffness = 50.0\nkd = 2.0\n")
    shown = dynid("export", "out", "--for", "mjcf", "--drives", "drives.toml", "-o", "arm.xml", "--json")
    assert shown.code == 0, shown.err
    facts = json.loads(shown.out)
    assert facts["loss_along"] == "log" and facts["loss"]["joint1"]["approximated"] == ["Fo1"]
    assert mujoco.MjModel.from_xml_path(str(result / "arm.xml")).nactuator == 1
    shown = dynid("export", "out", "--for", "mjcf", "-o", "arm.xml")
    assert shown.code == 2 and shown.error == "file-exists"
    shown = dynid("export", "out", "--draws", "3", "--for", "mjcf", "-o", "drawn", "--json")
    assert shown.code == 0, shown.err
    facts = json.loads(shown.out)
    assert facts["draws"] == 3 and len(facts["files"]) == 5 and set(facts["torque_spread"]["ratio"]) == {
        "joint1", "joint2", "joint3"}
    table = np.load(result / "drawn" / "draws.npz")
    for k in range(3):
        model = mujoco.MjModel.from_xml_path(str(result / "drawn" / f"draw_{k + 1}.xml"))
        for b, name in enumerate(table["bodies"]):
            body = model.body(str(name)).id
            np.testing.assert_allclose(model.body_mass[body], table["mass"][k, b], rtol=1e-12)
            np.testing.assert_allclose(model.body_ipos[body], table["com"][k, b], atol=1e-12)
            ours, theirs = (_matrix(quat, values) for quat, values in (
                (table["iquat"][k, b], table["diaginertia"][k, b]), (model.body_iquat[body], model.body_inertia[body])))
            np.testing.assert_allclose(ours, theirs, atol=1e-9)
        np.testing.assert_allclose(model.dof_damping, table["damping"][k], rtol=1e-6)
    written = np.loadtxt(result / "drawn" / "draws.csv", delimiter=",", skiprows=1)
    assert np.array_equal(written, table["theta"])


def _matrix(quat, values):
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, quat)
    return turn.reshape(3, 3) @ np.diag(values) @ turn.reshape(3, 3).T


def test_base_parameters_are_exported_as_the_nearest_robot_and_its_cost_is_stated(dynid, result):
    """The file and its stated error are those that `identify` writes; MuJoCo has the same error."""
    shown = dynid("identify", "out/run.toml", "--method", "wls", "-o", "wls", "--json")
    assert shown.code == 0, shown.err
    identified = json.loads(shown.out)["written_file"]
    shown = dynid("export", "wls", "--for", "mjcf", "-o", "robot.xml", "--json")
    assert shown.code == 0, shown.err
    exported = json.loads(shown.out)["written_file"]
    assert exported["is_nearest"] and exported["file"] == identified["file"] == "robot.xml"
    assert exported["torque_error"] == pytest.approx(identified["torque_error"], rel=1e-6)
    assert exported["estimate_error"] == pytest.approx(identified["estimate_error"])
    assert (result / "robot.xml").read_text() == (result / "wls" / "robot.xml").read_text()
    settings = RunSettings.load(result / "wls" / "run.toml")
    (log,) = run(settings.moved(result / "wls", result)).samples
    model = mujoco.MjModel.from_xml_path(str(result / "robot.xml"))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data, torques = mujoco.MjData(model), []
    for data.qpos[:], data.qvel[:], data.qacc[:] in zip(log.q, log.dq, log.ddq, strict=True):
        mujoco.mj_inverse(model, data)
        torques.append(data.qfrc_inverse + model.dof_frictionloss * np.sign(data.qvel))
    theirs, measured, keep = np.array(torques), log.tau, log.keep
    if log.decimation is not None:
        theirs, measured = (decimate_columns(x, log.decimation, log.segments) for x in (theirs, measured))
        keep = keep[decimated_rows(log.segments, log.decimation)]
    error = 100.0 * np.linalg.norm((theirs - measured)[keep]) / np.linalg.norm(measured[keep])
    assert exported["torque_error"] == pytest.approx(error, rel=1e-6)


def test_the_screen_states_the_torque_error_of_the_file_beside_that_of_the_estimate(dynid, result, identified):
    text = " ".join(dynid("export", "out", "--for", "mjcf", "-o", "arm.xml").out.split())
    stated = r"arm\.xml: torque error [\d.]+ % \(the estimate: [\d.]+ %\); it cannot hold torque offset\."
    assert re.search(stated, text)
    text = " ".join(dynid("identify", "out/run.toml", "-o", "again").out.split())
    assert text.count("robot.xml: torque error ") == 1 and "it cannot hold torque offset." in text
    assert "robot.xml: torque error" in (result / "again" / "report.html").read_text()
    # Without its log, the file is written all the same, and its error is not known.
    log = (identified / "log.csv").rename(identified / "moved.csv")
    shown = dynid("export", "out", "--for", "mjcf", "-o", "blind.xml", "--json")
    log.rename(identified / "log.csv")
    assert shown.code == 0 and json.loads(shown.out)["written_file"] is None
    assert any("cannot be read" in note for note in json.loads(shown.out)["notes"])


@pytest.mark.parametrize(("arguments", "error"), [
    ((), "no-target"), (("--draws", "-1"), "out-of-range"), (("--draws", "3", "--spread", "7"), "wrong-spread"),
    (("--for", "mjcf", "--drives", "none.toml"), "unreadable-drives"),
    (("--for", "mjcf", "--drives", "bad.toml"), "unreadable-drives"),
    (("--for", "urdf", "--source", "bad.toml"), "bad-xml")])
def test_bad_calls_are_sentences(dynid, result, arguments, error):
    (result / "bad.toml").write_text("joint1 = 3\n")
    shown = dynid("export", "out", "-o", "new", *arguments)
    assert shown.code != 0 and shown.error == error and "Traceback" not in shown.err
    assert not (result / "new").exists() or not any((result / "new").iterdir())


def test_actuators_become_files_and_draws(dynid, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = motions(1, 500, 100.0, 3)
    q = simulate([Servo(0.5, 0.15, 0.01, "pd", {"kp": 8.0, "kd": 0.15}, {"coulomb": 0.08, "viscous": 0.05})], commands,
                 100.0)
    rows = np.column_stack([np.arange(500) / 100.0, q[0], commands[0]])
    np.savetxt("log.csv", rows, delimiter=",", header="t,q,q_des", comments="")
    shown = dynid("actuators", "log.csv", "--pendulum", "mass=0.5,length=0.15", "--gain", "kp=8", "--gain", "kd=0.15",
                  "--friction", "m1", "-o", "out")
    assert shown.code == 0, shown.err
    shown = dynid("export", "out", "--for", "mjcf", "-o", "servo.xml")
    assert shown.code == 0, shown.err
    model = mujoco.MjModel.from_xml_path("servo.xml")
    assert model.actuator_gainprm[0, 0] == 8.0 and model.dof_armature[0] == pytest.approx(0.01, rel=0.05)
    shown = dynid("export", "out", "--draws", "3", "--for", "mjcf", "-o", "drawn", "--json")
    assert shown.code == 0, shown.err
    assert sorted(path.name for path in (tmp_path / "drawn").iterdir()) == [
        "draw_1.xml", "draw_2.xml", "draw_3.xml", "draws.csv", "draws.npz"]
    table = np.load("drawn/draws.npz")
    for k in range(3):
        model = mujoco.MjModel.from_xml_path(f"drawn/draw_{k + 1}.xml")
        assert model.dof_frictionloss[0] == pytest.approx(table["frictionloss"][k, 0], rel=1e-9)
    shown = dynid("export", "out", "--for", "isaaclab", "-o", "servo.py")
    assert shown.code == 0 and "ImplicitActuatorCfg" in (tmp_path / "servo.py").read_text(), shown.err


ROBOT = """<mujoco model="servo"><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody>
  <body name="arm"><joint name="j" axis="0 1 0" armature="0.03" damping="0.4" frictionloss="0.2"/>
    <inertial pos="0 0 -0.15" mass="0.5" diaginertia="1e-6 1e-6 1e-6"/></body></worldbody>
  <actuator><motor name="m" joint="j"/></actuator></mujoco>
"""


@pytest.fixture(scope="module")
def servo(tmp_path_factory):
    """A result of `dynid actuators` for an MJCF with a motor; the positions are those of an independent simulation."""
    place = tmp_path_factory.mktemp("servo")
    (place / "servo.xml").write_text(ROBOT)
    commands = motions(1, 500, 100.0, 3)
    law = Servo(0.5, 0.15, 0.01, "pd", {"kp": 8.0, "kd": 0.15}, {"coulomb": 0.08, "viscous": 0.05})
    q = simulate([law], commands, 100.0)
    np.savetxt(place / "log.csv", np.column_stack([np.arange(500) / 100.0, q[0], commands[0]]), delimiter=",",
               header="t,q,q_des", comments="")
    with pytest.raises(SystemExit):
        main(["actuators", str(place / "servo.xml"), str(place / "log.csv"), "--gain", "kp=8", "--gain", "kd=0.15",
              "--friction", "m1", "--delay", "0", "-o", str(place / "out")])
    assert (place / "out" / "posterior.json").exists()
    return place


@pytest.fixture
def posterior(tmp_path, monkeypatch, servo):
    """Function that changes posterior.json of a copy of that result, in the working folder of a test."""
    shutil.copytree(servo, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)

    def change(**values):
        table = json.loads((tmp_path / "out" / "posterior.json").read_text())
        for name, value in values.items():
            if name in table["names"]:
                at = table["names"].index(name)
                table["values"][at], table["identified"][at] = value, 0
                table["covariance"][at][at] = float(value) ** 2
            else:
                table[name] = value
        (tmp_path / "out" / "posterior.json").write_text(json.dumps(table))

    return change


def follow(model, log):
    """Positions of MuJoCo with the logged positions as commands."""
    model.opt.timestep, model.opt.integrator = 5e-4, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    rows, data = np.loadtxt(log, delimiter=",", skiprows=1), mujoco.MjData(model)
    data.qpos[0], moved = rows[0, 1], np.zeros(len(rows))
    for k, row in enumerate(rows):
        moved[k], data.ctrl[0] = data.qpos[0], row[2]
        for _ in range(20):
            mujoco.mj_step(model, data)
    return moved, rows[:, 1]


def test_a_robot_with_motors_follows_positions_after_the_export(dynid, posterior):
    """With its own motor the arm falls, because a torque of 0.5 N m holds no position."""
    shown = dynid("export", "out", "--for", "mjcf", "-o", "robot.xml", "--json")
    assert shown.code == 0, shown.err
    model = mujoco.MjModel.from_xml_path("robot.xml")
    moved, measured = follow(model, "log.csv")
    assert model.actuator("m").id == 0 and np.mean(np.abs(moved - measured)) < 0.02 * np.std(measured)
    shown = dynid("export", "out", "--for", "mjcf", "-o", "kept.xml", "--actuators", "keep")
    assert shown.code == 0 and "must compute the torque" in " ".join(shown.out.split())
    moved, measured = follow(mujoco.MjModel.from_xml_path("kept.xml"), "log.csv")
    assert np.mean(np.abs(moved - measured)) > 0.5 * np.std(measured)


def test_values_that_are_not_determined_are_not_exported(dynid, posterior):
    posterior(armature=640.0)
    for options in (("--for", "mjcf"), ("--draws", "2"), ("--for", "urdf")):
        shown = dynid("export", "out", *options, "-o", "new")
        assert (shown.code, shown.error) == (1, "not-determined") and "armature of j = 640 kg m^2" in shown.err
        assert "--undetermined file" in shown.err and not Path("new").exists()
    for options in (("--force",), ("--undetermined", "file")):
        shown = dynid("export", "out", "--for", "mjcf", "-o", "robot.xml", "--json", *options)
        assert shown.code == 0 and json.loads(shown.out)["joints"]["j"]["armature"] is None, shown.err
        assert any("armature of j" in note and "values of the robot file" in note for note in
                   json.loads(shown.out)["notes"])
        assert mujoco.MjModel.from_xml_path("robot.xml").dof_armature[0] == 0.03
        Path("robot.xml").unlink()
    shown = dynid("export", "out", "--for", "mjcf", "-o", "robot.xml", "--undetermined", "estimate")
    assert shown.code == 0 and mujoco.MjModel.from_xml_path("robot.xml").dof_armature[0] == 640.0
    Path("drives.toml").write_text("[j]\narmature = 0.01\n")
    shown = dynid("export", "out", "--for", "mjcf", "-o", "given.xml", "--drives", "drives.toml")
    assert shown.code == 0 and mujoco.MjModel.from_xml_path("given.xml").dof_armature[0] == 0.01
    shown = dynid("export", "out", "--draws", "2", "--for", "mjcf", "-o", "drawn", "--undetermined", "file")
    assert shown.code == 0 and mujoco.MjModel.from_xml_path("drawn/draw_2.xml").dof_armature[0] == 0.03
    assert np.isnan(np.load("drawn/draws.npz")["armature"]).all()


def test_actuators_that_are_not_usable_are_not_exported(dynid, posterior):
    posterior(unusable="simulated positions are worse")
    shown = dynid("export", "out", "--for", "mjcf", "-o", "robot.xml")
    assert (shown.code, shown.error) == (1, "not-usable") and "positions are worse" in shown.err
    assert "--force" in shown.err and not Path("robot.xml").exists()
    shown = dynid("export", "out", "--for", "mjcf", "-o", "robot.xml", "--force")
    assert shown.code == 0 and "not usable: simulated positions are worse" in shown.out and Path("robot.xml").exists()
