"""Models as sums of terms: columns against closed forms and against the physics they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from robots import random_inertia, random_pose, random_robot

from dynid import dynamics
from dynid.errors import ModelError, RobotError
from dynid.model import (
    AsymmetricCoulomb,
    AsymmetricViscous,
    Bodies,
    Cable,
    Coulomb,
    Counterbalance,
    CoupledWrist,
    Dry,
    ExponentialStribeck,
    FrictionCurve,
    GasSpring,
    Hysteresis,
    Linear,
    Load,
    LoadFriction,
    Model,
    MotorSide,
    Offset,
    Parameter,
    Parameters,
    Payload,
    PolynomialFriction,
    PolynomialSpring,
    RigidBodies,
    RippleTorque,
    RotorInertia,
    Sign,
    Spring,
    Stribeck,
    Viscous,
    make_terms,
    term_from_table,
)
from dynid.model.elements import MaxwellSlip
from dynid.model.term import differences
from dynid.robot import Body, Robot
from dynid.robot import inertia as ten


def motion(dof: int, samples: int = 9, seed: int = 0):
    return np.random.default_rng(seed).normal(size=(3, samples, dof))


ALL_TERMS = (RigidBodies(), RotorInertia(), Viscous(), Coulomb(), Offset(), Spring(2, rest=0.3), Payload("tool"))


@given(st.integers(0, 10**6), st.integers(2, 6))
@settings(max_examples=15, deadline=None)
def test_torque_is_regressor_times_parameters(seed, dof):
    robot = random_robot(np.random.default_rng(seed), dof)
    model = Model(robot, ALL_TERMS)
    q, dq, ddq = motion(dof, seed=seed)
    theta = np.random.default_rng(seed).normal(size=len(model.parameters))
    y = model.regressor(q, dq, ddq)
    assert y.shape == (9, dof, len(model.parameters))
    assert np.allclose(y @ theta, model.inverse_dynamics(theta, q, dq, ddq), rtol=1e-11, atol=1e-11)
    assert np.allclose(y[3], model.regressor(q[3], dq[3], ddq[3]), rtol=1e-13, atol=1e-13)
    assert not np.any(y[:, ~model.structure])
    # M is what acceleration adds, column by column.
    m = model.inertia_matrix(theta, q)
    still = np.zeros_like(q)
    for k in range(dof):
        unit = still + np.eye(dof)[k]
        column = model.inverse_dynamics(theta, q, still, unit) - model.inverse_dynamics(theta, q, still, still)
        assert np.allclose(m[:, :, k], column, rtol=1e-9, atol=1e-9)


def test_forward_undoes_inverse_with_all_terms():
    rng = np.random.default_rng(1)
    robot = random_robot(rng, 4)
    model = Model(robot, ALL_TERMS)
    q, dq, ddq = motion(4)
    theta = np.abs(rng.normal(size=len(model.parameters)))
    for columns in model.parameters.bodies.values():
        theta[columns] = random_inertia(rng)
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    assert np.allclose(model.forward_dynamics(theta, q, dq, tau), ddq, rtol=1e-8, atol=1e-8)


def test_parameters_stand_body_by_body_with_what_belongs_to_the_joint():
    robot = random_robot(np.random.default_rng(2), 2)
    names = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset"), rotor=True)).parameters.names
    assert names[:14] == tuple("XX1 XY1 XZ1 YY1 YZ1 ZZ1 MX1 MY1 MZ1 M1 Ia1 Fv1 Fc1 Fo1".split())
    assert names[14] == "XX2" and names[-1] == "Fo2"
    model = Model(robot, ALL_TERMS)
    assert model.parameters.names[-10:] == tuple(n + "L" for n in ten.NAMES)
    assert model.parameters.positive[model.parameters.index("Ia2")]
    assert not model.parameters.positive[model.parameters.index("Fo2")]
    assert model.parameters.units[model.parameters.index("M1")] == "kg"


def test_payload_equals_a_heavier_link():
    """A load on a frame, in the load's own frame, adds to the body what a change of frame says."""
    rng = np.random.default_rng(3)
    robot = random_robot(rng, 5, branch=0.0)
    load, pose = random_inertia(rng), random_pose(rng)
    model = Model(robot, (RigidBodies(), Payload("tool", pose=pose)))
    q, dq, ddq = motion(5)
    theta = np.concatenate([robot.inertias.ravel(), load])
    inertias = robot.inertias.copy()
    inertias[4] += ten.change_frame(robot.frame("tool").pose @ pose) @ load
    heavier = dynamics.inverse_dynamics(robot, inertias, q, dq, ddq)
    assert np.allclose(model.inverse_dynamics(theta, q, dq, ddq), heavier)


def test_friction_columns_in_closed_form():
    robot = Robot.from_mdh([(0.0, 0.0, 0.0, 0.0)], name="wheel")
    v = np.array([-2.0, -0.5, 0.0, 0.5, 2.0])[:, None]
    zero = np.zeros_like(v)

    def columns(term):
        model = Model(robot, (term,))
        return dict(zip(model.parameters.names, model.regressor(zero, v, zero)[:, 0].T, strict=True))

    assert np.array_equal(columns(Coulomb())["Fc1"], [-1, -1, 0, 1, 1])
    assert np.allclose(columns(Coulomb(sign=Sign("tanh", 0.5)))["Fc1"], np.tanh(v[:, 0] / 0.5))
    assert np.allclose(columns(Coulomb(sign=Sign("arctan", 0.5)))["Fc1"], 2 / np.pi * np.arctan(v[:, 0] / 0.5))
    asymmetric = columns(AsymmetricCoulomb())
    assert np.array_equal(asymmetric["Fcp1"], [0, 0, 0, 1, 1]) and np.array_equal(asymmetric["Fcn1"], [-1, -1, 0, 0, 0])
    viscous = columns(AsymmetricViscous())
    assert np.array_equal(viscous["Fvp1"] + viscous["Fvn1"], v[:, 0])
    assert np.array_equal(viscous["Fvn1"], [-2, -0.5, 0, 0, 0])
    stribeck = columns(Stribeck(delta=3.0, alpha=1.4, Kv=50.0))
    sign = 2 / np.pi * np.arctan(50 * v[:, 0])  # Ardiani, eq. 1.15-1.16
    assert np.allclose(stribeck["Fc1"], sign) and np.allclose(stribeck["Fsc1"], np.arctan(3 * v[:, 0]))
    assert np.allclose(stribeck["Fnl1"], np.abs(v[:, 0]) ** 1.4 * sign) and np.allclose(stribeck["Fo1"], 1)


def test_stribeck_shape_is_held_or_exposed():
    robot = random_robot(np.random.default_rng(4), 2)
    held = Model(robot, (RigidBodies(), Stribeck(delta=[5.0, 6.0])))
    assert held.shape_names == () and len(held.shape) == 0
    free = Model(robot, (RigidBodies(), Stribeck(delta=[5.0, 6.0], alpha=0.7, free=("delta", "alpha"))))
    assert free.shape_names == ("delta1", "delta2", "alpha1", "alpha2")
    assert np.array_equal(free.shape, [5.0, 6.0, 0.7, 0.7])
    moved = free.with_shape([1.0, 2.0, 0.5, 0.6])
    assert np.array_equal(moved.shape, [1.0, 2.0, 0.5, 0.6])
    q, dq, ddq = motion(2)
    column = moved.parameters.index("Fsc2")
    assert np.allclose(moved.regressor(q, dq, ddq)[:, 1, column], np.arctan(2.0 * dq[:, 1]))


def test_motor_side_through_a_coupling():
    """h = T (f_m(T' dq) + Iam T' ddq), Sousa eq. 4.9, written with matrices."""
    robot = random_robot(np.random.default_rng(5), 3)
    coupling = np.array([[2.0, 0, 0], [0, 1.0, -1.0], [0, 0.5, 0.5]])
    model = Model(robot, (MotorSide(coupling),))
    q, dq, ddq = motion(3)
    viscous, dry, offset, rotor = np.random.default_rng(6).normal(size=(4, 3))
    theta = model.parameters.vector({f"{kind}{m + 1}": values[m] for m in range(3) for kind, values in
                                     (("Fvm", viscous), ("Fcm", dry), ("Fom", offset), ("Iam", rotor))})
    for s in range(9):
        speed = coupling.T @ dq[s]
        torque = coupling @ (viscous * speed + dry * np.sign(speed) + offset + rotor * (coupling.T @ ddq[s]))
        assert np.allclose(model.inverse_dynamics(theta, q, dq, ddq)[s], torque)
    assert np.allclose(model.inertia_matrix(theta, q)[0], coupling @ np.diag(rotor) @ coupling.T)


def test_coupled_wrist_columns():
    robot = random_robot(np.random.default_rng(7), 6)
    model = Model(robot, (CoupledWrist(),))
    q, dq, ddq = motion(6)
    y = model.regressor(q, dq, ddq)
    sign = np.sign(dq[:, 4] + dq[:, 5])
    assert model.parameters.names == ("Iam6", "Fvm6", "Fcm6")
    assert np.array_equal(y[:, 4], np.stack([ddq[:, 5], dq[:, 5], sign], axis=1))
    assert np.array_equal(y[:, 5], np.stack([ddq[:, 4], dq[:, 4], sign], axis=1))
    assert not y[:, :4].any()


def lagrange(kinetic, loss, dq, ddq):
    """Torques (dof,) of a kinetic energy and a Rayleigh function of the velocities alone: d/dt dT/ddq + dR/ddq."""
    def slope(f, v):
        return np.array([(f(v + 1e-5 * e) - f(v - 1e-5 * e)) / 2e-5 for e in np.eye(len(v))])

    return (slope(kinetic, dq + 0.5e-2 * ddq) - slope(kinetic, dq - 0.5e-2 * ddq)) / 1e-2 + slope(loss, dq)


def test_motor_side_from_energies():
    """T = sum Iam (w.dq)^2 / 2 and R = sum Fvm (w.dq)^2 / 2 + Fcm |w.dq| + Fom w.dq, w the columns of the coupling."""
    robot = random_robot(np.random.default_rng(5), 3)
    coupling = np.array([[2.0, 0.3, 0], [0, 1.0, -1.0], [0.2, 0.5, 0.5]])
    model = Model(robot, (MotorSide(coupling),))
    q, dq, ddq = motion(3, seed=1)
    viscous, dry, offset, rotor = np.random.default_rng(6).normal(size=(4, 3))
    theta = model.parameters.vector({f"{kind}{m + 1}": values[m] for m in range(3) for kind, values in
                                     (("Fvm", viscous), ("Fcm", dry), ("Fom", offset), ("Iam", rotor))})

    def kinetic(v):
        return 0.5 * rotor @ (v @ coupling) ** 2

    def loss(v):
        return 0.5 * viscous @ (v @ coupling) ** 2 + dry @ np.abs(v @ coupling) + offset @ (v @ coupling)

    torques = [lagrange(kinetic, loss, dq[s], ddq[s]) for s in range(9)]
    assert np.allclose(model.inverse_dynamics(theta, q, dq, ddq), torques, atol=1e-7)


@pytest.mark.parametrize("ratio", [1.0, -1.0, 0.4])
def test_coupled_wrist_from_energies(ratio):
    """T = Iam r dq5 dq6 and R = Fvm r dq5 dq6 + Fcm |r dq5 + dq6|."""
    robot = random_robot(np.random.default_rng(7), 6)
    model = Model(robot, (CoupledWrist(ratio=ratio),))
    q, dq, ddq = motion(6, seed=2)
    inertia, viscous, dry = 0.3, 0.7, 1.1
    torques = [lagrange(lambda v: inertia * ratio * v[4] * v[5],
                        lambda v: viscous * ratio * v[4] * v[5] + dry * abs(ratio * v[4] + v[5]), dq[s], ddq[s])
               for s in range(9)]
    assert np.allclose(model.inverse_dynamics([inertia, viscous, dry], q, dq, ddq), torques, atol=1e-7)


COUPLING = np.array([[2.0, 0.3, 0], [0, 1.0, -1.0], [0.2, 0.5, 0.5]])
EVERY_TERM = [
    RigidBodies(), RotorInertia(), Viscous((1, 3)), Coulomb(sign=Sign("tanh", 0.5)), Offset(), Spring(2, rest=0.3),
    AsymmetricCoulomb(sign=Sign("arctan", 0.4)), AsymmetricViscous(), Stribeck(delta=3.0, alpha=1.4, Kv=5.0),
    MotorSide(COUPLING, sign=Sign("tanh", 0.5)), CoupledWrist((1, 3), Sign("tanh", 0.5)),
    CoupledWrist((1, 2), Sign("tanh", 0.5), ratio=-0.7), Payload("tool"),
    FrictionCurve(widths=(0.2, 0.6), speed=2.0, sign=Sign("tanh", 0.5)),
    FrictionCurve(widths=(0.2, 0.6), speed=2.0, asymmetric=True, sign=Sign("tanh", 0.5)),
    FrictionCurve("spline", widths=(0.2, 0.6, 1.0), speed=(2.0, 1.5, 3.0), joints=(1, 3), sign=Sign("tanh", 0.5)),
    PolynomialSpring(2, degree=4, rest=0.2), GasSpring(1, 0.5, 0.3, zero=0.4), Counterbalance(1, 0.2, 0.5, slack=0.1),
    PolynomialFriction(sign=Sign("tanh", 0.5)),
    ExponentialStribeck(vs=(0.5, 0.8), power=(2.0, 1.3), joints=(1, 3), sign=Sign("tanh", 0.1)),
    RippleTorque((3.0, 7.5), joints=(1, 3)), Cable(), LoadFriction(sign=Sign("tanh", 0.5)),
    LoadFriction(separate=True, joints=(2, 3), sign=Sign("arctan", 0.5)),
    Hysteresis(radii=(0.01, 0.1), joints=(1, 3), sign=Sign("tanh", 0.5)),
]


@pytest.mark.parametrize("term", EVERY_TERM, ids=lambda term: term.kind)
def test_slopes_are_those_of_the_columns(term):
    robot = random_robot(np.random.default_rng(11), 3)
    model = Model(robot, (term,))
    q, dq, ddq = motion(3, samples=20, seed=3)
    place = np.arange(3 * len(model.parameters)).reshape(3, -1)
    weights = np.random.default_rng(4).normal(size=(place.size, 20))

    def entries(*motion):
        out = np.zeros((place.size, 20))
        model.fill(*motion, place, out)
        return out

    ours = model.pull_back(q, dq, ddq, place, weights)
    theirs = differences(entries, q, dq, ddq, weights)
    np.testing.assert_allclose(ours, theirs, atol=1e-8 * (1.0 + np.abs(theirs).max()))


@pytest.mark.parametrize("term", EVERY_TERM, ids=lambda term: term.kind)
def test_elements_give_the_same_torques(term):
    robot = random_robot(np.random.default_rng(11), 3)
    model = Model(robot, (term,))
    theta = np.random.default_rng(5).normal(size=len(model.parameters))
    q, dq, ddq = motion(3, samples=20, seed=3)
    tau = np.zeros_like(q)
    for one in model.elements(theta):
        if isinstance(one, Bodies):
            tau += dynamics.inverse_dynamics(robot, one.numbers, q, dq, ddq)
        elif isinstance(one, Linear):
            tau += ddq @ np.broadcast_to(one.inertia, (3, 3)).T + dq @ np.broadcast_to(one.viscous, (3, 3)).T
            tau += one.stiffness * q + one.constant
        elif isinstance(one, Load):
            assert term.kind == "load"  # of a machine without bodies it has none: see test_load_friction
        elif isinstance(one, MaxwellSlip):
            most = one.high - one.low  # one of its limits is zero: an operator from either end of the range
            tau[:, one.joint] += one.stiffness * 0.5 * most * term.sign(dq[:, one.joint])
        elif isinstance(one, Dry):
            sign = one.sign(dq @ one.direction)
            tau += np.outer(np.where(sign > 0, one.forward, one.backward) * sign, one.direction)
        else:
            force = [one.function(x, v, one.values) for x, v in zip(q @ one.direction, dq @ one.direction, strict=True)]
            tau += np.outer(force, one.direction)
    np.testing.assert_allclose(tau, model.inverse_dynamics(theta, q, dq, ddq), atol=1e-9)


def test_kinds_say_what_parameters_are():
    robot = Robot.builtin("barrett-wam")
    model = Model(robot, (*make_terms(robot, defaults=True), RotorInertia(), Payload("link7")))
    groups = {one.symbol: one.kind.group for one in model.parameters}
    assert {s: groups[s] for s in ("XX", "MY", "M", "Fv", "Fc", "Fo", "Ia", "Fcm", "Iam", "ML")} == {
        "XX": "body", "MY": "body", "M": "body", "Fv": "friction", "Fc": "friction", "Fo": "offset", "Ia": "rotor",
        "Fcm": "friction", "Iam": "rotor", "ML": "body"}
    never = {one.symbol for one in model.parameters if one.never_negative}
    assert {"XX", "YY", "ZZ", "M", "XXL", "ML", "Fv", "Fc", "Ia"} <= never and not never & {"XY", "MX", "Fo"}
    written = {one.symbol: (one.kind.urdf, one.kind.mjcf) for one in model.parameters if one.kind.urdf or one.kind.mjcf}
    assert written == {"Fv": ("damping", "damping"), "Fc": ("friction", "frictionloss"), "Ia": ("", "armature")}
    assert model.parameters.names is model.parameters.names  # made once


def test_a_term_of_ones_own_needs_two_methods():
    class Pendulum:
        """A cable that pulls joint 1 with K sin(q)."""

        def parameters(self, robot):
            return (Parameter("Kp1", "N m", 0, robot.joints[0].name, positive=True),)

        def entries(self, robot, q, dq, ddq):
            yield 0, 0, np.sin(q[:, 0])

    robot = random_robot(np.random.default_rng(8), 2)
    model = Model(robot, (RigidBodies(), Pendulum()))
    q, dq, ddq = motion(2)
    assert np.array_equal(model.regressor(q, dq, ddq)[:, 0, model.parameters.index("Kp1")], np.sin(q[:, 0]))


def test_nominal_values_come_from_the_robot_where_it_has_all():
    robot = Robot.builtin("kuka-lwr4")
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))
    nominal = model.parameters.nominal
    assert nominal is not None and nominal[model.parameters.index("Fc4")] == 0.3591
    bare = Robot("bare", robot.joints, tuple(Body(b.name) for b in robot.bodies))
    assert Model(bare).parameters.nominal is None


def test_terms_from_tables():
    assert term_from_table({"kind": "coulomb", "sign": "tanh"}).sign == Sign("tanh")
    assert term_from_table({"kind": "coulomb", "sign": {"kind": "arctan", "width": 0.2}}).sign.width == 0.2
    robot = Robot.builtin("barrett-wam")
    kinds = [term.kind for term in make_terms(robot, defaults=True)]
    assert kinds == ["rigid", "viscous", "coulomb", "offset", "motor-side"]
    assert [t.kind for t in make_terms(robot, friction=["viscous"], extra=[{"kind": "spring", "joint": 2}])] == [
        "rigid", "viscous", "spring"]


@pytest.mark.parametrize(("make", "message"), [
    (lambda r: term_from_table({"kind": "magnetic"}), ("bad-model", "'magnetic'")),
    (lambda r: term_from_table({"kind": "viscous", "speed": 3}), ("bad-model", "'viscous'", "speed", "joints")),
    (lambda r: make_terms(r, friction=["sticky"]), ("bad-model", "'sticky'")),
    (lambda r: Model(r, ()), ("no-terms", "'random'")),
    (lambda r: Model(r, (Viscous(), Viscous())), ("repeated-parameter", "'Fv1'")),
    (lambda r: Model(r, (MotorSide([[1.0, 0.0], [0.0, 1.0]]),)), ("bad-model", "3 x 3", "'random'")),
    (lambda r: Model(r, (MotorSide(np.ones((3, 3))),)), ("singular-coupling", "'random'")),
    (lambda r: Model(r, (Payload("base"),)), ("bad-model", "'base'")),
    (lambda r: Stribeck(free=("gamma",)), ("unknown-shape", "'gamma'")),
    (lambda r: Sign("soft"), ("bad-model", "'hard'", "'tanh'", "'arctan'")),
    (lambda r: Model(r).parameters.vector({"XX1": 1.0}), ("bad-model", "'XY1'")),
    (lambda r: Model(r).parameters.vector(np.zeros(4)), ("bad-model", "30 parameters")),
    (lambda r: Model(r).parameters.vector(np.full(30, np.nan)), ("bad-model", "'XX1'")),
    (lambda r: Model(r).parameters.index("XX9"), ("unknown-parameter", "'XX9'")),
    (lambda r: Model(r).regressor(*np.zeros((2, 2, 3)), np.full((2, 3), np.inf)), ("not-finite", "ddq", "'joint1'")),
])
def test_refusals(make, message):
    with refused(ModelError, *message):
        make(random_robot(np.random.default_rng(9), 3))


def test_an_unknown_joint_is_named():
    with refused(RobotError, "unknown-joint", "elbow"):
        Model(random_robot(np.random.default_rng(9), 3), (Viscous(joints=("elbow",)),))


def test_order_by_groups_of_kinds():
    names = Parameters(tuple(Parameter(n, "", 0, "") for n in ("XX1", "MX1", "M1", "XX2", "MX2", "M2")))
    assert [names.names[k] for k in names.order(["M", "MX"])] == ["M1", "M2", "MX1", "MX2", "XX1", "XX2"]
    with refused(ModelError, "unknown-parameter-kind", "Fv"):
        names.order(["Fv"])
