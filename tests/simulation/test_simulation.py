"""Simulated motion against Pinocchio, scipy and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused
from robots import random_robot, to_pinocchio
from scipy.integrate import solve_ivp

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.model import (
    AsymmetricCoulomb,
    AsymmetricViscous,
    Coulomb,
    CoupledWrist,
    Model,
    MotorSide,
    Offset,
    Payload,
    RigidBodies,
    RotorInertia,
    Scara,
    Sign,
    Spring,
    Stribeck,
    Viscous,
    make_terms,
)
from dynid.robot import Robot
from dynid.simulation import (
    PD,
    PID,
    Cascade,
    ComputedTorque,
    Flexible,
    LuGre,
    Poles,
    Reference,
    Ripple,
    TorqueDriven,
    controller_from_table,
    joint_inertia,
    simulate,
    simulate_many,
)

SMOOTH = Sign("tanh", 0.05)


def wave(dof: int, seconds: float = 1.0, rate: float = 1000.0, size: float = 0.3) -> Reference:
    """Sines of different frequencies that start at rest."""
    t = np.arange(int(seconds * rate) + 1) / rate
    f = 0.4 + 0.15 * np.arange(dof)
    x = 2.0 * np.pi * f * t[:, None]
    return Reference(size * (1 - np.cos(x)), size * 2 * np.pi * f * np.sin(x),
                     size * (2 * np.pi * f) ** 2 * np.cos(x), rate)


def arm(dof: int = 4, seed: int = 0, **kind: float) -> tuple[Model, Array]:
    """A random arm with rotors so that no joint is light, and its parameters."""
    robot = random_robot(np.random.default_rng(seed), dof, **{"prismatic": 0.0, "branch": 0.0, **kind})
    model = Model(robot, make_terms(robot, rotor=True))
    return model, np.array([2.0 if p.name.startswith("Ia") else p.nominal for p in model.parameters])


def mass(value: float = 95.0, viscous: float = 0.0, dry: float = 0.0, sign: Sign = SMOOTH) -> tuple[Model, Array]:
    """The carriage of the EMPS with friction of our choice."""
    robot = Robot.builtin("emps")
    model = Model(robot, (RigidBodies(), Viscous(), Coulomb(sign=sign)))
    theta = np.zeros(len(model.parameters))
    for name, number in (("M1", value), ("Fv1", viscous), ("Fc1", dry)):
        theta[model.parameters.index(name)] = number
    return model, theta


def textbook(robot: Robot, rotors: float, path: Reference, torque: Any) -> Array:
    """Positions of Pinocchio's forward dynamics under RK4, the torque held over each tick."""
    model = to_pinocchio(robot)
    model.armature = np.full(robot.dof, rotors)
    data, h, n = model.createData(), 1.0 / path.rate, robot.dof

    def rate(y: Array, tau: Array) -> Array:
        return np.concatenate([y[n:], pin.aba(model, data, y[:n], y[n:], tau)])

    y, out = np.concatenate([path.q[0], path.dq[0]]), []
    for k in range(len(path)):
        out.append(y[:n].copy())
        tau = torque(k, y[:n], y[n:])
        k1 = rate(y, tau)
        k2 = rate(y + 0.5 * h * k1, tau)
        k3 = rate(y + 0.5 * h * k2, tau)
        k4 = rate(y + h * k3, tau)
        y = y + h / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
    return np.array(out)


@pytest.mark.parametrize("kind", [{}, {"prismatic": 0.5, "branch": 0.5}])
def test_pd_loop_is_pinocchios_to_1e_9(kind: dict[str, float]) -> None:
    model, theta = arm(5, seed=2, **kind)
    path = wave(5, 0.6)
    kp, kd = 900.0, 60.0
    ours = simulate(model, theta, PD(kp, kd), path)
    theirs = textbook(model.robot, 2.0, path, lambda k, q, dq: kp * (path.q[k] - q) + kd * (path.dq[k] - dq))
    assert np.abs(ours.q - theirs).max() < 1e-9 * np.abs(theirs).max()


def test_computed_torque_is_the_documents_law_with_pinocchios_terms() -> None:
    model, theta = arm(3, seed=4)
    path = wave(3, 0.4)
    twin = to_pinocchio(model.robot)
    data = twin.createData()
    believed = theta * 0.9
    law = ComputedTorque(model, believed, 156.3, 25.0, feedforward=False)

    def torque(k: int, q: Array, dq: Array) -> Array:  # Sousa, eq. 5.8 and table 5.1
        a = 156.3 * (path.q[k] - q) - 25.0 * dq
        full = pin.crba(twin, data, q)
        full = np.triu(full) + np.triu(full, 1).T
        return 0.9 * (full @ a + 2.0 * a + pin.rnea(twin, data, q, dq, np.zeros(3)))

    ours = simulate(model, theta, law, path)
    assert np.abs(ours.q - textbook(model.robot, 2.0, path, torque)).max() < 1e-9


def test_perfect_computed_torque_follows_the_reference() -> None:
    model, theta = arm(3, seed=4)
    path = wave(3, 1.0)
    ours = simulate(model, theta, ComputedTorque(model, theta, 400.0, 40.0), path)
    assert np.abs(ours.q - path.q).max() < 5e-3 * np.abs(path.q).max()


def test_adaptive_integrator_agrees_with_scipy() -> None:
    model, theta = arm(3, seed=1)
    path = wave(3, 0.3, rate=100.0)
    ours = simulate(model, theta, PD(400.0, 40.0), path, step="adaptive", tolerance=1e-10)
    y = np.concatenate([path.q[0], path.dq[0]])
    for k in range(len(path) - 1):
        tau = 400.0 * (path.q[k] - y[:3]) + 40.0 * (path.dq[k] - y[3:])
        y = solve_ivp(lambda _, y, tau=tau: np.concatenate([y[3:], model.forward_dynamics(theta, y[:3], y[3:], tau)]),
                      (0, 0.01), y, rtol=1e-10, atol=1e-12).y[:, -1]
    assert np.abs(ours.q[-1] - y[:3]).max() < 1e-8


def test_mass_with_viscous_friction_has_the_closed_form() -> None:
    model, theta = mass(4.0, viscous=3.0)
    path = wave(1, 2.0)
    force = np.full((len(path), 1), 5.0)
    for step in (None, "adaptive"):
        ours = simulate(model, theta, TorqueDriven(force), path, start=np.zeros((2, 1)), step=step)
        exact = 5.0 / 3.0 * (ours.t - 4.0 / 3.0 * (1 - np.exp(-0.75 * ours.t)))
        assert np.abs(ours.q[:, 0] - exact).max() < 1e-9


def test_every_built_in_term_is_compiled_as_the_model_computes_it() -> None:
    robot = random_robot(np.random.default_rng(8), 4, prismatic=0.2, branch=0.3)
    coupling = np.eye(4) + np.diag([0.5, 0.0, -0.3], 1)
    terms = (RigidBodies(), RotorInertia(), Viscous((1, 2)), Coulomb((1,), SMOOTH), Offset((1, 2)),
             AsymmetricCoulomb((2,), SMOOTH), AsymmetricViscous((3,)), Stribeck(8.0, 0.6, 200.0, joints=(4,)),
             Spring(2, 0.4), Payload("tool"),
             MotorSide(coupling, sign=Sign("arctan", 0.02)))
    model = Model(robot, terms)
    rng = np.random.default_rng(0)
    theta = np.array([p.nominal if p.nominal is not None else rng.uniform(0.5, 1.0) for p in model.parameters])
    for k, p in enumerate(model.parameters):
        if p.body == "payload L":
            theta[k] = dict(XXL=0.1, YYL=0.1, ZZL=0.1, ML=2.0, MXL=0.1).get(p.name, 0.0)
        if p.name.startswith("Ia"):
            theta[k] = 2.0
    ours = simulate(model, theta, PD(300.0, 40.0), wave(4, 0.4), step=2.5e-4)
    torques = model.inverse_dynamics(theta, ours.q, ours.dq, ours.ddq)
    assert np.abs(torques - ours.tau).max() < 1e-8 * np.abs(ours.tau).max()


def test_coupled_wrist_of_the_tx40() -> None:
    robot = Robot.builtin("staubli-tx40")
    model = Model(robot, make_terms(robot, rotor=True, extra=[Viscous(), Coulomb(sign=SMOOTH), Offset(),
                                                             CoupledWrist((5, 6), SMOOTH)]))
    theta = np.array([p.nominal for p in model.parameters], dtype=float)
    ours = simulate(model, theta, Poles(40.0), wave(6, 0.5), step=2.5e-4)
    torques = model.inverse_dynamics(theta, ours.q, ours.dq, ours.ddq)
    assert np.abs(torques - ours.tau).max() < 1e-8 * np.abs(ours.tau).max()


def test_a_users_model_runs_in_python_with_the_same_results() -> None:
    robot = Robot.builtin("scara2")
    compiled = Model(robot, (RigidBodies(), Viscous(), Coulomb(sign=SMOOTH)))
    theta = np.array([p.nominal for p in compiled.parameters], dtype=float)
    path = wave(2, 0.2, 200.0)
    law = Cascade([0.5, 5.0], [7.0, 1.2])
    first = simulate(compiled, theta, law, path, step=1e-3)
    closed = Scara(SMOOTH)
    second = simulate(closed, [3.44, 0.03, 0.82, 0.062, 0.121, 0.007, 0.013, 0.137], law, path, step=1e-3)

    class OnlyRegressor:
        dof, parameters, regressor = 2, closed.parameters, staticmethod(closed.regressor)

    third = simulate(OnlyRegressor(), [3.44, 0.03, 0.82, 0.062, 0.121, 0.007, 0.013, 0.137], law, path, step=1e-3)
    for other in (second, third):
        assert np.abs(first.q - other.q).max() < 1e-12
        assert np.abs(first.tau - other.tau).max() < 1e-10


def test_a_users_function_is_the_law_it_writes_down() -> None:
    model, theta = arm(3, seed=5)
    path = wave(3, 0.2)
    law = PD(400.0, 40.0, limit=80.0)
    mine = simulate(model, theta, lambda t, q, dq, qr, dqr, _: np.clip(400 * (qr - q) + 40 * (dqr - dq), -80, 80), path)
    ours = simulate(model, theta, law, path)
    assert np.abs(mine.q - ours.q).max() < 1e-13
    assert np.abs(ours.tau).max() <= 80.0


def test_pid_removes_the_offset_that_pd_leaves_and_does_not_wind_up() -> None:
    model, theta = mass(10.0)
    path = Reference.from_arrays(np.full((4001, 1), 0.1), rate=1000.0)
    model = Model(model.robot, (RigidBodies(), Offset()))
    theta = np.zeros(len(model.parameters))
    theta[model.parameters.index("M1")], theta[model.parameters.index("Fo1")] = 10.0, 20.0
    pd = simulate(model, theta, PD(1000.0, 150.0), path)
    pid = simulate(model, theta, PID(1000.0, 2000.0, 150.0), path)
    assert pd.q[-1, 0] == pytest.approx(0.1 - 20.0 / 1000.0, abs=1e-6)
    assert pid.q[-1, 0] == pytest.approx(0.1, abs=1e-4)
    step = simulate(model, theta, PID(1000.0, 2000.0, 150.0, limit=25.0), path, start=np.array([[0.0], [0.0]]))
    assert step.q.max() < 0.16  # without the pause of the integral it overshoots by far more


def test_delay_holds_the_torque_back() -> None:
    model, theta = mass(10.0)
    path = wave(1, 0.1)
    ours = simulate(model, theta, PD(100.0, 10.0, delay=3), path)
    tau = 100.0 * (path.q - ours.q) + 10.0 * (path.dq - ours.dq)
    assert np.allclose(ours.tau[3:], tau[:-3], atol=1e-12)


def test_flexible_joint_rings_at_its_own_frequency() -> None:
    model, theta = mass(2.0)
    path = Reference.from_arrays(np.zeros((2001, 1)), rate=1000.0)
    push = np.zeros((2001, 1))
    push[:10] = 10.0
    ours = simulate(model, theta, TorqueDriven(push), path, flexible=Flexible(800.0, 0.0, rotor=0.5), step=2e-4)
    # Two masses and a spring: omega^2 = K (1/m + 1/M).
    omega = np.sqrt(800.0 * (1 / 2.0 + 1 / 0.5))
    relative = ours.measured - ours.q  # the encoder sits on the motor
    crossings = np.flatnonzero(np.diff(np.sign(relative[20:, 0]))) + 20
    period = 2.0 * np.diff(ours.t[crossings]).mean()
    assert 2.0 * np.pi / period == pytest.approx(omega, rel=0.01)
    stiff = simulate(model, theta, TorqueDriven(push), path, flexible=Flexible(1e6, 1e3, rotor=0.5), step=2e-5)
    rigid_model, rigid = mass(2.5)
    assert np.abs(stiff.q - simulate(rigid_model, rigid, TorqueDriven(push), path).q).max() < 1e-5


def test_lugre_sticks_like_a_spring_and_slides_like_coulomb() -> None:
    model, theta = mass(1.0)
    friction = LuGre(Fc=4.0, Fs=6.0, vs=0.01, sigma0=1e4, sigma1=100.0, sigma2=2.0)
    path = Reference.from_arrays(np.zeros((3001, 1)), rate=1000.0)
    ramp = np.linspace(0.0, 3.0, 3001)[:, None]
    stuck = simulate(model, theta, TorqueDriven(ramp), path, lugre=friction, step=1e-4)
    # Near rest dz = v (1 - sigma0 z / Fs), so that x = -Fs / sigma0 ln(1 - F / Fs).
    assert stuck.q[-1, 0] == pytest.approx(-6.0 / 1e4 * np.log(1 - 3.0 / 6.0), rel=0.02)
    slide = simulate(model, theta, TorqueDriven(np.full((3001, 1), 8.0)), path, lugre=friction, step=1e-4)
    v = slide.dq[-1, 0]
    assert slide.ddq[-1, 0] == pytest.approx(8.0 - 4.0 - 2.0 * v, abs=0.02)


def test_ripple_acts_on_the_machine_and_not_on_the_log() -> None:
    model, theta = mass(1.0)
    path = Reference.from_arrays(np.zeros((101, 1)), rate=1000.0)
    ours = simulate(model, theta, TorqueDriven(np.ones((101, 1))), path, ripple=Ripple(0.5, 0.0, np.pi / 2))
    assert np.allclose(ours.tau, 1.0)
    assert np.allclose(ours.ddq, 1.5)


def test_many_parameter_vectors_at_once() -> None:
    model, theta = arm(4, seed=6)
    path = wave(4, 0.2)
    thetas = np.array([theta, theta * 1.05, theta * 0.95])
    together = simulate_many(model, thetas, PD(900.0, 60.0), path, threads=2)
    for one, row in zip(together, thetas, strict=True):
        assert np.array_equal(one.q, simulate(model, row, PD(900.0, 60.0), path).q)


def test_poles_keep_the_bandwidth_whatever_the_inertia() -> None:
    path = Reference.from_arrays(np.full((3001, 1), 1.0), rate=1000.0)
    for value in (0.5, 95.0):
        model, theta = mass(value)
        ours = simulate(model, theta, Poles(10.0, 1.0), path, start=np.zeros((2, 1)))
        exact = 1 - np.exp(-10 * ours.t) * (1 + 10 * ours.t)  # step response, Janot, Vandanjon, Gautier, eq. 42
        assert np.abs(ours.q[:, 0] - exact).max() < 6e-3  # the tick of 1 ms costs half a tick of phase
        assert joint_inertia(model, theta, path.q)[0] == pytest.approx(value)


def test_hard_signs_are_smoothed_as_narrow_as_the_step_allows() -> None:
    model, theta = mass(1.0, dry=5.0, sign=Sign())
    path = Reference.from_arrays(np.zeros((1001, 1)), rate=1000.0)
    force = np.full((1001, 1), 3.0)
    ours = simulate(model, theta, TorqueDriven(force), path)  # below the friction: it creeps at atanh(3/5) widths
    assert np.abs(ours.dq[-1, 0]) < 0.01
    assert np.abs(ours.ddq[-100:]).max() < 1e-6
    fast = simulate(model, theta, TorqueDriven(2.0 * force), path)
    assert fast.ddq[-1, 0] == pytest.approx(1.0, abs=1e-6)


def test_reference_at_another_rate() -> None:
    path = wave(2, 1.0, 200.0)
    fine = path.at(1000.0)
    exact = wave(2, 1.0, 1000.0)
    assert len(fine) == 1001
    assert np.abs(fine.q - exact.q).max() < 1e-7
    derived = Reference.from_arrays(exact.q, rate=1000.0)
    assert np.abs(derived.ddq[5:-5] - exact.ddq[5:-5]).max() < 1e-3


def test_what_goes_wrong_is_one_sentence() -> None:
    model, theta = arm(2, seed=7)
    path = wave(2, 0.5)
    with refused(NotPossibleError, "simulation-diverged"):
        simulate(model, theta, PD(1e6, 1e6), path)
    with refused(NotPossibleError, "inertia-singular", "0"):
        simulate(model, theta * 0.0, PD(1.0, 1.0), path)
    with refused(ModelError, "unknown-controller"):
        simulate(model, theta, "pd", path)  # type: ignore[arg-type]
    with refused(ModelError, "unknown-controller", "lqr"):
        controller_from_table({"kind": "lqr"})
    with refused(ModelError, "missing-gain", "cascade", "kp"):
        controller_from_table({"kind": "cascade", "kv": 1.0})
    with refused(ModelError, "wrong-gain", "pd", "high", "kp"):
        controller_from_table({"kind": "pd", "kp": "high", "kd": 1.0})
    with refused(ModelError, "wrong-gain", "cascade", "1"):
        controller_from_table({"kind": "cascade", "kp": 1.0, "kv": 1.0, "feedforward": 1})
    with refused(ModelError, "unstable-controller", "2", "3", "kp"):
        simulate(model, theta, PD([1.0, -3.0], 1.0), path)
    with refused(ModelError, "torques-too-short", "10"):
        simulate(model, theta, TorqueDriven(np.zeros((10, 2))), path)
    with refused(ModelError, "joint-count", "3", "2"):
        simulate(model, theta, PD(1.0, 1.0), wave(3))
    with refused(ModelError, "not-finite", "2", "0.01"):
        simulate(model, theta, lambda t, *_: [0.0, np.nan if t >= 0.01 else 0.0], path)


@pytest.mark.parametrize("push", [3.0, 7.0])
def test_dry_friction_that_sticks_holds_and_lets_go(push: float) -> None:
    """A mass under a constant force against 5 N: at rest below it, (push - 5) t beyond; then stopped within its way."""
    model, theta = mass(1.0, dry=5.0, sign=Sign())
    path = Reference.from_arrays(np.zeros((2001, 1)), rate=1000.0)
    force = np.where(np.arange(2001)[:, None] < 1000, push, 0.0)
    ours = simulate(model, theta, TorqueDriven(force), path, smooth="stick")
    speed = np.where(ours.t < 1.0, (push - 5.0) * ours.t, np.maximum(push - 5.0 - 5.0 * (ours.t - 1.0), 0.0))
    assert np.abs(ours.dq[:, 0] - np.maximum(speed, 0.0)).max() < 1e-9
    assert np.abs(ours.dq[-500:]).max() < 1e-12  # at rest, and it does not creep
    held = model.inverse_dynamics(theta, ours.q, ours.dq, ours.ddq)[:, 0]
    sliding = ours.dq[:, 0] > 1e-9
    assert np.allclose(held[sliding][:-1], force[sliding, 0][:-1], atol=1e-9)


def test_a_light_joint_keeps_its_dry_friction() -> None:
    """A light mass: a smooth sign as wide as the step asks for loses its friction, one that sticks does
    not, and both agree where the width is narrow; also through a control function, in the Python loop."""
    model, theta = mass(2e-5, dry=0.2, sign=Sign())
    t = np.arange(3001) / 1000.0
    path = Reference.from_arrays(0.5 * np.sin(4.0 * t)[:, None], rate=1000.0)
    law = PD(1.0, 0.01)
    ours = simulate(model, theta, law, path, step=2.5e-4, smooth="stick")
    fast = (np.abs(ours.dq[:, 0]) > 0.2) & (t > 0.1)
    dry = (ours.tau - 2e-5 * ours.ddq)[fast, 0] * np.sign(ours.dq[fast, 0])
    assert np.abs(dry - 0.2).max() < 1e-9
    wide = simulate(model, theta, law, path, step=2.5e-4)
    assert np.mean((wide.tau - 2e-5 * wide.ddq)[fast, 0] * np.sign(wide.dq[fast, 0])) < 0.15
    again = simulate(model, theta, lambda now, q, dq, qr, dqr, ddqr: 1.0 * (qr - q) + 0.01 * (dqr - dq), path,
                     step=2.5e-4, smooth="stick")
    assert np.abs(again.q - ours.q).max() < 1e-12
    heavy, known = mass(1.0, dry=5.0, sign=Sign())
    one, two = (simulate(heavy, known, PD(400.0, 40.0), path, step=2.5e-4, smooth=how).q for how in ("stick", None))
    assert np.abs(one - two).max() < 2e-3
    with refused(ModelError, "unknown-sign", "stick", "none", "soft"):
        simulate(model, theta, law, path, smooth="soft")


def test_sticking_joints_of_an_arm_agree_with_narrow_signs() -> None:
    model, theta = arm(3, seed=5)
    dry = Model(model.robot, (RigidBodies(), RotorInertia(), Coulomb()))
    known = dict(zip(model.parameters.names, theta, strict=True)) | {"Fc1": 0.5, "Fc2": 0.4, "Fc3": 0.2}
    values = dry.parameters.vector(known)
    path = wave(3, 1.0)
    inertia = joint_inertia(dry, values, path.q)
    law = PD(900.0 * inertia, 60.0 * inertia)
    ours = simulate(dry, values, law, path, smooth="stick")
    fine = simulate(dry, values, law, path, step=2e-5, smooth=1e-4)
    assert np.abs(ours.q - fine.q).max() < 2e-4 * np.abs(fine.q).max()
