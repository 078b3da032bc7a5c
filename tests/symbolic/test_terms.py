"""Every registered term as code, against the model's own kernels."""

from __future__ import annotations

import numpy as np
import pytest
from programs import close, compiled_call, compiled_self_test, some_values
from refusals import refused
from robots import gripper, random_robot

from dynid.errors import ModelError
from dynid.model import Dahl, Delay, Hysteresis, LoadFriction, LuGreFriction, Model, RigidBodies, RotorInertia, Viscous
from dynid.model.registry import KINDS
from dynid.model.sign import Sign
from dynid.model.term import MotionSegment
from dynid.model.term_capabilities import capabilities
from dynid.robot import Robot
from dynid.symbolic import generate

ROBOT = Robot.builtin("arm3r")
NEEDED = {"payload": {"frame": ROBOT.body_names[-1]}, "spring": {"joint": 2, "rest": 0.3},
          "polynomial-spring": {"joint": 2, "degree": 4, "rest": 0.2},
          "gas-spring": {"joint": 1, "base": 0.5, "link": 0.3, "zero": 0.4},
          "counterbalance": {"joint": 1, "base": 0.2, "link": 0.5, "slack": 0.1},
          "motor-side": {"coupling": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.4], [0.0, -0.3, 1.0]]},
          "coupled-wrist": {"joints": (1, 3)}, "lugre": {"ratio": 1.6}, "ripple": {"orders": (3.0, 7.5)}}
MORE = {"curve": [{"shape": "spline", "asymmetric": True, "sign": Sign("tanh", 0.4)}],
        "load": [{"separate": True, "joints": (2, 3), "sign": Sign("arctan", 0.5)}],
        "coupled-wrist": [{"joints": (1, 3), "ratio": -0.5}],
        "exponential-stribeck": [{"vs": 0.4, "power": 1.3}]}
CASES = [(kind, options) for kind in KINDS for options in (NEEDED.get(kind, {}), *MORE.get(kind, []))]


def model_with(kind: str, options: dict) -> Model:
    term = KINDS[kind](**options)
    others = [one for one in (RigidBodies(), RotorInertia()) if one.kind != kind]
    return Model(ROBOT, (*others, term))


@pytest.mark.parametrize(("kind", "options"), CASES, ids=[f"{kind}{k}" for k, (kind, _) in enumerate(CASES)])
def test_every_registered_term_becomes_code(tmp_path, kind, options):
    rng = np.random.default_rng(0)
    model = model_with(kind, options)
    term = next(one for one in model.terms if one.kind == kind)
    theta = some_values(model, rng)
    q, dq, ddq = rng.normal(size=(3, 30, 3)) * 1.5
    own = capabilities(term)
    if own.history is not None and own.step is None and list(term.entries(ROBOT, q, dq, ddq)):
        with refused(ModelError, "memory-without-step", f"'{kind}'"):
            generate(model, ["friction"])
        return
    program = generate(model, ["inverse_dynamics", "regressor", "inertia", "coriolis", "gravity", "friction"],
                       values=theta)
    memory = rng.uniform(-1.0, 1.0, (30, program.plan.remembers))
    expected = model.inverse_dynamics(theta, q, dq, ddq)
    more = {"memory": memory} if program.plan.remembers else {}
    if more:
        expected = model.regressor(q, dq, ddq, memory=memory) @ theta
    p = np.tile(program.numbers_of(theta), (30, 1))
    torque = program("inverse_dynamics", q=q, dq=dq, ddq=ddq, p=p, **more)
    close(torque, expected)
    close(np.einsum("sjp,sp->sj", program("regressor", q=q, dq=dq, ddq=ddq, **more), p), torque)
    loaded = {"ddq": ddq} if program.plan.loaded else {}
    close(np.einsum("sij,sj->si", program("inertia", q=q, p=p), ddq) + program("coriolis", q=q, dq=dq, p=p)
          + program("gravity", q=q, p=p) + program("friction", q=q, dq=dq, p=p, **loaded, **more), torque)
    close(program("inertia", q=q, p=p), model.inertia_matrix(theta, q))
    first = [x[0] for x in (q, dq, ddq, *more.values(), p)]
    close(compiled_call(program, tmp_path, "inverse_dynamics", *first), expected[0])
    folded = generate(model, ["inverse_dynamics", "friction"], parameters="fixed", values=theta)
    close(folded("inverse_dynamics", q=q, dq=dq, ddq=ddq, **more), expected)
    assert compiled_self_test(folded, tmp_path) < 1e-12 and compiled_self_test(folded, tmp_path, "float") < 1e-6


@pytest.mark.parametrize("term", [Dahl(reach=0.05),
                                  LuGreFriction(reach=(0.02, 0.07), ratio=1.7, vs=0.4, joints=(1, 3)),
                                  Hysteresis(radii=(0.02, 0.3), unit="rad", joints=(1, 3))])
def test_memory_goes_on_from_sample_to_sample(term, tmp_path):
    """`step` along a motion is what the model remembers of it, standing still included."""
    model = Model(ROBOT, (RigidBodies(), term))
    t = np.arange(400) / 100.0
    q = np.column_stack([np.sin(2.0 * t), 0.3 * np.cos(3.0 * t), np.sin(t)])
    q[100:120] = q[100]
    dq = np.gradient(q, t, axis=0)
    expected = model.memory(MotionSegment(t, q, dq, np.zeros_like(q)))
    program = generate(model, ["inverse_dynamics"])
    memory = np.zeros(program.plan.remembers)
    for k in range(1, len(t)):
        memory = program("step", q_before=q[k - 1], dq_before=dq[k - 1], memory_before=memory, q=q[k], dq=dq[k])
        assert np.abs(memory - expected[k]).max() < 1e-12 * max(np.abs(expected).max(), 1.0)
    found = compiled_call(program, tmp_path, "step", q[6], dq[6], expected[6], q[7], dq[7])
    close(found, expected[7])


def test_two_terms_that_remember_have_their_own_memory():
    model = Model(ROBOT, (RigidBodies(), Dahl(), Viscous(), LuGreFriction(ratio=1.5)))
    program, rng = generate(model, ["inverse_dynamics"]), np.random.default_rng(1)
    theta, memory = some_values(model, rng), rng.normal(size=(10, 9))
    q, dq, ddq = rng.normal(size=(3, 10, 3))
    p = np.tile(program.numbers_of(theta), (10, 1))
    close(program("inverse_dynamics", q=q, dq=dq, ddq=ddq, memory=memory, p=p),
          model.regressor(q, dq, ddq, memory=memory) @ theta)
    assert "step" in program.ops and r"z^-_{8}" in program.latex()


@pytest.mark.parametrize("seed", range(4))
def test_friction_from_load_of_random_trees_and_rotors(seed):
    """The link's torque is that of the bodies alone: a rotor that stands beside a link's inertia does not count."""
    rng = np.random.default_rng(seed)
    model = Model(random_robot(rng, 4), (RigidBodies(), RotorInertia(), LoadFriction(separate=bool(seed % 2))))
    theta = some_values(model, rng)
    told = model.with_estimate(theta * rng.uniform(0.8, 1.2, len(theta)))
    q, dq, ddq = rng.normal(size=(3, 10, 4))
    for one in (model, told):
        for mode in ("fixed", "full"):
            program = generate(one, ["inverse_dynamics"], parameters=mode, values=theta)
            p = {} if mode == "fixed" else {"p": np.tile(program.numbers_of(theta), (10, 1))}
            close(program("inverse_dynamics", q=q, dq=dq, ddq=ddq, **p), one.inverse_dynamics(theta, q, dq, ddq))


@pytest.mark.parametrize("seed", range(6))
def test_accelerations_under_friction_from_load(seed, tmp_path):
    """Torques of the accelerations found are those given, signs of the bodies' torques found on the way."""
    rng = np.random.default_rng(seed)
    robot = Robot.builtin("kuka-lwr4") if seed == 0 else random_robot(rng, 4)
    model = Model(robot, (RigidBodies(), RotorInertia(), Viscous(), LoadFriction(separate=bool(seed % 2))))
    theta = some_values(model, rng)
    theta[[one.symbol in ("Fl", "Flm", "Flg") for one in model.parameters]] *= 0.9
    mode = ("fixed", "full")[seed % 2]
    program = generate(model, ["forward_dynamics"], parameters=mode, values=theta)
    q, dq, tau = rng.normal(size=(3, 200, robot.dof))
    tau = 20.0 * tau + model.inverse_dynamics(theta, q, dq, 0.0 * q)
    p = {} if mode == "fixed" else {"p": np.tile(program.numbers_of(theta), (200, 1))}
    ddq = program("forward_dynamics", q=q, dq=dq, tau=tau, **p)
    close(model.inverse_dynamics(theta, q, dq, ddq), tau, 1e-11)
    close(ddq, model.forward_dynamics(theta, q, dq, tau), 1e-8)
    assert compiled_self_test(program, tmp_path) < 1e-11


def test_friction_from_load_where_joints_follow_others():
    robot, rng = Robot.from_urdf(gripper()), np.random.default_rng(3)
    model = Model(robot, (RigidBodies(), LoadFriction()))
    theta = np.array([0.2 if one.symbol == "Fl" else one.nominal or 0.0 for one in model.parameters])
    q, dq, ddq = rng.normal(size=(3, 10, robot.dof))
    program = generate(model, ["inverse_dynamics"], parameters="fixed", values=theta)
    close(program("inverse_dynamics", q=q, dq=dq, ddq=ddq), model.inverse_dynamics(theta, q, dq, ddq))


def test_what_a_term_does_not_allow_is_a_sentence():
    with refused(ModelError, "no-memory"):
        generate(ROBOT, ["step"])

    class Drift(Delay):
        kind = "my-drift"

        def entries(self, robot, q, dq, ddq):
            yield 0, 0, q[:, 0]

    with refused(ModelError, "memory-without-step", "'my-drift'"):
        generate(Model(ROBOT, (RigidBodies(), Drift())), ["friction"])
    text = generate(Model(ROBOT, (RigidBodies(), Delay())), ["inverse_dynamics"]).c()
    assert "belongs to a log and not to the robot: delay" in text
