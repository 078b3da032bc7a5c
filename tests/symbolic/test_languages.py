"""Programs as text: C compiled, Python run, Julia read back, CasADi and SymPy where installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import (
    EVERY_FUNCTION,
    STRICT,
    close,
    compiled_function,
    compiled_self_test,
    every_term,
    plain,
    some_values,
    stribeck,
)
from refusals import refused
from robots import random_robot

from dynid.dynamics import inverse_dynamics
from dynid.errors import ModelError, NotPossibleError
from dynid.model import Model, RigidBodies
from dynid.robot import Robot, builtin_names
from dynid.symbolic import WHAT, Program, generate
from dynid.symbolic.languages.text import identifier

ROOT = Path(__file__).parents[2]


def everything(name: str, mode: str = "base", terms=plain) -> Program:
    model = terms(Robot.builtin(name))
    return generate(model, EVERY_FUNCTION, parameters=mode, values=some_values(model, np.random.default_rng(0)))


@pytest.mark.parametrize("name", ["arm3r", "puma560", "barrett-wam"])
def test_c_compiles_without_a_warning_and_is_right(tmp_path, name):
    assert compiled_self_test(everything(name), tmp_path) < 1e-12


# One of each kind of chain is quick: two joints, six turning joints, one that slides.
@pytest.mark.parametrize("name", [name if name in ("scara2", "puma560", "emps") else pytest.param(
    name, marks=pytest.mark.slow) for name in builtin_names() if Robot.builtin(name).followers is None])
def test_c_of_every_builtin_robot_in_double_and_float(tmp_path, name):
    model = plain(Robot.builtin(name))
    program = generate(model, ["inverse_dynamics", "gravity", "coriolis", "inertia"],
                       values=some_values(model, np.random.default_rng(0)))
    for real, bar in (("double", 1e-12), ("float", 1e-6)):
        assert compiled_self_test(program, tmp_path, real) < bar


@pytest.mark.parametrize(("real", "batch", "bar"), [("float", 1, 1e-6), ("double", 4, 1e-12), ("double", 8, 1e-12),
                                                    ("float", 8, 1e-6)])
def test_c_in_float_and_several_samples_at_a_time(tmp_path, real, batch, bar):
    program = generate(every_term(Robot.builtin("arm3r")), ["inverse_dynamics", "regressor", "inertia", "friction"],
                       parameters="full", values=some_values(every_term(Robot.builtin("arm3r")),
                                                             np.random.default_rng(0)))
    assert compiled_self_test(program, tmp_path, real, batch) < bar


@pytest.mark.parametrize("terms", [every_term, stribeck])
def test_c_of_every_term(tmp_path, terms):
    assert compiled_self_test(everything("scara2", "fixed", terms), tmp_path) < 1e-12


@pytest.fixture(scope="module")
def gravity(tmp_path_factory):
    """Gravity torques of an arm, as a program and compiled."""
    program = generate(Robot.builtin("kuka-lwr4"), ["gravity"], parameters="fixed")
    return program, compiled_function(program, tmp_path_factory.mktemp("gravity"), "gravity")


@pytest.mark.parametrize("size", [1.0, 99.0, 9.9e4, 1e6, np.inf])
def test_c_at_large_angles(gravity, size):
    """Sines are taken two at a time up to 1e5 rad, and one by one beyond."""
    program, compiled = gravity
    q = np.array([0.0, 0.3, -0.2, 0.9, -1.0, 0.7, 0.1]) * min(size, 1e9)
    close(compiled(q), program("gravity", q=q))
    q[5] = size
    assert np.all(np.isfinite(compiled(q))) == np.isfinite(size)


def test_c_prepares_numbers_from_all_parameters():
    """The lines of `prepare`, read back, are the matrix."""
    program = everything("arm3r", "full")
    body = re.search(r"arm3r_prepare.*?\n}", program.c(), re.DOTALL)
    assert body is not None
    theta = np.random.default_rng(0).normal(size=len(program.plan.model.parameters))
    found = [eval(line, {"theta": theta}) for line in re.findall(r"p\[\d+\] = (.*);", body.group())]
    np.testing.assert_allclose(found, program.matrix @ theta, rtol=1e-13)


@pytest.mark.parametrize("plainly", [False, True])
def test_python_runs_by_itself(plainly):
    program = everything("puma560", "full")
    names: dict = {}
    exec(program.python(plain=plainly), names)
    model, rng = program.plan.model, np.random.default_rng(4)
    theta = some_values(model, rng)
    q, dq, ddq = rng.normal(size=(3, 6))
    found = names["inverse_dynamics"](q, dq, ddq, names["prepare"](theta))
    close(np.array(found).reshape(-1), model.inverse_dynamics(theta, q, dq, ddq))


def test_python_with_numpy_takes_many_samples():
    program = everything("arm3r", "fixed")
    q, dq, ddq = np.random.default_rng(5).normal(size=(3, 50, 3))
    many = program("inverse_dynamics", q=q, dq=dq, ddq=ddq)
    one = [program("inverse_dynamics", q=q[s], dq=dq[s], ddq=ddq[s]) for s in range(50)]
    np.testing.assert_array_equal(many, one)


def replayed_julia(text: str, function: str, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """A Julia function's lines read as arithmetic: indices from one, `^` and `ifelse` as there."""
    body = re.search(rf"function {function}\([^)]*\)\n(.*?)\nend", text, re.DOTALL)
    assert body is not None
    names = {"sin": np.sin, "cos": np.cos, "tanh": np.tanh, "atan": np.arctan, "abs": abs, "sign": np.sign,
             "exp": np.exp, "sqrt": np.sqrt, "max": max, "min": min, "Float64": float,
             "ifelse": lambda c, x, y: x if c else y,
             **{one: np.concatenate([[np.nan], values]) for one, values in inputs.items()}}
    for line in body.group(1).splitlines():
        left, right = (line.strip().removeprefix("return ").split(" = ", 1) if " = " in line
                       else ("found", line.strip().removeprefix("return ")))
        names[left] = eval(right.replace("^", "**"), names)
    return np.array(names["found"])


@pytest.mark.parametrize("terms", [plain, every_term, stribeck])
def test_julia_means_the_same(terms):
    program = everything("arm3r", "base", terms)
    model, rng = program.plan.model, np.random.default_rng(6)
    theta = some_values(model, rng)
    q, dq, ddq = rng.normal(size=(3, 3))
    found = replayed_julia(program.julia(), "inverse_dynamics",
                           {"q": q, "dq": dq, "ddq": ddq, "p": program.numbers_of(theta)})
    close(found, model.inverse_dynamics(theta, q, dq, ddq))


@pytest.mark.skipif(find_spec("casadi") is None, reason="CasADi is not installed")
def test_casadi_gives_the_same():
    program = everything("kuka-lwr4")
    functions, model, rng = program.casadi(), program.plan.model, np.random.default_rng(7)
    theta = some_values(model, rng)
    q, dq, ddq = rng.normal(size=(3, 7))
    p = program.numbers_of(theta)
    close(np.array(functions["inverse_dynamics"](q, dq, ddq, p)).ravel(), model.inverse_dynamics(theta, q, dq, ddq))
    close(np.array(functions["inertia"](q, p)), model.inertia_matrix(theta, q))


@pytest.mark.skipif(find_spec("sympy") is None, reason="SymPy is not installed")
def test_sympy_gives_the_same():
    program = generate(Robot.builtin("arm3r"), ["inverse_dynamics"])
    tau = program.sympy()["inverse_dynamics"]["tau"]
    model, rng = program.plan.model, np.random.default_rng(8)
    theta = some_values(model, rng)
    values = {"q": rng.normal(size=3), "dq": rng.normal(size=3), "ddq": rng.normal(size=3),
              "p": program.numbers_of(theta)}
    by_name = {symbol: values[re.sub(r"\d", "", symbol.name)][int(re.sub(r"\D", "", symbol.name))]
               for symbol in tau.free_symbols}
    found = np.array(tau.subs(by_name).evalf(), dtype=float).ravel()
    close(found, model.inverse_dynamics(theta, values["q"], values["dq"], values["ddq"]))


def test_latex_is_in_full_for_small_robots_and_balanced():
    small = generate(Robot.builtin("scara2"), ["inverse_dynamics"]).latex()
    large = generate(Robot.builtin("kuka-lwr4"), ["gravity"]).latex()
    assert "x_{1}" not in small and r"\ddot q_{1}" in small and "x_{1} &=" in large
    for text in (small, large):
        assert text.count("{") == text.count("}") and text.count(r"\left") == text.count(r"\right")


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2 ** 31))
def test_c_of_random_trees(tmp_path_factory, seed):
    rng = np.random.default_rng(seed)
    model = every_term(random_robot(rng, 4))
    program = generate(model, ["inverse_dynamics", "inertia", "coriolis_matrix"], values=some_values(model, rng))
    assert compiled_self_test(program, tmp_path_factory.mktemp("tree")) < 1e-11


@pytest.mark.parametrize("branch", [0.0, 0.5])
def test_fifty_joints(branch):
    """In one chain too: no rounding that grows with every body, and no recursion."""
    robot = random_robot(np.random.default_rng(0), 50, branch=branch)
    program = generate(robot, ["inverse_dynamics"], parameters="fixed")
    q, dq, ddq = np.random.default_rng(1).normal(size=(3, 4, 50))
    close(program("inverse_dynamics", q=q, dq=dq, ddq=ddq), inverse_dynamics(robot, robot.inertias, q, dq, ddq))


@pytest.mark.parametrize("tilt", [0.1, 1e-3, 1e-4, 1e-6])
def test_axes_that_are_nearly_parallel(tilt):
    """As calibrated arms have them: their common perpendicular is far away."""
    text = '<robot name="calibrated"><link name="l0"/>'
    for k, rpy in enumerate(["0 0 0", "1.2 0 0", f"0 {tilt} 0", f"{tilt} 0 0.4", "0 1.1 0"]):
        text += (f'<link name="l{k + 1}"><inertial><origin xyz="0.1 0.05 0.02"/><mass value="2"/><inertia ixx="0.02" '
                 'ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.03"/></inertial></link>'
                 f'<joint name="j{k + 1}" type="continuous"><parent link="l{k}"/><child link="l{k + 1}"/><axis '
                 f'xyz="0 0 1"/><origin xyz="0.3 0.1 0.05" rpy="{rpy}"/></joint>')
    robot = Robot.from_urdf(text + "</robot>")
    program = generate(robot, ["inverse_dynamics"], parameters="fixed")
    q, dq, ddq = np.random.default_rng(1).normal(size=(3, 10, 5))
    close(program("inverse_dynamics", q=q, dq=dq, ddq=ddq), inverse_dynamics(robot, robot.inertias, q, dq, ddq))


@pytest.mark.parametrize(("name", "is_called"), [("panda arm #2", "panda_arm_2"), ("7dof", "robot_7dof"),
                                                 ("double", "robot_double"), ("größe", "gr_e"), ("end", "robot_end")])
def test_names_that_are_no_identifiers(name, is_called):
    assert identifier(name) == is_called
    program = generate(Robot.builtin("scara2"), ["gravity"], name=name)
    assert f"void {is_called}_gravity(" in program.c()


def test_what_cannot_be_generated_is_a_sentence():
    robot = Robot.builtin("scara2")
    for call, words in (
            (lambda: generate(robot, ["torque"]), (ModelError, "unknown-function", "'torque'")),
            (lambda: generate(robot, ["jacobian"]), (ModelError, "no-frame", "'jacobian'")),
            (lambda: generate(robot, ["gravity"], parameters="some"), (ModelError, "bad-model", "'some'")),
            (lambda: generate(robot, ["gravity"], values={"XX9": 1.0}), (ModelError, "bad-model", "'XX9'")),
            (lambda: generate(robot, ["gravity"]).c("half"), (ModelError, "bad-model", "'half'")),
            (lambda: generate(robot, ["gravity"]).c(batch=3), (ModelError, "wrong-batch", "not 3")),
            (lambda: generate(robot, ["gravity"], name="***").c(), (ModelError, "bad-model", "'***'")),
            (lambda: generate(robot, ["inertia"], parameters="fixed")("inertia", q=[0.0]),
             (ModelError, "bad-model", "q of inertia", "(1,)")),
            (lambda: generate(random_robot(np.random.default_rng(0), 61), ["gravity"]),
             (NotPossibleError, "not-possible", "'random'", "61", "60"))):
        with refused(*words):
            call()
    bare = Robot.from_dh([[0.0, 1.0, 0.0, 0.0]])
    with refused(ModelError, "no-value"):
        generate(bare, ["gravity"], parameters="fixed")
    assert len(generate(bare, ["inverse_dynamics"]).numbers) > 0
    if find_spec("casadi") is None:
        with pytest.raises(NotPossibleError, match="casadi"):
            generate(robot, ["gravity"]).casadi()


def test_a_term_of_ones_own_becomes_code():
    """A term that only says what its entries are, with NumPy, is written down as it is."""

    class Cable:
        kind = "my-cable"

        def parameters(self, robot):
            from dynid.model import Parameter
            return (Parameter("Kc1", "N m", 0, "joint1"), Parameter("Ks1", "N m", 0, "joint1"))

        def entries(self, robot, q, dq, ddq):
            yield 0, 0, np.where(q[:, 0] > 0.3, np.cos(q[:, 0]) ** 3, np.exp(-np.abs(dq[:, 1])))
            yield 0, 1, np.minimum(np.sqrt(1.0 + q[:, 1] ** 2), 1.2) / (2.0 + np.sin(q[:, 0]))

    model = Model(Robot.builtin("scara2"), (RigidBodies(), Cable()))
    program, rng = generate(model, ["inverse_dynamics"]), np.random.default_rng(9)
    theta = rng.uniform(0.5, 1.5, len(model.parameters))
    q, dq, ddq = rng.normal(size=(3, 40, 2))
    close(program("inverse_dynamics", q=q, dq=dq, ddq=ddq, p=np.tile(program.numbers_of(theta), (40, 1))),
          model.inverse_dynamics(theta, q, dq, ddq))


def test_the_page_on_code_compiles(tmp_path):
    """The main.c of docs/code.md, with the header that the page asks for."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    (text,) = re.findall(r"```c\n(.*?)```", (ROOT / "docs" / "code.md").read_text(), flags=re.DOTALL)
    (tmp_path / "main.c").write_text(text)
    program = generate(plain(Robot.builtin("arm3r")), WHAT, parameters="fixed",
                       values=some_values(plain(Robot.builtin("arm3r")), np.random.default_rng(0)))
    (tmp_path / "arm3r.h").write_text(program.c())
    subprocess.run([compiler, "-std=c99", "-O2", *STRICT, "main.c", "-o", "main", "-lm"], cwd=tmp_path, check=True)
    assert subprocess.run([str(tmp_path / "main")], check=False).returncode == 0
