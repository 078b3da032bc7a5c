"""`dynid simulate`: logs of a virtual robot at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dynid.excitation import FourierSeries, write_trajectory
from dynid.model import Model, make_terms
from dynid.recording.log_reading import read
from dynid.robot import Robot

ROBOT = Robot.builtin("arm3r")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    """A gentle motion of the 3R arm in the working directory."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    motion = FourierSeries(rng.uniform(-0.5, 0.5, (3, 3)), rng.uniform(-0.5, 0.5, (3, 3)), np.zeros(3), 4.0)
    for ending in ("csv", "npz", "yaml"):
        write_trajectory(motion, f"m.{ending}", rate=100.0, joints=ROBOT.joint_names)
    return tmp_path


@pytest.mark.parametrize("controller", ["computed-torque", "pd", "poles"])
def test_the_log_obeys_the_model(dynid, controller):
    """Without noise and dry friction the torques are those of the inverse model along the motion logged."""
    shown = dynid("simulate", "arm3r", "--trajectory", "m.npz", "-o", "log.csv", "--controller", controller,
                  "--friction", "viscous", "--json")
    assert shown.code == 0, shown.err
    said = json.loads(shown.out)
    assert said["rows"] == 4001 and said["rate"] == pytest.approx(1000.0) and said["controller"] == controller
    log = read("log.csv", robot=ROBOT)
    model = Model(ROBOT, make_terms(ROBOT, friction=["viscous"]))
    dq, ddq = np.gradient(log.q, 1e-3, axis=0), np.zeros_like(log.q)
    ddq[1:-1] = (log.q[2:] - 2 * log.q[1:-1] + log.q[:-2]) * 1e6
    tau = model.inverse_dynamics(model.parameters.vector(said["truth"]), log.q, dq, ddq)
    inside = slice(200, -200)
    assert np.linalg.norm((tau - log.tau)[inside]) < 2e-3 * np.linalg.norm(log.tau[inside])
    off = np.sqrt(np.mean((log.q - log.reference) ** 2, axis=0))
    assert [one["tracking_rms"] for one in said["joints"].values()] == pytest.approx(off, rel=1e-6)
    if controller == "computed-torque":
        assert off.max() < 5e-3


def test_sensors_are_as_asked(dynid):
    shown = dynid("simulate", "arm3r", "--trajectory", "m.csv", "-o", "log.npz", "--encoder", "0.001,0.002,0.004",
                  "--torque-noise", "0.1", "--rate", "200", "--friction", "viscous")
    assert shown.code == 0, shown.err
    assert "801 rows at 200 Hz under computed-torque" in shown.out and "log: log.npz" in shown.out
    log = read("log.npz", robot=ROBOT)
    counts = log.q / [0.001, 0.002, 0.004]
    assert np.abs(counts - np.round(counts)).max() < 1e-6
    again = dynid("simulate", "arm3r", "--trajectory", "m.csv", "-o", "log.npz")
    assert again.code == 2 and again.error == "file-exists"


def test_an_earlier_result_is_the_truth(dynid):
    call = ("simulate", "arm3r", "--trajectory", "m.csv", "--rate", "250")
    assert dynid(*call, "-o", "one.csv", "--torque-noise", "0.001").code == 0
    assert dynid("identify", "arm3r", "one.csv", "--method", "pc-wls", "-o", "out").code == 0
    shown = dynid(*call, "-o", "two.csv", "--truth", "out", "--json")
    assert shown.code == 0, shown.err
    truth = json.loads(shown.out)["truth"]
    found = json.loads(dynid("identify", "arm3r", "two.csv", "--method", "wls", "--no-simulation", "--json").out)
    value = found["parameters"]["Fv2"]
    assert value["value"] == pytest.approx(truth["Fv2"], rel=0.05)
    assert dynid(*call, "-o", "3.csv", "--truth", "out", "--rotor").error == "conflicting-options"
    other = dynid("simulate", "scara2", "--trajectory", "m.csv", "-o", "3.csv", "--truth", "out")
    assert other.error == "another-robot"


def test_what_a_file_does_not_say_is_said(dynid):
    urdf = Path("bare.urdf")
    link = '<link name="{0}">{1}</link>'
    joint = ('<joint name="j1" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>'
             '<limit lower="-1" upper="1" velocity="1" effort="5"/></joint>')
    mass = ('<inertial><mass value="1"/><origin xyz="0.1 0 0"/>'
            '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>')
    write_trajectory(FourierSeries([[0.3]], [[0.1]], [0.0], 2.0), "one.csv", joints=("j1",))
    urdf.write_text(f'<robot name="bare">{link.format("a", "")}{link.format("b", "")}{joint}</robot>')
    shown = dynid("simulate", urdf, "--trajectory", "one.csv", "-o", "log.csv")
    assert shown.code == 1 and shown.error == "no-inertia" and shown.err.count("\n") == 1
    urdf.write_text(f'<robot name="bare">{link.format("a", "")}{link.format("b", mass)}{joint}</robot>')
    shown = dynid("simulate", urdf, "--trajectory", "one.csv", "-o", "log.csv", "--friction", "viscous,coulomb")
    assert shown.code == 0 and "no value for Fv1, Fc1; zero is used" in shown.out


@pytest.mark.parametrize(("arguments", "code", "error"), [
    (("m.csv", "-o", "log.txt"), 2, "unknown-extension"),
    (("m.yaml", "-o", "log.csv"), 2, "unknown-extension"),
    (("no.csv", "-o", "log.csv"), 2, "no-such-file"),
    (("bad.csv", "-o", "log.csv"), 2, "not-a-motion"),
    (("few.csv", "-o", "log.csv"), 2, "no-column"),
    (("uneven.csv", "-o", "log.csv"), 2, "uneven-time"),
    (("m.csv", "-o", "log.csv", "--encoder", "fine"), 2, "not-a-number"),
    (("m.csv", "-o", "log.csv", "--encoder", "1,2"), 2, "wrong-size"),
    (("m.csv", "-o", "log.csv", "--rate", "0"), 2, "out-of-range"),
    (("m.csv", "-o", "log.csv", "--truth", "."), 2, "no-result"),
    (("m.csv", "-o", "log.csv", "--bandwidth", "5000"), 1, "simulation-diverged"),
])
def test_wrong_calls_end_with_one_sentence(dynid, arguments, code, error):
    Path("bad.csv").write_text("time,x\n1,a\n")
    Path("few.csv").write_text("t,q_joint1\n0,0\n1,0\n2,0\n")
    Path("uneven.csv").write_text("t,q_joint1,q_joint2,q_joint3\n0,0,0,0\n1,0,0,0\n3,0,0,0\n")
    shown = dynid("simulate", "arm3r", "--trajectory", *arguments)
    assert shown.code == code and shown.out == "" and not Path("log.csv").exists()
    assert shown.error == error and shown.err.count("\n") == 1 and "Traceback" not in shown.err


def test_dry_friction_of_a_light_joint_comes_back(dynid):
    """Joint 7 of the LWR IV+ has 0.2 N m of dry friction on next to no inertia."""
    robot = Robot.builtin("kuka-lwr4")
    rng = np.random.default_rng(2)
    a, b = rng.uniform(-0.5, 0.5, (2, 7, 5))
    write_trajectory(FourierSeries(a, b, np.zeros(7), 10.0), "lwr.npz", rate=200.0, joints=robot.joint_names)
    shown = dynid("simulate", "kuka-lwr4", "--trajectory", "lwr.npz", "-o", "lwr.csv", "--torque-noise", "0.02",
                  "--json")
    assert shown.code == 0, shown.err
    truth = json.loads(shown.out)["truth"]
    call = ("identify", "kuka-lwr4", "lwr.csv", "--method", "wls", "--no-simulation", "--json")
    found = json.loads(dynid(*call).out)["parameters"]
    for name in ("Fc1", "Fc4", "Fc7", "Fv7"):
        assert found[name]["value"] == pytest.approx(truth[name], rel=0.05, abs=4 * found[name]["std"]), name
    assert found["Fc7"]["value"] == pytest.approx(0.211, rel=0.03)
