"""Generated JAX modules: values, many states, and gradients against CasADi and differences. JAX is imported in a
fixture, so that collecting tests does not pay for it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from programs import close, every_term, plain, some_values

from dynid.model import Dahl, Model, RigidBodies
from dynid.robot import Robot
from dynid.symbolic import Program, generate

pytestmark = pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed")


@pytest.fixture(scope="module")
def jax():
    import jax
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_disable_most_optimizations", True)  # compilation is what takes time here
    yield jax
    jax.config.update("jax_disable_most_optimizations", False)
    jax.config.update("jax_enable_x64", before)


def made(program: Program) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(program.jax(), names)
    return names


def arm(name: str) -> tuple[Program, dict[str, Any]]:
    """A robot with all terms, numbers as an input."""
    model = every_term(Robot.builtin(name))
    program = generate(model, ["inverse_dynamics"], values=some_values(model, np.random.default_rng(0)))
    return program, made(program)


@pytest.fixture(scope="module")
def small(jax) -> tuple[Program, dict[str, Any]]:
    """Two joints with values folded in."""
    model = plain(Robot.builtin("scara2"))
    program = generate(model, ["forward_dynamics", "inertia", "regressor", "momentum"],
                       parameters="fixed", values=some_values(model, np.random.default_rng(0)))
    return program, made(program)


def test_self_tests(jax, small):
    """Functions and rollouts, in double and in float."""
    assert small[1]["self_test"]() < 1e-12
    assert small[1]["self_test"](jax.numpy.float32) < 2e-6


def test_friction_with_memory(jax):
    model = Model(Robot.builtin("scara2"), (RigidBodies(), Dahl()))
    program = generate(model, ["forward_dynamics"], values=some_values(model, np.random.default_rng(0)))
    assert made(program)["self_test"]() < 1e-12


def test_many_states_and_draws(jax):
    """Joint-major batches, `vmap`, and a set of numbers for each state give the model's torques."""
    program, module = arm("arm3r")
    model, rng = program.plan.model, np.random.default_rng(1)
    theta = np.array([some_values(model, np.random.default_rng(seed)) for seed in range(4)])
    q, dq, ddq = rng.normal(size=(3, 4, 3))
    wanted = np.array([model.inverse_dynamics(theta[i], q[i], dq[i], ddq[i]) for i in range(4)])
    p = np.array([program.numbers_of(one) for one in theta])
    torques = jax.jit(module["inverse_dynamics"])
    close(np.asarray(torques(q.T, dq.T, ddq.T, p.T)).T, wanted)
    close(np.asarray(jax.vmap(module["inverse_dynamics"])(q, dq, ddq, p)), wanted)
    single = torques(*(x.T.astype(np.float32) for x in (q, dq, ddq, p)))
    assert single.dtype == np.float32
    close(np.asarray(single, dtype=float).T, wanted, 1e-5)


def test_matrices_have_their_shape_before_the_states(jax, small):
    program, module = small
    q, dq, ddq = np.random.default_rng(2).normal(size=(3, 2, 4, 5))
    one = program("inertia", q=q[:, 1, 3])
    found = jax.jit(module["inertia"])(q)
    assert found.shape == (2, 2, 4, 5) and module["regressor"](q, dq, ddq).shape == (2, len(program.numbers), 4, 5)
    close(np.asarray(found)[:, :, 1, 3], one)
    momentum, beta = module["momentum"](q[:, 0], dq[:, 0])
    assert momentum.shape == beta.shape == (2, 5)


@pytest.mark.parametrize("name", ["arm3r", pytest.param("kuka-lwr4", marks=pytest.mark.slow)])
def test_gradients_of_the_torques(jax, name):
    """By all inputs, p among them, at states that friction's sign does not change: CasADi and central differences."""
    import casadi
    program, module = arm(name)
    rng = np.random.default_rng(3)
    inputs = [*rng.normal(size=(3, program.plan.dof)), program.matrix @ program.values]
    function = program.casadi()["inverse_dynamics"]
    symbols = [casadi.SX.sym(one, len(values)) for one, values in zip("abcd", inputs, strict=True)]
    slope = casadi.Function("slope", symbols, [casadi.jacobian(function(*symbols), casadi.vertcat(*symbols))])
    exact = np.array(slope(*inputs))
    forward = np.hstack(jax.jit(jax.jacfwd(module["inverse_dynamics"], argnums=(0, 1, 2, 3)))(*inputs))
    backward = np.hstack(jax.jit(jax.jacrev(module["inverse_dynamics"], argnums=(0, 1, 2, 3)))(*inputs))
    close(forward, exact, 1e-9)
    close(backward, exact, 1e-9)
    close(forward, differences(jax.jit(module["inverse_dynamics"]), inputs), 1e-6)


def differences(function: Any, inputs: list[np.ndarray], step: float = 1e-6) -> np.ndarray:
    """Central differences of a function by all its inputs, (outputs, inputs)."""
    columns = []
    for k, values in enumerate(inputs):
        for j in range(len(values)):
            ends = []
            for sign in (1.0, -1.0):
                moved = [x.copy() for x in inputs]
                moved[k][j] += sign * step
                ends.append(np.asarray(function(*moved)))
            columns.append((ends[0] - ends[1]) / (2.0 * step))
    return np.array(columns).T


@pytest.mark.parametrize("method", ["euler", pytest.param("rk4", marks=pytest.mark.slow)])
def test_gradients_through_a_rollout(jax, small, method):
    """Final positions by gains and reference, back through all steps, in which friction does not change its sign."""
    _, module = small
    q, dq = np.array([0.1, 0.4]), np.array([1.0, -1.2])

    def end(gains: Any, reference: Any) -> Any:
        return module["rollout"](q, dq, reference[None], 0.0 * reference[None], gains[:2], gains[2:], 1e-3, 25,
                                 method=method)[0]

    inputs = [np.array([30.0, 20.0, 3.0, 2.0]), np.array([0.5, -0.2])]
    found = np.hstack(jax.jit(jax.jacrev(end, argnums=(0, 1)))(*inputs))
    close(found, differences(jax.jit(end), inputs, 1e-4), 1e-6)


def test_the_path_of_a_rollout(jax, small):
    _, module = small
    q, dq = np.random.default_rng(5).normal(size=(2, 2, 4))
    reference, still = np.random.default_rng(6).normal(size=(6, 2)), np.zeros((6, 2))
    whole = module["rollout"](q, dq, reference, still, 5.0, 1.0, 1e-3, 7, limit=3.0, every=3)
    part = module["rollout"](q, dq, reference, still, 5.0, 1.0, 1e-3, 6, limit=3.0)
    assert whole[2][0].shape == (2, 2, 4)
    close(np.asarray(whole[2][0][1]), np.asarray(part[0]))
    last = module["rollout"](*part, reference[5:], still[5:], 5.0, 1.0, 1e-3, 1, limit=3.0)
    close(np.asarray(whole[1]), np.asarray(last[1]))
    with pytest.raises(ValueError, match="method must be"):
        module["rollout"](q, dq, reference, still, 5.0, 1.0, 1e-3, 7, method="verlet")
