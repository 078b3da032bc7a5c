"""Estimates as files for simulators: torques, losses, and everything of the user's file that is not dynid's."""

from __future__ import annotations

import json
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest
from motions import arm, fourier, motion
from refusals import refused
from robots import random_inertia, random_robot

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError, RobotError
from dynid.estimate import Estimate
from dynid.estimate.estimate import Diagnostics
from dynid.estimate.simulators.exports import export_joints
from dynid.estimate.simulators.friction_fit import SimulatedJoint, TorqueLoss
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.model import Model, make_terms
from dynid.model.term import MotionSegment
from dynid.regression import base_parameters
from dynid.robot import BASE, Body, Joint, Robot
from dynid.robot import inertia as ten
from dynid.robot.pose import from_xyz_rpy, inverse
from dynid.simulation import PD, Reference, simulate

DRIVE = {"stiffness": 100.0, "kd": 5.0, "force_limit": 50.0}
MJCF = """<!-- the lab's arm -->
<mujoco model="lab">
  <compiler angle="radian" inertiafromgeom="true"/>
  <default><default class="drive"><joint armature="9" damping="8" frictionloss="7"/></default></default>
  <asset><texture name="grid" type="2d" builtin="checker" width="8" height="8"/></asset>
  <worldbody>
    <light pos="0 0 2"/>
    <body name="upper" pos="0 0 0.5" childclass="drive">  <!-- one link -->
      <joint name="shoulder" axis="0 1 0" pos="0.01 0 0" range="-2 2"/>
      <geom type="capsule" size="0.03 0.2"/>
      <body name="fore" pos="0 0 0.4" euler="0.1 0.2 0.3">
        <joint name="elbow" axis="1 0 0"/>
        <inertial pos="0 0 0.1" quat="0.9 0.1 0.2 0.3" mass="1" diaginertia="0.01 0.02 0.015"/>
        <geom type="box" size="0.02 0.02 0.1"/>
        <body name="tool" pos="0 0 0.2"><geom type="sphere" size="0.03"/></body>
      </body>
    </body>
  </worldbody>
  <sensor><jointpos joint="elbow"/></sensor>
</mujoco>
"""


def estimate_of(model: Any, theta: Array | None) -> Estimate:
    base = base_parameters(model)
    beta = np.zeros(len(base)) if theta is None else base.reduce(theta)
    known = OnDemand.known(Uncertainty(np.eye(len(base)), "independent"))
    return Estimate("pc-wls", model, base, beta, np.ones(len(base), bool), known, theta,
                    diagnostics=Diagnostics(0.0, [], [], len(base), [], []))


def random_estimate(robot: Robot, seed: int = 0, **terms: Any) -> Estimate:
    """Consistent links, everything else between 0.1 and 1."""
    model = Model(robot, make_terms(robot, **terms))
    rng = np.random.default_rng(seed)
    theta = rng.uniform(0.1, 1.0, len(model.parameters))
    for places in model.parameters.bodies.values():
        theta[places] = random_inertia(rng)
    return estimate_of(model, theta)


def mujoco_torques(model: Any, q: Array, dq: Array, ddq: Array) -> Array:
    """Torques of MuJoCo, with the dry friction that its constraints would hold."""
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data, found = mujoco.MjData(model), []
    for data.qpos[:], data.qvel[:], data.qacc[:] in zip(q, dq, ddq, strict=True):
        mujoco.mj_inverse(model, data)
        found.append(data.qfrc_inverse + model.dof_frictionloss * np.sign(data.qvel))
    return np.array(found)


def states(dof: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).normal(size=(3, 20, dof))


def test_mujoco_has_the_torques_of_the_estimate(tmp_path: Path) -> None:
    robot = random_robot(np.random.default_rng(2), 6)
    estimate = random_estimate(robot, rotor=True, friction=("viscous", "coulomb"))
    drives = {"joint1": DRIVE, "joint2": {**DRIVE, "ki": 3.0}, "joint3": {**DRIVE, "delay": 0.01},
              "joint4": {"torque_constant": 0.1, "resistance": 2.0}}
    found = estimate.export(tmp_path / "robot.xml", "mjcf", drives=drives)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    assert np.abs(mujoco_torques(model, *states(6)) - estimate.predict(*states(6))).max() < 1e-9
    assert [one.error for one in found.losses] == [0.0] * 6
    limited = [joint.kind != "continuous" for joint in robot.joints]
    assert model.jnt_limited.astype(bool).tolist() == limited and np.allclose(model.jnt_actfrcrange, [-100.0, 100.0])
    np.testing.assert_allclose(model.opt.gravity, robot.gravity)
    assert model.actuator_gainprm[0, 0] == 100.0 and model.actuator_biasprm[0, 2] == -5.0
    assert model.actuator_forcerange[0].tolist() == [-50.0, 50.0]
    kinds = [int(model.actuator_gaintype[k]) for k in (0, 1, 3)]
    assert kinds == [int(kind) for kind in (mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtGain.mjGAIN_PID,
                                            mujoco.mjtGain.mjGAIN_DCMOTOR)]
    assert model.actuator_delay[2] == 0.01 and model.actuator_delay[0] == 0.0


def test_the_users_mjcf_keeps_all_that_is_not_identified(tmp_path: Path) -> None:
    (tmp_path / "lab.xml").write_text(MJCF)
    robot = Robot.load(tmp_path / "lab.xml")
    estimate = random_estimate(robot, rotor=True, friction=("viscous", "coulomb"))
    found = estimate.export(tmp_path / "out.xml", "mjcf", source=tmp_path / "lab.xml", drives={"elbow": DRIVE})
    text = (tmp_path / "out.xml").read_text()
    model = mujoco.MjModel.from_xml_string(text)
    assert np.abs(mujoco_torques(model, *states(2)) - estimate.predict(*states(2))).max() < 1e-9
    assert any("tool" in note for note in found.notes) and any("inertiafromgeom" in note for note in found.notes)
    for kept in ("<!-- the lab's arm -->", "<!-- one link -->", '<texture name="grid"', '<light pos="0 0 2"/>',
                 '<geom type="capsule" size="0.03 0.2"/>', '<jointpos joint="elbow"/>', 'range="-2 2"',
                 '<default class="drive">'):
        assert kept in text
    assert model.nactuator == 1 and model.ngeom == 3
    # Once more on its own output: the same bytes.
    (tmp_path / "out.xml").rename(tmp_path / "twice.xml")
    estimate.export(tmp_path / "again.xml", "mjcf", source=tmp_path / "twice.xml", drives={"elbow": DRIVE})
    assert (tmp_path / "again.xml").read_text() == text


def test_friction_that_a_target_cannot_hold_is_fitted_and_its_loss_stated(tmp_path: Path) -> None:
    robot = random_robot(np.random.default_rng(4), 3, prismatic=0.0)
    estimate = random_estimate(robot, rotor=True, friction=("viscous", "asymmetric-coulomb", "offset"))
    samples = motion(estimate.model, estimate.theta, seconds=5.0)
    found = estimate.export(tmp_path / "robot.xml", "mjcf", samples=[samples])
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    rows = slice(0, None, 5)
    theirs = mujoco_torques(model, samples.q[rows], samples.dq[rows], samples.ddq[rows])
    error = np.sqrt(np.mean((theirs - samples.tau[rows]) ** 2, axis=0))
    stated = np.array([one.error for one in found.losses])
    np.testing.assert_allclose(stated, error, rtol=0.02)
    assert all(one.terms and one.percent > 0.1 for one in found.losses)
    # No other values that are not negative are nearer to the friction. An offset is no friction: it is only lost.
    offsets = estimate.theta[[item.kind.group == "offset" for item in estimate.model.parameters]]
    for j, joint in enumerate(found.joints):
        other = (samples.tau[:, j] - _rigid(estimate, samples)[:, j] - joint.armature * samples.ddq[:, j]
                 - offsets[j])
        nearest = np.sqrt(np.mean((other - joint.damping * samples.dq[:, j]
                                   - joint.frictionloss * np.sign(samples.dq[:, j])) ** 2))
        for damping in (0.9, 1.0, 1.1):
            for dry in (0.9, 1.0, 1.1):
                rest = other - damping * joint.damping * samples.dq[:, j] - dry * joint.frictionloss * np.sign(
                    samples.dq[:, j])
                assert np.sqrt(np.mean(rest ** 2)) >= nearest * (1 - 1e-9)


@pytest.mark.parametrize("friction", [("stribeck",), ("viscous", "load"), ("viscous", "lugre"),
                                      ("viscous", "coulomb", "hysteresis")],
                         ids=["stribeck", "load", "lugre", "hysteresis"])
def test_the_stated_loss_is_the_error_of_mujoco(tmp_path: Path, friction: tuple[str, ...]) -> None:
    """Along an ordered motion: LuGre friction has a memory, load friction depends on the links of the estimate."""
    robot = random_robot(np.random.default_rng(4), 3, prismatic=0.0)
    estimate = random_estimate(robot, rotor=True, friction=friction)
    samples = motion(estimate.model, estimate.theta, seconds=5.0)
    model = estimate.model.with_bodies_if_unset(estimate.theta)
    memory = model.memory(MotionSegment(samples.t, samples.q, samples.dq, samples.ddq)) if model.channels else None
    tau = model.regressor(samples.q, samples.dq, samples.ddq, memory=memory) @ estimate.theta
    found = estimate.export(tmp_path / "robot.xml", "mjcf", samples=[samples])
    theirs = mujoco_torques(mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml")), samples.q, samples.dq,
                            samples.ddq)
    stated = np.array([one.error for one in found.losses])
    np.testing.assert_allclose(stated, np.sqrt(np.mean((theirs - tau) ** 2, axis=0)), rtol=0.02)
    assert stated.min() > 0.0 and all(one.terms for one in found.losses)


def _rigid(estimate: Estimate, samples: Any) -> Array:
    links = np.where([item.body is not None for item in estimate.model.parameters], estimate.theta, 0.0)
    return estimate.model.inverse_dynamics(links, samples.q, samples.dq, samples.ddq)


def test_a_urdf_holds_friction_and_loses_the_rotor(tmp_path: Path) -> None:
    robot = Robot.builtin("franka-panda")
    estimate = random_estimate(robot, rotor=True, friction=("viscous", "coulomb"))
    found = estimate.export(tmp_path / "robot.urdf", "urdf")
    values = dict(zip(estimate.model.parameters.names, estimate.theta, strict=True))
    root = ElementTree.parse(tmp_path / "robot.urdf").getroot()
    for j, joint in enumerate(one for one in root.findall("joint") if one.get("type") != "fixed"):
        assert float(joint.find("dynamics").get("damping")) == values[f"Fv{j + 1}"]
        assert float(joint.find("dynamics").get("friction")) == values[f"Fc{j + 1}"]
    assert [one.terms for one in found.losses] == [(f"Ia{j + 1}",) for j in range(robot.dof)]


@pytest.mark.parametrize("seed", [0, 3])
def test_closed_loops_of_mujoco_and_dynid_move_alike(tmp_path: Path, seed: int) -> None:
    """Two seconds with friction and armature: the difference is below 1 % of the motion."""
    model, theta = arm()
    robot = model.robot
    estimate = estimate_of(Model(robot, make_terms(robot, rotor=True, friction=("viscous", "coulomb"))), None)
    given = dict(zip(model.parameters.names, theta, strict=True))
    full = np.array([given.get(name, 0.02) for name in estimate.model.parameters.names])
    links = np.array([random_inertia(np.random.default_rng(k), size=0.1) for k in range(robot.dof)])
    for row, places in zip(links, estimate.model.parameters.bodies.values(), strict=True):
        full[places] = row
    estimate = replace(estimate, theta=full, values=estimate.base.reduce(full))
    gains, rate = (200.0, 20.0), 2000.0
    q, dq, ddq = fourier(3, seconds=2.0, rate=rate, seed=seed, period=2.0, harmonics=2)
    run = simulate(estimate.model, full, PD(*gains), Reference(q, dq, ddq, rate))
    drives = {name: {"stiffness": gains[0], "kd": gains[1]} for name in robot.joint_names}
    estimate.export(tmp_path / "robot.xml", "mjcf", drives=drives)
    theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    theirs.opt.timestep, theirs.opt.integrator = 1.0 / rate, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    theirs.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    data = mujoco.MjData(theirs)
    data.qpos[:], data.qvel[:] = q[0], dq[0]
    moved = np.zeros_like(run.q)
    for k in range(len(run.q)):
        moved[k] = data.qpos
        data.ctrl[:] = q[k] + gains[1] / gains[0] * dq[k]
        mujoco.mj_step(theirs, data)
    size = np.sqrt(np.mean((run.q - run.q.mean(axis=0)) ** 2, axis=0))
    assert np.all(np.sqrt(np.mean((moved - run.q) ** 2, axis=0)) < 0.01 * size)


def test_sdformat_describes_the_same_machine(tmp_path: Path) -> None:
    """The file read by a reader of this test gives the torques of the estimate; Drake itself where it is installed."""
    robot = random_robot(np.random.default_rng(7), 5)
    estimate = random_estimate(robot, friction=("viscous", "coulomb"))
    estimate.export(tmp_path / "robot.sdf", "sdf")
    model = ElementTree.parse(tmp_path / "robot.sdf").getroot().find("model")
    links = {one.get("name"): one for one in model.findall("link")}
    joints, bodies = [], []
    for one in (element for element in model.findall("joint") if element.get("type") != "fixed"):
        child = one.find("child").text
        link, parent = links[child], one.find("parent").text
        own = _pose(one.find("pose").text)
        names = [body.name for body in bodies]
        joints.append(Joint(one.get("name"), "prismatic" if one.get("type") == "prismatic" else "continuous",
                            BASE if parent not in names else names.index(parent),
                            _pose(link.find("pose").text) @ own, inverse(own)))
        assert one.find("axis/xyz").text == "0 0 1"
        inertial = link.find("inertial")
        six = [float(inertial.find(f"inertia/{key}").text) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]
        com = np.array(inertial.find("pose").text.split()[:3], dtype=float)
        bodies.append(Body(child, ten.from_central(float(inertial.find("mass").text), com, ten.symmetric(six))))
    again = Robot("again", tuple(joints), tuple(bodies), gravity=robot.gravity)
    q, dq, ddq = states(5)
    damping, dry = (np.array([float(one.find(f"axis/dynamics/{key}").text) for one in model.findall("joint")
                              if one.get("type") != "fixed"]) for key in ("damping", "friction"))
    rigid = Model(again).inverse_dynamics(again.inertias.ravel(), q, dq, ddq)
    assert np.abs(rigid + damping * dq + dry * np.sign(dq) - estimate.predict(q, dq, ddq)).max() < 1e-9


def _pose(text: str) -> Array:
    numbers = [float(word) for word in text.split()]
    return from_xyz_rpy(numbers[:3], numbers[3:])


def test_drake_has_rotor_and_damping(tmp_path: Path) -> None:
    robot = Robot.builtin("franka-panda")
    estimate = random_estimate(robot, rotor=True, friction=("viscous",))
    found = estimate.export(tmp_path / "robot.urdf", "drake")
    assert max(one.error for one in found.losses) == 0.0
    values = dict(zip(estimate.model.parameters.names, estimate.theta, strict=True))
    root = ElementTree.parse(tmp_path / "robot.urdf").getroot()
    tag = "{http://drake.mit.edu}rotor_inertia"
    rotors = {one.find("joint").get("name"): float(one.find(f"actuator/{tag}").get("value"))
              for one in root.findall("transmission")}
    assert rotors == {name: values[f"Ia{j + 1}"] for j, name in enumerate(robot.joint_names)}
    drake = pytest.importorskip("pydrake.all", reason="drake is not installed")
    plant = drake.MultibodyPlant(0.0)
    drake.Parser(plant).AddModels(str(tmp_path / "robot.urdf"))
    plant.WeldFrames(plant.world_frame(), plant.GetFrameByName(robot.base))
    plant.Finalize()
    context = plant.CreateDefaultContext()
    q, dq, ddq = states(7)
    for k, tau in enumerate(estimate.predict(q, dq, ddq)):
        plant.SetPositions(context, q[k])
        plant.SetVelocities(context, dq[k])
        forces = drake.MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        assert np.abs(plant.CalcInverseDynamics(context, ddq[k], forces) - tau).max() < 1e-9


def test_usd_attributes_are_in_degrees_and_give_the_same_links(tmp_path: Path) -> None:
    robot = random_robot(np.random.default_rng(1), 4)
    estimate = random_estimate(robot, rotor=True, friction=("viscous", "coulomb"))
    estimate.export(tmp_path / "robot.json", "usd-json", drives={name: DRIVE for name in robot.joint_names})
    stage = json.loads((tmp_path / "robot.json").read_text())
    for body, places in estimate.model.parameters.bodies.items():
        link = stage["links"][body]
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, np.array(link["physics:principalAxes"]))
        axes = turn.reshape(3, 3)
        inertia = axes @ np.diag(link["physics:diagonalInertia"]) @ axes.T
        numbers = ten.from_central(link["physics:mass"], link["physics:centerOfMass"], inertia)
        np.testing.assert_allclose(numbers, estimate.theta[places], atol=1e-12)
    for joint in robot.joints:
        made = stage["joints"][joint.name]
        kind, unit = ("linear", 1.0) if joint.prismatic else ("angular", np.pi / 180.0)
        assert made[f"drive:{kind}:physics:stiffness"] == pytest.approx(100.0 * unit)
        assert made[f"drive:{kind}:physics:maxForce"] == 50.0
        if np.isfinite(joint.lower):
            assert made["physics:lowerLimit"] == pytest.approx(joint.lower / unit)


# Fields of the classes in mjlab 1.6.0 and Isaac Lab 2.3, as their sources have them.
FIELDS = {
    "mjlab": {"BuiltinPositionActuatorCfg": {"stiffness", "damping", "effort_limit"},
              "DcMotorActuatorCfg": {"stiffness", "damping", "effort_limit", "saturation_effort", "velocity_limit"},
              "*": {"target_names_expr", "armature", "frictionloss", "viscous_damping", "delay_min_lag",
                    "delay_max_lag"}},
    "isaaclab": {"ImplicitActuatorCfg": set(), "DCMotorCfg": {"saturation_effort"},
                 "DelayedPDActuatorCfg": {"min_delay", "max_delay"},
                 "*": {"joint_names_expr", "effort_limit", "velocity_limit", "effort_limit_sim", "velocity_limit_sim",
                       "stiffness", "damping", "armature", "friction", "dynamic_friction", "viscous_friction"}}}


def run_config(path: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Names of a generated file, run with classes that refuse unknown fields."""
    modules = {name: types.ModuleType(name) for name in (
        ("mjlab", "mjlab.actuator", "mjlab.entity") if package == "mjlab" else ("isaaclab", "isaaclab.actuators"))}
    classes = FIELDS[package]

    def made(name: str, known: set[str]) -> type:
        def start(self: Any, **values: Any) -> None:
            assert set(values) <= known, f"{name} has no {set(values) - known}"
            self.values = values
        return type(name, (), {"__init__": start})

    for name, own in classes.items():
        if name != "*":
            place = "mjlab.actuator" if package == "mjlab" else "isaaclab.actuators"
            setattr(modules[place], name, made(name, own | classes["*"]))
    if package == "mjlab":
        modules["mjlab.entity"].EntityCfg = made("EntityCfg", {"spec_fn", "articulation"})  # type: ignore[attr-defined]
        modules["mjlab.entity"].EntityArticulationInfoCfg = made(  # type: ignore[attr-defined]
            "EntityArticulationInfoCfg", {"actuators"})
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    names: dict[str, Any] = {"__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names


def test_mjlab_gets_actuators_of_its_own_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = random_robot(np.random.default_rng(3), 3)
    estimate = random_estimate(robot, rotor=True, friction=("viscous", "coulomb"))
    drives = {"joint1": DRIVE, "joint2": {**DRIVE, "velocity_limit": 6.0}}
    found = estimate.export(tmp_path / "robot.py", "mjlab", drives=drives)
    names = run_config(tmp_path / "robot.py", "mjlab", monkeypatch)
    first, second = names["ACTUATORS"]
    assert type(first).__name__ == "BuiltinPositionActuatorCfg" and type(second).__name__ == "DcMotorActuatorCfg"
    assert first.values["stiffness"] == 100.0 and first.values["armature"] == found.joints[0].armature
    assert second.values["velocity_limit"] == 6.0
    model = names["get_spec"]().compile()
    assert model.nactuator == 0 and np.allclose(model.dof_damping, [one.damping for one in found.joints])
    delayed = estimate.export(tmp_path / "late.py", "mjlab", drives={"joint1": {**DRIVE, "delay": 0.01}})
    assert delayed.joints[0].delay == 0.01 and "delay_min_lag=lag" in (tmp_path / "late.py").read_text()


def test_isaac_lab_gets_friction_as_torque_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = random_robot(np.random.default_rng(3), 3, prismatic=0.0)
    estimate = random_estimate(robot, rotor=True, friction=("viscous", "coulomb"))
    drives = {"joint1": DRIVE, "joint2": {**DRIVE, "delay": 0.02}, "joint3": {**DRIVE, "velocity_limit": 6.0}}
    found = estimate.export(tmp_path / "robot.py", "isaaclab", drives=drives)
    groups = run_config(tmp_path / "robot.py", "isaaclab", monkeypatch)["ACTUATORS"]
    kinds = {type(one).__name__: one.values for one in groups.values()}
    assert set(kinds) == {"ImplicitActuatorCfg", "DelayedPDActuatorCfg", "DCMotorCfg"}
    implicit, late = kinds["ImplicitActuatorCfg"], kinds["DelayedPDActuatorCfg"]
    assert implicit["friction"] == {"joint1": found.joints[0].frictionloss} == implicit["dynamic_friction"]
    assert implicit["viscous_friction"] == {"joint1": found.joints[0].damping} and implicit["damping"]["joint1"] == 5.0
    assert late["min_delay"] == late["max_delay"] == 4 and kinds["DCMotorCfg"]["saturation_effort"] == 50.0
    older = estimate.export(tmp_path / "older.py", "isaaclab", drives=drives, isaaclab_friction="coefficient")
    groups = run_config(tmp_path / "older.py", "isaaclab", monkeypatch)["ACTUATORS"]
    for one in groups.values():
        assert "friction" not in one.values and "viscous_friction" not in one.values
    assert groups["dynid_1"].values["damping"]["joint1"] == 5.0 + older.joints[0].damping
    assert all(one.error > 0.0 for one in older.losses)


def test_bad_input_is_refused(tmp_path: Path) -> None:
    model, theta = arm()
    estimate = estimate_of(model, theta)
    path = tmp_path / "robot.xml"
    with refused(ModelError, "unknown-target", "gazebo", "mjcf"):
        estimate.export(path, "gazebo")
    with refused(NotPossibleError, "base-parameters-only", "pc-wls"):
        replace(estimate, theta=None).export(path, "mjcf")
    with refused(ModelError, "unknown-joint", "elbow"):
        estimate.export(path, "mjcf", drives={"elbow": DRIVE}, unchecked=True)
    with refused(ModelError, "unknown-drive-value", "mass", "joint1"):
        estimate.export(path, "mjcf", drives={"joint1": {"mass": 1.0}}, unchecked=True)
    with refused(ModelError, "wrong-joint-value", "kd", "joint1"):
        estimate.export(path, "mjcf", drives={"joint1": {"kd": -1.0}}, unchecked=True)
    with refused(ModelError, "unknown-friction", "sand"):
        estimate.export(path, "isaaclab", isaaclab_friction="sand")
    assert not path.exists()


def test_a_closed_chain_goes_into_mjcf_alone(tmp_path: Path) -> None:
    robot = Robot.builtin("four-bar")
    model = Model(robot)
    link = [0.1, 0.0, 0.0, 0.1, 0.0, 0.1, 0.0, 0.0, 0.1, 1.0]
    estimate = estimate_of(model, np.tile(link, len(model.parameters) // 10))
    for target in ("urdf", "sdf", "drake"):
        with refused(RobotError, "closed-chain", "four-bar", "mjcf"):
            estimate.export(tmp_path / "robot.urdf", target)
    estimate.export(tmp_path / "robot.xml", "mjcf", unchecked=True)
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml")).neq >= 1


def test_joints_go_into_a_file_with_a_free_base(tmp_path: Path) -> None:
    """Identified on a stand, used on the ground: bodies, free joint, comments and other joints stay."""
    source = """<mujoco><!-- mine --><worldbody><body name="trunk"><freejoint/><inertial pos="0 0 0" mass="5"
        diaginertia="1 1 1"/><body name="leg"><joint name="hip" axis="0 1 0" class="strong" damping="9"/>
        <inertial pos="0 0 -.1" mass="1" diaginertia=".1 .1 .1"/><body name="tail"><joint name="wag" axis="1 0 0"/>
        <inertial pos="0 0 -.1" mass="1" diaginertia=".1 .1 .1"/></body></body></body></worldbody>
        <default><default class="strong"><joint armature=".3"/></default></default></mujoco>"""
    robot = Robot("stand", (Joint("hip", "revolute", BASE, np.eye(4), np.eye(4)),),
                  (Body("leg", ten.from_central(1.0, np.zeros(3), np.eye(3))),))
    joints = (SimulatedJoint("hip", 0.02, 0.3, 0.4, stiffness=20.0, kd=1.5, force_limit=23.0),)
    path = tmp_path / "robot.xml"
    export_joints(robot, robot.inertias, joints, (TorqueLoss("hip", 0.0, 1.0),), path, "mjcf", source=source)
    before, after = mujoco.MjModel.from_xml_string(source), mujoco.MjModel.from_xml_path(str(path))
    assert "<!-- mine -->" in path.read_text() and after.nq == before.nq == 9 and after.nu == 1
    np.testing.assert_array_equal(after.body_mass, before.body_mass)
    np.testing.assert_array_equal(after.dof_armature[[6, 7]], [0.02, 0.0])
    np.testing.assert_array_equal(after.dof_damping[[6, 7]], [0.3, 0.0])
    np.testing.assert_array_equal(after.dof_frictionloss[[6, 7]], [0.4, 0.0])
    assert after.actuator_forcerange[0].tolist() == [-23.0, 23.0]
    with refused(RobotError, "not-in-file", "knee"):
        export_joints(robot, robot.inertias, (SimulatedJoint("knee"),), (), path, "mjcf",
                      source=source.replace("hip", "other"))


DRIVEN = """<mujoco><compiler angle="radian"/>
  <default><motor gear="50" ctrlrange="-2 2"/><default class="weak"><motor gear="10" ctrlrange="-3 3"/></default>
  </default>
  <worldbody><body name="upper"><joint name="hip" axis="0 1 0" damping="0.4"/><geom size="0.1" pos="0.2 0 0"/>
    <body name="lower" pos="0 0 -0.3"><joint name="knee" axis="0 1 0" damping="0.4"/><geom size="0.1" pos="0.1 0 0"/>
  </body></body></worldbody>
  <actuator><motor class="weak" name="hip motor" joint="hip"/><motor name="knee motor" joint="knee"/></actuator>
  <sensor><actuatorfrc actuator="hip motor"/></sensor>
  <keyframe><key name="home" qpos="0.1 0.2" ctrl="1 1"/></keyframe>
</mujoco>
"""


def _driven(path: Path, joints: tuple[SimulatedJoint, ...], source: Path | str = DRIVEN, **options: Any) -> Any:
    robot = Robot.load(_saved(path.parent / "driven.xml"))
    found = export_joints(robot, robot.inertias, joints, (), path, "mjcf", source=source, **options)
    return mujoco.MjModel.from_xml_path(str(path)), found


def _saved(path: Path) -> Path:
    path.write_text(DRIVEN)
    return path


def test_an_identified_drive_replaces_the_motor_of_the_file(tmp_path: Path) -> None:
    """Its force is that of the law with the file's torque limit; names, other values and sensors stay."""
    hip = SimulatedJoint("hip", armature=0.02, damping=None, frictionloss=0.1, stiffness=20.0, kd=1.5, bias=-0.7)
    model, found = _driven(tmp_path / "out.xml", (hip, SimulatedJoint("knee")))
    assert (model.nu, model.nkey) == (2, 1) and model.dof_damping[0] == 0.4 and model.dof_damping[1] == 0.0
    data, at = mujoco.MjData(model), model.actuator("hip motor").id
    for command, q, dq in ((0.5, 0.2, 0.3), (-0.4, 0.1, -2.0), (5.0, 0.0, 0.0), (-5.0, 0.0, 1.0)):
        data.qpos[0], data.qvel[0], data.ctrl[at] = q, dq, command
        mujoco.mj_forward(model, data)
        force = np.clip(20.0 * (command - q) - 1.5 * dq, -30.0, 30.0) - 0.7  # 3 times the gear of 10
        assert data.actuator_force[at] == pytest.approx(force) and data.sensordata[0] == pytest.approx(force)
        assert data.qfrc_actuator[0] == pytest.approx(force)
    assert model.key_ctrl.tolist() == [[0.0, 0.0]] and any("keyframes" in note for note in found.notes)
    assert any("--actuators keep" in note and "positions" in note for note in found.notes)
    kept, found = _driven(tmp_path / "kept.xml", (hip, SimulatedJoint("knee")), keeps_actuators=True)
    assert kept.actuator_gear[0, 0] == 10.0 and kept.key_ctrl.tolist() == [[1.0, 1.0]]
    assert any("must compute the torque" in note for note in found.notes)


def test_one_drive_does_not_replace_several_actuators(tmp_path: Path) -> None:
    joints = (SimulatedJoint("hip", stiffness=20.0, kd=1.0), SimulatedJoint("knee"))
    twice = DRIVEN.replace("</actuator>", '<velocity joint="hip" kv="1"/></actuator>').replace(' ctrl="1 1"', "")
    with refused(RobotError, "several-actuators", "hip", "--actuators keep"):
        _driven(tmp_path / "out.xml", joints, twice)


def test_each_drive_has_one_control(tmp_path: Path) -> None:
    """MuJoCo counts the controls: a `pid` takes positions and velocities unless its input is stated."""
    joints = (SimulatedJoint("hip", stiffness=20.0, ki=3.0, kd=1.0, delay=0.01),
              SimulatedJoint("knee", stiffness=20.0, ki=3.0, kd=1.0, force_limit=5.0))
    for source in (DRIVEN, None):
        robot = Robot.load(_saved(tmp_path / "driven.xml"))
        robot = robot if source else replace(robot, source="")
        export_joints(robot, robot.inertias, joints, (), tmp_path / "out.xml", "mjcf", source=source,
                      has_identified_links=source is None)
        model = mujoco.MjModel.from_xml_path(str(tmp_path / "out.xml"))
        assert (model.nu, model.nactuator) == (2, 2)
        assert model.actuator_gaintype.tolist() == [int(mujoco.mjtGain.mjGAIN_PID)] * 2
