"""The momentum form against inverse dynamics: tau = d/dt P + F, and tau . dq = d/dt (dq . P / 2) + G . dq."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from model.test_model import EVERY_TERM
from refusals import refused
from robots import gripper, random_robot, to_pinocchio

from dynid.errors import ModelError
from dynid.model import Delay, Model, Payload, RigidBodies, RotorInertia, Scara, joint_parameter
from dynid.model.momentum import MomentumForm
from dynid.robot import Robot

URDFS = ["tx40/tx40_mdh_modified.urdf", "models/ur10_robot.urdf", "models/ur5_robot.urdf", "models/xarm7.urdf",
         "models/kinova_jaco.urdf", "kuka_lwr4/kuka_lwr4_identified.urdf", "kuka_lwr4/kuka_lwr4_centroepiaggio.urdf",
         "kuka_lwr4/kuka_lwr4_cogimon.urdf", "kuka_lwr4/kuka_lwr4.urdf", "kuka_lwr4/kuka_lwr4_gaz.urdf",
         "panda/panda_arm.urdf"]
SIXTH_ORDER = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))


def both_forms(model, theta, seed=0, samples=30, step=2e-3):
    """Torques by momentum and powers by energy, d/dt by differences of sixth order along q + dq t + ddq t^2 / 2."""
    form = MomentumForm.from_model(model, symmetric=True)
    q, dq, ddq = np.random.default_rng(seed).normal(size=(3, samples, model.dof))
    count = model.dof * len(model.parameters)
    place = np.arange(count, dtype=np.int64).reshape(model.dof, -1)

    def parts(t, changing):
        momentum, force = np.zeros((2, count, samples))
        form.fill(q + t * dq + 0.5 * t * t * ddq, dq + t * ddq, place, momentum, force, changing=changing)
        return [(x.reshape(model.dof, -1, samples).transpose(2, 0, 1) @ theta) for x in (momentum, force)]

    def rate(values):
        return sum(w * (values(k * step) - values(-k * step)) for k, w in SIXTH_ORDER) / step

    tau = rate(lambda t: parts(t, True)[0]) + parts(0.0, True)[1]
    power = rate(lambda t: 0.5 * np.sum((dq + t * ddq) * parts(t, True)[0], axis=1)) + np.sum(
        dq * parts(0.0, False)[1], axis=1)
    return (q, dq, ddq), tau, power


def assert_same(model, theta, torques=None, tolerance=1e-9):
    motion, tau, power = both_forms(model, theta)
    expected = model.inverse_dynamics(theta, *motion) if torques is None else torques(*motion)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(tau / scale, expected / scale, atol=tolerance)
    work = np.sum(expected * motion[1], axis=1)
    np.testing.assert_allclose(power / scale, work / scale, atol=tolerance)


@pytest.mark.parametrize("file", URDFS)
def test_on_every_robot_of_the_data_folder(file, data):
    robot = Robot.from_urdf(data(*file.split("/")))
    model = Model(robot, (RigidBodies(), RotorInertia()))
    assert_same(model, np.random.default_rng(1).normal(size=len(model.parameters)))


@pytest.mark.parametrize("seed", range(8))
def test_on_random_trees_against_pinocchio(seed):
    import pinocchio as pin

    robot = random_robot(np.random.default_rng(seed), 3 + seed)
    theirs = to_pinocchio(robot)
    data = theirs.createData()
    assert_same(Model(robot), robot.inertias.ravel(), lambda q, dq, ddq: np.array(
        [pin.rnea(theirs, data, *one) for one in zip(q, dq, ddq, strict=True)]))


@pytest.mark.parametrize("term", [term for term in EVERY_TERM if term.kind != "load"], ids=lambda term: term.kind)
def test_every_term_without_or_with_inertia(term):
    model = Model(random_robot(np.random.default_rng(11), 3), (term,))
    assert_same(model, np.random.default_rng(5).normal(size=len(model.parameters)))


@dataclass(frozen=True)
class Carried:
    """A body as a user would write it, without kernels of its own: the load of `Payload`."""

    load: Payload
    kind = "carried"

    def parameters(self, robot):
        return self.load.parameters(robot)

    def entries(self, robot, q, dq, ddq):
        return self.load.entries(robot, q, dq, ddq)


def test_a_body_without_kernels_goes_by_differences():
    model = Model(random_robot(np.random.default_rng(3), 4), (Carried(Payload("tool")),))
    assert_same(model, np.random.default_rng(5).normal(size=10))


def test_a_model_of_ones_own_has_a_form_too():
    model = Scara()
    assert_same(model, np.arange(1.0, 1.0 + len(model.parameters)))


@dataclass(frozen=True)
class Jerky:
    """|ddq| on a joint, which is no inertia."""

    kind = "jerky"

    def parameters(self, robot):
        return (joint_parameter(robot, "J", 0, "kg m^2"),)

    def entries(self, robot, q, dq, ddq):
        yield 0, 0, np.abs(ddq[:, 0])


@pytest.mark.parametrize("term, named", [(Jerky(), "jerky"), (Delay(), "delay"),
                                         (next(t for t in EVERY_TERM if t.kind == "load"), "load")])
def test_terms_without_momentum_are_refused(term, named):
    model = Model(random_robot(np.random.default_rng(3), 3), (RigidBodies(), term))
    with refused(ModelError, "no-momentum", f"'{named}'"):
        MomentumForm.from_model(model)


def test_bodies_on_mimic_joints():
    model = Model(Robot.from_urdf(gripper()))
    assert any(term.kind == "following" for term in model.terms)
    assert_same(model, np.random.default_rng(2).normal(size=len(model.parameters)))
