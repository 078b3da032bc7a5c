"""Closed chains as code: against dynid's kernels, which MuJoCo checks elsewhere, and against closed forms by hand."""

from __future__ import annotations

import numpy as np
import pytest
from programs import close, compiled_call, compiled_self_test
from refusals import refused

from dynid import dynamics
from dynid.dynamics.following import closed_chain, closes, random_postures, tree_motion
from dynid.errors import ModelError, NotPossibleError
from dynid.model import Model, Payload, RigidBodies, Viscous
from dynid.regression import base_parameters
from dynid.robot import Body, Frame, Joint, Robot
from dynid.robot.loops import Closure, closed
from dynid.robot.pose import from_xyz_rpy, translation
from dynid.symbolic import Program, generate, numbers

WHAT = ["inverse_dynamics", "regressor", "inertia", "coriolis", "coriolis_matrix", "gravity", "friction",
        "forward_dynamics", "momentum", "energy", "following"]
CHAINS = [("delta", "plate"), ("four-bar", "rocker-bar"), ("palletiser", "flange")]
BAR = [0.01, 0.0, 0.0, 0.02, 0.0, 0.02, 0.1, 0.03, 0.0, 0.7]


def motions(robot: Robot, count: int = 12, reach: float = 0.6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    begin = closed_chain(robot).begin[:robot.dof]
    q = begin + reach * (random_postures(robot, 3 * count, rng) - begin)
    q = q[closes(robot, q)][:count]
    return q, *rng.normal(size=(2, *q.shape))


def following_joints(robot: Robot, q: np.ndarray) -> np.ndarray:
    followers = robot.followers
    assert followers is not None
    return tree_motion(robot, q).q[:, [followers.tree.joint_index(name) for name in followers.following]]


def against_kernels(program: Program, model: Model, theta: np.ndarray, reach: float = 0.6) -> None:
    """Every function against the model's kernels and against what ties them together."""
    q, dq, ddq = motions(model.robot, reach=reach)
    where = following_joints(model.robot, q)
    given = {} if program.plan.solved else {"q_follow": where}
    p = np.tile(program.numbers_of(theta), (len(q), 1))
    torque = model.inverse_dynamics(theta, q, dq, ddq)
    close(program("inverse_dynamics", q=q, dq=dq, ddq=ddq, p=p, **given), torque)
    close(np.einsum("sjp,sp->sj", program("regressor", q=q, dq=dq, ddq=ddq, **given), p), torque)
    mass = program("inertia", q=q, p=p, **given)
    close(mass, model.inertia_matrix(theta, q))
    weight, fast = program("gravity", q=q, p=p, **given), program("coriolis", q=q, dq=dq, p=p, **given)
    rest = program("friction", q=q, dq=dq, p=p, **given)
    close(np.einsum("sij,sj->si", mass, ddq) + weight + fast + rest, torque)
    close(program("forward_dynamics", q=q, dq=dq, tau=torque, p=p, **given), ddq, 1e-10)
    matrix = program("coriolis_matrix", q=q, dq=dq, p=p, **given)
    close(np.einsum("sij,sj->si", matrix, dq), fast)
    momentum, beta = program("momentum", q=q, dq=dq, p=p, **given)
    close(momentum, np.einsum("sij,sj->si", mass, dq))
    close(beta + weight, np.einsum("sji,sj->si", matrix, dq))
    close(program("energy", q=q, dq=dq, p=p, **given)[:, 0], 0.5 * np.einsum("si,sij,sj->s", dq, mass, dq))
    h = 1e-5  # dM/dt = C + C'
    slope = (model.inertia_matrix(theta, q + h * dq) - model.inertia_matrix(theta, q - h * dq)) / (2.0 * h)
    assert np.abs(slope - matrix - np.swapaxes(matrix, 1, 2)).max() < 1e-7 * max(np.abs(slope).max(), 1.0)
    near = {} if program.plan.solved else {"q_follow": where + 1e-7}
    np.testing.assert_allclose(program("following", q=q, **near), where, atol=1e-12)


@pytest.mark.parametrize(("name", "load"), [*CHAINS[:2], pytest.param(*CHAINS[2], marks=pytest.mark.slow)])
@pytest.mark.parametrize("following", ["given", "solved"])
def test_builtin_chains_are_what_the_kernels_give(name, load, following):
    robot = Robot.builtin(name)
    model = Model(robot, (RigidBodies(), Viscous(), Payload(load, nominal=BAR)))
    theta = np.array([0.3 if one.nominal is None else one.nominal for one in model.parameters])
    program = generate(model, WHAT, following=following)
    assert program.plan.solved == (following == "solved")
    against_kernels(program, model, theta)
    assert len(program.numbers) == len(base_parameters(model))


@pytest.mark.parametrize(("name", "load"), CHAINS)
def test_kinematics_of_bodies_that_follow(name, load):
    robot = Robot.builtin(name)
    program = generate(robot, ["kinematics", "jacobian"], frame=load, parameters="fixed")
    for q in motions(robot, 3)[0]:
        rotation, place = program("kinematics", q=q)
        expected = _pose(robot, load, q)
        np.testing.assert_allclose(rotation, expected[:3, :3], atol=1e-12)
        np.testing.assert_allclose(place, expected[:3, 3], atol=1e-12)
        steps = 1e-6 * np.eye(robot.dof)
        slopes = [(_pose(robot, load, q + step)[:3, 3] - _pose(robot, load, q - step)[:3, 3]) / 2e-6 for step in steps]
        np.testing.assert_allclose(program("jacobian", q=q)[:3], np.array(slopes).T, atol=1e-8)


def _pose(robot: Robot, link: str, q: np.ndarray) -> np.ndarray:
    followers = robot.followers
    assert followers is not None
    frame = followers.tree.frame(link)
    return dynamics.forward_kinematics(followers.tree, tree_motion(robot, q[None]).q[0])[frame.body] @ frame.pose


@pytest.mark.parametrize(("name", "load"), [
    CHAINS[1], *(pytest.param(*chain, marks=pytest.mark.slow) for chain in (CHAINS[0], CHAINS[2]))])
def test_compiled_in_double_and_float(tmp_path, name, load):
    robot = Robot.builtin(name)
    program = generate(robot, ["inverse_dynamics", "inertia", "gravity", "following"], parameters="fixed")
    (q, *_), (dq, *_), (ddq, *_) = motions(robot, 2)
    close(compiled_call(program, tmp_path, "inverse_dynamics", q, dq, ddq),
          dynamics.inverse_dynamics(robot, None, q[None], dq[None], ddq[None])[0])
    assert compiled_self_test(program, tmp_path) < 1e-12
    assert compiled_self_test(program, tmp_path, batch=4) < 1e-12
    given = generate(robot, ["inverse_dynamics", "online"], following="given")
    assert compiled_self_test(given, tmp_path) < 1e-12
    assert "in closed form, on the branch" in program.c() and "are the input q_follow" in given.c()


def test_the_languages_know_the_angle_of_a_point(tmp_path):
    """`following` of the four-bar ends in atan2, in every language."""
    program = generate(Robot.builtin("four-bar"), ["following"], parameters="fixed")
    q = np.array([0.7])
    expected = program("following", q=q)
    space: dict = {}
    exec(program.python(plain=True), space)
    close(np.array(space["following"](q)), expected)
    close(compiled_call(program, tmp_path, "following", q), expected)
    casadi, sympy = pytest.importorskip("casadi"), pytest.importorskip("sympy")
    assert casadi is not None
    close(np.array(program.casadi()["following"](q)).ravel(), expected)
    found = program.sympy()["following"]["found"].subs(sympy.Symbol("q0", real=True), 0.7)
    close(np.array(found, dtype=float).ravel(), expected)
    assert "atan(" in program.julia() and r"\operatorname{atan2}" in program.latex()


def test_a_crank_may_turn_fully():
    robot = Robot.builtin("four-bar")
    q = np.linspace(-3.0, 3.5, 200)[:, None]
    found = generate(robot, ["following"], parameters="fixed")("following", q=q)
    apart = found - following_joints(robot, q)
    np.testing.assert_allclose(apart, 2.0 * np.pi * np.round(apart / (2.0 * np.pi)), atol=1e-12)


def _bar(name: str, kind: str, parent: int, xyz: tuple[float, float, float], rpy=(0.0, 0.0, 0.0)) -> tuple[Joint, Body]:
    return Joint(name, kind, parent, from_xyz_rpy(xyz, rpy), np.eye(4)), Body(f"{name}-link", np.array(BAR))


def _slider_crank(driven: str) -> Robot:
    """Crank 0.2, rod 0.5, a slider along x."""
    parts = [_bar("crank", "revolute", -1, (0, 0, 0)), _bar("rod", "revolute", 0, (0.2, 0, 0)),
             _bar("slider", "prismatic", -1, (0, 0, 0), (0, np.pi / 2, 0))]
    tree = Robot("slider-crank", tuple(j for j, _ in parts), tuple(b for _, b in parts))
    closure = Closure("pin", "point", Frame("end", 1, translation(0.5, 0, 0)), Frame("pin", 2, np.eye(4)))
    following = [name for name in ("crank", "rod", "slider") if name != driven]
    return closed(tree, [closure], following, {"crank": 1.2, "rod": -1.58, "slider": 0.536})


@pytest.mark.parametrize("driven", ["crank", "slider"])
def test_slider_crank_by_hand(driven):
    robot = _slider_crank(driven)
    model = Model(robot, (RigidBodies(),))
    program = generate(model, WHAT, following="solved")
    if driven == "crank":
        crank = np.linspace(0.2, 1.2, 7)
        slider = 0.2 * np.cos(crank) + np.sqrt(0.25 - 0.04 * np.sin(crank) ** 2)
        rod = -np.arcsin(0.4 * np.sin(crank)) - crank
        np.testing.assert_allclose(program("following", q=crank[:, None]), np.column_stack([rod, slider]), atol=1e-13)
    else:
        slider = np.linspace(0.48, 0.6, 7)
        crank = np.arccos((slider ** 2 + 0.04 - 0.25) / (0.4 * slider))
        rod = -np.arcsin(0.4 * np.sin(crank)) - crank
        np.testing.assert_allclose(program("following", q=slider[:, None]), np.column_stack([crank, rod]), atol=1e-12)
    theta = model.parameters.nominal
    assert theta is not None
    against_kernels(program, model, theta, reach=0.1)  # not near the dead centre, for the sake of differences


def test_a_rod_without_mass():
    """Crank and rocker with a rod between them, at 0.5 m from each other and from end to end."""
    parts = [_bar("crank", "revolute", -1, (0, 0, 0)), _bar("rocker", "revolute", -1, (0.5, 0, 0))]
    tree = Robot("rod", tuple(j for j, _ in parts), tuple(b for _, b in parts))
    closure = Closure("rod", "rod", Frame("a", 0, translation(0.2, 0, 0)), Frame("b", 1, translation(0.4, 0, 0)), 0.5)
    model = Model(closed(tree, [closure], ["rocker"], {"crank": 1.0, "rocker": 1.4}), (RigidBodies(),))
    theta = model.parameters.nominal
    assert theta is not None
    for following in ("given", "solved"):
        against_kernels(generate(model, WHAT, following=following), model, theta)


def test_two_joints_in_a_row_follow():
    """The four-bar with its rocker driven: crank and coupler reach for its end."""
    four = Robot.builtin("four-bar")
    assert four.followers is not None and four.followers.loops is not None
    begin = dict(zip(four.followers.tree.joint_names, following_tree(four), strict=True))
    robot = closed(four.followers.tree, four.followers.loops.closures, ["crank", "coupler"], begin)
    model = Model(robot, (RigidBodies(),))
    theta = model.parameters.nominal
    assert theta is not None
    program = generate(model, WHAT, following="solved")
    q = np.array([[begin["rocker"] + 0.05]])
    np.testing.assert_allclose(program("following", q=q), following_joints(robot, q), atol=1e-12)


def following_tree(robot: Robot) -> np.ndarray:
    return tree_motion(robot, closed_chain(robot).begin[None, :robot.dof]).q[0]


@pytest.mark.parametrize("kind", ["point", "rigid"])
def test_spatial_loops_take_given_joints(kind):
    """Seven random joints in a ring: no closed form is known, so it is given, and the code still is the kernels'."""
    rng = np.random.default_rng({"point": 3, "rigid": 11}[kind])
    parts = [(Joint(f"j{i}", "revolute", i - 1, from_xyz_rpy(rng.uniform(-0.4, 0.4, 3), rng.uniform(-2.0, 2.0, 3)),
                    np.eye(4)), Body(f"b{i}", np.array(BAR))) for i in range(8)]
    tree = Robot("ring", tuple(j for j, _ in parts), tuple(b for _, b in parts))
    posture = rng.uniform(-0.5, 0.5, 8)
    end = dynamics.forward_kinematics(tree, posture)[7]
    closure = Closure("loop", kind, Frame("end", 7, np.eye(4)), Frame("hold", -1, end))
    follow = [f"j{i}" for i in (1, 2, 4, 5, 6, 7)][:closure.equations]
    robot = closed(tree, [closure], follow, {f"j{i}": x for i, x in enumerate(posture)})
    model = Model(robot, (RigidBodies(),))
    theta, begin = model.parameters.nominal, closed_chain(robot).begin[:robot.dof]
    assert theta is not None
    program = generate(model, ["inverse_dynamics", "inertia"])
    assert not program.plan.solved
    q = begin + rng.uniform(-0.05, 0.05, (20, robot.dof))
    q = q[closes(robot, q)]
    dq, ddq = rng.normal(size=(2, *q.shape))
    more = {"q_follow": following_joints(robot, q), "p": np.tile(program.numbers_of(theta), (len(q), 1))}
    close(program("inverse_dynamics", q=q, dq=dq, ddq=ddq, **more), model.inverse_dynamics(theta, q, dq, ddq), 1e-11)
    close(program("inertia", q=q, **more), model.inertia_matrix(theta, q), 1e-11)
    with refused(NotPossibleError, "no-closed-form"):
        generate(model, ["gravity"], following="solved")


def test_what_cannot_be_is_a_sentence():
    with refused(ModelError, "no-dependent-joints", "'following'"):
        generate(Robot.builtin("arm3r"), ["following"])
    with refused(ModelError, "bad-following", "'given'"):
        generate(Robot.builtin("delta"), ["gravity"], following="measured")


def _closed_at(parts: list[tuple[Joint, Body]], posture: list[float], closures, following: list[str]) -> Robot:
    tree = Robot("chain", tuple(j for j, _ in parts), tuple(b for _, b in parts))
    return closed(tree, closures(dynamics.forward_kinematics(tree, np.array(posture))), following,
                  dict(zip(tree.joint_names, posture, strict=True)))


def two_rods() -> Robot:
    """Two sliders on a rail and a plate that slides both ways, a rod from each: circles meet."""
    ahead = (0.0, np.pi / 2, 0.0)
    parts = [_bar("a", "prismatic", -1, (0, 0, 0), ahead), _bar("b", "prismatic", -1, (0, 0.1, 0), ahead),
             _bar("x", "prismatic", -1, (0, 0, 0), ahead), _bar("y", "prismatic", 2, (0, 0, 0), (-np.pi / 2, 0, 0))]

    def rods(poses: np.ndarray) -> list[Closure]:
        return [Closure(f"rod{k}", "rod", Frame("end", k, np.eye(4)), Frame("plate", 3, np.eye(4)),
                        float(np.linalg.norm(poses[k][:3, 3] - poses[3][:3, 3]))) for k in (0, 1)]

    return _closed_at(parts, [0.0, 0.6, 0.3, 0.4], rods, ["x", "y"])


def five_bar() -> Robot:
    """Two driven cranks in a tilted plane on a column, two links that meet in a hinge, and a joint beyond it."""
    c, s = np.cos(0.3), np.sin(0.3)
    parts = [_bar("column", "revolute", -1, (0, 0, 0.2), (0.3, 0.2, 0)),
             _bar("left", "revolute", 0, (0, 0, 0), (np.pi / 2, 0.3, 0)),
             _bar("right", "revolute", 0, (0.3 * c, 0, -0.3 * s), (np.pi / 2, 0.3, 0)),
             _bar("left-link", "revolute", 1, (0.3, 0, 0)), _bar("right-link", "revolute", 2, (0.3, 0, 0)),
             _bar("tip", "revolute", 3, (0.35, 0, 0))]
    end = translation(0.35, 0, 0)
    return _closed_at(parts, [0.2, 2.0, 1.0, -1.15, 1.2, 0.4], lambda poses: [
        Closure("hinge", "axis", Frame("end", 3, end), Frame("hold", 4, end))], ["left-link", "right-link"])


@pytest.mark.parametrize("chain", [two_rods, five_bar])
def test_other_machines_with_a_closed_form(chain):
    model = Model(chain(), (RigidBodies(),))
    theta = model.parameters.nominal
    assert theta is not None
    for following in ("given", "solved"):
        against_kernels(generate(model, WHAT, following=following), model, theta, reach=0.2)


def test_operations_are_what_they_were():
    """Multiplications and additions of the torques and of the joints that follow, given and solved."""
    count = {}
    for name, _ in CHAINS:
        given, solved = (generate(Robot.builtin(name), ["inverse_dynamics", "following"], following=way).ops
                         for way in ("given", "solved"))
        count[name] = [given["inverse_dynamics"].total, solved["inverse_dynamics"].total, solved["following"].total]
    assert count == {"delta": [1668, 1837, 197], "four-bar": [142, 174, 47], "palletiser": [963, 1068, 145]}


def test_long_equations_have_intermediate_variables():
    """Three joints are written in full, but not where loops would make that endless."""
    text = generate(Robot.builtin("delta"), ["inverse_dynamics"], parameters="fixed").latex()
    assert "x_{1} &=" in text and len(text) < 1e5


def chain_of_mimic_joints(count: int) -> Robot:
    """A planar chain whose joints all depend on the first one."""
    links = ['<link name="l0"/>']
    for i in range(1, count + 1):
        links.append(f'<link name="l{i}"><inertial><origin xyz="0.1 0 0"/><mass value="1"/><inertia ixx="0.01" ixy="0" '
                     'ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>'
                     f'<joint name="j{i}" type="continuous"><origin xyz="0.1 0 0"/><parent link="l{i - 1}"/>'
                     f'<child link="l{i}"/><axis xyz="0 1 0"/>'
                     + ('<mimic joint="j1" multiplier="0.5"/>' if i > 1 else "") + "</joint>")
    return Robot.from_urdf(f'<robot name="chain">{"".join(links)}</robot>')


def test_code_of_many_mimic_joints_takes_little_memory(monkeypatch):
    """The regressor of the tree is computed for some samples at a time: here of 38 MB, 4 MB at once."""
    monkeypatch.setattr(numbers, "_NUMBERS_AT_ONCE", 500_000)
    robot = chain_of_mimic_joints(20)
    model = Model(robot, (RigidBodies(),))
    sizes = []
    computed = numbers.dynamics.regressor
    monkeypatch.setattr(numbers.dynamics, "regressor", lambda *given: sizes.append((y := computed(*given)).nbytes) or y)
    program = generate(model, ["inverse_dynamics"], parameters="fixed")
    assert max(sizes) <= 4e6 and sum(sizes) > 10e6
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 5, 1))
    expected = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)[:, 0]
    np.testing.assert_allclose([program("inverse_dynamics", q=a, dq=b, ddq=c)[0]
                                for a, b, c in zip(q, dq, ddq, strict=True)], expected, rtol=1e-9)


def test_code_of_too_many_mimic_joints_is_refused():
    with refused(NotPossibleError, "not-possible", "151 moving bodies"):
        generate(Model(chain_of_mimic_joints(151), (RigidBodies(),)), ["inverse_dynamics"])
